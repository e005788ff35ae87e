"""The program `nexus`: reads the command line, opens the app, and calls the module of each command."""

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, TypeVar

import typer

from bot.console import audit as auditing
from bot.console import chat as chatting
from bot.console import jobs as schedule
from bot.console import operations, render
from bot.console.conversations import question
from bot.console.files import write_private
from bot.console.logs import configure_logs
from bot.console.play import Player, ScriptClock
from bot.console.privacy import make_private, mask_output
from bot.importers.export import DISCORD, SLACK, ImportOptions
from bot.importers.history import import_history, read_history
from bot.script.events import read_questions, read_script
from bot.script.places import DEFAULT_WORKSPACE, PLATFORM, place_of
from composer.app import App, open_app
from composer.errors import BadInput, Misconfigured, NexusError, for_operator
from composer.model import Place
from composer.people.replay import SAME
from composer.settings import Settings, from_environment
from composer.workspace import Workspace

T = TypeVar("T")

EXIT_FAILED: Final = 1
EXIT_BAD_INPUT: Final = 2
FIRST_AGENT: Final = "-"  # the value of --dm without an agent

cli = typer.Typer(
    name="nexus",
    help="An agent that remembers, and never says in a room what it was told in private.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class HistoryFormat(StrEnum):
    """The file formats of `nexus import`."""

    JSONL = "jsonl"
    IRC = "irc"
    SLACK = SLACK
    DISCORD = DISCORD


User = Annotated[str, typer.Option("--as", metavar="USER", help="Act as this user.")]
Room = Annotated[str | None, typer.Option("--room", metavar="ROOM", help="Use this room.")]
Dm = Annotated[
    str | None, typer.Option("--dm", metavar="[AGENT]", help="Use a DM with this agent (default: the first).")
]
Session = Annotated[str | None, typer.Option("--session", metavar="SESSION", help="Use this API session.")]
InWorkspace = Annotated[
    str,
    typer.Option(
        "--workspace", "-w", help="Use this workspace. Each is a tenant of its own unless nexus.toml says otherwise."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one value per line.")]


@cli.command()
def chat(
    user: User = "alice",
    room: Room = None,
    dm: Dm = None,
    session: Session = None,
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    sample: Annotated[
        bool, typer.Option("--sample", help="Use a sample workspace with a few days of history.")
    ] = False,
) -> None:
    """Talk to the agent in the terminal.

    /as, /room, /dm, /session and /quit change who you are and where; every other /… is a Nexus command (see /help).
    """
    settings = _settings(tracebacks=False)
    place = _place(settings, room, dm, session)

    async def converse(app: App) -> None:
        target = app.directory.workspace(PLATFORM, "sample" if sample else workspace)
        if sample:
            await chatting.load_sample(app, target)
        typing = sys.stdin.isatty()
        conversation = chatting.Chat(app, chatting.Seat(target, user, place), scripted=not typing)
        if typing:
            from bot.console import line_editor as typed  # noqa: PLC0415 - brings prompt_toolkit

            _greet(app, sample)
            history = typed.open_history(settings.home / "chat_history")
            await conversation.run(typed.lines(conversation, history))
        else:
            await conversation.run(chatting.piped())
            if conversation.failed:
                raise typer.Exit(EXIT_FAILED)

    _run(settings, converse)


def _greet(app: App, sample: bool) -> None:
    agent = app.settings.agents[0]
    render.out.print(
        f"You are talking to {agent.name}. For a list of commands: /help. To leave: /quit or Ctrl-D.", style="bold"
    )
    if not agent.model:
        render.out.print(
            "No model is configured, so answers only quote from memory. For real answers set "
            "NEXUS_OPENAI_BASE_URL, NEXUS_OPENAI_API_KEY and NEXUS_MODEL (README).",
            style="dim",
        )
    if sample:
        render.out.print("Some history is loaded. Ask: when is the launch?   Then: /why", style="dim")
        render.out.print(
            "Then ask in the room: /room general   @nexus when is alice on leave?  (alice said when in her "
            "DM, so the room does not learn it)",
            style="dim",
        )


@cli.command()
def play(
    script: Annotated[Path, typer.Argument(help="A file of JSON lines, one event per line.")],
    json_lines: Json = False,
) -> None:
    """Play a script of events through the same pipeline as every platform, with the script's clock."""
    settings, lines = _settings(), _read(lambda: read_script(script))
    clock = ScriptClock()

    async def run(app: App) -> None:
        failed = await Player(app, clock, _print_json if json_lines else _print_event).play(lines)
        if failed:
            raise typer.Exit(EXIT_FAILED)

    _run(settings, run, clock=clock, index=False)


def _print_json(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def _print_event(event: dict[str, Any]) -> None:
    head = {"reply": f"→ {event.get('to')}: ", "command": "· ", "error": "! "}[event["event"]]
    render.show(head + event["text"], style="yellow" if event["event"] == "error" else "")


@cli.command("import")
def import_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The files to load.")],
    format: Annotated[HistoryFormat, typer.Option("--format", help="The format of the files.")] = HistoryFormat.JSONL,
    room: Annotated[str | None, typer.Option("--room", help="Load all into this room.")] = None,
    workspace: Annotated[str | None, typer.Option("--workspace", "-w", help="Load all into this workspace.")] = None,
    embed: Annotated[bool, typer.Option(help="Embed now; with --no-embed the next nexus run does it.")] = True,
    bot: Annotated[str | None, typer.Option("--bot", help="The id of the agent's bot user in the export.")] = None,
    public: Annotated[
        list[str] | None,
        typer.Option("--public", help="A channel of a Discord export that everyone there may view; * for all of them."),
    ] = None,
    json_lines: Json = False,
) -> None:
    """Load history from files. Nothing is answered, and importing again changes nothing."""
    settings = _settings()
    if format in (HistoryFormat.SLACK, HistoryFormat.DISCORD):
        _import_exports(
            settings, files, format, ImportOptions(workspace, room, bot, tuple(public or ())), embed, json_lines
        )
        return
    if bot is not None or public:
        _fail(BadInput("Use --bot and --public only with --format slack-export or discord-export."))
    lines = _read(lambda: [line for path in files for line in read_history(path, format, workspace, room)])

    async def run(app: App) -> None:
        with render.progress("messages") as bar:
            task = bar.add_task("", total=len(lines))
            into = None if format is HistoryFormat.IRC else room
            done = await import_history(app, lines, lambda count: bar.advance(task, count), into)
        for name in sorted({line.event.workspace for line in lines}):
            await _index(app, app.directory.workspace(PLATFORM, name), embed)
        if json_lines:
            _print_json({"read": done.read, "new": done.new, "known": done.known, "skipped": dict(done.skipped)})
        else:
            skipped = "".join(f"; {count:,} skipped {why}" for why, count in done.skipped.items())
            render.show(f"{done.read:,} messages read: {done.new:,} new, {done.known:,} stored already{skipped}.")

    _run(settings, run, index=False)


def _import_exports(
    settings: Settings, files: list[Path], format: str, options: ImportOptions, embed: bool, json_lines: bool
) -> None:
    from bot.importers.platform_exports import load, open_exports  # noqa: PLC0415 - brings the SDKs

    with ExitStack() as opened:
        with render.progress("reading") as bar:
            task = bar.add_task("", total=None)
            progress = partial(bar.advance, task)
            exports = _read(lambda: open_exports(files, format, options, settings, opened, progress))

        async def run(app: App) -> None:
            for surveyed in exports:
                with render.progress("messages") as bar:
                    task = bar.add_task("", total=surveyed.survey.read)
                    done = await load(app, surveyed, partial(bar.advance, task), render.warn)
                for name in sorted(surveyed.survey.workspaces):
                    await _index(app, app.directory.workspace(surveyed.export.platform, name), embed)
                if json_lines:
                    _print_json(done.as_json())
                else:
                    render.show(done.sentence())
                if done.assumed_private:
                    render.warn(done.warning())

        _run(settings, run, index=False)


async def _index(app: App, workspace: Workspace, embed: bool) -> None:
    async with app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
        unindexed, unembedded = await tx.recall.backlog()
    with render.progress("indexing") as index_bar, render.progress("embedding") as embed_bar:
        indexing = index_bar.add_task("", total=unindexed)
        embedding = embed_bar.add_task("", total=unindexed + unembedded) if embed else None

        def advance(indexed: int, embedded: int) -> None:
            index_bar.advance(indexing, indexed)
            if embedding is not None:
                embed_bar.advance(embedding, embedded)

        await app.indexer.catch_up(workspace.tenant_id, advance, embed=embed)


@cli.command()
def compose(
    text: Annotated[str | None, typer.Argument(help="The message to answer.")] = None,
    user: Annotated[str | None, typer.Option("--as", metavar="USER", help="The user who asks.")] = None,
    room: Room = None,
    dm: Dm = None,
    session: Session = None,
    agent: Annotated[str | None, typer.Option("--agent", help="The agent of the session.")] = None,
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    top_k: Annotated[int | None, typer.Option("--top-k", min=0, help="Recall at most this many items.")] = None,
    batch: Annotated[
        Path | None,
        typer.Option("--batch", help="A file of JSON lines, each a question."),
    ] = None,
    json_lines: Json = False,
) -> None:
    """Show the prompt that would be sent, with its sources and timings. Stores nothing."""
    settings = _settings()
    if batch is not None:
        _compose_batch(settings, batch, top_k)
        return
    if text is None or user is None:
        _fail(
            BadInput(
                'Name the user and the message; for example: nexus compose --as alice --room general "when do we ship?"'
            )
        )
    place = _place(settings, room, dm, session, agent, required=True)

    async def run(app: App) -> None:
        target = app.directory.workspace(PLATFORM, workspace)
        unstored, warning = await question(app, target, place, user, text, app.clock.now(), top_k=top_k, id="question")
        if warning:
            render.warn(warning)
        composed = await app.composer.compose(unstored)
        if json_lines:
            _print_json({"prompt": composed.prompt.as_json(), "timings_ms": composed.timings_ms})
        else:
            render.sections(composed.prompt.as_json(), composed.timings_ms)

    _run(settings, run, index=False)


def _compose_batch(settings: Settings, batch: Path, top_k: int | None) -> None:
    entries = _read(lambda: read_questions(batch))

    async def run(app: App) -> None:
        failed = 0
        for number, entry in entries:
            try:
                target = app.directory.workspace(PLATFORM, entry.workspace)
                at = entry.at or app.clock.now()
                unstored, _ = await question(
                    app, target, entry.place(), entry.user, entry.text, at, top_k=top_k, id=entry.id
                )
                composed = await app.composer.compose(unstored)
            except NexusError as error:
                failed += 1
                _print_json({"id": entry.id, "error": f"{batch}:{number}: {error}"})
                continue
            _print_json({"id": entry.id, "prompt": composed.prompt.as_json(), "timings_ms": composed.timings_ms})
        if failed:
            raise typer.Exit(EXIT_FAILED)

    _run(settings, run, index=False)


@cli.command()
def run(
    discord: Annotated[bool, typer.Option("--discord", help="Serve Discord.")] = False,
    slack: Annotated[bool, typer.Option("--slack", help="Serve Slack by Socket Mode.")] = False,
    web: Annotated[bool, typer.Option("--web", help="Receive Slack's events by HTTP.")] = False,
    jobs: Annotated[
        bool, typer.Option("--jobs", help="Run the scheduled jobs. Without another option: only the jobs.")
    ] = False,
) -> None:
    """Serve until stopped. Without options: every configured platform, and the scheduled jobs."""
    from bot import serving  # noqa: PLC0415 - the SDKs take half a second that no other command has to spend

    settings = _settings()
    wanted = {name for name, on in ((serving.DISCORD, discord), (serving.SLACK, slack), (serving.WEB, web)) if on}
    platforms = set[str]() if jobs and not wanted else _read(lambda: serving.chosen(settings, wanted))
    with_jobs = jobs or not wanted
    _run(
        settings,
        lambda app: serving.serve(app, platforms, render.err.print, schedule.scheduler(app) if with_jobs else None),
    )


@cli.command()
def migrate(json_lines: Json = False) -> None:
    """Bring the database's schema up to date."""
    settings = _settings()
    steps = _finish(settings, operations.migrate(settings))
    if json_lines:
        _print_json({"applied": steps})
    else:
        render.show("\n".join(f"applied {step}" for step in steps) or "The schema is up to date.")


@cli.command()
def doctor(
    erased: Annotated[
        str | None,
        typer.Option("--erased", metavar="RECEIPT", help="Only check that nothing of an erasure is stored any more."),
    ] = None,
    json_lines: Json = False,
) -> None:
    """Check everything that Nexus needs; print what is wrong and what to do about it."""
    settings = _settings()
    work = operations.doctor(settings) if erased is None else operations.check_receipt(settings, erased)
    checks = _finish(settings, work)
    if json_lines:
        _print_json({"checks": operations.as_json(checks)})
    else:
        for check in checks:
            sign, style = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("·", "dim")}[check.ok]
            render.show(f"{sign} {check.name.ljust(16)} {check.detail}", style=style)
    if any(check.ok is False for check in checks):
        raise typer.Exit(EXIT_FAILED)


@cli.command()
def backup(
    file: Annotated[Path | None, typer.Argument(help="The file to write; default: in the data folder.")] = None,
    json_lines: Json = False,
) -> None:
    """Write a backup of everything. Nexus may run meanwhile."""
    settings = _settings()
    done = _finish(settings, operations.backup(settings, file))
    if json_lines:
        _print_json(done)
    else:
        render.show(f"{done['file']}: {done['rows']:,} rows, {done['bytes']:,} bytes.")


@cli.command("export")
def export_command(
    file: Annotated[Path | None, typer.Argument(help="The file to write; default: in this folder.")] = None,
    user: Annotated[str, typer.Option("--user", metavar="USER", help="The user's name, or their id on PLATFORM.")] = "",
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    platform: Annotated[str, typer.Option("--platform", help="discord or slack; default: the terminal.")] = PLATFORM,
    json_lines: Json = False,
) -> None:
    """Write all that is one user's into a JSON file that only you may read (docs/export.md)."""
    if not user:
        _fail(BadInput("Name the user; for example: nexus export --user alice"))
    settings = _settings()

    async def run(app: App) -> None:
        document = await operations.export_user(app, platform, workspace, user)
        path = file or Path(f"nexus-export-{document.made_at:%Y%m%dT%H%M%SZ}.json")
        write_private(path, document.as_text())
        if json_lines:
            _print_json({"file": str(path), **document.counts})
        else:
            counts = ", ".join(f"{count:,} {kind}" for kind, count in document.counts.items())
            render.show(f"{path}: {counts}.")

    _run(settings, run, index=False)


@cli.command("replay")
def replay_command(
    turn: Annotated[str, typer.Argument(help="The id of an answer's turn, as /nexus why shows it.")],
    json_lines: Json = False,
) -> None:
    """Compose an answer's prompt again as of then, and say where and why it differs. Shows no text, stores nothing."""
    settings = _settings()

    async def run(app: App) -> None:
        found = await operations.replay_turn(app, turn)
        if json_lines:
            _print_json(found.as_json())
        else:
            render.show(operations.replay_sentences(found))
        if found.result != SAME:
            raise typer.Exit(EXIT_FAILED)

    _run(settings, run, index=False)


@cli.command()
def restore(
    file: Annotated[Path, typer.Argument(help="The backup to restore.")],
    trust: Annotated[
        bool, typer.Option("--trust", help="Restore a backup that this data folder's key has not signed.")
    ] = False,
    json_lines: Json = False,
) -> None:
    """Restore a backup into an empty data folder or database."""
    settings = _settings()
    done = _finish(settings, operations.restore(settings, file, trust=trust))
    if json_lines:
        _print_json(done)
    else:
        render.show(
            f"Restored the backup of {done['taken_at']}: {done['rows']:,} rows. To check the result: nexus doctor"
        )


@cli.command()
def reembed(
    status: Annotated[bool, typer.Option("--status", help="Only show the progress.")] = False,
    json_lines: Json = False,
) -> None:
    """Embed everything again with the embedder that NEXUS_EMBEDDER names, while Nexus serves with the old one."""
    settings = _settings()
    if status:
        found = _finish(settings, operations.reembed_status(settings))
        if json_lines:
            _print_json(found)
        else:
            render.show(operations.reembed_sentence(found))
        return
    with render.progress("embedding") as bar:
        task = bar.add_task("", total=None)

        def progress(prepared: int, items: int) -> None:
            if json_lines:
                _print_json({"prepared": prepared, "items": items})
            else:
                bar.update(task, completed=prepared, total=items)

        done = _finish(settings, operations.reembed(settings, progress))
    if json_lines:
        _print_json(done)
    else:
        name, width = done["embedder"]["name"], done["embedder"]["width"]
        render.show(f"All {done['items']:,} items now have vectors of {name} ({width} dimensions).")
        render.show(f"Restart every running Nexus with NEXUS_EMBEDDER={name}; until then it recalls by words alone.")


jobs_cli = typer.Typer(help="List and run the scheduled jobs.", no_args_is_help=True)
cli.add_typer(jobs_cli, name="jobs")


@jobs_cli.command("list")
def jobs_list(json_lines: Json = False) -> None:
    """List the jobs with their schedule and their last run."""
    settings = _settings()

    async def show(app: App) -> None:
        for entry in await schedule.listed(app):
            if json_lines:
                _print_json(entry)
            else:
                render.show(schedule.line(entry))

    _run(settings, show, index=False)


@jobs_cli.command("run")
def jobs_run(
    name: Annotated[str, typer.Argument(help="The job's name; nexus jobs list shows them.")],
    at: Annotated[str | None, typer.Option("--at", help="Run it as of this time (ISO 8601 with a time zone).")] = None,
    json_lines: Json = False,
) -> None:
    """Run one job now, or as of another time. Running it twice changes nothing."""
    settings = _settings()
    when = _read(lambda: schedule.time_of(at))

    async def run(app: App) -> None:
        with render.progress(name) as bar:
            task = bar.add_task("", total=None)
            outcome = await schedule.run(app, name, when or app.clock.now(), lambda done, _: bar.advance(task, done))
        if json_lines:
            _print_json(schedule.as_json(outcome))
        else:
            figures = f"{outcome.done:,} done, {outcome.failed:,} failed"
            render.show(
                f"{name}: {outcome.state}, {figures}" + (f"; {outcome.message}" if outcome.message else "") + "."
            )
        if outcome.state != "done":
            raise typer.Exit(EXIT_FAILED)

    _run(settings, run, index=False, **({"clock": ScriptClock(when)} if when else {}))


audit_cli = typer.Typer(help="Show and verify the audit log.", no_args_is_help=True)
cli.add_typer(audit_cli, name="audit")


@audit_cli.command("list")
def audit_list(
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    since: Annotated[str | None, typer.Option("--since", help="From this time on (ISO 8601).")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Before this time (ISO 8601).")] = None,
    act: Annotated[str | None, typer.Option("--act", help="Only this act, for example room.opened.")] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Only rows by or about this user: a name or an id.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many rows.")] = 100,
    json_lines: Json = False,
) -> None:
    """List who did what to whom and where, by ids, newest first."""
    settings = _settings()
    wanted = _read(lambda: auditing.wanted(since, until, act, user, limit))

    async def show(app: App) -> None:
        for event in await auditing.find(app, workspace, wanted):
            if json_lines:
                _print_json(auditing.as_json(event))
            else:
                render.show(auditing.line(event))

    _run(settings, show, index=False)


@audit_cli.command("verify")
def audit_verify(json_lines: Json = False) -> None:
    """Check that no row of the audit log was changed, removed or inserted; exits with 1 if one was."""
    settings = _settings()

    async def check(app: App) -> None:
        results = await auditing.verify(app)
        for tenant, found in results:
            if json_lines:
                _print_json(auditing.verification_json(tenant, found))
            else:
                render.show(auditing.verification_text(tenant, found), style="" if found.whole else "bold red")
        if not all(found.whole for _, found in results):
            raise typer.Exit(EXIT_FAILED)

    _run(settings, check, index=False)


@cli.command()
def admin(
    user: Annotated[str, typer.Argument(help="The user's name.")],
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    remove: Annotated[bool, typer.Option("--remove", help="Make them an ordinary user again.")] = False,
) -> None:
    """Make a user an admin of a workspace, who may change its settings, all projects and facts for everyone."""
    settings = _settings()

    async def grant(app: App) -> None:
        name = await operations.set_admin(app, workspace, user, not remove)
        render.show(f"{name} is {'no longer' if remove else 'now'} an admin of {workspace}.")

    _run(settings, grant, index=False)


def _settings(*, tracebacks: bool = True) -> Settings:
    try:
        settings = from_environment()
    except NexusError as error:
        _fail(error)
    make_private(settings.home)
    mask_output(settings.secrets)
    configure_logs(settings.log, tracebacks=tracebacks)
    for sentence in settings.warnings:
        render.warn(sentence)
    return settings


def _place(
    settings: Settings,
    room: str | None,
    dm: str | None,
    session: str | None,
    agent: str | None = None,
    *,
    required: bool = False,
) -> Place:
    named = [name for name in (room, dm, session) if name is not None]
    if len(named) > 1 or (required and not named):
        _fail(BadInput("Name exactly one place: --room ROOM, --dm [AGENT] or --session SESSION."))
    first = settings.agents[0].slug
    if room is None and session is None:
        dm = first if dm in (None, FIRST_AGENT) else dm
    return place_of(room, dm, session, agent=agent)


def _read(reading: Callable[[], T]) -> T:
    try:
        return reading()
    except NexusError as error:
        _fail(error)


def _run(settings: Settings, body: Callable[[App], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Open the app, do one thing with it, and close it again."""

    async def opened() -> None:
        async with open_app(settings, **options) as app:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)  # from here on `body` handles it
            await body(app)

    _finish(settings, opened())


async def _until_terminated(work: Coroutine[Any, Any, T]) -> T:
    """Cancel the work on SIGTERM, as Ctrl-C does, so that servers that are just starting are stopped again."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def _finish(settings: Settings, work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(_until_terminated(work))
    except NexusError as error:
        _fail(error)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except asyncio.CancelledError:
        raise typer.Exit(143) from None
    except BrokenPipeError:
        with suppress(OSError):  # the reader of our output is gone: nothing more can be printed
            sys.stdout.close()
        raise typer.Exit(EXIT_FAILED) from None


def _fail(error: NexusError) -> NoReturn:
    render.err.print(f"nexus: {render.plain(for_operator(error))}", style="red")
    raise typer.Exit(EXIT_BAD_INPUT if isinstance(error, BadInput | Misconfigured) else EXIT_FAILED)


def arguments(words: list[str], agents: set[str]) -> list[str]:
    """The command line with a value for each `--dm` that is not followed by an agent's slug."""
    full = []
    for number, word in enumerate(words):
        full.append(word)
        following = words[number + 1] if number + 1 < len(words) else ""
        if word == "--dm" and following not in agents:
            full.append(FIRST_AGENT)
    return full


def main() -> None:
    """The entry point of `nexus`."""
    words = sys.argv[1:]
    agents: set[str] = set()
    if "--dm" in words:
        with suppress(NexusError):  # the command itself reports it
            agents = {agent.slug for agent in from_environment().agents}
    cli(args=arguments(words, agents))


if __name__ == "__main__":
    main()
