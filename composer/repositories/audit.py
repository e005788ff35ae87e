"""The audit log: rows of who did what, to whom and where. They hold ids, counts and fixed words, never people's text.

A repository that changes who may read what records it here, in the same transaction. Each row is signed when it is
added; composer/audit chains the rows later.
"""

import json
import re
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from composer.model import ConversationKind
from composer.ports.audit import AuditKeys
from composer.ports.clock import Clock
from composer.ports.database import Row, Statements
from composer.visibility import may_enter_room

_WORD: Final = re.compile(r"[a-z0-9_.:-]{1,200}")  # an id, or a word that we chose


class AuditAct(StrEnum):
    """What was done. The words are stored and shown; never rename one."""

    READ_ACROSS = "read.across"  # an answer drew on what is filed under other people
    READ_AUDIT = "read.audit"  # an admin looked at this log
    ROOM_OPENED = "room.opened"
    ROOM_CLOSED = "room.closed"
    ROOM_JOINED = "room.joined"  # a private room
    ROOM_LEFT = "room.left"
    ROOM_RECORDING = "room.recording"
    PROJECT_CREATED = "project.created"
    PROJECT_RENAMED = "project.renamed"
    PROJECT_DELETED = "project.deleted"
    PROJECT_ASSIGNED = "project.assigned"
    PROJECT_UNASSIGNED = "project.unassigned"
    PROJECT_INVITED = "project.invited"
    PROJECT_MEMBER = "project.member"
    PROJECT_MEMBER_REMOVED = "project.member_removed"
    PERSON_INVITED = "person.invited"  # to the organisation, by a link
    PERSON_INVITE_REVOKED = "person.invite_revoked"
    PERSON_JOINED = "person.joined"  # by such a link
    PERSON_LINKED = "person.linked"
    PERSON_UNLINKED = "person.unlinked"
    PERSON_OPTED_OUT = "person.opted_out"
    PERSON_OPTED_IN = "person.opted_in"
    PERSON_DISABLED = "person.disabled"  # by an admin: nothing opens their memory from outside
    PERSON_ENABLED = "person.enabled"
    PERSON_ROOMS_ON = "person.rooms_on"  # their DMs read the rooms that they are in
    PERSON_ROOMS_OFF = "person.rooms_off"
    ADMIN_GRANTED = "admin.granted"
    ADMIN_REVOKED = "admin.revoked"
    SETTING_SET = "setting.set"
    SETTING_RESET = "setting.reset"
    OWN_SETTINGS = "person.settings"  # what a person set for themselves
    MEMORY_REACH = "memory.reach"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"
    WEBHOOK_CREATED = "webhook.created"  # by its person: it is told of what they may see
    WEBHOOK_DELETED = "webhook.deleted"
    WEBHOOK_OFF = "webhook.off"  # by itself: its address is gone, or takes nothing
    APP_CONNECTED = "app.connected"  # by its person, on our page
    APP_SIGNED_OUT = "app.signed_out"  # its tokens were ended: by itself, or since one was used twice
    LOGIN_LINK = "login.link"  # made, for the person that it signs in
    LOGIN_CONNECTED = "login.connected"  # an account at the OpenID provider, by which its person signs in
    LOGIN_DISCONNECTED = "login.disconnected"
    SIGNED_IN = "signed.in"
    SIGNED_OUT = "signed.out"
    ENTRIES_IMPORTED = "entries.imported"  # by their person, from a document
    ENTRY_VENDORS = "entry.vendors"  # which tools may read an entry was changed
    ENTRY_WRITTEN = "entry.written"  # for a project, by a person or a tool
    TEAM_CREATED = "team.created"
    TEAM_RENAMED = "team.renamed"
    TEAM_DELETED = "team.deleted"
    TEAM_INVITED = "team.invited"
    TEAM_INVITE_REVOKED = "team.invite_revoked"
    TEAM_MEMBER = "team.member"
    TEAM_MEMBER_REMOVED = "team.member_removed"
    EXPORTED = "exported"
    ERASED = "erased"
    ERASURE_RECEIPT = "erased.receipt"
    IMPORTED = "imported"
    IMPORT_UPLOADED = "imported.uploaded"  # a file, of which nothing is stored yet
    IMPORT_BEGUN = "imported.begun"  # by the admin who uploaded the file
    IMPORT_UNDONE = "imported.undone"
    RESTORED = "restored"
    AUDIT_CUT = "audit.cut"
    AUDIT_VERIFIED = "audit.verified"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One row. `actor` is who did it (None: a platform, a job or an operator), `users` whom it concerns. `details` are
    counts, ids and fixed words."""

    id: uuid.UUID
    at: datetime
    act: str
    actor: uuid.UUID | None
    users: tuple[uuid.UUID, ...] = ()
    conversation: uuid.UUID | None = None
    project: uuid.UUID | None = None
    details: Mapping[str, str | int | bool] = field(default_factory=dict)

    def signed_bytes(self, tenant: uuid.UUID) -> bytes:
        """What is signed: every field and the tenant, in one fixed form."""
        return json.dumps(
            [
                "event",
                str(tenant),
                str(self.id),
                _time(self.at),
                self.act,
                _text(self.actor),
                [str(user) for user in self.users],
                _text(self.conversation),
                _text(self.project),
                dict(self.details),
            ],
            sort_keys=True,
            separators=(",", ":"),
        ).encode()


@dataclass(frozen=True, slots=True)
class SignedEvent:
    """A row as it is stored."""

    event: AuditEvent
    key_id: str
    signature: bytes


@dataclass(frozen=True, slots=True)
class Seal:
    """The link of one row into the chain. `before` is the digest of the seal with the number before."""

    number: int
    event_id: uuid.UUID
    sealed_at: datetime
    event_digest: bytes
    before: bytes
    key_id: str = ""
    signature: bytes = b""

    def signed_bytes(self, tenant: uuid.UUID) -> bytes:
        """What is signed."""
        parts = [self.number, str(self.event_id), _time(self.sealed_at), self.event_digest.hex(), self.before.hex()]
        return json.dumps(["seal", str(tenant), *parts], separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where retention cut the log: the number and the digest of the last seal that went."""

    number: int
    digest: bytes
    cut_at: datetime
    key_id: str = ""
    signature: bytes = b""

    def signed_bytes(self, tenant: uuid.UUID) -> bytes:
        """What is signed."""
        parts = ["anchor", str(tenant), self.number, self.digest.hex(), _time(self.cut_at)]
        return json.dumps(parts, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class AuditSigner:
    """What signs, dates and names new rows."""

    keys: AuditKeys
    clock: Clock
    new_id: Callable[[], uuid.UUID]


class Audit:
    """The audit log of one tenant, in one transaction. Without a `signer` it can only be read."""

    def __init__(self, statements: Statements, tenant_id: uuid.UUID, signer: AuditSigner | None) -> None:
        self._sql = statements
        self._tenant_id = tenant_id
        self._signer = signer
        self._actor: uuid.UUID | None = None
        self._place: uuid.UUID | None = None
        self._part: dict[str, str] = {}

    def act_for(self, actor: uuid.UUID, place: uuid.UUID | None = None) -> None:
        """State for whom this transaction acts and where they asked (None: over the API): what its rows have unless
        they name others."""
        self._actor, self._place = actor, place

    def act_as(self, part: str) -> None:
        """State which part of Nexus acts in this transaction, for nobody: the detail `by` of what it records."""
        self._part = {"by": part}

    async def record(
        self,
        act: AuditAct,
        *,
        users: Sequence[uuid.UUID] = (),
        actor: uuid.UUID | None = None,
        conversation: uuid.UUID | None = None,
        project: uuid.UUID | None = None,
        details: Mapping[str, str | int | bool] | None = None,
    ) -> None:
        """Add one row about `users` (shape of `details`: counts, ids, fixed words).

        `actor` and `conversation` are those of `act_for` unless given. Raises ValueError for a detail that may be text.
        """
        await self.record_each(act, [users], actor=actor, conversation=conversation, project=project, details=details)

    async def record_each(
        self,
        act: AuditAct,
        users: Sequence[Sequence[uuid.UUID]],
        *,
        actor: uuid.UUID | None = None,
        conversation: uuid.UUID | None = None,
        project: uuid.UUID | None = None,
        details: Mapping[str, str | int | bool] | None = None,
    ) -> None:
        """Add a row for each group of users, in one statement."""
        if self._signer is None:
            raise RuntimeError("this database was opened without a key of the audit log, so nothing can be recorded")
        details = self._part | dict(details or {})
        for name, value in details.items():
            if isinstance(value, str) and not _WORD.fullmatch(value):
                raise ValueError(f"the detail {name} of {act} is neither an id nor a fixed word")
        now, keys = self._signer.clock.now(), self._signer.keys
        events = [
            AuditEvent(
                id=self._signer.new_id(),
                at=now,
                act=act,
                actor=actor or self._actor,
                users=tuple(group),
                conversation=conversation or self._place,
                project=project,
                details=details,
            )
            for group in users
        ]
        signed = [SignedEvent(e, keys.current_id, keys.sign(e.signed_bytes(self._tenant_id))) for e in events]
        await self._sql.execute("audit_record", events=json.dumps([_as_json(each) for each in signed]))

    async def find(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        act: str | None = None,
        user: uuid.UUID | None = None,
        limit: int,
        after: tuple[datetime, uuid.UUID] | None = None,
    ) -> list[AuditEvent]:
        """Rows, newest first: from `since`, before `until`, of one act, of which `user` is the actor or concerned;
        those that follow the row `after` (its time and id)."""
        rows = await self._sql.fetch(
            "audit_find",
            since=since,
            until=until,
            act=act,
            user_id=user,
            limit=limit,
            before=None if after is None else after[0],
            before_id=None if after is None else after[1],
        )
        return [_event(row).event for row in rows]

    async def rooms(self, conversations: Collection[uuid.UUID], joined: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
        """The names of the rooms that conversations are, or are threads of: public ones, and private ones that the
        viewer is in now (`joined`). Nothing of any other conversation."""
        rows = await self._sql.fetch("audit_rooms", conversation_ids=list(conversations), joined_ids=list(joined))
        return {
            row["id"]: row["name"]
            for row in rows
            if row["kind"] == ConversationKind.ROOM and may_enter_room(private=row["private"], joined=row["joined"])
        }

    async def counts(self, since: datetime) -> list[tuple[str, int, int]]:
        """(act, rows, actors) of each act since a time."""
        rows = await self._sql.fetch("audit_counts", since=since)
        return [(row["act"], row["rows"], row["actors"]) for row in rows]

    # --- the chain (composer/audit) ---------------------------------------------------------------------------------

    async def last_seal(self, before: datetime | None = None) -> Seal | None:
        """The end of the chain; with `before`, the last seal that has, like all before it, a row from before that
        time."""
        row = await self._sql.fetch_one("audit_last_seal", before=before)
        return None if row is None else _seal(row)

    async def anchor(self) -> Anchor | None:
        """Where retention cut the log."""
        return await self._sql.fetch_one_as(Anchor, "audit_anchor")

    async def waiting(self, limit: int) -> list[SignedEvent]:
        """Rows that wait for their seal, oldest first."""
        return [_event(row) for row in await self._sql.fetch("audit_waiting", limit=limit)]

    async def count_waiting(self) -> tuple[int, datetime | None]:
        """How many rows wait for their seal, and the time of the oldest."""
        row = await self._sql.fetch_one("audit_waiting_count")
        return (0, None) if row is None else (row["rows"], row["oldest"])

    async def unsealed(self, limit: int) -> list[SignedEvent]:
        """Rows without a seal, oldest first. It reads the whole log, to verify it."""
        return [_event(row) for row in await self._sql.fetch("audit_unsealed", limit=limit)]

    async def seal(self, seals: Sequence[Seal], sealed_at: datetime, key_id: str) -> None:
        """Store seals of one batch."""
        await self._sql.execute(
            "audit_seal",
            numbers=[seal.number for seal in seals],
            event_ids=[seal.event_id for seal in seals],
            event_digests=[seal.event_digest for seal in seals],
            before=[seal.before for seal in seals],
            signatures=[seal.signature for seal in seals],
            sealed_at=sealed_at,
            key_id=key_id,
        )

    async def sealed(self, after: int, limit: int) -> list[tuple[Seal, SignedEvent | None]]:
        """The next seals after a number, each with its row (None: it is gone)."""
        rows = await self._sql.fetch("audit_sealed", after=after, limit=limit)
        return [
            (_seal(row, "seal_key_id", "seal_signature"), None if row["id"] is None else _event(row)) for row in rows
        ]

    async def cut(self, anchor: Anchor) -> int:
        """Delete the rows up to an anchor, which stays in their place; returns how many went."""
        return int(
            await self._sql.fetch_value(
                "audit_cut",
                number=anchor.number,
                digest=anchor.digest,
                cut_at=anchor.cut_at,
                key_id=anchor.key_id,
                signature=anchor.signature,
            )
        )


def _as_json(signed: SignedEvent) -> dict[str, Any]:
    event = signed.event
    return {
        "id": str(event.id),
        "at": _time(event.at),
        "act": str(event.act),
        "actor_id": _text(event.actor),
        "user_ids": [str(user) for user in event.users],
        "conversation_id": _text(event.conversation),
        "project_id": _text(event.project),
        "details": dict(event.details),
        "key_id": signed.key_id,
        "signature": signed.signature.hex(),
    }


def _event(row: Row) -> SignedEvent:
    event = AuditEvent(
        id=row["id"],
        at=row["at"],
        act=row["act"],
        actor=row["actor_id"],
        users=tuple(row["user_ids"]),
        conversation=row["conversation_id"],
        project=row["project_id"],
        details=json.loads(row["details"]),
    )
    return SignedEvent(event, row["key_id"], row["signature"])


def _seal(row: Row, key_id: str = "key_id", signature: str = "signature") -> Seal:
    return Seal(
        number=row["number"],
        event_id=row["event_id"],
        sealed_at=row["sealed_at"],
        event_digest=row["event_digest"],
        before=row["before"],
        key_id=row[key_id],
        signature=row[signature],
    )


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _text(id: uuid.UUID | None) -> str | None:
    return None if id is None else str(id)
