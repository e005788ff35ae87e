"""Who may read the rooms of a history whose files don't say it. It is settled before anything is stored."""

from collections.abc import Collection, Iterable, Sequence

from bot.importers.export import require_rooms, short_list
from bot.script.events import Line, MessageEvent, MoveEvent
from bot.script.places import external
from composer.app import App
from composer.errors import BadInput
from composer.model import CONSOLE, room_id

Rooms = set[tuple[str, str]]  # by workspace and name


async def unsaid_rooms(app: App, lines: Sequence[Line], public: Collection[str], into: str | None) -> Rooms:
    """The rooms of a history that are new, and of which no line says whether they are private. `into` is the room that
    takes all others, if any.

    Raises BadInput when one that is stored as private is named in `public`: what was stored in private stays private.
    And when one that is named there is no room of the history: a typing error would else close the one that was meant.
    """
    rooms, said = _rooms(lines, into)
    require_rooms(public, {name for _, name in rooms})
    stored = await _stored(app, rooms)
    for workspace, name in sorted(rooms):
        if name in public and stored.get((workspace, name)):
            raise BadInput(
                f"#{name} is stored as private, and what was stored in private stays private: --public can't open it."
            )
    return rooms - said - stored.keys()


async def rooms_kept_private(app: App, lines: Sequence[Line], into: str | None) -> Rooms:
    """The rooms of a history that are stored as private although no line says it: --public doesn't open them."""
    rooms, said = _rooms(lines, into)
    return {place for place, private in (await _stored(app, rooms - said)).items() if private}


def _rooms(lines: Iterable[Line], into: str | None) -> tuple[Rooms, Rooms]:
    """The rooms of a history, and those of which a line says whether they are private."""
    rooms: Rooms = set()
    said: Rooms = set()
    for line in lines:
        place = _room(line, None)
        if place is not None and line.event.thread is None and line.event.private is not None:  # type: ignore[union-attr]
            said.add(place)
        target = _room(line, into)
        if target is not None:
            rooms.add(target)
    return rooms, said


def _room(line: Line, into: str | None) -> tuple[str, str] | None:
    """The room of an event that is in one; not of a private thread, which is a room that says so itself."""
    event = line.event
    if not isinstance(event, MessageEvent | MoveEvent) or event.room is None or (event.thread and event.private):
        return None
    return event.workspace, external(into or event.room)


async def _stored(app: App, rooms: Rooms) -> dict[tuple[str, str], bool]:
    """Whether those of the rooms that are stored are private."""
    found: dict[tuple[str, str], bool] = {}
    for name in {name for name, _ in rooms}:
        workspace = app.directory.workspace(CONSOLE, name)
        ids = {room_id(workspace, room): room for at, room in rooms if at == name}
        async with app.database.transaction(workspace.tenant_id, "read") as tx:
            states = await tx.conversations.room_states(list(ids))
        found |= {(name, ids[id]): state.private for id, state in states.items()}
    return found


def with_private_rooms(lines: Iterable[Line], rooms: Rooms) -> list[Line]:
    """The events, with these rooms private from their first one on. Whoever writes there is a member, also of whom no
    event says that they joined."""
    kept: list[Line] = []
    members: set[tuple[str, str, str]] = set()
    for line in lines:
        event, place = line.event, _room(line, None)
        if place not in rooms or not isinstance(event, MessageEvent | MoveEvent):
            kept.append(line)
            continue
        if event.thread is None:
            event = event.model_copy(update={"private": True})
        elif (*place, event.user) not in members:  # `private` on a message of a thread would mean the thread
            join = MoveEvent(
                type="join",
                at=event.at,
                workspace=event.workspace,
                room=event.room or "",
                user=event.user,
                private=True,
            )
            kept.append(Line(line.file, line.number, join))
        members.add((*place, event.user))
        kept.append(Line(line.file, line.number, event))
    return kept


def question(rooms: Rooms) -> str:
    """Which rooms somebody has to decide of."""
    return f"The files don't say who may read {_names(rooms)}."


def sentence(rooms: Rooms, private: Rooms) -> str:
    """Who will read the rooms of which the files say nothing."""
    parts = []
    if rooms - private:
        parts.append(f"{_names(rooms - private)}: public, for everyone in the workspace")
    if private:
        parts.append(f"{_names(private)}: private, for those who wrote there or join")
    return f"The files don't say who may read these rooms; {'; '.join(parts)}."


def kept_sentence(rooms: Rooms) -> str:
    """That rooms stay private although everyone was to read them, and how to open them."""
    return (
        f"Stored as private already, and still so: {_names(rooms)}. To open them, undo the import that made them "
        "private (nexus import --list), and load them again."
    )


def _names(rooms: Rooms) -> str:
    return short_list([f"#{name}" for _, name in sorted(rooms)])
