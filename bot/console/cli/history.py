"""`nexus import`: load history from files."""

import sys
import uuid
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bot.console import imports, render
from bot.console.after_import import ask_about, ask_in_chat
from bot.console.cli.failure import fail
from bot.console.cli.invocation import Json, load_settings, print_json, read_or_fail, run_in_app
from bot.console.cli.optional_values import ALL
from bot.importers.detection import format_of
from bot.importers.export import (
    DISCORD_EXPORT,
    IRC,
    JSONL,
    MATRIX,
    MATTERMOST,
    MAX_LISTED_NAMES,
    SLACK_EXPORT,
    TEAMS,
    TELEGRAM,
    ZULIP,
    ImportOptions,
)
from bot.importers.history import import_history, read_history
from bot.importers.history_privacy import Rooms, kept_sentence, question, rooms_kept_private, sentence, unsaid_rooms
from bot.importers.undoing import undo_run
from bot.script.events import Line, MessageEvent
from composer.app import App
from composer.errors import BadInput
from composer.ingest.imports import find_import, list_imports, short_id
from composer.model import CONSOLE, Incoming, Workspace
from composer.operations.import_estimate import ImportEstimator
from composer.repositories.imports import ImportRun
from composer.settings import Settings
from composer.text.counts import counted

cli = typer.Typer()


class _Cost:
    """What the work of a model on an import will cost: it is said before anything is stored, and confirmed when it is
    much. Without a model nothing is said."""

    def __init__(self, settings: Settings, confirmed: bool, json_lines: bool) -> None:
        self._settings, self._confirmed, self._json_lines = settings, confirmed, json_lines
        self.estimator = ImportEstimator(settings)

    def add(self, message: Incoming) -> None:
        """Add a message of an export."""
        self.estimator.add_message(message)

    def confirm(self) -> None:
        """Show the estimate. Ends the program when it is much and nobody says yes."""
        estimate = self.estimator.result()
        if estimate is None:
            return
        if self._json_lines:
            print_json({"estimate": estimate.as_json(self._settings)})
        else:
            render.show(estimate.sentence(self._settings))
        if not estimate.needs_confirmation or self._confirmed:
            return
        if not sys.stdin.isatty():
            fail(BadInput("Nothing was loaded: to load it at that cost, give the command again with --yes."))
        typer.confirm("Load it?", abort=True, err=True)


class HistoryFormat(StrEnum):
    """The file formats of `nexus import`."""

    JSONL = JSONL
    IRC = IRC
    SLACK = SLACK_EXPORT
    DISCORD = DISCORD_EXPORT
    MATTERMOST = MATTERMOST
    ZULIP = ZULIP
    TELEGRAM = TELEGRAM
    MATRIX = MATRIX
    TEAMS = TEAMS

    @property
    def is_export(self) -> bool:
        """Whether it is the export of a chat system, which says itself who may read most of it."""
        return self not in (HistoryFormat.JSONL, HistoryFormat.IRC)


@cli.command("import")
def import_command(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE...", help="The files to load.")] = None,
    format: Annotated[
        HistoryFormat | None,
        typer.Option("--format", help="The format of the files.", show_default="what the files look like"),
    ] = None,
    room: Annotated[str | None, typer.Option("--room", help="Load all into this room.")] = None,
    workspace: Annotated[str | None, typer.Option("--workspace", "-w", help="Load all into this workspace.")] = None,
    embed: Annotated[bool, typer.Option(help="Embed now; with --no-embed the next nexus run does it.")] = True,
    bot: Annotated[str | None, typer.Option("--bot", help="The id of the agent's bot user in the export.")] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(
            "--public", help="A room that everyone may read; * (or nothing) for all that the files leave open."
        ),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Rooms of which the files say nothing are for those who wrote there.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the imports instead.")] = False,
    undo: Annotated[
        str | None, typer.Option("--undo", metavar="RUN", help="Erase what an import brought, after showing how much.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Load it whatever a model will cost to work on it; with --undo, erase it.")
    ] = False,
    json_lines: Json = False,
) -> None:
    """Load history from files. Nothing is answered, and importing again changes nothing. List imports, and undo one."""
    settings = load_settings()
    if listed or undo is not None:
        if files or (listed and undo is not None):
            fail(BadInput("Give either files to load, or --list, or --undo RUN."))
        run_in_app(settings, lambda app: _runs(app, undo, confirmed=yes, json_lines=json_lines), index=False)
        return
    if not files:
        fail(BadInput("Name the files to load, or use --list or --undo RUN; for example: nexus import history.jsonl"))
    if private and ALL in (public or ()):
        fail(BadInput("Say --public or --private, not both for the same rooms: --public ROOM names the public ones."))
    format = format or _detected(files)
    if private and format.is_export:
        fail(BadInput("Leave out --private: rooms of these exports of which nothing is known are private anyway."))
    run = ImportRun(uuid.uuid4(), ", ".join(path.name for path in files))
    this = _Import(settings, files, run, _Cost(settings, yes, json_lines), embed, json_lines)
    options = ImportOptions(workspace, room, bot, tuple(public or ()))
    if format.is_export:
        _import_exports(this, format, options)
    elif bot is not None:
        fail(BadInput("Use --bot only with --format slack-export or discord-export."))
    else:
        _import_lines(this, format, options, private=private)


