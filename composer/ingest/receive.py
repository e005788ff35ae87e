"""Receive: store a batch of messages and queue a turn for each one that addresses an agent, before it is acknowledged.

A batch is one transaction: its tenant, people, rooms, messages and turns are stored together or not at all. A single
message is a batch of one.
"""

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from composer.errors import Overtaken, Unavailable
from composer.ingest.addressing import find_answering_agents, is_for_others
from composer.ingest.follow_ups import READ_TALK, with_follow_ups
from composer.ingest.imports import begin_import
from composer.ingest.recording import Recording, decide_recording
from composer.ingest.resolution import (
    Batch,
    ensure_members,
    look_up_known,
    resolve_conversations,
    resolve_users,
)
from composer.ingest.validation import validate_message
from composer.model import (
    Agent,
    Attachment,
    Conversation,
    ConversationKind,
    Incoming,
    Message,
    Place,
    RecordingPolicy,
    Trust,
    Turn,
    Workspace,
    derived_id,
    message_id,
    private_thread,
)
from composer.ports.working_cache import Appended, WorkingCache
from composer.repositories.audit import AuditAct
from composer.repositories.database import Database, Transaction
from composer.repositories.imports import ImportRun
from composer.repositories.messages import Spoken, Thread
from composer.text.work import CLEANED_PER_READ, off_loop

logger = structlog.get_logger()

# Each time, what others created meanwhile is there, and is locked in order.
_IN_ORDER: Final[Mapping[str, Any]] = {
    "retry": retry_if_exception_type(Overtaken),
    "stop": stop_after_attempt(10),
    "reraise": True,
}


# The locks of conversations that this process took before their turns were stored, by number (composer.turn.worker).
Leases = Mapping[uuid.UUID, int]
# Called within the transaction that stores turns: becomes the owner of their conversations, or tells who is.
Announce = Callable[[Transaction, Sequence[Turn]], Awaitable[Leases]]


@dataclass(frozen=True, slots=True)
class UnreadMessage:
    """A stored message whose files are to be read, with its conversation and adapter."""

    message: uuid.UUID
    conversation: uuid.UUID
    adapter: str


@dataclass(frozen=True, slots=True)
class Received:
    """The result of receiving a batch: the ids of the messages that were stored, and the turns queued for them, with
    their questions by their ids and the locks of their conversations; `unread` are those with files to be read.
    `skipped` counts the messages that were not stored, `not_recorded` those of them that their room or sender does not
    want stored.
    """

    new: tuple[uuid.UUID, ...] = ()
    turns: tuple[Turn, ...] = ()
    questions: Mapping[uuid.UUID, Message] = field(default_factory=dict)
    unread: tuple[UnreadMessage, ...] = ()
    leases: Leases = field(default_factory=dict)
    skipped: int = 0
    not_recorded: int = 0


@dataclass(frozen=True, slots=True)
class _NewMessage:
    """A message as it arrived and as it is stored, which has its number last. `conversation` has the namespace that it
    is filed under."""

    incoming: Incoming
    conversation: Conversation
    message: Message


@dataclass(slots=True)
class _StoredBatch:
    """What was stored of a batch: also as the cache takes it, with the turns and when their questions were sent, and
    how many messages were not recorded."""

    messages: list[_NewMessage] = field(default_factory=list)
    appended: list[Appended] = field(default_factory=list)
    turns: list[tuple[Turn, datetime]] = field(default_factory=list)
    not_recorded: int = 0


