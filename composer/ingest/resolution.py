"""Resolve a batch of messages to users and conversations, which are created, made public or made private as the
messages require.

Every conversation is locked before it is read, so that what was read holds until the transaction ends.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from composer.errors import BadInput, NotFound, Overtaken
from composer.ingest.room_privacy import set_privacy
from composer.model import (
    API,
    CONSOLE,
    ROOM_KINDS,
    Agent,
    Conversation,
    ConversationKind,
    Incoming,
    Place,
    Trust,
    Workspace,
    conversation_id,
    dm_namespace,
    message_id,
    private_thread,
    room_id,
    room_namespace,
    session_namespace,
    user_id,
)
from composer.repositories.conversations import ConversationRow
from composer.repositories.database import Transaction
from composer.repositories.people import Identity, StatedTrust
from composer.visibility import unknown_conversation_sentence

# A conversation that is met for the first time, with when its privacy was stated (None: it was not).
_New = tuple[Conversation, datetime | None]


@dataclass(slots=True)
class Batch:
    """What is known of a batch while it is stored. `user_ids` and `opted_out` go by the users' ids on the platform."""

    workspace: Workspace
    agents: Sequence[Agent]
    user_ids: Mapping[str, uuid.UUID]
    opted_out: frozenset[str] = frozenset()
    rows: dict[uuid.UUID, ConversationRow] = field(default_factory=dict)  # locked
    # Conversations that nothing was done to since they were locked, and those that did not exist then.
    unchanged: set[uuid.UUID] = field(default_factory=set)
    known: dict[uuid.UUID, bool] = field(default_factory=dict)  # by message: whether it is stored or erased
    members: set[tuple[uuid.UUID, uuid.UUID]] = field(default_factory=set)  # (room, user) that are known to be members
    deleted: dict[uuid.UUID, datetime] = field(default_factory=dict)  # conversations that their platform deleted

    def room_id(self, place: Place) -> uuid.UUID:
        """The id of the room of a room or a thread."""
        return room_id(self.workspace, place.name)

    def conversation_id(self, incoming: Incoming, place: Place) -> uuid.UUID:
        """The id of the conversation that a message belongs to. Raises BadInput when there is no such agent."""
        agent = self.agent_of(place)
        user = self.user_ids[incoming.user]
        return conversation_id(self.workspace, place, user, None if agent is None else agent.id)

    def agent_of(self, place: Place) -> Agent | None:
        """The agent of a DM or session, None for a room. Raises BadInput when there is no such agent."""
        if place.kind in ROOM_KINDS:
            return None
        slug = place.name if place.kind is ConversationKind.DM else place.agent or self.agents[0].slug
        found = next((agent for agent in self.agents if agent.slug == slug), None)
        if found is None:
            known = ", ".join(agent.slug for agent in self.agents)
            raise BadInput(f"There is no agent '{slug}': choose one of {known}.")
        return found


