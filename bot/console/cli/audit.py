"""`nexus audit`: show and verify the audit log."""

from typing import Annotated

import typer

from bot.console import audit as auditing
from bot.console import render
from bot.console.cli.failure import EXIT_FAILED
from bot.console.cli.invocation import (
    InWorkspace,
    Json,
    OfPlatform,
    Platform,
    load_settings,
    print_json,
    read_or_fail,
    run_in_app,
)
from bot.console.workspaces import meant_workspaces, naming_workspaces
from composer.app import App
from composer.errors import NotFound
from composer.settings import DEFAULT_WORKSPACE

cli = typer.Typer(name="audit", help="Show and verify the audit log.", no_args_is_help=True)


@cli.command("list")
def audit_list(
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    since: Annotated[
        str | None, typer.Option("--since", help="From this time (ISO 8601) or day (2026-05-01, yesterday) on.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Before this time (ISO 8601) or day.")] = None,
    act: Annotated[str | None, typer.Option("--act", help="Only this act, for example room.opened.")] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Only rows by or about this user: a name or an id.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000_000, help="At most this many rows.")] = 100,
    platform: OfPlatform = Platform.CONSOLE,
    json_lines: Json = False,
) -> None:
    """List who did what to whom and where, by ids, newest first."""
    settings = load_settings()
    query = read_or_fail(lambda: auditing.audit_query(since, until, act, user, limit))

    async def show(app: App) -> None:
        async with naming_workspaces(app, platform, workspace):
            events = await auditing.find(app, platform, workspace, query)
        if not events:
            none = f"The audit log of the workspace {workspace} has no such rows."
            if meant := await meant_workspaces(app, platform, workspace):
                raise NotFound(f"{none} {meant}")
            if not json_lines:
                render.show(none)
        for event in events:
            if json_lines:
                print_json(auditing.as_json(event))
            else:
                render.show(auditing.line(event))

    run_in_app(settings, show, index=False)


@cli.command("verify")
def audit_verify(json_lines: Json = False) -> None:
    """Check that no row of the audit log was changed, removed or inserted; exits with 1 if one was."""
    settings = load_settings()

    async def check(app: App) -> None:
        results = await auditing.verify(app)
        if not (results or json_lines):
            render.show("Nothing is stored yet, so there is no audit log.")
        for tenant, found in results:
            if json_lines:
                print_json(auditing.verification_json(tenant, found))
            else:
                render.show(auditing.verification_text(tenant, found), style="" if found.whole else "bold red")
        if not all(found.whole for _, found in results):
            raise typer.Exit(EXIT_FAILED)

    run_in_app(settings, check, index=False)
