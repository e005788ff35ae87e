"""The servers of a recording: a PostgreSQL and a Valkey of its own, with the template database of the tests."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from composer.stores.embedded.servers import EmbeddedServers, Servers
from tests.support import runs
from tests.support.databases import make_template, start_fast


@contextmanager
def stores() -> Iterator[tuple[Servers, Path]]:
    """Servers that run, and the folder of this run, which is removed at the end."""
    folder = runs.begin(runs.base_folder())
    home = folder / "servers"
    home.mkdir(mode=0o755)
    own = EmbeddedServers(home)
    try:
        started = start_fast(own)
        asyncio.run(make_template(started.database_url))
        yield started, folder
    finally:
        own.stop()
        runs.remove(folder)
