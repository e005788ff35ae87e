"""`nexus run`, `migrate`, `doctor` and `admin`: serve, and look after what serves."""

from typing import Annotated

import typer

from bot.console import operations, render, schedule
from bot.console.cli.failure import EXIT_FAILED
from bot.console.cli.invocation import InWorkspace, Json, finish, load_settings, print_json, read_or_fail, run_in_app
from bot.console.doctor import Check, as_json, check_receipt, run_doctor
from bot.console.first_admin import try_first_links
from bot.console.logs import announcer
from bot.console.workspaces import naming_workspaces
from composer.app import App
from composer.model import CONSOLE, DISCORD, SLACK
from composer.operations import upkeep
from composer.settings import DEFAULT_WORKSPACE, Settings

cli = typer.Typer()


@cli.command()
def run(
    discord: Annotated[bool, typer.Option("--discord", help="Serve Discord.")] = False,
    slack: Annotated[bool, typer.Option("--slack", help="Serve Slack by Socket Mode.")] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Open the web port: health, readiness, metrics, Slack's events.")
    ] = False,
    jobs: Annotated[
        bool, typer.Option("--jobs", help="Run the scheduled jobs. Without another option: only the jobs.")
    ] = False,
) -> None:
    """Serve until stopped. Without options: every configured platform, and the scheduled jobs. The web port is opened
    with --web, or where NEXUS_WEB_HOST or NEXUS_WEB_PORT is set; --web prints a link for the first admin, until
    one has signed in."""
    from bot import serving  # noqa: PLC0415 - the SDKs take half a second that no other command has to spend
    from bot.web.metrics import Metrics  # noqa: PLC0415 - as above

    settings = load_settings()
    wanted = {name for name, on in ((DISCORD, discord), (SLACK, slack)) if on}
    platforms = set[str]() if jobs and not wanted else read_or_fail(lambda: serving.chosen(settings, wanted))
    with_jobs = jobs or not wanted
    port = serving.opens_port(settings, platforms, requested=web)
    metrics = Metrics(settings.known_models) if port else None

    async def serve(app: App) -> None:
        served, say = schedule.ServedJobs(app), announcer(settings.log_format, render.err.print)
        run_jobs, show = served.serve if with_jobs else None, (lambda: try_first_links(app)) if web else None
        await serving.serve(app, platforms, say, run_jobs, metrics, started=show, offered=served)

    run_in_app(settings, serve, observer=metrics)


@cli.command()
def migrate(json_lines: Json = False) -> None:
    """Bring the database's schema up to date."""
    settings = load_settings()
    steps = finish(upkeep.migrate(settings))
    if json_lines:
        print_json({"applied": steps})
    else:
        render.show("\n".join(f"applied {step}" for step in steps) or "The schema is up to date.")
        render.next_step("nexus run serves; nexus doctor checks everything first.")


@cli.command()
def doctor(
    erased: Annotated[
        str | None,
        typer.Option("--erased", metavar="RECEIPT", help="Only check that nothing of an erasure is stored any more."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Also ask the models and platforms. This may cost a few tokens.")
    ] = False,
    json_lines: Json = False,
) -> None:
    """Check everything that Nexus needs; print what is wrong and what to do about it."""
    settings = load_settings()
    work = run_doctor(settings, live=live) if erased is None else check_receipt(settings, erased)
    checks = finish(work)
    if json_lines:
        print_json({"checks": as_json(checks)})
    else:
        for check in checks:
            sign, style = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("·", "dim")}[check.ok]
            render.show(f"{sign} {check.name.ljust(16)} {check.detail}", style=style)
        if erased is None:
            render.next_step(_after_doctor(settings, checks))
    if any(check.ok is False for check in checks):
        raise typer.Exit(EXIT_FAILED)


def _after_doctor(settings: Settings, checks: list[Check]) -> str:
    """What to do after the checks."""
    if any(check.ok is False for check in checks):
        return "do what stands beside each ✗, then run nexus doctor again. docs/troubleshooting.md explains more."
    if settings.discord_token or settings.slack_bot_token:
        return "nexus run serves what is configured."
    if settings.has_model_api and settings.named_models:
        return "nexus chat talks to the agent here; nexus setup connects Discord and Slack."
    return "nexus setup connects a model, Discord and Slack; nexus chat talks to the agent here."


@cli.command()
def admin(
    user: Annotated[str, typer.Argument(help="The user's name.")],
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    remove: Annotated[bool, typer.Option("--remove", help="Make them an ordinary user again.")] = False,
) -> None:
    """Make a user an admin of a workspace, who changes its settings, writes for all, and erases people and projects."""
    settings = load_settings()

    async def grant(app: App) -> None:
        async with naming_workspaces(app, CONSOLE, workspace, takes_platform=False):
            name = await operations.set_admin(app, workspace, user, not remove)
        render.show(f"{name} is {'no longer' if remove else 'now'} an admin of {workspace}.")

    run_in_app(settings, grant, index=False)
