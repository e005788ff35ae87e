"""The web port on a free port of this machine, served as `nexus run --web` does, and held against its document."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from bot.web.server import open_port
from composer.settings import Settings
from tests.support.documented import Documented


@asynccontextmanager
async def served_at(served: ASGIApp, **settings: Any) -> AsyncIterator[str]:
    """Serve an app with these settings of the port; gives its address, such as http://127.0.0.1:54321. At the end it
    fails if an answer was not as the document of the app says."""
    documented = Documented(served) if isinstance(served, FastAPI) else None
    async with AsyncExitStack() as stack:
        port = Settings(home=Path("unused"), web_port=0, **settings)
        yield f"http://{await open_port(port, documented or served, stack)}"
    assert documented is None or not documented.found, "\n".join(sorted(set(documented.found)))
