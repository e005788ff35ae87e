"""What `nexus import` says to do next: where what it brought can be asked about."""

import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from bot.console.conversations import resolve_position
from bot.script.events import Line, MessageEvent
from bot.script.places import DEFAULT_USER, place_of, room_of
from composer.app import App
from composer.errors import NotFound
from composer.model import CONSOLE
from composer.settings import DEFAULT_WORKSPACE

SOURCES: Final = "/why there shows the sources of an answer."
if TYPE_CHECKING:
    from bot.importers.platform_exports import SurveyedExport
_NAMES: Final = {"discord": "Discord", "slack": "Slack"}


async def ask_in_chat(app: App, lines: Collection[Line], into: str | None) -> str:
    """What to do after an import of lines: where in the terminal they were said, the room, or else the DM or session,
    with most of the messages. `into` is the room that took all others, if any. Whoever may be there is named if not
    everyone may."""
    said: Counter[tuple[str, str, str]] = Counter()
    writers: dict[tuple[str, str, str], str] = {}
    for line in lines:
        event = line.event
        if not isinstance(event, MessageEvent) or (event.thread and event.private):
            continue
        if event.room is not None:
            place = event.workspace, "--room", room_of(into or event.room)
        else:
            place = (
                event.workspace,
                *(("--dm", event.dm) if event.dm is not None else ("--session", event.session or "")),
            )
        said[place] += 1
        writers[place] = event.user
    if not said:
        return f"nexus chat, then ask about it; {SOURCES}"
    rooms = [place for place in said if place[1] == "--room"]
    place = max(rooms or list(said), key=lambda place: said[place])
    return await _in_terminal(app, place, writers[place])


async def ask_about(app: App, exports: Sequence["SurveyedExport"]) -> str:
    """What to do after an import of exports: on their platform, or in the terminal in a room, a public one if
    there is any, with most people."""
    platforms = {each.export.platform for each in exports} - {CONSOLE}
    if platforms:
        names = " and ".join(_NAMES.get(each, each) for each in sorted(platforms))
        return f"nexus run serves {names}: ask about it there; /nexus why shows the sources of an answer."
    open_rooms = {room for each in exports for room, known in each.export.rooms.items() if known.private is False}
    authors = {place: people for each in exports for place, people in each.survey.authors.items()}
    if not authors:
        return f"nexus chat, then ask about it; {SOURCES}"
    workspace, room = max(authors, key=lambda place: (place[1] in open_rooms, len(authors[place]), place))
    return await _in_terminal(app, (workspace, "--room", room), min(authors[workspace, room]))


async def _in_terminal(app: App, place: tuple[str, str, str], writer: str) -> str:
    workspace, option, name = place
    words = ["nexus", "chat", *([] if workspace == DEFAULT_WORKSPACE else ["-w", workspace])]
    if option != "--room" or not await _may_enter(app, workspace, name, DEFAULT_USER):
        words += ["--as", writer]
    words += [option, name]
    agent = app.directory.agents(app.directory.workspace(CONSOLE, workspace).tenant_id)[0].slug
    ask = f"@{agent} …" if option == "--room" else "ask about it"
    return f"{shlex.join(words)}, then {ask}; {SOURCES}"


async def _may_enter(app: App, workspace: str, room: str, user: str) -> bool:
    try:
        await resolve_position(app, app.directory.workspace(CONSOLE, workspace), place_of(room, None, None), user)
    except NotFound:
        return False
    return True
