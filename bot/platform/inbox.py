"""Stores the events of a chat platform: each one once, however often and in whatever order they arrive."""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

import structlog
from cachetools import LRUCache

from bot.platform.events import (
    MembersChanged,
    MessageChanged,
    PersonLeft,
    PlatformEvent,
    RoomDeleted,
    RoomEvent,
    RoomPrivacyChanged,
    RoomShared,
    ThreadArchived,
    TrustStated,
)
from bot.platform.retry import Backoff
from composer.app import App
from composer.errors import BadInput, Misconfigured, NexusError, NotFound, Overtaken, Unavailable
from composer.ingest.addressing import find_addressed_agents
from composer.ingest.changes import change_message, remaining_attachments
from composer.ingest.rooms import (
    erase_room,
    leave_private_rooms,
    note_room_deleted,
    set_room_members,
    set_room_private,
    set_room_shared,
    set_thread_archived,
    unerased_rooms,
)
from composer.memory.reminding import follow_zone
from composer.model import ConversationKind, Incoming, Workspace
from composer.people.credentials.leaving import end_access
from composer.repositories.people import StatedTrust

logger = structlog.get_logger()

MAX_ANSWERED_AGE: Final = timedelta(minutes=15)  # an older question that was missed is stored, and not answered
BATCH_SIZE: Final = 200  # messages in one transaction
MAX_REMEMBERED_CHANGES: Final = 10_000
MAX_OVERTAKEN: Final = 8  # tries of one event in a row, after which no other change is to blame
MAX_FAILURES: Final = 8  # of one message that its platform delivers again, after which it is passed over
MAX_REMEMBERED_FAILURES: Final = 1_000
# While it lasts, nothing can be stored: the database is away, or refuses Nexus until its admin has looked at that.
_OUTAGES: Final = (Unavailable, Misconfigured)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class InboxListeners:
    """Who is notified of what was stored. `on_stored` gets a batch and the ids of those of its messages that are new.
    It is called before anything else is awaited and must return at once."""

    on_stored: Callable[[Workspace, Sequence[Incoming], Sequence[uuid.UUID]], None] = lambda *_: None