async def receive(
    database: Database,
    cache: WorkingCache,
    workspace: Workspace,
    agents: Sequence[Agent],
    batch: Sequence[Incoming],
    *,
    announce: Announce,
    follow_up: timedelta,
    answer: bool = True,
    is_unread: Callable[[Attachment], bool] = lambda attached: False,
    run: ImportRun | None = None,
    admit: Callable[[Transaction], Awaitable[None]] | None = None,
    now: datetime,
) -> Received:
    """Store a batch of one workspace and queue its turns (none when `answer` is False: imported history, of a `run`),
    which `announce` is told of. An answer may be followed up without a mention for as long as `follow_up`. Note which
    of what is stored has files that are to be read (`is_unread`).
    `admit` raises where nothing may be stored any more.

    A message that is stored or erased already changes nothing. Raises BadInput (a message cannot be stored, or there is
    no such agent) and NotFound (someone has left the private room that they write in): then nothing of the batch is
    stored. Raises Unavailable when the database is down.
    """
    chars = sum(len(m.text) + sum(len(a.text) for a in m.attachments) for m in batch)
    messages = await off_loop(chars // CLEANED_PER_READ, lambda: [validate_message(each, agents) for each in batch])
    if not messages:
        return Received()
    async for attempt in AsyncRetrying(**_IN_ORDER):
        with attempt:
            async with database.transaction(workspace.tenant_id) as tx:
                if admit is not None:
                    await admit(tx)
                if run is not None:
                    await begin_import(tx, workspace, agents, run, now)
                uploaded = run is not None and run.uploaded_by is not None
                state, known = await resolve_users(
                    *(tx, workspace, agents, messages, now), states_trust=run is None, states_names=not uploaded
                )
                batch_stored = await _store(tx, state, known, follow_up, answer=answer, run=run, now=now)
                unread = _with_unread(batch_stored, is_unread)
                await _note(tx, state, batch_stored, unread, answer=answer, run=run)
                turns = [turn for turn, _ in batch_stored.turns]
                leases = await announce(tx, turns) if turns else {}
    stored = batch_stored.messages
    await _update_cache(cache, batch_stored.appended, answer=answer)
    return Received(
        new=tuple(entry.message.id for entry in stored),
        turns=tuple(turns),
        questions={entry.message.id: entry.message for entry in stored} if turns else {},
        unread=tuple(unread),
        leases=leases,
        skipped=len(messages) - len(stored),
        not_recorded=batch_stored.not_recorded,
    )


async def _note(
    tx: Transaction,
    state: Batch,
    stored: _StoredBatch,
    unread: Sequence[UnreadMessage],
    *,
    answer: bool,
    run: ImportRun | None,
) -> None:
    """Note what else is known of a batch that is stored: what of an import a platform has too, so that undoing the
    import leaves it; that history was imported; which files are to be read."""
    own = {entry.message.id for entry in stored.messages}
    again = [id for id, is_known in state.known.items() if is_known and id not in own]
    if again and run is None:
        await tx.imports.keep(again)
    if stored.messages and not answer:
        by = None if run is None else run.uploaded_by
        await tx.audit.record(AuditAct.IMPORTED, actor=by, details={"messages": len(stored.messages)})
    if unread:
        await tx.unread_files.begin([(each.message, each.adapter) for each in unread])


def _with_unread(stored: _StoredBatch, is_unread: Callable[[Attachment], bool]) -> list[UnreadMessage]:
    return [
        UnreadMessage(entry.message.id, entry.conversation.id, entry.incoming.adapter)
        for entry in stored.messages
        if any(map(is_unread, entry.message.attachments))
    ]


def turn_id(message: uuid.UUID, agent: Agent) -> uuid.UUID:
    """The id of the turn in which an agent answers a message."""
    return derived_id("turn", str(message), agent.slug)


def unnumbered_seq(message: uuid.UUID) -> int:
    """The sequence number of an ephemeral message or its answer, and of one that is filed with what was said before its
    room was opened: negative, outside its conversation's own numbers. The window of a view moves by those, so a gap
    would show how much was sent that nobody may read."""
    return -1 - (message.int >> 66)


async def _store(
    tx: Transaction,
    state: Batch,
    messages: Sequence[Incoming],
    follow_up: timedelta,
    *,
    answer: bool,
    run: ImportRun | None,
    now: datetime,
) -> _StoredBatch:
    """Store what is new and to be recorded of the messages, and queue the turns. Of a `run` the titles of rooms may be
    what they were called once. What somebody uploaded is stored in public rooms alone, and makes nobody a member."""
    is_uploaded = run is not None and run.uploaded_by is not None
    done = _StoredBatch()
    parts = _split_at_privacy_changes(messages)
    for part in parts:
        conversations = await resolve_conversations(tx, state, part, now)
        new = await _find_new(tx, state, part, conversations)
        public = [entry for entry in new if not is_uploaded or _is_public(state, entry.conversation)]
        accepted = _apply_recording(state, public, answer=answer)
        sent = [(entry.incoming, entry.conversation, now if answer else entry.incoming.at) for entry in accepted]
        if not is_uploaded:
            await ensure_members(tx, state, sent, refuse=answer)
        entries = _number(state, accepted)
        done.messages += entries
        done.not_recorded += len(new) - len(accepted)
        done.appended += _appended(state, entries)
        if answer and part is parts[-1]:  # who is answered depends on the privacy of the rooms in the end
            done.turns = _turns(state, done.messages, await _follow_ups(tx, state, done.messages, follow_up))
        pairs = [(entry.conversation.id, entry.message) for entry in entries]
        await tx.messages.append(pairs, _titles(entries), is_past=run is not None, indexed=False, turns=done.turns)
    return done


def _split_at_privacy_changes(messages: Sequence[Incoming]) -> list[list[Incoming]]:
    """The messages in parts, each of which begins where a room is made private or public: what was sent before is filed
    under the privacy of that time. A private thread begins one too, if its room was made private or public in the part
    before: which of the two the room is decides where the thread belongs."""
    parts: list[list[Incoming]] = []
    known: dict[str, bool | None] = {}  # of each room of this part, as it is stated there
    for message in messages:
        stated = _stated_privacy(message.place)
        changes = any(said is not None and known.get(room, said) != said for room, said in stated.items())
        place = message.place
        depends = place.kind is ConversationKind.THREAD and place.private and known.get(place.name) is not None
        if not parts or changes or depends:
            parts.append([])
            known = {}
        parts[-1].append(message)
        known |= {room: known.get(room) if said is None else said for room, said in stated.items()}
    return parts


def _stated_privacy(place: Place) -> dict[str, bool | None]:
    """Whether the rooms that a place belongs to are private, as it says itself (None: it does not). A thread belongs to
    its room; one that is private is also a room of its own."""
    if place.kind is ConversationKind.THREAD:
        return {place.name: place.room_private, private_thread(place).name: place.private}
    return {place.name: place.private}


async def _find_new(
    tx: Transaction, batch: Batch, messages: Sequence[Incoming], conversations: Sequence[Conversation]
) -> list[_NewMessage]:
    """The messages that are neither stored nor erased, nor said before their room or thread was deleted. The others
    change nothing, not even members."""
    resolved = [
        _NewMessage(message, conversation, _message(batch, message, conversation))
        for message, conversation in zip(messages, conversations, strict=True)
    ]
    in_rooms = [entry for entry in resolved if entry.conversation.user_id is None]
    senders = [(entry.conversation.room_id or entry.conversation.id, entry.incoming.user) for entry in in_rooms]
    places = {id for entry in in_rooms for id in _places(entry)}
    await look_up_known(tx, batch, [entry.message.id for entry in resolved], senders, places)
    for entry in in_rooms:
        if any(id in batch.deleted and entry.incoming.at <= batch.deleted[id] for id in _places(entry)):
            batch.known[entry.message.id] = True
    return [entry for entry in resolved if not batch.known[entry.message.id]]


def _places(entry: _NewMessage) -> tuple[uuid.UUID, ...]:
    """The conversations whose deletion deletes a message: its own, and the room of a thread."""
    conversation = entry.conversation
    return (conversation.id,) if conversation.room_id is None else (conversation.id, conversation.room_id)


def _apply_recording(batch: Batch, new: Sequence[_NewMessage], *, answer: bool) -> list[_NewMessage]:
    """The messages that the recording policies of their rooms and their senders let be stored.

    No agent answers history (`answer` False), so none of it is ephemeral.
    """
    accepted = []
    for entry in new:
        incoming, conversation = entry.incoming, entry.conversation
        wants_answer = answer and bool(_answering_agents(batch, incoming, conversation))
        policy = batch.rows[conversation.room_id or conversation.id].recording
        recording = decide_recording(policy, opted_out=incoming.user in batch.opted_out, wants_answer=wants_answer)
        if recording is not Recording.DROP:
            message = replace(entry.message, ephemeral=recording is Recording.EPHEMERAL)
            accepted.append(replace(entry, message=message))
    return accepted


def _answering_agents(batch: Batch, incoming: Incoming, conversation: Conversation) -> Sequence[Agent]:
    """The agents that answer a message; none one that was written in private before its room was opened."""
    return () if _is_closed(batch, conversation) else find_answering_agents(batch.agents, incoming, conversation)


async def _follow_ups(
    tx: Transaction, batch: Batch, stored: Sequence[_NewMessage], young: timedelta
) -> dict[uuid.UUID, uuid.UUID]:
    """The messages that follow up the answer of an agent in a thread, each with that agent."""
    new = {entry.message.id for entry in stored if _may_follow_up(batch, entry)}
    if not new or not young:
        return {}
    within = {entry.conversation.id: entry.conversation for entry in stored if entry.message.id in new}
    threads = [Thread.of(conversation) for conversation in within.values()]
    talk = await tx.messages.talk(threads, READ_TALK)
    found: dict[uuid.UUID, uuid.UUID] = {}
    for thread in threads:
        said = {each.id: each for each in talk[thread.id]}
        said |= {e.message.id: _spoken(batch, e) for e in stored if e.conversation.id == thread.id}
        found |= with_follow_ups([*said.values()], frozenset(new), batch.agents, thread.name, young)
    return found


def _may_follow_up(batch: Batch, entry: _NewMessage) -> bool:
    """Whether a message in a thread may be for an agent that it does not mention. What is stored for its answer alone
    is not: others whose messages are not stored may have written in between."""
    incoming, thread = entry.incoming, entry.conversation
    return (
        thread.room_id is not None
        and batch.rows[thread.room_id].follow_ups
        and batch.rows[thread.room_id].recording is RecordingPolicy.ON
        and not (entry.message.ephemeral or _is_closed(batch, thread))
        and incoming.sender_trust is not Trust.TOOL
        and incoming.reply_to in (None, thread.thread)
        and not (_answering_agents(batch, incoming, thread) or is_for_others(incoming.text))
    )


def _spoken(batch: Batch, entry: _NewMessage) -> Spoken:
    message = entry.message
    asked = frozenset(agent.id for agent in _answering_agents(batch, entry.incoming, entry.conversation))
    return Spoken(message.id, message.at, message.seq, message.user_id, None, message.reply_to, message.text, asked)


def _is_public(batch: Batch, conversation: Conversation) -> bool:
    """Whether a message is in a room, or a thread of one, that everyone in the workspace may read."""
    room = batch.rows[conversation.room_id or conversation.id].conversation
    return conversation.user_id is None and not (room.private or conversation.private)


def _is_closed(batch: Batch, conversation: Conversation) -> bool:
    """Whether a message is filed in a namespace that its room has left."""
    return conversation.namespace != batch.rows[conversation.id].conversation.namespace


def _titles(stored: Sequence[_NewMessage]) -> dict[uuid.UUID, str]:
    """What the rooms are called in which something is stored for good. Not what a thread is: that is often what
    somebody wrote, and nobody is shown it."""
    return {
        entry.conversation.id: title
        for entry in stored
        if (title := entry.incoming.place.title) is not None
        and not entry.message.ephemeral
        and entry.conversation.room_id is None
    }


def _number(batch: Batch, accepted: Sequence[_NewMessage]) -> list[_NewMessage]:
    """The messages with their sequence numbers. Of messages with the same id only the first is stored."""
    stored: list[_NewMessage] = []
    counts: dict[uuid.UUID, int] = {}
    for entry in accepted:
        id = entry.message.id
        if batch.known[id]:
            continue
        batch.known[id] = True
        conversation = entry.conversation.id
        numbered = not (entry.message.ephemeral or _is_closed(batch, entry.conversation))
        counts[conversation] = counts.get(conversation, 0) + numbered
        seq = batch.rows[conversation].last_seq + counts[conversation]
        message = replace(entry.message, seq=seq if numbered else unnumbered_seq(id))
        stored.append(replace(entry, message=message))
    return stored


def _message(batch: Batch, incoming: Incoming, conversation: Conversation) -> Message:
    """A message without its number."""
    return Message(
        id=message_id(conversation.room_id or conversation.id, incoming.id),
        external_id=incoming.id,
        seq=0,
        at=incoming.at,
        user_id=batch.user_ids[incoming.user],
        agent_id=None,
        author=incoming.user_name,
        text=incoming.text,
        namespace=conversation.namespace,
        visibility=conversation.visibility,
        attachments=incoming.attachments,
        mentions=tuple(dict.fromkeys(batch.user_ids[name] for name in incoming.mentions)),
        reply_to=incoming.reply_to,
        trust=incoming.sender_trust,
    )


def _appended(batch: Batch, stored: Sequence[_NewMessage]) -> list[Appended]:
    """How each conversation grew. Its version counts ephemeral messages too, but no view shows them."""
    by_conversation = sorted(stored, key=lambda entry: entry.conversation.id)
    appended = []
    for id, entries in groupby(by_conversation, key=lambda entry: entry.conversation.id):
        messages = [entry.message for entry in entries]
        version = batch.rows[id].conversation.version
        shown = tuple(message for message in messages if message.seq > 0)
        appended.append(Appended(id, version, version + len(messages), shown))
    return appended


def _turns(
    batch: Batch, stored: Sequence[_NewMessage], followed: Mapping[uuid.UUID, uuid.UUID]
) -> list[tuple[Turn, datetime]]:
    """A turn for each agent that has to answer a stored message, with the time of the message."""
    turns = []
    for entry in stored:
        answering = _answering_agents(batch, entry.incoming, entry.conversation)
        for agent in answering or [each for each in batch.agents if each.id == followed.get(entry.message.id)]:
            turn = Turn(
                id=turn_id(entry.message.id, agent),
                tenant_id=batch.workspace.tenant_id,
                conversation_id=entry.conversation.id,
                message_id=entry.message.id,
                agent_id=agent.id,
                adapter=entry.incoming.adapter,
            )
            turns.append((turn, entry.message.at))
    return turns


async def _update_cache(cache: WorkingCache, appended: Sequence[Appended], *, answer: bool) -> None:
    """Append what was stored to the cached views.

    Imported history drops them instead, since its messages are older than the cached ones.
    """
    try:
        if not answer:
            await cache.drop([entry.conversation_id for entry in appended])
        elif appended:
            await cache.append(appended)
    except Unavailable:
        logger.warning("working.cache_unavailable", conversations=len(appended))