async def resolve_users(
    tx: Transaction,
    workspace: Workspace,
    agents: Sequence[Agent],
    messages: Sequence[Incoming],
    now: datetime,
    *,
    states_trust: bool = True,
    states_names: bool = True,
) -> tuple[Batch, list[Incoming]]:
    """A batch with the ids of everyone who wrote or is mentioned, and the messages with what is known of their senders.
    Creates the tenant, its workspace and agents, and the senders, if they are new; then locks the messages'
    conversations. `states_trust`: the messages say what their senders are now; `states_names`: and what they are
    called. If not, these messages have the known name of who is known, and one of each other person; an erased name
    stays so."""
    named = sorted({name for m in messages for name in (m.user, *m.mentions)})
    # Nothing is known of people yet, so these are the ids that they get when they are new. The DM of who has another id
    # is locked later.
    expected = Batch(workspace, agents, {name: user_id(workspace, name) for name in named})
    conversations = _candidate_ids(expected, messages)
    senders = {m.user for m in messages}
    known, rows = await tx.people.ensure_tenant(
        *(workspace.tenant, workspace.platform, workspace.name, agents, now, named, conversations, senders)
    )
    user_ids = {name: known[name].user_id if name in known else user_id(workspace, name) for name in named}
    new = {m.user: (user_ids[m.user], m.user_name) for m in messages if m.user not in known}
    # What the API repeats is what the others said.
    stated = _stated_trust(messages, now) if states_trust and workspace.platform != API else {}
    if new:  # before any conversation is locked; what is known of others is changed after that
        await tx.people.ensure_users(workspace.platform, workspace.name, new, now, stated)
        rows = await tx.conversations.lock(conversations)
    back = {name for name, each in known.items() if states_names and each.nameless and not each.opted_out}
    renamed = {user_ids[m.user]: m.user_name for m in messages if m.user in back}
    if renamed:
        await tx.people.restore_names(renamed)
    differing = {name: said for name, said in stated.items() if name in known and known[name].trust is not said.trust}
    restated = {
        name: trust for name, said in differing.items() if (trust := _said_later(known[name], said)) is not None
    }
    # The time of what was looked up is noted also where it is the same: what another process looked up before is older.
    dated = {m.user for m in messages if m.trust_stated_at is not None and m.user in known}
    again = {name: said for name, said in stated.items() if name in dated and _is_newer(known[name], said)}
    changed = again | {name: said for name, said in differing.items() if name not in restated}
    if changed:
        await tx.people.set_trust(workspace.platform, workspace.name, changed)
    opted_out = frozenset(name for name, identity in known.items() if identity.opted_out)
    guests = frozenset(name for name, identity in known.items() if identity.trust is Trust.GUEST)
    batch = Batch(workspace, agents, user_ids, opted_out, rows, unchanged=set(conversations))
    if not states_names:
        names = {m.user: known[m.user].name if m.user in known else new[m.user][1] for m in messages if not m.by_tool}
        messages = [replace(each, user_name=names.get(each.user, each.user_name)) for each in messages]
    return batch, [_as_known(each, guests, restated) for each in messages]


def _as_known(incoming: Incoming, guests: Collection[str], restated: Mapping[str, Trust]) -> Incoming:
    """A message whose sender is what the platform last said: where another process has heard it since the message says
    what they are (`restated`); and where the message does not say that, and it is less (`guests`): on Discord, who is a
    guest of the server is one in their DM too."""
    if incoming.trust_stated and incoming.sender_trust is not Trust.TOOL and incoming.user in restated:
        return replace(incoming, sender_trust=restated[incoming.user])
    if incoming.trust_stated or incoming.sender_trust is not Trust.MEMBER or incoming.user not in guests:
        return incoming
    return replace(incoming, sender_trust=Trust.GUEST)


def _stated_trust(messages: Sequence[Incoming], now: datetime) -> dict[str, StatedTrust]:
    """What the platform says of the senders. Of tools it says nothing."""
    said = [m for m in messages if m.trust_stated and m.sender_trust is not Trust.TOOL]
    return {m.user: StatedTrust(m.sender_trust, m.trust_stated_at or now, m.timezone) for m in said}


def _is_newer(known: Identity, said: StatedTrust) -> bool:
    return known.trust_stated_at is None or known.trust_stated_at < said.at


def _said_later(known: Identity, said: StatedTrust) -> Trust | None:
    """What a platform has said of somebody of a later time than this; None: nothing."""
    return known.trust if known.trust_stated_at is not None and known.trust_stated_at > said.at else None