def _detected(files: Sequence[Path]) -> HistoryFormat:
    """The format of files that nobody has named."""
    found = {HistoryFormat(read_or_fail(partial(format_of, path))): path for path in files}
    if len(found) > 1:
        kinds = ", ".join(f"{path.name} ({format.value})" for format, path in found.items())
        fail(BadInput(f"These files are of several formats: {kinds}. Import them one by one."))
    return next(iter(found))


@dataclass(frozen=True, slots=True)
class _Import:
    """One import of files, as its run records it. `embed`: embed the messages now."""

    settings: Settings
    files: Sequence[Path]
    run: ImportRun
    cost: _Cost
    embed: bool
    json_lines: bool


def _import_lines(this: _Import, format: HistoryFormat, options: ImportOptions, *, private: bool) -> None:
    """Load files of events or IRC logs. `private`: rooms of which they say nothing are private."""
    room, public = options.room, options.public
    odd: list[str] = []
    lines = read_or_fail(
        lambda: [
            line for path in this.files for line in read_history(path, format, options.workspace, room, odd.append)
        ]
    )
    if not lines:
        names = ", ".join(str(path) for path in this.files)
        fail(BadInput(f"{names}: there is no message in it. docs/import.md says which files an import takes."))
    for line in lines:
        if isinstance(line.event, MessageEvent) and line.event.at is not None:
            this.cost.estimator.add(_place(line.event, room), line.event.user, line.event.at, line.event.text)
    this.cost.confirm()
    into = None if format is HistoryFormat.IRC else room
    asked: Rooms | None = None
    if sys.stdin.isatty() and not (public or private):
        asked = _ask(this.settings, lines, into)

    async def run(app: App) -> None:
        unsaid = await unsaid_rooms(app, lines, public, into)
        closed = _private_rooms(unsaid, public, private=private) if asked is None else unsaid & asked
        if unsaid:
            render.warn(sentence(unsaid, closed))
        kept = await rooms_kept_private(app, lines, into) if ALL in public else None
        if kept:
            render.warn(kept_sentence(kept))
        with render.progress("messages") as bar:
            task = bar.add_task("", total=len(lines))
            done = await import_history(app, lines, lambda count: bar.advance(task, count), into, closed, this.run)
        for name in sorted({line.event.workspace for line in lines}):
            await _index(app, app.directory.workspace(CONSOLE, name), this.embed)
        if this.json_lines:
            counts = {"read": done.read, "new": done.new, "known": done.known, "skipped": dict(done.skipped)}
            print_json({"run": short_id(this.run.id), **counts} | ({"odd": odd[:MAX_LISTED_NAMES]} if odd else {}))
        else:
            skipped = "".join(f"; {count:,} skipped {why}" for why, count in done.skipped.items())
            read = counted(done.read, "message")
            render.show(f"{read} read: {done.new:,} new, {done.known:,} stored already{skipped}.")
            if odd:
                more = f" And {len(odd) - MAX_LISTED_NAMES:,} more." if len(odd) > MAX_LISTED_NAMES else ""
                render.warn(f"{counted(len(odd), 'line')} left out: {' '.join(odd[:MAX_LISTED_NAMES])}{more}")
            await _show_undo(app, this.run)
            render.next_step(await ask_in_chat(app, lines, into))

    run_in_app(this.settings, run, index=False)


async def _show_undo(app: App, run: ImportRun) -> None:
    """Say how to undo an import, if it brought anything."""
    if any(each.id == run.id and each.brought for each in await list_imports(app.database)):
        render.show(imports.to_undo(run.id))


