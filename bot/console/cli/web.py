"""`nexus web`: the pages in a browser, for one who looks at them on this machine."""

import secrets
from typing import Annotated, Final

import typer

from bot.console import render, schedule
from bot.console.cli.invocation import InWorkspace, User, load_settings, run_in_app
from bot.console.logs import announcer
from bot.console.operations import set_admin
from bot.console.sample import SAMPLE, load_proposal, load_sample
from bot.script.places import DEFAULT_USER
from composer.app import App
from composer.errors import NotFound
from composer.model import CONSOLE, SLACK, Workspace
from composer.people.credentials.keys import SECRET_BYTES
from composer.people.credentials.sign_in import login_url, make_login_link
from composer.settings import DEFAULT_WORKSPACE, TenantSettings

cli = typer.Typer()
UNKNOWN: Final = "Nobody is called {user} here: --as names who looks, --sample loads a small company to look at."


@cli.command()
def web(
    user: User = DEFAULT_USER,
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    sample: Annotated[
        bool, typer.Option("--sample", help="Use a sample workspace with a few days of history.")
    ] = False,
) -> None:
    """Open the web pages on this machine, and print a link that signs a user in."""
    from bot import serving  # noqa: PLC0415 - FastAPI and uvicorn take half a second
    from bot.web.metrics import Metrics  # noqa: PLC0415 - as above
    from bot.web.pages.admin_import import SAMPLE_SLACK  # noqa: PLC0415 - as above

    settings = load_settings()
    if sample and SAMPLE not in settings.tenants:
        spaces = TenantSettings(workspaces=(f"{CONSOLE}:{SAMPLE}", f"{SLACK}:{SAMPLE_SLACK}"))
        settings = settings.model_copy(update={"tenants": {**settings.tenants, SAMPLE: spaces}})
    metrics = Metrics(settings.metered_models)

    async def serve(app: App) -> None:
        target = app.directory.workspace(CONSOLE, SAMPLE if sample else workspace)
        if sample:
            await load_sample(app, target)
            await load_proposal(app, target)
            await set_admin(app, SAMPLE, DEFAULT_USER, True)  # or Admin would never be seen
        say = announcer(settings.log_format, render.err.print)

        jobs = schedule.ServedJobs(app)

        async def show_link() -> None:
            render.show(
                f"Open this link to sign in as {user} (once, within five minutes):\n{await _link(app, target, user)}"
            )

        await serving.serve(app, set(), say, jobs.serve, metrics, started=show_link, offered=jobs)

    run_in_app(settings, serve, observer=metrics)


async def _link(app: App, workspace: Workspace, name: str) -> str:
    async with app.database.transaction(workspace.tenant_id) as tx:
        found = await tx.people.find_user(CONSOLE, workspace.name, name)
        if found is None:
            raise NotFound(UNKNOWN.format(user=name))
        secret = secrets.token_bytes(SECRET_BYTES)
        code = await make_login_link(tx, workspace.tenant, found.id, secret, app.clock.now(), by=None)
    return login_url(app.settings.web_address, code)
