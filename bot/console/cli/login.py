"""`nexus login`: a link that signs a person in to the web pages."""

from typing import Annotated, Any

import typer

from bot.console import keys as work
from bot.console import render
from bot.console.cli.invocation import InWorkspace, Json, OfPlatform, Platform, load_settings, print_json, run_in_app
from bot.console.workspaces import naming_workspaces
from composer.app import App
from composer.people.credentials.sign_in import LOCAL_LINK
from composer.settings import DEFAULT_WORKSPACE

cli = typer.Typer()


@cli.command()
def login(
    user: Annotated[str, typer.Argument(help="Whom it signs in: a name, or an id on PLATFORM.")] = "",
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    platform: OfPlatform = Platform.CONSOLE,
    json_lines: Json = False,
) -> None:
    """Make a link that signs a person in to the web pages, once, within five minutes."""
    settings = load_settings()

    async def run(app: App) -> None:
        async with naming_workspaces(app, platform, workspace):
            link = await work.login(app, work.NamedPerson.of(app, platform, workspace, user))
        shown: dict[str, Any] = {"link": link}
        if json_lines:
            print_json(shown)
        else:
            render.show(link)
            if settings.public_url is None:
                render.show(LOCAL_LINK)
            render.next_step("open it in a browser within five minutes; nexus run --web serves the page.")

    run_in_app(settings, run, index=False)
