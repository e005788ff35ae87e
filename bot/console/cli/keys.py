"""`nexus keys`: what opens people's memories over the API."""

from typing import Annotated

import typer

from bot.console import keys as work
from bot.console import render
from bot.console.cli.invocation import InWorkspace, Json, OfPlatform, Platform, load_settings, print_json, run_in_app
from bot.console.workspaces import naming_workspaces
from composer.app import App
from composer.people.credentials.issuing import KeyRequest, lifetime_of
from composer.people.credentials.stored import credential_line, credential_name
from composer.settings import DEFAULT_WORKSPACE

cli = typer.Typer(name="keys", help="Make, list and revoke the keys to people's memories.", no_args_is_help=True)

Whose = Annotated[
    str, typer.Option("--user", metavar="USER", help="Whose memory it opens: a name, or an id on PLATFORM.")
]


@cli.command("create")
def keys_create(
    user: Whose = "",
    vendor: Annotated[
        str | None, typer.Option("--vendor", metavar="TOOL", help="Of this AI tool, such as claude; else the person's.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="What the key is called in lists.")] = "",
    permission: Annotated[
        list[str] | None, typer.Option("--permission", help="Only for this, such as entries:read. May be repeated.")
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option("--project", help="Of projects only this one, such as apollo:read. May be repeated."),
    ] = None,
    expires: Annotated[str | None, typer.Option("--expires", help="When it ends by itself: 12h, 90d or 4w.")] = None,
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    platform: OfPlatform = Platform.CONSOLE,
    json_lines: Json = False,
) -> None:
    """Make a key to a person's memory, for them or for one of their AI tools, and show it once."""
    settings = load_settings()

    async def run(app: App) -> None:
        request = KeyRequest(vendor, name, None, None if expires is None else app.clock.now() + lifetime_of(expires))
        async with naming_workspaces(app, platform, workspace):
            person = work.NamedPerson.of(app, platform, workspace, user)
            made = await work.create(app, person, request, project or (), permission or ())
        if json_lines:
            tenant = app.directory.workspace(person.platform, person.workspace).tenant
            print_json({"key": made.text, **work.as_json(made.entry, tenant)})
        else:
            render.show(made.text)
            render.show(f"For {', '.join(made.entry.permissions)}. It is stored nowhere, and not shown again.")
            whom = "tool" if vendor is not None else "person, and to no tool"
            render.next_step(f"give it to that {whom}; nexus keys revoke {made.entry.id.hex[:8]} ends it.")

    run_in_app(settings, run, index=False)


@cli.command("list")
def keys_list(json_lines: Json = False) -> None:
    """List the keys, web sessions and logins of everyone, without anything that opens a memory."""
    settings = load_settings()

    async def run(app: App) -> None:
        empty = True
        async for tenant, found in work.credentials_by_tenant(app):
            empty = False
            if json_lines:
                for each in found:
                    print_json(work.as_json(each, tenant))
                continue
            render.show(f"{tenant}:")
            for each in found:
                render.show(f"  {each.user_name}: {credential_line(each, app.clock.now())}")
        if empty and not json_lines:
            render.show("There is no key and no web session. To make a key: nexus keys create --user alice")

    run_in_app(settings, run, index=False)


@cli.command("revoke")
def keys_revoke(
    id: Annotated[str, typer.Argument(help="The beginning of its id; nexus keys list shows it.")],
    json_lines: Json = False,
) -> None:
    """End a key, a web session or a login: from its next request on it opens nothing."""
    settings = load_settings()

    async def run(app: App) -> None:
        found = await work.revoke(app, id)
        if json_lines:
            print_json({"ended": str(found.id)})
        else:
            render.show(f"{credential_name(found)} of {found.user_name} has ended.")

    run_in_app(settings, run, index=False)
