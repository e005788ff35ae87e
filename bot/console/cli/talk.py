"""`nexus chat`, `play` and `compose`: talk to the agent, or see what it would be sent."""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bot.console import render
from bot.console.chat import Chat, ChatPosition
from bot.console.cli.failure import EXIT_FAILED, fail
from bot.console.cli.invocation import (
    Dm,
    InWorkspace,
    Json,
    OfPlatform,
    Platform,
    Room,
    Session,
    User,
    chosen_place,
    load_settings,
    print_json,
    read_or_fail,
    run_in_app,
)
from bot.console.conversations import question
from bot.console.piped_lines import piped
from bot.console.play import Player, ScriptClock
from bot.console.sample import SAMPLE, load_sample
from bot.console.workspaces import naming_workspaces
from bot.script.events import read_questions, read_script
from bot.script.places import DEFAULT_USER
from composer.app import App
from composer.errors import BadInput, NexusError
from composer.model import CONSOLE, Workspace
from composer.settings import DEFAULT_WORKSPACE, Settings
from composer.text.offline import answered_by

cli = typer.Typer()
# docs/decisions/0025
NO_PLATFORM: Final = (
    "nexus chat talks in the terminal's own rooms alone; to see what an answer on a platform would be made of: "
    'nexus compose --platform slack -w T… --as U… --room C… "text"'
)


@cli.command()
def chat(
    user: User = DEFAULT_USER,
    room: Room = None,
    dm: Dm = None,
    session: Session = None,
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    sample: Annotated[
        bool, typer.Option("--sample", help="Use a sample workspace with a few days of history.")
    ] = False,
    platform: Annotated[str | None, typer.Option("--platform", hidden=True)] = None,
) -> None:
    """Talk to the agent in the terminal.

    /as, /room, /dm, /session and /quit change who you are and where; every other /… is a Nexus command (see /help).
    """
    if platform not in (None, CONSOLE):
        fail(BadInput(NO_PLATFORM))
    settings = load_settings(tracebacks=False)
    place = chosen_place(settings, room, dm, session)

    async def converse(app: App) -> None:
        target = app.directory.workspace(CONSOLE, SAMPLE if sample else workspace)
        if sample:
            await load_sample(app, target)
        typing = sys.stdin.isatty()
        conversation = Chat(app, ChatPosition(target, user, place), scripted=not typing)
        if typing:
            from bot.console import line_editor as typed  # noqa: PLC0415 - brings prompt_toolkit

            _greet(app, target, sample)
            await conversation.run(typed.lines(conversation, typed.open_history()))
        else:
            await conversation.run(piped())
            if conversation.refused:
                lines = "1 line was" if conversation.refused == 1 else f"{conversation.refused:,} lines were"
                fail(NexusError(f"{lines} not done: see above."))

    run_in_app(settings, converse)


def _greet(app: App, workspace: Workspace, sample: bool) -> None:
    agent = app.directory.agents(workspace.tenant_id)[0]
    model = agent.model if app.settings.has_model_api else ""
    render.out.print(
        f"You are talking to {agent.name} ({answered_by(model)}). For a list of commands: /help. To leave: /quit or "
        "Ctrl-D.",
        style="bold",
    )
    if not model:
        render.out.print(
            "No model is configured, so answers only quote from memory. For real answers set "
            "NEXUS_OPENAI_BASE_URL, NEXUS_OPENAI_API_KEY and NEXUS_MODEL (README).",
            style="dim",
        )
    if app.notice:
        render.out.print(app.notice, style="dim")
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
    settings, lines = load_settings(), read_or_fail(lambda: read_script(script))
    clock = ScriptClock()

    async def run(app: App) -> None:
        failed = await Player(app, clock, print_json if json_lines else _print_event).play(lines)
        if failed:
            raise typer.Exit(EXIT_FAILED)

    run_in_app(settings, run, clock=clock, index=False)


def _print_event(event: dict[str, Any]) -> None:
    heads = {"reply": f"→ {event.get('to')}: ", "post": f"→ #{event.get('room')}: ", "command": "· ", "error": "! "}
    if event["event"] == "post" and "room" not in event:
        heads["post"] = f"→ @{event.get('user')}: "
    head = heads[event["event"]]
    render.show(head + event["text"], style="yellow" if event["event"] == "error" else "")
    if (file := event.get("file")) is not None:
        render.show(file["text"] if file["name"].endswith(".txt") else f"  ({file['name']}: --json shows it)")


@cli.command()
def compose(
    text: Annotated[str | None, typer.Argument(help="The message to answer.")] = None,
    user: Annotated[str | None, typer.Option("--as", metavar="USER", help="The user who asks.")] = None,
    room: Room = None,
    dm: Dm = None,
    session: Session = None,
    agent: Annotated[str | None, typer.Option("--agent", help="The agent of the session.")] = None,
    workspace: InWorkspace = DEFAULT_WORKSPACE,
    platform: OfPlatform = Platform.CONSOLE,
    top_k: Annotated[
        int | None, typer.Option("--top-k", min=0, max=1_000, help="Recall at most this many items.")
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option("--batch", help="A file of JSON lines, each a question."),
    ] = None,
    json_lines: Json = False,
) -> None:
    """Show the prompt that would be sent, with its sources and timings. Stores nothing."""
    settings = load_settings()
    if batch is not None:
        if text is not None or user is not None or room is not None or dm is not None or session is not None:
            fail(BadInput("With --batch each line names its user, its place and its question: leave them out here."))
        _compose_batch(settings, batch, top_k, platform)
        return
    if text is None or user is None:
        fail(
            BadInput(
                'Name the user and the message; for example: nexus compose --as alice --room general "when do we ship?"'
            )
        )
    place = chosen_place(settings, room, dm, session, agent, required=True, platform=platform)

    async def run(app: App) -> None:
        target, now = app.directory.workspace(platform, workspace), app.clock.now()
        async with naming_workspaces(app, platform, workspace):
            unstored, warning = await question(app, target, place, user, text, now, top_k=top_k, id="question")
        if warning:
            render.warn(warning)
        composed = await app.composer.compose(unstored)
        if json_lines:
            print_json({"prompt": composed.prompt.as_json(), "timings_ms": composed.timings_ms})
        else:
            render.sections(composed.prompt.as_json(), composed.timings_ms)

    run_in_app(settings, run, index=False)


def _compose_batch(settings: Settings, batch: Path, top_k: int | None, platform: Platform) -> None:
    entries = read_or_fail(lambda: read_questions(batch))

    async def run(app: App) -> None:
        failed = 0
        for number, entry in entries:
            try:
                target = app.directory.workspace(platform, entry.workspace)
                at = entry.at or app.clock.now()
                unstored, _ = await question(
                    app, target, entry.place(platform), entry.user, entry.text, at, top_k=top_k, id=entry.id
                )
                composed = await app.composer.compose(unstored)
            except NexusError as error:
                failed += 1
                print_json({"id": entry.id, "error": f"{batch}:{number}: {error}"})
                continue
            print_json({"id": entry.id, "prompt": composed.prompt.as_json(), "timings_ms": composed.timings_ms})
        if failed:
            raise typer.Exit(EXIT_FAILED)

    run_in_app(settings, run, index=False)
