"""`nexus backup`, `restore`, `export`, `replay` and `reembed`: work on all that is stored."""

from pathlib import Path
from typing import Annotated

import typer

from bot.console import operations, render
from bot.console.cli.failure import EXIT_FAILED, fail
from bot.console.cli.invocation import (
    InWorkspace,
    Json,
    OfPlatform,
    Platform,
    finish,
    load_settings,
    print_json,
    read_or_fail,
    run_in_app,
)
from bot.console.files import require_folder, write_private
from bot.console.workspaces import naming_workspaces
from composer.app import App
from composer.errors import BadInput
from composer.people.replay import SAME
from composer.settings import DEFAULT_WORKSPACE
from composer.text.counts import counted, counted_all

cli = typer.Typer()


@cli.command()
def backup(
    file: Annotated[Path | None, typer.Argument(help="The file to write; default: in the data folder.")] = None,
    json_lines: Json = False,
) -> None:
    """Write a backup of everything. Nexus may run meanwhile."""
    settings = load_settings()
    done = finish(operations.backup(settings, file))
    if json_lines:
        print_json(done)
    else:
        render.show(f"{done['file']}: {counted(done['rows'], 'row')}, {counted(done['bytes'], 'byte')}.")
        render.next_step("keep a copy of audit.key in another place: nexus restore FILE needs it on a new machine.")


@cli.command("export")
def export_command(
    file: Annotated[Path | None, typer.Argument(help="The file to write; default: in this folder.")] = None,
    user: Annotated[str, typer.Option("--user", metavar="USER", help="The user's name, or their id on PLATFORM.")] = "",
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    platform: OfPlatform = Platform.CONSOLE,
    json_lines: Json = False,
) -> None:
    """Write all that is one user's into a JSON file that only you may read (docs/export.md)."""
    if not user:
        fail(BadInput("Name the user; for example: nexus export --user alice"))
    if file is not None:
        read_or_fail(lambda: require_folder(file))
    settings = load_settings()

    async def run(app: App) -> None:
        async with naming_workspaces(app, platform, workspace):
            document = await operations.export_user(app, platform, workspace, user)
        path = file or Path(f"nexus-export-{document.made_at:%Y%m%dT%H%M%SZ}.json")
        write_private(path, document.text)
        if json_lines:
            print_json({"file": str(path), **document.counts})
        else:
            render.show(f"{path.absolute()}, which only you may read: {counted_all(document.counts)}.")

    run_in_app(settings, run, index=False)


@cli.command("replay")
def replay_command(
    turn: Annotated[str, typer.Argument(help="The id of an answer's turn, as /nexus why shows it.")],
    json_lines: Json = False,
) -> None:
    """Compose an answer's prompt again as of then, and say where and why it differs. Shows no text, stores nothing."""
    settings = load_settings()

    async def run(app: App) -> None:
        found = await operations.replay_turn(app, turn)
        if json_lines:
            print_json(found.as_json())
        else:
            render.show(operations.replay_sentences(found))
        if found.result != SAME:
            raise typer.Exit(EXIT_FAILED)

    run_in_app(settings, run, index=False)


@cli.command()
def restore(
    file: Annotated[Path, typer.Argument(help="The backup to restore.")],
    trust: Annotated[
        bool, typer.Option("--trust", help="Restore a backup that this data folder's key has not signed.")
    ] = False,
    json_lines: Json = False,
) -> None:
    """Restore a backup into an empty data folder or database."""
    settings = load_settings()
    done = finish(operations.restore(settings, file, trust=trust))
    if json_lines:
        print_json(done)
    else:
        rows = counted(done["rows"], "row")
        render.show(f"Restored the backup of {done['taken_at']}: {rows}.")
        render.show("Keys that were revoked since are valid again: nexus keys list shows them; revoke them again.")
        render.next_step("nexus doctor checks the result, nexus run serves it.")


@cli.command()
def reembed(
    status: Annotated[bool, typer.Option("--status", help="Only show the progress.")] = False,
    json_lines: Json = False,
) -> None:
    """Embed everything again with the embedder of NEXUS_EMBEDDER, or the default, while Nexus serves with the old."""
    settings = load_settings()
    if status:
        found = finish(operations.reembed_status(settings))
        if json_lines:
            print_json(found)
        else:
            render.show(operations.reembed_sentence(found))
        return
    with render.progress("embedding") as bar:
        task = bar.add_task("", total=None)

        def progress(prepared: int, items: int) -> None:
            if json_lines:
                print_json({"prepared": prepared, "items": items})
            else:
                bar.update(task, completed=prepared, total=items)

        done = finish(operations.reembed(settings, progress))
    if json_lines:
        print_json(done)
    else:
        name, width = done["embedder"]["name"], done["embedder"]["width"]
        render.show(f"All {done['items']:,} items now have vectors of {name} ({width} dimensions).")
        setting = f" with NEXUS_EMBEDDER={settings.embedder}" if settings.embedder else ""
        restart = f"Restart every running Nexus{setting}"
        render.show(f"{restart}; until then it recalls by words alone.")
