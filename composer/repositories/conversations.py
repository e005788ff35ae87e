"""Conversations: rooms, threads, DMs and sessions, who is in them, and who may read them."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from composer.errors import NotFound
from composer.model import Conversation, ConversationKind, RecordingPolicy, Role, Trust
from composer.ports.clock import EARLIEST
from composer.ports.database import Row, Statements
from composer.ports.memberships import NOWHERE, Presence
from composer.repositories.audit import Audit, AuditAct
from composer.repositories.landmarks import PROPOSAL_LIFETIME
from composer.text.zones import zone_named
from composer.visibility import AccessContext, JoinedRoom, PoolMember, ProjectFacts, WaitingTalk


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation that is locked for writing. `generation` counts the namespaces that a room has had; `recording` is
    its room's recording policy. `outsiders`: people of other organisations read the room too, as was last stated of the
    time `outsiders_at`. `privacy_at` is the time of the latest statement of a room's privacy, `private_since` that of
    the earliest one since its opening that says private, `public_at` the latest time at which it is known to have been
    public, `opened_at` that of the statement that began its present namespace (None: unknown, or it is the first).
    `follow_ups`: in the threads of a room, what follows up an answer needs no mention.
    """

    conversation: Conversation
    generation: int
    last_seq: int
    recording: RecordingPolicy = RecordingPolicy.ON
    outsiders: bool = False
    privacy_at: datetime | None = None
    private_since: datetime | None = None
    public_at: datetime | None = None
    opened_at: datetime | None = None
    outsiders_at: datetime | None = None
    follow_ups: bool = True


@dataclass(frozen=True, slots=True)
class RoomState:
    """Who may read a room now. `reopened`: it was private and was opened; `since` is the time of the first message
    after that (None: there is none)."""

    private: bool
    reopened: bool = False
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class FollowedConversation:
    """A conversation that is read on its platform: a room, a thread, or the DM of a `user`. `private` and `opened_at`
    are of the room, also of a thread.

    All that was written there until `read_to` was received (None: nothing was read yet). `began_at`: when it was stored
    first, or its first message was sent. `changed_at`: when its history was changed at once, if what is stored was not
    compared with it since.
    """

    id: uuid.UUID
    kind: ConversationKind
    name: str
    thread: str | None
    user: str | None
    private: bool
    opened_at: datetime | None
    began_at: datetime
    read_to: datetime | None
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class UnreadConversation:
    """A conversation whose history can't be read: its workspace, its id on the platform, the title of a public room,
    and until when it was read (None: not since it was stored)."""

    workspace: str
    kind: ConversationKind
    id: str
    title: str | None
    read_to: datetime | None


@dataclass(frozen=True, slots=True)
class RoomIds:
    """A room that has got other ids on its platform since it was stored by its `name`: `later_ids`, the present one
    last, which may be its name again. Under `stored_ids` of them something else is stored."""

    name: str
    later_ids: tuple[str, ...]
    stored_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PersonInFrame:
    """What a page tells of whoever looks at it: the least of what their platforms say of them, whether they are an
    admin, their platforms, their time zone as one of these says it, the rooms that they are in now, by namespace, and
    their own DMs and sessions, and sessions of projects that they are an admin of, in which something waits or a
    decision is proposed."""

    trust: Trust
    admin: bool
    platforms: Sequence[str]
    zone: str | None
    rooms: Sequence[JoinedRoom]
    talks: Sequence[WaitingTalk]


@dataclass(frozen=True, slots=True)
class RecordedMember:
    """Who is recorded to be in a room now, by one of their accounts. `admin`: they opened it, and it is on no
    chat platform. `total`: how many there are."""

    id: uuid.UUID
    name: str
    admin: bool
    total: int


