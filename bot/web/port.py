"""Opens the web port."""

import os
from contextlib import AsyncExitStack

from aiohttp import web

from composer.errors import Misconfigured
from composer.settings import Settings


async def open_port(settings: Settings, served: web.Application, stack: AsyncExitStack) -> str:
    """Serve an application until `stack` is closed; returns the host and port. Raises Misconfigured when the port is
    taken, or can't be opened for another reason."""
    runner = web.AppRunner(served, access_log=None)  # who asks is nobody's business, and the answers are logged
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    host, port = settings.web_host, settings.web_port
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        reason = (os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)).lower()
        raise Misconfigured(
            f"The web port {port} can't be opened on {host} ({reason}): end what uses it, or set NEXUS_WEB_PORT and "
            "NEXUS_WEB_HOST to others."
        ) from error
    return ", ".join(f"{address[0]}:{address[1]}" for address in runner.addresses)