async def _runs(app: App, undo: str | None, *, confirmed: bool, json_lines: bool) -> None:
    """List the imports, or undo one."""
    if undo is None:
        runs = [run for run in await list_imports(app.database) if run.brought]
        for run in runs:
            print_json(imports.as_json(run)) if json_lines else render.show(imports.line(run))
        if not json_lines:
            render.show("Nothing was imported." if not runs else "To undo one: nexus import --undo RUN")
        return
    run = await find_import(app.database, undo)
    if run.brought and run.undone_at is None and not confirmed:
        if not sys.stdin.isatty() or json_lines:
            fail(BadInput(f"{imports.warning(run)} To do it, give the command again with --yes."))
        render.warn(imports.warning(run))
        typer.confirm("Erase it?", abort=True, err=True)
    with render.progress("erasing") as bar:
        task = bar.add_task("", total=run.messages)
        done = await undo_run(app, run, lambda count: bar.update(task, completed=count))
    if json_lines:
        print_json(imports.undone_json(run, done))
    else:
        render.show(imports.undone_text(run, done))


def _private_rooms(rooms: Rooms, public: Collection[str], *, private: bool) -> Rooms:
    """Which of the rooms of which the files say nothing are private by the options. Without any they are public, as
    rooms of scripts are."""
    if ALL in public or not (private or public):
        return set()
    return {(workspace, name) for workspace, name in rooms if name not in public}


def _ask(settings: Settings, lines: Sequence[Line], into: str | None) -> Rooms:
    """Which of the rooms of which the files say nothing are private, by the answer of whoever sits at the terminal."""
    found: Rooms = set()

    async def look(app: App) -> None:
        found.update(await unsaid_rooms(app, lines, (), into))

    run_in_app(settings, look, index=False)
    if not found:
        return found
    render.warn(question(found))
    return set() if typer.confirm("May everyone in the workspace read them?", err=True) else found


def _import_exports(this: _Import, format: HistoryFormat, options: ImportOptions) -> None:
    """Load exports of chat platforms."""
    from bot.importers.platform_exports import load, open_exports  # noqa: PLC0415 - brings the SDKs

    with ExitStack() as opened:
        with render.progress("reading") as bar:
            task = bar.add_task("", total=None)
            progress = partial(bar.advance, task)
            exports = read_or_fail(
                lambda: open_exports(this.files, format, options, this.settings, opened, progress, this.cost.add)
            )
        nothing = [surveyed.survey.nothing(str(this.files[0])) for surveyed in exports]
        if all(nothing):
            fail(BadInput(nothing[0]))
        this.cost.confirm()

        async def run(app: App) -> None:
            for surveyed in exports:
                with render.progress("messages") as bar:
                    task = bar.add_task("", total=surveyed.survey.read)
                    done = await load(app, surveyed, partial(bar.advance, task), render.warn, this.run)
                for name in sorted(surveyed.survey.workspaces):
                    await _index(app, app.directory.workspace(surveyed.export.platform, name), this.embed)
                if this.json_lines:
                    print_json({"run": short_id(this.run.id), **done.as_json()})
                else:
                    render.show(done.sentence())
                if done.odd:
                    render.warn(done.odd_sentence())
                if done.assumed_private:
                    render.warn(done.warning(short_id(this.run.id)))
            if not this.json_lines:
                await _show_undo(app, this.run)
                render.next_step(await ask_about(app, exports))
            lost = [sentence for surveyed in exports if (sentence := surveyed.survey.lost())]
            if lost:
                fail(BadInput(" ".join(lost)))

        run_in_app(this.settings, run, index=False)


def _place(event: MessageEvent, room: str | None) -> tuple[object, ...]:
    """The conversation of a message, for an estimate."""
    return event.workspace, room or event.room, event.dm, event.session, event.thread, event.dm and event.user


async def _index(app: App, workspace: Workspace, embed: bool) -> None:
    async with app.database.transaction(workspace.tenant_id, "read") as tx:
        unindexed, unembedded = (await tx.maintenance.backlog()).indexing
    with render.progress("indexing") as index_bar, render.progress("embedding") as embed_bar:
        indexing = index_bar.add_task("", total=unindexed)
        embedding = embed_bar.add_task("", total=unindexed + unembedded) if embed else None

        def advance(indexed: int, embedded: int) -> None:
            index_bar.advance(indexing, indexed)
            if embedding is not None:
                embed_bar.advance(embedding, embedded)

        await app.indexer.catch_up(workspace.tenant_id, advance, embed=embed)
