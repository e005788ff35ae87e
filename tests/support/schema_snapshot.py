"""The reviewed snapshot of the schema: sql/schema.sql, which shows the sum of all migrations.

Renew it after a new migration with `python -m tests.support.schema_snapshot`, and read the difference.
"""

import asyncio
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from composer.stores.embedded.servers import EmbeddedServers
from composer.stores.embedded.service_account import binaries, service_account
from composer.stores.schema import apply_migrations

SNAPSHOT: Final = Path(__file__).parents[2] / "sql" / "schema.sql"
HEAD: Final = (
    "-- The schema as all migrations together make it, for reading and for review; nothing runs this file.\n"
    "-- Made by `python -m tests.support.schema_snapshot`; a test compares it with a freshly migrated database.\n\n"
)
# Versions, sessions and the random key of \restrict say nothing of the schema.
_NOISE: Final = re.compile(r"^(?:--.*|SET .*;|SELECT pg_catalog\.set_config.*;|\\(?:un)?restrict .*)$", re.MULTILINE)


def dump(url: str) -> str:
    """The schema of a migrated database, as it stands in sql/schema.sql."""
    program = binaries(service_account()).postgres / "pg_dump"
    command = [str(program), "--schema-only", "--no-owner", "--dbname=" + url[:]]
    text = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout
    return HEAD + re.sub(r"\n{3,}", "\n\n", _NOISE.sub("", text)).strip() + "\n"


def main() -> None:
    """Write the snapshot anew, from a database of its own."""
    home = Path(tempfile.mkdtemp(prefix="nexus-schema-"))
    home.chmod(0o755)
    servers = EmbeddedServers(home)
    try:
        url = servers.start(valkey=False).database_url
        asyncio.run(apply_migrations(url))
        SNAPSHOT.write_text(dump(url), encoding="utf-8")
    finally:
        servers.stop()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
