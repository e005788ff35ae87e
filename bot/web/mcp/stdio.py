"""The memory over standard input and output, for a tool that starts Nexus as a program."""

import sys
from contextlib import redirect_stdout
from typing import Any, Final

from bot.web.limits import FairUse
from bot.web.mcp.caller import Caller
from bot.web.mcp.server import memory_server
from composer.app import App
from composer.credentials.principal import Principal
from composer.errors import Refused

WRONG_KEY: Final = "The key in NEXUS_KEY opens nothing: it is wrong, has expired or was revoked."


async def serve(app: App, key: str) -> None:
    """Serve until the input ends. The key is looked up at each call, so that one which is revoked opens nothing more.
    Raises Refused for a wrong one."""
    settings = app.settings
    fair_use = FairUse(app.redis_url, settings.requests_per_minute, settings.admin_requests_per_minute)

    async def principal(_: Any = None) -> Principal:
        found = await app.credentials.resolve(key)
        if found is None:
            raise Refused(WRONG_KEY)
        await fair_use.admit(f"key:{found.id}")
        return found

    try:
        await principal()
        with redirect_stdout(sys.__stdout__):  # the SDK takes it, and lets what else is printed go to standard error
            await memory_server(Caller(app, principal)).run_stdio_async()
    finally:
        await fair_use.close()
