"""`nexus mcp`: the memory for an AI tool that starts it as a program."""

from typing import Final

import typer

from bot.console.cli.failure import fail
from bot.console.cli.invocation import load_settings, run_in_app
from composer.app import App
from composer.errors import Misconfigured

NO_MCP_KEY: Final = (
    "NEXUS_KEY is not set, and nexus mcp acts with it: nexus keys create --user NAME --vendor TOOL makes one."
)

cli = typer.Typer()


@cli.command()
def mcp() -> None:
    """Serve one memory to one AI tool over standard input and output (MCP). The key in NEXUS_KEY says whose, and which
    tool. Tools start this program themselves: docs/mcp.md shows what to write into their settings."""
    from bot.web.mcp import stdio  # noqa: PLC0415 - the SDK takes a second that no other command has to spend

    settings = load_settings()
    if settings.key is None:
        fail(Misconfigured(NO_MCP_KEY))
    key = settings.key.get_secret_value()

    async def serve(app: App) -> None:
        await stdio.serve(app, key)

    run_in_app(settings, serve)