async def resolve_conversations(
    tx: Transaction, batch: Batch, messages: Sequence[Incoming], now: datetime
) -> list[Conversation]:
    """The conversation of each message, locked. Creates it, or makes it public or private, as the messages require."""
    rooms: dict[str, Place] = {}
    for place in (message.place for message in messages if message.place.kind in ROOM_KINDS):
        known = rooms.setdefault(place.name, place)
        if place.stated_private is not None and (known.stated_private is None or _is_later(place, known)):
            rooms[place.name] = place
    candidates = _candidate_ids(batch, messages)
    if not batch.unchanged.issuperset(candidates):
        batch.rows |= await tx.conversations.lock(candidates)
    batch.unchanged.clear()
    places = _resolve_private_threads(batch, [message.place for message in messages])
    await _create(tx, batch, [_new_room(batch, place, now) for place in rooms.values()], now)
    stated = await _statements(tx, batch, messages, places)
    changed = [
        await set_privacy(tx, batch.rows, batch.room_id(place), place.stated_private, place.stated_at, now)
        for place in stated
    ]
    if any(changed):  # a room's threads change with it
        batch.rows |= await tx.conversations.lock(candidates)
    await _note_outsiders(tx, batch, messages, now)
    resolved = list(zip(messages, places, strict=True))
    await _create(tx, batch, [_new_conversation(batch, message, place, now) for message, place in resolved], now)
    await _restore_names(tx, batch, resolved)
    return [_filed(batch, message, place) for message, place in resolved]


async def ensure_members(
    tx: Transaction, batch: Batch, sent: Sequence[tuple[Incoming, Conversation, datetime]], *, refuse: bool
) -> None:
    """Make everyone who wrote in a room a member of it, from the time of their message on.

    `refuse`: raise NotFound for a private room that its sender has left, or never joined. Discord and Slack vouch for
    who speaks in their rooms. The terminal and scripts don't, unless the message itself says that the room is private;
    there whoever opens a room is its first member.
    """
    members = {
        (conversation.room_id or conversation.id, batch.user_ids[message.user]): at
        for message, conversation, at in sent
        if conversation.user_id is None
    }
    if members.keys() <= batch.members:
        return
    # Of several messages of one person the first one counts: it made them a member. A private thread does not speak for
    # its room.
    senders = {
        (room, batch.user_ids[message.user]): batch.workspace.platform != CONSOLE
        or (
            message.place.private is True and conversation.room_id is None
        )  # a private thread does not speak for its room
        for message, conversation, _ in reversed(sent)
        if refuse and batch.rows[room := conversation.room_id or conversation.id].conversation.private
    }
    refused = await tx.conversations.ensure_members(members, senders)
    for message, conversation, _ in sent:  # a private thread is called by its room, as an unknown thread is
        if (conversation.room_id or conversation.id, batch.user_ids[message.user]) in refused:
            raise NotFound(unknown_conversation_sentence(ConversationKind.ROOM, message.place.name))


async def resolve_sender(
    tx: Transaction, workspace: Workspace, agents: Sequence[Agent], incoming: Incoming, now: datetime
) -> tuple[uuid.UUID, Conversation, Incoming]:
    """The user and the conversation of a command, and the command with what is known of its sender. Creates both as for
    a message, but stores no message.

    `incoming` has been validated. Raises BadInput and NotFound as `receive` does.
    """
    batch, [known] = await resolve_users(tx, workspace, agents, [incoming], now)
    [conversation] = await resolve_conversations(tx, batch, [known], now)
    await ensure_members(tx, batch, [(known, conversation, now)], refuse=True)
    return batch.user_ids[known.user], conversation, known


async def look_up_known(
    tx: Transaction,
    batch: Batch,
    messages: Iterable[uuid.UUID],
    senders: Iterable[tuple[uuid.UUID, str]],
    conversations: Collection[uuid.UUID],
) -> None:
    """Note in `batch.known` which messages are stored or erased: their conversations are locked, so it stays true. In
    `batch.members`, which of the (room, user's id on the platform) are members: for most there is nothing to add. In
    `batch.deleted`, which of the conversations were deleted on their platform."""
    new = [id for id in messages if id not in batch.known]
    if new:
        pairs = {(room, batch.user_ids[name]) for room, name in senders}
        found = await tx.messages.find_known(new, sorted(pairs), conversations)
        batch.known |= {id: id in found.messages for id in new}
        batch.members |= found.members
        batch.deleted |= found.deleted


