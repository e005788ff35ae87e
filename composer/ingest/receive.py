"""Receive: store what a door hands in, once, before anything is acknowledged; queue the answers it asks for.

One transaction a batch: tenant, people, rooms, messages and turns stand together or not at all. A
message alone is a batch of one.
"""

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

import structlog

from composer.errors import BadInput, NotFound, Unavailable
from composer.ingest.recording import Recording, decide_recording
from composer.model import (
    Agent,
    Conversation,
    ConversationKind,
    Incoming,
    Message,
    Place,
    Turn,
    derived_id,
    dm_namespace,
    room_namespace,
    session_namespace,
)
from composer.ports.working_cache import Appended, WorkingCache
from composer.repositories.conversations import ConversationRow, NewConversation
from composer.repositories.database import Database, Transaction
from composer.repositories.messages import LastReceived
from composer.visibility import unknown_conversation
from composer.workspace import Workspace, conversation_id, message_id, private_thread, room_id, user_id

logger = structlog.get_logger()

LONGEST_MESSAGE: Final = 2_000_000  # characters
LONGEST_NAME: Final = 200
_SURROGATE = re.compile("[\ud800-\udfff]")
_ADDRESS = re.compile(r"(?<![\w@])@([a-z0-9][a-z0-9_.-]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Received:
    """What became of a batch: ids of the messages that were new, and the turns they queued. `repeated` were not
    stored; of these, `unwanted` since the room or the person wants nothing kept."""

    new: tuple[uuid.UUID, ...] = ()
    turns: tuple[Turn, ...] = ()
    repeated: int = 0
    unwanted: int = 0


@dataclass(slots=True)
class _Batch:
    """What is known of one batch while it is being stored."""

    workspace: Workspace
    people: dict[str, uuid.UUID]
    opted_out: frozenset[str] = frozenset()  # by their ids on the platform
    known: dict[uuid.UUID, bool] = field(default_factory=dict)  # by message, as looked up under lock
    rows: dict[uuid.UUID, ConversationRow] = field(default_factory=dict)
    ephemeral: set[uuid.UUID] = field(default_factory=set)


def addressed(text: str, agents: Sequence[Agent]) -> list[Agent]:
    """The agents that a text calls by `@slug`, in the order of the configuration."""
    called = {name.casefold().rstrip(".-") for name in _ADDRESS.findall(text)}
    return [agent for agent in agents if agent.slug in called]


def checked(incoming: Incoming) -> Incoming:
    """The same message as it can be stored. Raises BadInput with one sentence.

    What no text column can hold (NUL, lone surrogates) becomes U+FFFD; the time becomes UTC.
    """
    if incoming.at.tzinfo is None:
        raise BadInput("The time of a message must say its zone; for example 2026-05-04T09:00:00Z.")
    text = storable(incoming.text)
    if not text.strip() and not incoming.attachments:
        raise BadInput("The message is empty: write some text, or attach a file.")
    if len(text) > LONGEST_MESSAGE:
        raise BadInput(
            f"The message has {len(text):,} characters; the most is {LONGEST_MESSAGE:,}: split it, or attach a file."
        )
    for what, name in (("room, agent or session", incoming.place.name), ("user", incoming.user), ("id", incoming.id)):
        if not name.strip() or len(name) > LONGEST_NAME or storable(name) != name:
            raise BadInput(f"The name of the {what} must have 1 to {LONGEST_NAME} ordinary characters.")
    attachments = tuple(
        replace(
            a,
            name=storable(a.name)[:LONGEST_NAME],
            type=storable(a.type)[:LONGEST_NAME],
            text=storable(a.text),
            address=storable(a.address),
        )
        for a in incoming.attachments
    )
    return replace(incoming, text=text, at=incoming.at.astimezone(UTC), attachments=attachments)


def storable(text: str) -> str:
    """A text without what Postgres can't keep."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _SURROGATE.sub("\ufffd", text)
    return text


async def receive(
    store: Database,
    cache: WorkingCache,
    workspace: Workspace,
    agents: Sequence[Agent],
    batch: Sequence[Incoming],
    *,
    process: int,
    answer: bool = True,
    now: datetime,
) -> Received:
    """Store a batch of one workspace and queue its turns (none when `answer` is False: imported history).

    A message that is known, or was erased, changes nothing. Raises BadInput (the batch holds something
    that can't be stored, or names no such agent) and NotFound (someone who left a private room): then
    nothing of the batch is stored. Raises Unavailable when the database is down.
    """
    messages = [checked(incoming) for incoming in batch]
    if not messages:
        return Received()
    async with store.transaction(workspace.tenant_id) as tx:
        state = await _arrived(tx, workspace, agents, messages, now)
        stored: list[tuple[Incoming, Conversation, Message]] = []
        appended: list[Appended] = []
        unwanted = 0
        for part in _parts(messages):
            places = await _ensure_places(tx, state, agents, part, now)
            unknown = await _unknown(tx, state, part, places)
            new = _wanted(state, agents, unknown, answer=answer)
            unwanted += len(unknown) - len(new)
            spoke = [(message, place, now if answer else message.at) for _, message, place in new]
            await _ensure_members(tx, state, spoke, refuse=answer)
            added = _numbered(state, new)
            await tx.messages.append(
                [(place.id, message) for _, place, message in added], _seen(part, places), indexed=False
            )
            stored, appended = stored + added, appended + _grouped(state, added)
        turns = _turns(state, agents, stored) if answer else []
        if turns:
            await tx.turns.queue(turns, process)
    if answer:
        await _cache(cache, appended)
    else:
        await _drop(cache, [a.conversation_id for a in appended])
    return Received(
        tuple(message.id for _, _, message in stored),
        tuple(turn for turn, _ in turns),
        len(messages) - len(stored),
        unwanted,
    )


def _parts(messages: Sequence[Incoming]) -> list[list[Incoming]]:
    """The same messages, cut where a room is opened or closed: what was said before is filed as it was then."""
    parts: list[list[Incoming]] = []
    told: dict[str, bool | None] = {}
    for message in messages:
        name, private = message.place.name, message.place.private
        if not parts or (private is not None and told.get(name, private) != private):
            parts.append([])
            told = {}
        parts[-1].append(message)
        told[name] = told.get(name) if private is None else private
    return parts


async def _arrived(
    tx: Transaction, workspace: Workspace, agents: Sequence[Agent], messages: Sequence[Incoming], now: datetime
) -> _Batch:
    """Everyone who speaks or is mentioned; tenant, workspace, agents and speakers are made if they are new."""
    named = sorted({name for m in messages for name in (m.user, *m.mentions)})
    known = await tx.people.ensure_tenant(workspace.tenant, workspace.platform, workspace.name, agents, now, named)
    people = {name: known[name].user_id if name in known else user_id(workspace, name) for name in named}
    new = {m.user: (people[m.user], storable(m.user_name) or m.user) for m in messages if m.user not in known}
    if new:
        await tx.people.ensure_users(workspace.platform, workspace.name, new, now)
    return _Batch(workspace, people, frozenset(name for name, identity in known.items() if identity.opted_out))


async def _ensure_places(
    tx: Transaction, state: _Batch, agents: Sequence[Agent], messages: Sequence[Incoming], now: datetime
) -> list[Conversation]:
    """The conversation of each message, made or changed as the message says, and locked."""
    workspace = state.workspace
    rooms = {
        m.place.name: room_id(workspace, m.place.name)
        for m in messages
        if m.place.kind in (ConversationKind.ROOM, ConversationKind.THREAD)
    }
    candidates = _candidates(state, agents, messages, rooms.values())
    state.rows |= await tx.conversations.lock(candidates)
    first = {name: next(m.place for m in messages if m.place.name == name) for name in rooms}
    new_rooms = [
        NewConversation(id, ConversationKind.ROOM, name, room_namespace(id), bool(first[name].private))
        for name, id in rooms.items()
        if id not in state.rows
    ]
    places = _settle(state, messages)
    if new_rooms:
        await tx.conversations.ensure(workspace.platform, workspace.name, new_rooms, now)
        state.rows |= await tx.conversations.lock([room.id for room in new_rooms])
    told = await _said_of_privacy(tx, state, messages, places)
    moved = [await set_privacy(tx, state.rows, room_id(workspace, place.name), place.private) for place in told]
    if any(moved):  # and threads with their rooms
        state.rows |= await tx.conversations.lock(candidates)
    others = {
        new.id: new
        for message, place in zip(messages, places, strict=True)
        if (new := _new_conversation(state, agents, message, place)) is not None and new.id not in state.rows
    }
    if others:
        await tx.conversations.ensure(workspace.platform, workspace.name, list(others.values()), now)
        state.rows |= await tx.conversations.lock(list(others))
    return [
        _row_of(state, agents, message, place).conversation for message, place in zip(messages, places, strict=True)
    ]


def _candidates(
    state: _Batch, agents: Sequence[Agent], messages: Sequence[Incoming], rooms: Iterable[uuid.UUID]
) -> list[uuid.UUID]:
    """Every conversation that these messages may be of, if it is there: rooms, and threads as such and as the private
    rooms that they may be; DMs and sessions."""
    workspace, candidates = state.workspace, set(rooms)
    for message in messages:
        place = message.place
        if place.kind is ConversationKind.ROOM:
            continue
        if place.kind is ConversationKind.THREAD:
            candidates.add(room_id(workspace, private_thread(place).name))
        agent = _agent_of(state, agents, place)
        candidates.add(
            conversation_id(workspace, place, state.people[message.user], None if agent is None else agent.id)
        )
    return sorted(candidates)


def _settle(state: _Batch, messages: Sequence[Incoming]) -> list[Place]:
    """Where each message really is: a private thread is a room of its own, and stays one when a later message
    does not say so. Only where the room is known to be private is its thread a part of it."""
    settled, closed = [], set[str]()
    for place in (message.place for message in messages):
        if place.kind is ConversationKind.THREAD:
            own, room = private_thread(place), state.rows.get(room_id(state.workspace, place.name))
            if own.name in closed:
                place = own
            elif room_id(state.workspace, own.name) in state.rows:
                place = replace(own, private=place.private)
            elif place.private and room is not None and room.conversation.private:
                place = replace(place, private=None)
            elif place.private:
                closed.add(own.name)
                place = own
        settled.append(place)
    return settled


async def _said_of_privacy(
    tx: Transaction, state: _Batch, messages: Sequence[Incoming], places: Sequence[Place]
) -> list[Place]:
    """The rooms that these messages open or close, in their order; one that is known already says nothing new."""
    telling = {
        message_id(room_id(state.workspace, place.name), message.id): place
        for message, place in zip(messages, places, strict=True)
        if place.kind is ConversationKind.ROOM and place.private is not None
    }
    await _look_up(tx, state, telling)
    return list(dict.fromkeys(place for id, place in telling.items() if not state.known[id]))


async def _look_up(tx: Transaction, state: _Batch, messages: Iterable[uuid.UUID]) -> None:
    """Note in `state.known` which messages are stored or erased; their conversations are locked, so it stays so."""
    new = [id for id in messages if id not in state.known]
    if new:
        found = await tx.messages.find_known_ids(new)
        state.known |= {id: id in found for id in new}


async def set_privacy(
    tx: Transaction, rows: dict[uuid.UUID, ConversationRow], room: uuid.UUID | None, private: bool | None
) -> bool:
    """Close or open a room as the platform says; whether it was not so before. What was said while it was private
    stays in the run of that time: a room that opens begins a new one."""
    row = rows.get(room) if room is not None else None
    if row is None or private is None or row.conversation.private == private:
        return False
    generation = row.generation + (0 if private else 1)
    run = room_namespace(row.conversation.id, generation)
    await tx.conversations.set_private(row.conversation.id, private, run, generation)
    changed = replace(row.conversation, private=private, namespace=run, version=row.conversation.version + 1)
    seq = row.last_seq if run == row.conversation.namespace else _rounded_up(row.last_seq)
    rows[row.conversation.id] = replace(row, conversation=changed, generation=generation, last_seq=seq)
    return True


def _rounded_up(seq: int) -> int:
    """Where a new run begins to count, as room_set_private has it: from a round number, since the view's window
    moves by it, and would else tell how much was said before the room was opened."""
    return -(-seq // 100) * 100


def _agent_of(state: _Batch, agents: Sequence[Agent], place: Place) -> Agent | None:
    if place.kind not in (ConversationKind.DM, ConversationKind.SESSION):
        return None
    slug = place.name if place.kind is ConversationKind.DM else place.agent or agents[0].slug
    found = next((agent for agent in agents if agent.slug == slug), None)
    if found is None:
        known = ", ".join(agent.slug for agent in agents)
        raise BadInput(f"There is no agent '{slug}'; there is {known}.")
    return found


def _new_conversation(
    state: _Batch, agents: Sequence[Agent], message: Incoming, place: Place
) -> NewConversation | None:
    workspace, user = state.workspace, state.people[message.user]
    agent = _agent_of(state, agents, place)
    id = conversation_id(workspace, place, user, None if agent is None else agent.id)
    if place.kind is ConversationKind.THREAD:
        room = room_id(workspace, place.name)
        run = state.rows[room].conversation.namespace
        return NewConversation(id, place.kind, place.name, run, room_id=room, thread=place.thread)
    if agent is not None:
        dm = place.kind is ConversationKind.DM
        run = dm_namespace(user, agent.id) if dm else session_namespace(user, agent.id, id)
        return NewConversation(id, place.kind, place.name, run, user_id=user, agent_id=agent.id)
    if id in state.rows:
        return None
    return NewConversation(id, place.kind, place.name, room_namespace(id), bool(place.private))


def _row_of(state: _Batch, agents: Sequence[Agent], message: Incoming, place: Place) -> ConversationRow:
    agent = _agent_of(state, agents, place)
    user = state.people[message.user]
    return state.rows[conversation_id(state.workspace, place, user, None if agent is None else agent.id)]


async def _ensure_members(
    tx: Transaction, state: _Batch, said: Sequence[tuple[Incoming, Conversation, datetime]], *, refuse: bool
) -> None:
    """Who spoke in a room, and when, is in it. `refuse`: not in a private one that they have left."""
    spoke = {
        (place.room_id or place.id, state.people[message.user]): at
        for message, place, at in said
        if place.user_id is None
    }
    if not spoke:
        return
    private = {room for room, _ in spoke if refuse and state.rows[room].conversation.private}
    gone = await tx.conversations.departed_members(sorted(private)) if private else set()
    for room, user in spoke:
        if (room, user) in gone:
            raise NotFound(unknown_conversation(ConversationKind.ROOM, state.rows[room].conversation.name))
    await tx.conversations.ensure_members(spoke)


async def _unknown(
    tx: Transaction, state: _Batch, messages: Sequence[Incoming], places: Sequence[Conversation]
) -> list[tuple[uuid.UUID, Incoming, Conversation]]:
    """The messages that are neither stored nor erased, with their ids; the others change nothing, not even members."""
    ids = [message_id(place.room_id or place.id, message.id) for message, place in zip(messages, places, strict=True)]
    await _look_up(tx, state, ids)
    return [entry for entry in zip(ids, messages, places, strict=True) if not state.known[entry[0]]]


def _wanted(
    state: _Batch,
    agents: Sequence[Agent],
    new: Sequence[tuple[uuid.UUID, Incoming, Conversation]],
    *,
    answer: bool,
) -> list[tuple[uuid.UUID, Incoming, Conversation]]:
    """Without the messages that are not kept, as the room or the person wants it; those that are kept for their
    answer alone are noted in `state.ephemeral`. History is answered by nobody, so of it nothing passes."""
    wanted = []
    for id, message, place in new:
        wants_answer = answer and bool(_called(agents, message, place))
        policy = state.rows[place.room_id or place.id].recording
        match decide_recording(policy, opted_out=message.user in state.opted_out, wants_answer=wants_answer):
            case Recording.DROP:
                continue
            case Recording.EPHEMERAL:
                state.ephemeral.add(id)
        wanted.append((id, message, place))
    return wanted


def _seen(messages: Sequence[Incoming], places: Sequence[Conversation]) -> dict[uuid.UUID, LastReceived]:
    """The latest message of each conversation, kept or not, and what people call the conversation."""
    latest: dict[uuid.UUID, LastReceived] = {}
    for message, place in zip(messages, places, strict=True):
        if place.id not in latest or message.at >= latest[place.id].at:
            latest[place.id] = LastReceived(message.id, message.at, message.place.title)
    return latest


def _numbered(
    state: _Batch, new: Sequence[tuple[uuid.UUID, Incoming, Conversation]]
) -> list[tuple[Incoming, Conversation, Message]]:
    """The new messages, each with its place in its conversation's order; an id counts once."""
    stored: list[tuple[Incoming, Conversation, Message]] = []
    counts: dict[uuid.UUID, int] = {}
    for id, incoming, place in new:
        if state.known[id]:
            continue
        state.known[id] = True
        ephemeral = id in state.ephemeral
        counts[place.id] = counts.get(place.id, 0) + (not ephemeral)
        message = Message(
            id,
            incoming.id,
            ephemeral_seq(id) if ephemeral else state.rows[place.id].last_seq + counts[place.id],
            incoming.at,
            state.people[incoming.user],
            None,
            storable(incoming.user_name) or incoming.user,
            incoming.text,
            place.namespace,
            place.visibility,
            incoming.attachments,
            tuple(dict.fromkeys(state.people[name] for name in incoming.mentions)),
            ephemeral,
            incoming.reply_to,
        )
        stored.append((incoming, place, message))
    return stored


def ephemeral_seq(message: uuid.UUID) -> int:
    """The number of what is kept for an answer alone. It takes none of its conversation's: the view moves by those, and
    would else tell how much was said that nobody may read."""
    return -1 - (message.int >> 66)


def _grouped(state: _Batch, stored: Sequence[tuple[Incoming, Conversation, Message]]) -> list[Appended]:
    by_conversation = sorted(stored, key=lambda entry: entry[1].id)
    grown = []
    for id, entries in groupby(by_conversation, key=lambda entry: entry[1].id):
        messages = [message for _, _, message in entries]
        version = state.rows[id].conversation.version
        shown = tuple(message for message in messages if not message.ephemeral)
        grown.append(Appended(id, version, version + len(messages), shown))
    return grown


def _turns(
    state: _Batch, agents: Sequence[Agent], stored: Sequence[tuple[Incoming, Conversation, Message]]
) -> list[tuple[Turn, datetime]]:
    tenant = state.workspace.tenant_id
    turns = []
    for incoming, place, message in stored:
        for agent in _called(agents, incoming, place):
            id = derived_id("turn", str(message.id), agent.slug)
            turns.append((Turn(id, tenant, place.id, message.id, agent.id, incoming.adapter), message.at))
    return turns


def _called(agents: Sequence[Agent], incoming: Incoming, place: Conversation) -> list[Agent]:
    """The agents that a message wants an answer from: a DM's or session's own, in a room those that it addresses."""
    if place.agent_id is not None:
        return [agent for agent in agents if agent.id == place.agent_id]
    named = addressed(incoming.text, agents)
    return [agent for agent in agents if agent in named or agent.slug in incoming.addressed_agents]


async def _cache(cache: WorkingCache, appended: Sequence[Appended]) -> None:
    if not appended:
        return
    try:
        await cache.append(appended)
    except Unavailable:
        logger.warning("working.cache_unavailable", conversations=len(appended))


async def _drop(cache: WorkingCache, conversations: Sequence[uuid.UUID]) -> None:
    try:
        await cache.drop(conversations)
    except Unavailable:
        logger.warning("working.cache_unavailable", conversations=len(conversations))


async def enter(
    tx: Transaction, workspace: Workspace, agents: Sequence[Agent], incoming: Incoming, now: datetime
) -> tuple[uuid.UUID, Conversation]:
    """Who someone is and where they are, for a command: as for a message, but nothing is stored of it.

    Raises as `receive`.
    """
    message = checked(incoming)
    state = await _arrived(tx, workspace, agents, [message], now)
    places = await _ensure_places(tx, state, agents, [message], now)
    await _ensure_members(tx, state, [(message, places[0], now)], refuse=True)
    return state.people[message.user], places[0]


async def move(
    tx: Transaction,
    workspace: Workspace,
    agents: Sequence[Agent],
    room: str,
    user: str,
    name: str,
    *,
    joined: bool,
    now: datetime,
    private: bool = False,
) -> None:
    """Record that someone joined a room, which is made if it is new, or left it.

    `private`: the room is private from now on. Without it a new room is public, and a known one stays as it is: a
    join never opens a room. Raises NotFound when they leave an unknown room.
    """
    people = await tx.people.ensure_tenant(workspace.tenant, workspace.platform, workspace.name, agents, now, [user])
    id = people[user].user_id if user in people else user_id(workspace, user)
    if user not in people:
        await tx.people.ensure_users(workspace.platform, workspace.name, {user: (id, name)}, now)
    place = room_id(workspace, room)
    if joined:
        new = NewConversation(place, ConversationKind.ROOM, room, room_namespace(place), private)
        await tx.conversations.ensure(workspace.platform, workspace.name, [new], now)
    elif await tx.conversations.get(place) is None:
        raise NotFound(unknown_conversation(ConversationKind.ROOM, room))
    if private:
        await set_privacy(tx, await tx.conversations.lock([place]), place, True)
    if joined:
        await tx.conversations.add_member(place, id, now)
    else:
        await tx.conversations.remove_member(place, id, now)
