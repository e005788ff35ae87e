"""People, conversations and messages in Postgres."""

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime

import asyncpg

from composer.model import (
    Agent,
    Attachment,
    Conversation,
    ConversationKind,
    Message,
    RecordingPolicy,
    Role,
    User,
    Visibility,
)
from composer.ports import ConversationRow, Identity, NewConversation, RoomState, Seen
from composer.stores.statements import Statements
from composer.visibility import AccessContext, PoolMember, ProjectFacts, Readable


class PostgresLog:
    """composer.ports.Log."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def ensure_tenant(
        self,
        slug: str,
        platform: str,
        workspace: str,
        agents: Sequence[Agent],
        now: datetime,
        people: Sequence[str] = (),
    ) -> dict[str, Identity]:
        """Make the tenant, note its workspace and the agents that serve it; whom it knows of some people."""
        ids, slugs, names = [a.id for a in agents], [a.slug for a in agents], [a.name for a in agents]
        rows = await self._sql.fetch("tenant_ensure", slug, platform, workspace, ids, slugs, names, now, list(people))
        return {row["external_id"]: Identity(row["user_id"], row["opted_out"]) for row in rows}

    async def identities(self, platform: str, workspace: str, external_ids: Sequence[str]) -> dict[str, uuid.UUID]:
        """The users behind a platform's ids; unknown ones are left out."""
        rows = await self._sql.fetch("identities_find", platform, workspace, list(external_ids))
        return {row["external_id"]: row["user_id"] for row in rows}

    async def ensure_people(
        self, platform: str, workspace: str, people: Mapping[str, tuple[uuid.UUID, str]], now: datetime
    ) -> None:
        """Make people, by external id: (user id, name)."""
        ids = [user for user, _ in people.values()]
        await self._sql.execute("users_ensure", ids, [name for _, name in people.values()], now)
        await self._sql.execute("identities_ensure", platform, workspace, list(people), ids)

    async def user(self, platform: str, workspace: str, external_id: str) -> User | None:
        """One person as a platform names them."""
        row = await self._sql.row("user_find", platform, workspace, external_id)
        return None if row is None else User(row["id"], row["name"], row["admin"])

    async def names(self, users: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
        """Names by id."""
        return {row["id"]: row["name"] for row in await self._sql.fetch("user_names", list(users))}

    async def set_admin(self, user: uuid.UUID, admin: bool) -> None:
        """Make someone an admin of the tenant, or no longer one."""
        await self._sql.execute("user_set_admin", user, admin)

    async def ensure_conversations(
        self, platform: str, workspace: str, conversations: Sequence[NewConversation], now: datetime
    ) -> None:
        """Make those that are not there."""
        new = list(conversations)
        await self._sql.execute(
            "conversations_ensure",
            [c.id for c in new],
            [str(c.kind) for c in new],
            platform,
            workspace,
            [c.name for c in new],
            [c.namespace for c in new],
            [c.private for c in new],
            [c.room_id for c in new],
            [c.thread for c in new],
            [c.user_id for c in new],
            [c.agent_id for c in new],
            [c.project_id for c in new],
            now,
        )

    async def lock(self, conversations: Sequence[uuid.UUID]) -> dict[uuid.UUID, ConversationRow]:
        """Take conversations for writing until the transaction ends."""
        rows = await self._sql.fetch("conversations_lock", list(conversations))
        return {
            row["id"]: ConversationRow(
                _conversation(row, self._sql.tenant_id),
                row["generation"],
                row["last_seq"],
                RecordingPolicy(row["recording"]),
            )
            for row in rows
        }

    async def conversation(self, id: uuid.UUID) -> Conversation | None:
        """One conversation as it is now."""
        row = await self._sql.row("conversation_get", id)
        return None if row is None else _conversation(row, self._sql.tenant_id)

    async def room_states(self, rooms: Sequence[uuid.UUID]) -> dict[uuid.UUID, RoomState]:
        """Of those rooms that are known, who may read them."""
        rows = await self._sql.fetch("room_states", list(rooms))
        return {
            row["id"]: RoomState(row["private"], not row["private"] and row["reopened"], row["since"]) for row in rows
        }

    async def set_private(self, room: uuid.UUID, private: bool, namespace: str, generation: int) -> None:
        """Close or open a room; its public threads follow it into its run."""
        await self._sql.execute("room_set_private", room, private, namespace, generation)
        await self._sql.execute("threads_follow_room", room, namespace)

    async def archive_thread(self, thread: uuid.UUID, at: datetime | None) -> None:
        """A thread was archived on its platform at a time, or (None) is open again. Unknown ones stay unknown."""
        await self._sql.execute("thread_archive", thread, at)

    async def touch(self, conversations: Sequence[uuid.UUID]) -> None:
        """Note that a log changed otherwise than by appending."""
        await self._sql.execute("conversation_touch", list(conversations))

    async def ensure_members(self, members: Mapping[tuple[uuid.UUID, uuid.UUID], datetime]) -> None:
        """(room, user) pairs of people who spoke there, and when."""
        rooms, users = [room for room, _ in members], [user for _, user in members]
        await self._sql.execute("members_ensure", rooms, users, list(members.values()))

    async def gone(self, rooms: Sequence[uuid.UUID]) -> set[tuple[uuid.UUID, uuid.UUID]]:
        """(room, user) pairs of people who left."""
        rows = await self._sql.fetch("members_gone", list(rooms))
        return {(row["conversation_id"], row["user_id"]) for row in rows}

    async def join(self, room: uuid.UUID, user: uuid.UUID, now: datetime) -> None:
        """A person came into a room."""
        await self._sql.execute("member_join", room, user, now)

    async def leave(self, room: uuid.UUID, user: uuid.UUID, now: datetime) -> None:
        """A person left a room."""
        await self._sql.execute("member_leave", room, user, now)

    async def is_room_admin(self, room: uuid.UUID, user: uuid.UUID) -> bool:
        """Whether a person may speak for a room."""
        return bool(await self._sql.value("member_is_admin", room, user))

    async def access_context(self, conversation: uuid.UUID, asker: uuid.UUID) -> AccessContext | None:
        """What visibility judges by, as it is now; None for an unknown conversation."""
        row = await self._sql.row("access_context", conversation, asker)
        if row is None:
            return None
        project = None
        if row["project_id"] is not None:
            project = ProjectFacts(
                row["project_id"],
                row["project_slug"],
                row["isolated"],
                None if row["role"] is None else Role(row["role"]),
                tuple(
                    PoolMember(run, ConversationKind(kind), private, pooled, None if role is None else Role(role))
                    for run, kind, private, pooled, role in row["pool"]
                ),
            )
        return AccessContext(
            _conversation(row, self._sql.tenant_id),
            asker,
            row["asker_admin"],
            row["joined"],
            frozenset(row["gone"]),
            project,
            {asker: tuple(row["selves"])} if row["selves"] else {},
        )

    async def known(self, messages: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Which of these are stored, or were and have been erased."""
        return {row["id"] for row in await self._sql.fetch("messages_known", list(messages))}

    async def append(
        self,
        messages: Sequence[tuple[uuid.UUID, Message]],
        seen: Mapping[uuid.UUID, Seen] | None = None,
        *,
        indexed: bool,
    ) -> None:
        """Append (conversation, message) pairs, and note how far conversations were seen."""
        new, seen = [message for _, message in messages], seen or {}
        counts = Counter(conversation for conversation, _ in messages)
        kept = Counter(conversation for conversation, message in messages if not message.ephemeral)
        changed = sorted(counts.keys() | seen.keys())
        latest = [seen.get(conversation) for conversation in changed]
        await self._sql.execute(
            "messages_append",
            [m.id for m in new],
            [conversation for conversation, _ in messages],
            [m.seq for m in new],
            [m.external_id for m in new],
            [m.at for m in new],
            [m.user_id for m in new],
            [m.agent_id for m in new],
            [m.author for m in new],
            [m.text for m in new],
            [json.dumps([asdict(a) for a in m.attachments]) for m in new],
            [json.dumps([str(user) for user in m.mentions]) for m in new],
            [m.namespace for m in new],
            [str(m.visibility) for m in new],
            [indexed for _ in new],
            [m.ephemeral for m in new],
            [m.reply_to for m in new],
            changed,
            [counts[conversation] for conversation in changed],
            [each and each.external_id for each in latest],
            [each and each.at for each in latest],
            [each and each.title for each in latest],
            [kept[conversation] for conversation in changed],
        )

    async def latest(
        self, readable: Readable, conversation: Conversation, most: int, before: Message | None
    ) -> list[Message]:
        """The last `most` messages (before one), oldest first; none if the run is not readable."""
        if conversation.namespace not in readable.all_namespaces:
            return []
        at, seq = (None, None) if before is None else (before.at, before.seq)
        rows = await self._sql.fetch("messages_latest", conversation.id, conversation.namespace, most, at, seq)
        return [replace(message_of(row), reply_to=row["reply_to"]) for row in reversed(rows)]

    async def message(self, id: uuid.UUID) -> tuple[Message, uuid.UUID] | None:
        """A message and its conversation, for the turn that answers it."""
        row = await self._sql.row("message_get", id)
        if row is None:
            return None
        return replace(message_of(row), ephemeral=row["ephemeral"], reply_to=row["reply_to"]), row["conversation_id"]

    async def find_message(
        self, platform: str, workspace: str, external_id: str
    ) -> list[tuple[uuid.UUID, uuid.UUID, uuid.UUID | None]]:
        """(message, conversation, author) of every message that a platform gave this id."""
        rows = await self._sql.fetch("messages_by_external_id", platform, workspace, external_id)
        return [(row["id"], row["conversation_id"], row["user_id"]) for row in rows]

    async def said_by(self, user: uuid.UUID, conversation: uuid.UUID | None) -> list[uuid.UUID]:
        """Ids of all that a person said, here or anywhere."""
        return [row["id"] for row in await self._sql.fetch("messages_by_user", user, conversation)]

    async def edit(
        self, id: uuid.UUID, text: str, mentions: Sequence[uuid.UUID], attachments: Sequence[Attachment], now: datetime
    ) -> None:
        """Replace a message's text and what is attached to it."""
        attached = json.dumps([asdict(a) for a in attachments])
        await self._sql.execute("message_edit", id, text, list(mentions), now, attached)

    async def assign(self, conversation: uuid.UUID, project: uuid.UUID | None, pooled: bool) -> None:
        """Put a conversation into a project, or take it out."""
        await self._sql.execute("conversation_assign", conversation, project, pooled)


def _conversation(row: asyncpg.Record, tenant_id: uuid.UUID) -> Conversation:
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


def message_of(row: asyncpg.Record) -> Message:
    """A message from its row."""
    return Message(
        row["id"],
        row["external_id"],
        row["seq"],
        row["at"],
        row["user_id"],
        row["agent_id"],
        row["author"],
        row["text"],
        row["namespace"],
        Visibility(row["visibility"]),
        tuple(Attachment(**attachment) for attachment in json.loads(row["attachments"])),
        tuple(row["mentions"]),
    )
