"""The web port on a free port of this machine, served as `nexus run --web` does."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from bot.web.server import open_port
from composer.settings import Settings


@asynccontextmanager
async def served_at(served: ASGIApp, **settings: Any) -> AsyncIterator[str]:
    """Serve an app with these settings of the port; gives its address, such as http://127.0.0.1:54321."""
    async with AsyncExitStack() as stack:
        yield f"http://{await open_port(Settings(home=Path('unused'), web_port=0, **settings), served, stack)}"