def _filed(batch: Batch, message: Incoming, place: Place) -> Conversation:
    """The conversation of a message, with the namespace that the message is filed under.

    A message that arrives after its room was opened is filed with what was said before the opening, if it was written
    in private, or before the opening and nobody says how.
    """
    conversation = batch.rows[batch.conversation_id(message, place)].conversation
    if place.stated_private is None or place.stated_at is None:
        return conversation
    room = batch.rows[batch.room_id(place)]
    before_opening = room.opened_at is not None and message.at < room.opened_at
    if place.stated_private:
        after_public = room.public_at is None or message.at > room.public_at
        present = room.conversation.private and not before_opening and after_public
    else:
        present = not before_opening or place.stated_at >= message.at
    if present:
        return conversation
    return replace(conversation, namespace=room_namespace(room.conversation.id, room.generation - 1))


def _candidate_ids(batch: Batch, messages: Sequence[Incoming]) -> list[uuid.UUID]:
    """The id of every conversation that the messages may belong to: rooms, DMs, sessions, and threads both as threads
    and as the private rooms that they may be. Sorted, so that concurrent batches lock in the same order."""
    candidates: set[uuid.UUID] = set()
    for message in messages:
        place = message.place
        if place.kind in ROOM_KINDS:
            candidates.add(batch.room_id(place))
        if place.kind is ConversationKind.THREAD:
            candidates.add(batch.room_id(private_thread(place)))
        if place.kind is not ConversationKind.ROOM:
            candidates.add(batch.conversation_id(message, place))
    return sorted(candidates)


def _resolve_private_threads(batch: Batch, places: Sequence[Place]) -> list[Place]:
    """The same places, with each private thread as the room of its own that it is, also when a later message does not
    say that it is private. A thread of a room that is known to be private is part of that room instead."""
    resolved, closed = [], set[str]()
    for place in places:
        if place.kind is ConversationKind.THREAD:
            own, room = private_thread(place), batch.rows.get(batch.room_id(place))
            if own.name in closed:
                place = own
            elif batch.room_id(own) in batch.rows:
                place = replace(own, private=place.private)
            elif place.private and room is not None and room.conversation.private:
                place = replace(place, private=None)
            elif place.private:
                closed.add(own.name)
                place = own
        resolved.append(place)
    return resolved


async def _statements(
    tx: Transaction, batch: Batch, messages: Sequence[Incoming], places: Sequence[Place]
) -> list[Place]:
    """A place for each room whose privacy the messages state: the last one, which is so now, or was stated latest. A
    message that is known already states nothing."""
    stated = {
        message_id(batch.room_id(place), message.id): place
        for message, place in zip(messages, places, strict=True)
        if place.kind in ROOM_KINDS and place.stated_private is not None
    }
    in_rooms = [(m, place) for m, place in zip(messages, places, strict=True) if place.kind in ROOM_KINDS]
    senders = [(batch.room_id(place), message.user) for message, place in in_rooms]
    conversations = {id for m, place in in_rooms for id in (batch.room_id(place), batch.conversation_id(m, place))}
    await look_up_known(tx, batch, stated, senders, conversations)
    latest: dict[uuid.UUID, Place] = {}
    for id, place in stated.items():
        room = batch.room_id(place)
        if not batch.known[id] and (room not in latest or _is_later(place, latest[room])):
            latest[room] = place
    return list(latest.values())


def _is_later(place: Place, known: Place) -> bool:
    """Whether one statement is not older than another."""
    if place.stated_at is None or known.stated_at is None:
        return place.stated_at is None
    return place.stated_at >= known.stated_at