class Conversations:
    """Conversations, their members, their privacy and their projects."""

    def __init__(self, statements: Statements, tenant_id: uuid.UUID, audit: Audit) -> None:
        self._sql = statements
        self._tenant_id = tenant_id
        self._audit = audit

    async def ensure(
        self,
        platform: str,
        workspace: str,
        conversations: Sequence[Conversation],
        now: datetime,
        privacy_at: Mapping[uuid.UUID, datetime | None] = MappingProxyType({}),
    ) -> dict[uuid.UUID, ConversationRow]:
        """Create conversations that do not exist; `privacy_at`: when the privacy of some was stated. Returns those that
        were created, locked until the transaction ends."""
        rows = await self._sql.fetch(
            "conversations_ensure",
            platform=platform,
            workspace=workspace,
            ids=[c.id for c in conversations],
            kinds=[str(c.kind) for c in conversations],
            names=[c.name for c in conversations],
            namespaces=[c.namespace for c in conversations],
            private=[c.private for c in conversations],
            room_ids=[c.room_id for c in conversations],
            threads=[c.thread for c in conversations],
            user_ids=[c.user_id for c in conversations],
            agent_ids=[c.agent_id for c in conversations],
            project_ids=[c.project_id for c in conversations],
            privacy_at=[privacy_at.get(c.id) for c in conversations],
            now=now,
        )
        return self._locked(rows)

    async def workspace_of(self, id: uuid.UUID) -> tuple[str, str]:
        """The platform and the name of the workspace of a conversation that exists. Raises NotFound."""
        row = await self._sql.fetch_one("conversation_get", id=id)
        if row is None:
            raise NotFound("There is no such conversation here.")
        return row["platform"], row["workspace"]

    async def lock(self, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, ConversationRow]:
        """Lock conversations for writing until the transaction ends. Unknown ones are left out."""
        return self._locked(await self._sql.fetch("conversations_lock", ids=list(ids)))

    def _locked(self, rows: Sequence[Row]) -> dict[uuid.UUID, ConversationRow]:
        return {row["id"]: locked_conversation(row, self._tenant_id) for row in rows}

    async def get(self, id: uuid.UUID) -> Conversation | None:
        """One conversation as of now."""
        row = await self._sql.fetch_one("conversation_get", id=id)
        return None if row is None else _conversation(row, self._tenant_id)

    async def set_session_name(self, id: uuid.UUID, name: str) -> None:
        """Name a session, or (an empty name) forget what it was called."""
        await self._sql.execute("session_set_name", id=id, user_ids=[], name=name)

    async def bump_versions(self, ids: Sequence[uuid.UUID]) -> None:
        """Invalidate cached views, after a change other than appending messages."""
        await self._sql.execute("conversations_bump_version", ids=list(ids))

    async def versions(self, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
        """The versions of those of these conversations that are this tenant's."""
        rows = await self._sql.fetch("conversation_versions", ids=list(ids))
        return {row["id"]: row["version"] for row in rows}

    async def followed(
        self, platform: str, workspace: str, kinds: Sequence[ConversationKind]
    ) -> list[FollowedConversation]:
        """The conversations of a workspace that are read on its platform, those with the latest messages first. What
        the platform has deleted is left out."""
        rows = await self._sql.fetch(
            "conversations_followed", platform=platform, workspace=workspace, kinds=[str(kind) for kind in kinds]
        )
        return [
            FollowedConversation(
                id=row["id"],
                kind=ConversationKind(row["kind"]),
                name=row["name"],
                thread=row["thread"],
                user=row["user_external_id"],
                private=row["private"],
                opened_at=row["opened_at"],
                began_at=row["began_at"] or row["created_at"],
                read_to=row["read_to"],
                changed_at=row["history_changed_at"],
            )
            for row in rows
        ]

    async def set_read(self, conversations: Sequence[FollowedConversation], read_to: datetime) -> None:
        """Note that all that was written in conversations until a time was received, and that what is stored of them
        was compared with their history, as it was changed when they were read here."""
        await self._sql.execute(
            "conversations_set_read",
            ids=[each.id for each in conversations],
            changed_at=[each.changed_at for each in conversations],
            read_to=read_to,
            failed_at=None,
        )

    async def note_unread(self, conversations: Sequence[FollowedConversation], now: datetime) -> None:
        """Note that the history of conversations could not be read."""
        await self._sql.execute(
            "conversations_set_read",
            ids=[each.id for each in conversations],
            changed_at=[EARLIEST] * len(conversations),
            read_to=None,
            failed_at=now,
        )

    async def unread(self, since: datetime) -> list[UnreadConversation]:
        """The conversations whose history could not be read since a time, and was not read again, those that were read
        longest ago first."""
        rows = await self._sql.fetch("conversations_unread", since=since)
        return [
            UnreadConversation(
                f"{row['platform']}:{row['workspace']}",
                ConversationKind(row["kind"]),
                row["thread"] or row["name"],
                row["title"],
                row["read_to"],
            )
            for row in rows
        ]

    async def skip(self, now: datetime, room: uuid.UUID | None = None) -> None:
        """Store nothing that was written until now in a room and its threads, or (None) anywhere, once it is read
        again: it was received, or was not to be stored."""
        await self._sql.execute("conversations_skip", room_id=room, now=now)

    async def note_history_changed(
        self, platform: str, workspace: str, rooms: Sequence[str], *, direct: bool, now: datetime
    ) -> None:
        """Note that the history of these rooms, or (`direct`) of all DMs, was changed at once. Without either: that of
        every conversation of the workspace."""
        await self._sql.execute(
            "conversations_note_history_changed",
            platform=platform,
            workspace=workspace,
            rooms=list(rooms),
            direct=direct,
            now=now,
        )

    async def with_later_ids(self, platform: str, workspace: str) -> list[RoomIds]:
        """The rooms of a workspace that have got other ids on their platform."""
        return await self._sql.fetch_as(RoomIds, "rooms_with_later_ids", platform=platform, workspace=workspace)

    async def add_room_id(self, room: uuid.UUID, external_id: str, at: datetime | None) -> None:
        """Note that a room has another id on its platform, since a time if that is said. An unknown room is ignored,
        and so is a change that is not later than the latest one."""
        await self._sql.execute("room_add_id", room_id=room, external_id=external_id, at=at)

    async def access_context(
        self, id: uuid.UUID, asker: uuid.UUID, trust: Trust, presence: Presence = NOWHERE
    ) -> AccessContext | None:
        """The facts that visibility decides by, as of now; None for an unknown conversation. `trust`: what the asker's
        platform says of them. `presence`: in which private rooms their platforms say that they are."""
        return (await self.access_and_names(id, asker, trust, presence, ()))[0]

    async def access_and_names(
        self, id: uuid.UUID, asker: uuid.UUID, trust: Trust, presence: Presence, words: Collection[str]
    ) -> tuple[AccessContext | None, bool]:
        """The same, and whether anybody of the tenant has a name with one of some words, in lower case."""
        row = await self._sql.fetch_one("access_context", conversation_id=id, asker_id=asker, words=sorted(words))
        if row is None:
            return None, False
        project = None
        if row["project_id"] is not None:
            project = ProjectFacts(
                row["project_id"],
                row["project_slug"],
                row["isolated"],
                None if row["role"] is None else Role(row["role"]),
                tuple(
                    PoolMember(
                        namespace, ConversationKind(kind), private, pooled, None if role is None else Role(role), title
                    )
                    for namespace, kind, private, pooled, role, title in row["pool"]
                ),
            )
        access = AccessContext(
            _conversation(row, self._tenant_id),
            asker,
            row["asker_admin"],
            row["joined"],
            frozenset(row["departed"]),
            project,
            {asker: tuple(row["linked_users"])} if row["linked_users"] else {},
            trust,
            row["outsiders"],
            frozenset(row["isolated_linked_users"]),
            row["reads_rooms"],
            await self.rooms_joined((asker, *row["linked_users"]), presence) if row["reads_rooms"] else (),
            tuple(row["teams"]),
            zone_named(row["zone"]),
        )
        return access, row["names_somebody"]

    async def rooms_joined(self, users: Iterable[uuid.UUID], presence: Presence) -> tuple[JoinedRoom, ...]:
        """The rooms that any of these users is in now, by name. Whoever spoke in a public room is in it until they
        leave. `presence`: in which private rooms of chat platforms they are, and which they are an admin of."""
        return tuple(map(_joined_room, await self._joined("rooms_joined", users, presence)))

    async def room_members(self, room: uuid.UUID, most: int, skipped: int) -> list[RecordedMember]:
        """Who is recorded to be in a room now, by name: `most` of them, after the first `skipped`."""
        return await self._sql.fetch_as(RecordedMember, "room_members", room_id=room, most=most, skipped=skipped)

    async def rooms_managed(self, presence: Presence) -> tuple[JoinedRoom, ...]:
        """The public rooms whose admin somebody is as their chat platforms say, also those that they never spoke in."""
        return tuple(map(_joined_room, await self._sql.fetch("rooms_managed", managed_ids=sorted(presence.managed))))

    async def in_frame(self, users: Iterable[uuid.UUID], presence: Presence, now: datetime) -> PersonInFrame:
        """What the frame of every page tells of the person who is all of these users, in one statement."""
        after = now - PROPOSAL_LIFETIME
        rows = await self._joined("person_in_frame", users, presence, homes=True, proposed_after=after)
        first, rooms = rows[0], [row for row in rows if row["id"] is not None]
        return PersonInFrame(
            Trust.MEMBER if first["trusted"] else Trust.GUEST,
            first["admin"],
            tuple(first["platforms"]),
            first["zone"],
            tuple(map(_joined_room, rooms)),
            tuple(map(_waiting_talk, first["talks"])),
        )

    async def private_rooms(self, platform: str, workspace: str) -> tuple[str, ...]:
        """The private rooms of a workspace, by their ids on the platform."""
        rows = await self._sql.fetch("rooms_private", platform=platform, workspace=workspace)
        return tuple(row["name"] for row in rows)

    async def joined_ids(self, users: Iterable[uuid.UUID], presence: Presence) -> list[uuid.UUID]:
        """The ids of the same rooms."""
        return [row["id"] for row in await self._joined("rooms_joined", users, presence)]

    async def _joined(self, query: str, users: Iterable[uuid.UUID], presence: Presence, **more: Any) -> Sequence[Row]:
        present = sorted(presence.rooms)
        return await self._sql.fetch(
            query,
            **more,
            user_ids=list(users),
            present_ids=present,
            managed_ids=sorted(presence.managed),
            asked_at=presence.asked_at,
        )

    async def room_states(self, rooms: Sequence[uuid.UUID]) -> dict[uuid.UUID, RoomState]:
        """Who may read these rooms. Unknown ones are left out."""
        rows = await self._sql.fetch("room_states", room_ids=list(rooms))
        return {
            row["id"]: RoomState(row["private"], not row["private"] and row["reopened"], row["since"]) for row in rows
        }

    async def set_private(self, room: uuid.UUID, private: bool, namespace: str, generation: int, at: datetime) -> None:
        """Make a room private or public, as was stated at a time. Its public threads move to its namespace."""
        await self._sql.execute(
            "room_set_private", room_id=room, private=private, namespace=namespace, generation=generation, at=at
        )
        await self._sql.execute("threads_follow_room", room_id=room, namespace=namespace)
        await self._audit.record(AuditAct.ROOM_CLOSED if private else AuditAct.ROOM_OPENED, conversation=room)

    async def set_outsiders(self, room: uuid.UUID, outsiders: bool, at: datetime | None) -> None:
        """Record whether people of other organisations read a room too, as was stated of a time."""
        await self._sql.execute("room_set", room_id=room, follow_ups=None, outsiders=outsiders, outsiders_at=at)

    async def note_public(self, room: uuid.UUID, at: datetime) -> None:
        """Record that a room was public at a time, whatever it is now."""
        await self._sql.execute("room_note_privacy", room_id=room, at=at, past=True)

    async def refile_after(self, room: uuid.UUID, before: str, namespace: str, at: datetime) -> None:
        """Move what was sent in a room and its threads after a time, with its episodes, to the room's new namespace."""
        await self._sql.execute("room_refile_after", room_id=room, before=before, namespace=namespace, at=at)

    async def confirm_privacy(self, room: uuid.UUID, at: datetime) -> None:
        """Record that a room's privacy was stated again at a time: as it is."""
        await self._sql.execute("room_note_privacy", room_id=room, at=at, past=False)

    async def set_recording_policy(self, room: uuid.UUID, policy: RecordingPolicy, now: datetime) -> None:
        """Set what is stored of a room from now on: on, mentions or off."""
        await self._sql.execute("room_set_recording", room_id=room, policy=str(policy))
        if policy is not RecordingPolicy.OFF:
            await self.skip(now, room)
        await self._audit.record(AuditAct.ROOM_RECORDING, conversation=room, details={"policy": str(policy)})

    async def set_follow_ups(self, room: uuid.UUID, on: bool) -> None:
        """Set whether what follows up an answer in the threads of a room needs no mention."""
        await self._sql.execute("room_set", room_id=room, follow_ups=on, outsiders=None, outsiders_at=None)

    async def set_thread_archived(self, thread: uuid.UUID, at: datetime | None) -> None:
        """Record when the platform archived a thread; None when it is open again. Unknown threads are ignored."""
        await self._sql.execute("thread_set_archived", thread_id=thread, archived_at=at)

    async def with_threads(self, id: uuid.UUID) -> list[uuid.UUID]:
        """A conversation and, of a room, its threads."""
        return [row["id"] for row in await self._sql.fetch("conversation_ids", id=id, project_id=None)]

    async def clear_unused_names(self, ids: Sequence[uuid.UUID], retracted: str) -> None:
        """Forget the titles of those conversations in which nobody's message is left, and what those sessions were
        called of which nothing is left but `retracted`, the notice that replaces what was posted."""
        await self._sql.execute("conversations_clear_unused_names", ids=list(ids), retracted=retracted)

    async def clear_session_names(self, users: Sequence[uuid.UUID]) -> None:
        """Forget what the sessions of these users were called."""
        await self._sql.execute("session_set_name", id=None, user_ids=list(users), name="")

    async def clear_titles(self, room: uuid.UUID) -> None:
        """Forget the titles of a room and its threads."""
        await self._sql.execute("conversation_clear_titles", room_id=room)

    async def assign_project(self, id: uuid.UUID, project: uuid.UUID | None, pooled: bool) -> None:
        """Put a conversation into a project, or take it out (None)."""
        before = await self._sql.fetch_value(
            "conversation_assign", conversation_id=id, project_id=project, pooled=pooled
        )
        if before is not None and before != project:
            await self._audit.record(AuditAct.PROJECT_UNASSIGNED, conversation=id, project=before)
        if project is not None:
            await self._audit.record(
                AuditAct.PROJECT_ASSIGNED, conversation=id, project=project, details={"pooled": pooled}
            )

    async def leave_projects(self, users: Sequence[uuid.UUID]) -> None:
        """Take the DMs and sessions of a person, with all users that they are, out of projects that they are no members
        of. Those in an isolated one stay, since nothing may leave it, and are pooled there no more."""
        for row in await self._sql.fetch("conversations_leave_projects", user_ids=list(users)):
            if not row["isolated"]:
                await self._audit.record(AuditAct.PROJECT_UNASSIGNED, conversation=row["id"], project=row["project_id"])

    async def ensure_members(
        self,
        members: Mapping[tuple[uuid.UUID, uuid.UUID], datetime],
        senders: Mapping[tuple[uuid.UUID, uuid.UUID], bool],
    ) -> set[tuple[uuid.UUID, uuid.UUID]]:
        """Add (room, user) pairs of people who wrote there at a time. Who left after that time stays away.

        Returns those of the `senders` in private rooms who may not speak there: who has left, and who never joined a
        room that has members, unless their platform vouches for them (True). If there is one, nobody is added.
        """
        rows = await self._sql.fetch(
            "members_ensure",
            room_ids=[room for room, _ in members],
            user_ids=[user for _, user in members],
            since=list(members.values()),
            sender_rooms=[room for room, _ in senders],
            sender_ids=[user for _, user in senders],
            vouched=list(senders.values()),
        )
        for row in rows:
            if not row["refused"]:
                user, room = row["user_id"], row["conversation_id"]
                await self._audit.record(AuditAct.ROOM_JOINED, users=[user], conversation=room)
        return {(row["conversation_id"], row["user_id"]) for row in rows if row["refused"]}

    async def add_member(self, room: uuid.UUID, user: uuid.UUID, at: datetime, *, returning: bool = False) -> None:
        """Record that a person joined a room, unless they left it after `at`; with `returning`, only one who was a
        member before."""
        row = await self._sql.fetch_one("member_join", room_id=room, user_id=user, at=at, returning=returning)
        if row is not None:
            await self._audit.record(AuditAct.ROOM_JOINED, users=[user], conversation=room)

    async def remove_member(self, room: uuid.UUID, user: uuid.UUID, at: datetime) -> None:
        """Record that a person left a room, unless they came back after `at`."""
        if await self._sql.fetch_one("member_leave", room_id=room, user_id=user, at=at) is not None:
            await self._audit.record(AuditAct.ROOM_LEFT, users=[user], conversation=room)


# The columns of conversations_lock, in their order: a row within a list has no names for them.
_LOCKED_COLUMNS: Final = (
    *("id", "kind", "name", "namespace", "generation", "private", "room_id", "thread", "user_id", "agent_id"),
    *("project_id", "last_seq", "version", "privacy_at", "private_since", "public_at", "opened_at", "recording"),
    *("outsiders", "outsiders_at", "follow_ups"),
)


def locked_conversations(rows: Iterable[Iterable[Any]], tenant_id: uuid.UUID) -> dict[uuid.UUID, ConversationRow]:
    """Conversations from a list of the rows that conversations_lock returns."""
    found = (locked_conversation(dict(zip(_LOCKED_COLUMNS, row, strict=True)), tenant_id) for row in rows)
    return {each.conversation.id: each for each in found}


def locked_conversation(row: Row, tenant_id: uuid.UUID) -> ConversationRow:
    """A conversation from its row, as conversations_lock returns it."""
    return ConversationRow(
        _conversation(row, tenant_id),
        row["generation"],
        row["last_seq"],
        RecordingPolicy(row["recording"]),
        row["outsiders"],
        row["privacy_at"],
        row["private_since"],
        row["public_at"],
        row["opened_at"],
        row["outsiders_at"],
        row["follow_ups"],
    )


def _waiting_talk(row: Sequence[Any]) -> WaitingTalk:
    namespace, kind, pooled, owner_role, own, project, role = row
    member = PoolMember(
        namespace,
        ConversationKind(kind),
        private=True,
        pooled=pooled,
        owner_role=Role(owner_role) if owner_role else None,
    )
    return WaitingTalk(member, own, project, Role(role) if role else None)


def _joined_room(row: Row) -> JoinedRoom:
    return JoinedRoom(
        row["namespace"],
        row["name"],
        row["private"],
        row["project_id"],
        row["isolated"],
        row["platform"],
        row["id"],
        row["managed"],
        RecordingPolicy(row["recording"]),
        row["pooled"],
        row["project"],
    )


def _conversation(row: Row, tenant_id: uuid.UUID) -> Conversation:
    return Conversation(
        row["id"],
        tenant_id,
        ConversationKind(row["kind"]),
        row["name"],
        row["namespace"],
        row["private"],
        row["room_id"],
        row["thread"],
        row["user_id"],
        row["agent_id"],
        row["project_id"],
        row["version"],
    )