class PlatformInbox:
    """The common part of all platforms' inboxes.

    An edit or a deletion that arrives before its message is remembered until the message arrives; a text no longer than
    that, since it may be forgotten.
    """

    def __init__(
        self,
        app: App,
        platform: str,
        *,
        workspace: Callable[[str], Awaitable[Workspace]],
        is_member: Callable[[str, str], Awaitable[bool]],
        listeners: InboxListeners,
        backoff: Backoff | None = None,
    ) -> None:
        """`workspace` is the workspace that the messages of a user belong to; `is_member` whether the platform has a
        user (second) in a room (first).

        With a `backoff`, every event is retried until it is stored. Without one, Unavailable is raised: the platform
        must deliver the event again.
        """
        self._app = app
        self._platform = platform
        self._workspace_of = workspace
        self._is_member = is_member
        self._listeners = listeners
        self._backoff = backoff
        self._changes: LRUCache[tuple[str, str], MessageChanged] = LRUCache(MAX_REMEMBERED_CHANGES)
        self._failures: LRUCache[tuple[str, str, str], int] = LRUCache(MAX_REMEMBERED_FAILURES)  # by message

    async def apply(self, event: PlatformEvent) -> None:
        """Store one event now. Raises Unavailable without a backoff."""
        match event:
            case Incoming():
                await self.store([event])
            case MessageChanged():
                await self.apply_change(event)
            case _:
                await self._persist(partial(self._apply_room_event, event))

    # Messages

    async def store(
        self,
        messages: Sequence[Incoming],
        is_answered: Callable[[Incoming], bool] = lambda message: not message.by_tool,
    ) -> None:
        """Store messages in their order; consecutive ones of one workspace in one transaction. `is_answered`: whether a
        message may queue a turn; by default, each of a person may."""
        remaining = [message for message in messages if not self.is_deleted(message.channel, message.id)]
        for start in range(0, len(remaining), BATCH_SIZE):
            batch = [self._with_change(message) for message in remaining[start : start + BATCH_SIZE]]
            await self._store_groups(batch, is_answered)

    async def store_missed(self, workspace: Workspace, messages: Sequence[Incoming]) -> None:
        """Store messages that were missed, in their order, and queue turns for those that are to be answered."""
        said = [each for each in messages if each.text.strip() or each.attachments]
        answered = {each.id for each in said if self.is_answered(workspace, each)}
        for each in said:
            if each.id in answered:
                self.note_question(each)
        await self.store(said, lambda message: message.id in answered)

    def is_answered(self, workspace: Workspace, missed: Incoming) -> bool:
        """Whether a message that was missed may be answered: it is a recent question to an agent, or stands in a
        thread, where it may follow up an answer."""
        agents = self._app.directory.agents(workspace.tenant_id)
        is_question = (
            missed.place.kind in (ConversationKind.DM, ConversationKind.THREAD)
            or bool(missed.addressed_agents)
            or bool(find_addressed_agents(missed.text, agents))
        )
        return not missed.by_tool and is_question and self._app.clock.now() - missed.at < MAX_ANSWERED_AGE

    def note_question(self, question: Incoming) -> None:
        """Called before a message is stored that may queue a turn."""

    async def _store_groups(self, messages: Sequence[Incoming], is_answered: Callable[[Incoming], bool]) -> None:
        """Store runs of messages that belong to one workspace and want an answer, or don't."""
        batch: list[Incoming] = []
        group: tuple[Workspace, bool] | None = None
        for message in messages:
            following = (await self._persist(partial(self._workspace_of, message.user)), is_answered(message))
            if group is not None and group != following:
                await self.receive(group[0], batch, answer=group[1])
                batch = []
            group = following
            batch.append(await self._with_trust(replace(message, workspace=group[0].name)))
        if group is not None:
            await self.receive(group[0], batch, answer=group[1])

    async def _with_trust(self, incoming: Incoming) -> Incoming:
        """A message, with what its platform says of its sender beside it. By default, it says it with the message."""
        return incoming

    async def receive(self, workspace: Workspace, batch: Sequence[Incoming], *, answer: bool) -> None:
        """Store a batch; a message that is refused or fails does not affect the others.

        Without a backoff, raises a message's error after the others were stored; a message that has failed MAX_FAILURES
        times is passed over.
        """
        if not batch:
            return
        try:
            await self._persist(partial(self._receive_once, workspace, batch, answer=answer))
        except Exception as error:
            if isinstance(error, _OUTAGES) and not isinstance(error, Overtaken):
                raise
            if len(batch) > 1:
                await self._receive_each(workspace, batch, answer=answer)
            elif isinstance(error, BadInput | NotFound):
                await self._receive_refused(workspace, batch[0], error, answer=answer)
            elif self._is_tried_again(batch[0]):
                raise
            else:
                logger.exception("inbox.message_failed", platform=self._platform, message=batch[0].id)

    def _is_tried_again(self, failed: Incoming) -> bool:
        """Whether a message that has failed once more is to be delivered again, which is counted."""
        if self._backoff is not None:
            return False
        key = (failed.user, failed.place.name, failed.id)
        self._failures[key] = self._failures.get(key, 0) + 1
        return self._failures[key] < MAX_FAILURES

    async def _receive_each(self, workspace: Workspace, batch: Sequence[Incoming], *, answer: bool) -> None:
        failure: Exception | None = None
        for incoming in batch:
            try:
                await self.receive(workspace, [incoming], answer=answer)
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure

    async def _receive_once(self, workspace: Workspace, batch: Sequence[Incoming], *, answer: bool) -> None:
        received = await self._app.receive(workspace, batch, answer=answer)
        self._listeners.on_stored(workspace, batch, received.new)
        if not answer and received.new:
            self._app.indexer.due(workspace.tenant_id)

    async def _receive_refused(
        self, workspace: Workspace, incoming: Incoming, error: NexusError, *, answer: bool
    ) -> None:
        """Store the message of someone who, as far as we know, has left its private room.

        If the platform has them in the room, we have missed their return. If it does not, they wrote before they left,
        and the message is stored as history. A message that is refused for another reason is not stored.
        """
        if isinstance(error, NotFound):
            room, user = incoming.place.name, incoming.user
            returned = await self._persist(partial(self._is_member, room, user))
            if returned:
                members = {room: {user: True}}
                await self._persist(lambda: set_room_members(self._app.database, workspace, members, incoming.at))
            for wanted in (answer, False) if returned else (False,):
                try:
                    await self._persist(partial(self._receive_once, workspace, [incoming], answer=wanted))
                except NotFound:
                    continue
                return
        logger.warning("inbox.message_refused", platform=self._platform, message=incoming.id, error=str(error))

    def _with_change(self, incoming: Incoming) -> Incoming:
        """The message as it was edited before it arrived."""
        change = self._changes.get((incoming.channel, incoming.id))
        if change is None or change.text is None:
            return incoming
        agents = incoming.addressed_agents if change.addressed_agents is None else change.addressed_agents
        return replace(
            incoming,
            text=change.text,
            mentions=change.mentions,
            attachments=remaining_attachments(incoming.attachments, change.attached),
            addressed_agents=agents,
        )

    # Changes

    def is_deleted(self, channel: str, message_id: str) -> bool:
        """Whether a message is known to be deleted."""
        change = self._changes.get((channel, message_id))
        return change is not None and change.text is None

    async def apply_change(self, change: MessageChanged, *, awaits_message: bool = False) -> None:
        """Edit or erase a message in every layer. An older edit than the last one is ignored. With `awaits_message`,
        raises Unavailable for an edit of a message that is not stored and may be still, by another process perhaps,
        which does not know of the edit."""
        key = (change.channel, change.message_id)
        known = self._changes.get(key)
        if known is not None and _is_outdated(change, known):
            return
        self._changes[key] = change
        applied: MessageChanged | None = None
        while applied is not change:  # a later one may have been stored before this one: then it is stored again
            applied = change
            stored = await self._persist(partial(self._change_stored, applied, awaits_message=awaits_message))
            if stored:
                self._let_go(applied)
            change = self._changes.get(key, applied)

    async def reapply_change(self, channel: str, message_id: str) -> None:
        """Apply what changed while a message was being stored: at that time there was nothing to change."""
        change = self._changes.get((channel, message_id))
        if change is not None:
            await self._persist(partial(self._change_stored, change))
            self._let_go(change)

    def _let_go(self, change: MessageChanged) -> None:
        """Keep an edit no longer in memory once its message is stored: the log knows when it was edited."""
        key = (change.channel, change.message_id)
        if change.text is not None and self._changes.get(key) is change:
            del self._changes[key]

    async def _change_stored(self, changed: MessageChanged, *, awaits_message: bool = False) -> bool:
        """Change a stored message in every layer. False where nothing was changed: it may not be stored yet."""
        app, workspace = self._app, await self._workspace_of(changed.user)
        receipt = await change_message(
            database=app.database,
            workspace=workspace,
            agents=app.directory.agents(workspace.tenant_id),
            place=changed.place,
            user=changed.user,
            external_id=changed.message_id,
            text=changed.text,
            mentions=changed.mentions,
            now=app.clock.now(),
            files=changed.attached,
            edited_at=changed.edited_at,
            awaits_message=awaits_message,
            addressed=changed.was_addressed or bool(changed.addressed_agents),
        )
        if receipt is not None:
            await app.forgotten(workspace.tenant_id, receipt)
        return receipt is not None

    # Rooms

    async def _apply_room_event(self, event: RoomEvent) -> None:
        workspace, store = await self._workspace_of(""), self._app.database
        match event:
            case RoomPrivacyChanged(room, private, create, at):
                agents, now = self._app.directory.agents(workspace.tenant_id), self._app.clock.now()
                await set_room_private(store, workspace, agents, room, private, now, create=create, stated_at=at)
            case RoomShared(room):
                await set_room_shared(store, workspace, room, self._app.clock.now())
            case MembersChanged(rooms, at):
                await set_room_members(store, workspace, rooms, at or self._app.clock.now())
            case PersonLeft(user, at):
                await end_access(store, workspace, user)
                await leave_private_rooms(store, workspace, user, at or self._app.clock.now())
            case TrustStated(people, at, zones):
                now, tenant = self._app.clock.now(), workspace.tenant_id
                said = {user: StatedTrust(trust, at or now, zones.get(user, "")) for user, trust in people.items()}
                async with store.transaction(tenant) as tx:
                    for moved in await tx.people.set_trust(workspace.platform, workspace.name, said):
                        await follow_zone(tx, tenant, moved, now, self._app.directory.zone(tenant))
            case ThreadArchived(room, thread, at):
                await set_thread_archived(store, workspace, room, thread, at)
            case RoomDeleted(room, thread, at):
                # First: a command that begins from now on is refused.
                await note_room_deleted(store, workspace, room, thread, self._app.clock.now(), at)
                receipt = await erase_room(store, workspace, room, thread, self._app.clock.now())
                if receipt is not None:
                    await self._app.forgotten(workspace.tenant_id, receipt)

    async def finish_erasing(self) -> None:
        """Erase the rooms and threads that were deleted on the platform, and whose erasure an earlier process did not
        finish. One that fails keeps no other from it. Raises Unavailable while the database is away; without a backoff
        also Overtaken, after the others were erased."""
        workspace = await self._workspace_of("")
        overtaken: Overtaken | None = None
        for room, thread in await unerased_rooms(self._app.database, workspace):
            try:
                await self.apply(RoomDeleted(room, thread))
            except Exception as error:
                if isinstance(error, _OUTAGES) and not isinstance(error, Overtaken):
                    raise
                logger.exception("inbox.erasing_failed", platform=self._platform)
                overtaken = error if isinstance(error, Overtaken) else overtaken
        if overtaken is not None and self._backoff is None:
            raise overtaken

    async def _persist(self, call: Callable[[], Awaitable[V]]) -> V:
        """The result of `call`. With a backoff it is retried while the database or the platform is unavailable, or the
        database refuses Nexus; while other changes are in the way, MAX_OVERTAKEN times."""
        if self._backoff is None:
            return await call()
        overtaken = 0

        async def attempt() -> V:
            nonlocal overtaken
            try:
                return await call()
            except Exception as error:
                overtaken = overtaken + 1 if isinstance(error, Overtaken) else 0
                raise

        return await self._backoff.retry(
            attempt,
            "inbox.retrying",
            on=_OUTAGES,
            unless=lambda: overtaken >= MAX_OVERTAKEN,
            platform=self._platform,
        )


def _is_outdated(change: MessageChanged, known: MessageChanged) -> bool:
    """Whether an edit was made before a change that is known already. A deletion is never outdated."""
    if change.text is None:
        return False
    if known.text is None:
        return True
    return change.edited_at is not None and known.edited_at is not None and change.edited_at < known.edited_at