async def _note_outsiders(tx: Transaction, batch: Batch, messages: Sequence[Incoming], now: datetime) -> None:
    """Record of each room whether people of other organisations read it too. What was stated of a time before the
    latest statement changes nothing; of two of the same time, the one that says that they do holds."""
    before = dict(batch.rows)
    for place in (message.place for message in messages if message.place.outsiders is not None):
        room, at = batch.room_id(place), place.outsiders_at or now
        row = batch.rows[room]
        later = row.outsiders_at is None or at > row.outsiders_at
        if later or (at == row.outsiders_at and place.outsiders):
            batch.rows[room] = replace(row, outsiders=place.outsiders is True, outsiders_at=at)
    for room, row in batch.rows.items():
        known = before[room]
        if (known.outsiders, known.outsiders_at) != (row.outsiders, row.outsiders_at):
            await tx.conversations.set_outsiders(room, row.outsiders, row.outsiders_at)


async def _create(tx: Transaction, batch: Batch, conversations: Iterable[_New], now: datetime) -> None:
    """Create and lock those of the conversations that do not exist. Raises Overtaken when others created some of
    them meanwhile, and this transaction holds one that is locked after those."""
    new = {each.id: (each, at) for each, at in conversations if each.id not in batch.rows}
    if not new:
        return
    at, privacy_at = batch.workspace, {id: at for id, (_, at) in new.items()}
    created = await tx.conversations.ensure(at.platform, at.name, [each for each, _ in new.values()], now, privacy_at)
    batch.rows |= created
    theirs = {id: each for id, (each, _) in new.items() if id not in created}
    if theirs:
        first = min(_place_in_order(each) for each in theirs.values())
        if any(_place_in_order(row.conversation) > first for row in batch.rows.values()):
            raise Overtaken("Others wrote in the same new conversations at the same time; try again.")
        batch.rows |= await tx.conversations.lock(list(theirs))


def _place_in_order(conversation: Conversation) -> tuple[bool, uuid.UUID]:
    """Where a conversation stands in the order in which conversations are locked (sql: conversations_lock)."""
    return conversation.room_id is not None, conversation.id


async def _restore_names(tx: Transaction, batch: Batch, resolved: Sequence[tuple[Incoming, Place]]) -> None:
    """Name sessions again whose names were forgotten with what was said there."""
    for message, place in resolved:
        id = batch.conversation_id(message, place)
        row = batch.rows[id]
        if place.kind is ConversationKind.SESSION and not row.conversation.name:
            await tx.conversations.set_session_name(id, place.name)
            batch.rows[id] = replace(row, conversation=replace(row.conversation, name=place.name))


def _new_room(batch: Batch, place: Place, now: datetime) -> _New:
    """A room that is met for the first time. It is private unless its platform said that it is public; in the terminal
    and in scripts a room is public unless they say otherwise."""
    id, stated = room_id(batch.workspace, place.name), place.stated_private
    closed = place.private if stated is None else stated
    if closed is None:
        closed = batch.workspace.platform != CONSOLE
    tenant, namespace = batch.workspace.tenant_id, room_namespace(id)
    room = Conversation(id, tenant, ConversationKind.ROOM, place.name, namespace, private=closed)
    return room, None if stated is None else place.stated_at or now


def _new_conversation(batch: Batch, message: Incoming, place: Place, now: datetime) -> _New:
    id, agent, tenant = batch.conversation_id(message, place), batch.agent_of(place), batch.workspace.tenant_id
    if place.kind is ConversationKind.THREAD:
        room = batch.room_id(place)
        namespace = batch.rows[room].conversation.namespace
        return Conversation(id, tenant, place.kind, place.name, namespace, room_id=room, thread=place.thread), None
    if agent is None:
        return _new_room(batch, place, now)
    user = batch.user_ids[message.user]
    is_dm = place.kind is ConversationKind.DM
    namespace = dm_namespace(user, agent.id) if is_dm else session_namespace(user, agent.id, id)
    return Conversation(id, tenant, place.kind, place.name, namespace, user_id=user, agent_id=agent.id), None
