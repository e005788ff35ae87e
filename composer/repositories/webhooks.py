"""Webhooks: addresses of people's own programs, and what each is still to be told of. No secret of theirs is stored."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from composer.model import Visibility
from composer.ports.database import Statements
from composer.repositories.api_keys import Holder
from composer.repositories.audit import Audit, AuditAct


class OffWhy(StrEnum):
    """Why nothing is sent to a webhook."""

    PERSON = "person"  # its person has switched it off
    GONE = "gone"  # its address answered 410
    FAILING = "failing"  # it took nothing for days
    KEY = "key"  # the key of the installation that its secret was made with is lost


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook as it is listed. `pages`: of what it is told, as `WatchedPage`; `place`: of one room, team or project
    alone. `failures`: how often in a row what it was sent was not taken, since `failing_since`. `last_result`: the
    status that its address answered last, or why there was none (`UNANSWERED`, `NO_PUBLIC_ADDRESS`)."""

    id: uuid.UUID
    user_id: uuid.UUID
    name: str
    url: str
    pages: tuple[str, ...]
    place: uuid.UUID | None
    key_id: str
    created_at: datetime
    off_at: datetime | None = None
    off_why: str | None = None
    failures: int = 0
    failing_since: datetime | None = None
    last_at: datetime | None = None
    last_result: str | None = None


@dataclass(frozen=True, slots=True)
class BegunMessage:
    """A message to a webhook, and what its person is now. The message was made at `at`."""

    webhook: uuid.UUID
    holder: Holder
    url: str
    pages: tuple[str, ...]
    place: uuid.UUID | None
    key_id: str
    id: uuid.UUID
    at: datetime
    failures: int
    failing_since: datetime | None


@dataclass(frozen=True, slots=True)
class StoredChange:
    """Where a row that was changed was filed and whose it is, and its table."""

    namespace: str
    visibility: Visibility
    owner_id: uuid.UUID | None
    changed: str


class Webhooks:
    """The webhooks of one tenant."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def insert(self, webhook: Webhook) -> None:
        """Store a new webhook."""
        await self._sql.execute(
            "webhook_insert",
            id=webhook.id,
            user_id=webhook.user_id,
            name=webhook.name,
            url=webhook.url,
            pages=list(webhook.pages),
            place=webhook.place,
            key_id=webhook.key_id,
            now=webhook.created_at,
        )
        await self._audit.record(
            AuditAct.WEBHOOK_CREATED,
            actor=webhook.user_id,
            users=[webhook.user_id],
            details={"webhook": str(webhook.id), "pages": len(webhook.pages)},
        )

    async def of(self, users: Collection[uuid.UUID]) -> list[Webhook]:
        """The webhooks of these users, oldest first."""
        return await self._sql.fetch_as(Webhook, "webhooks_list", user_ids=list(users))

    async def delete(
        self, ids: Sequence[uuid.UUID] = (), actor: uuid.UUID | None = None, *, users: Sequence[uuid.UUID] = ()
    ) -> int:
        """Delete webhooks, or all of some users, who are erased or have left; returns how many there were."""
        rows = await self._sql.fetch("webhooks_delete", ids=list(ids), user_ids=list(users))
        if rows:
            owners = users or sorted({row["user_id"] for row in rows})
            details = {"webhook": str(ids[0])} if len(ids) == 1 else {"webhooks": len(rows)}
            await self._audit.record(AuditAct.WEBHOOK_DELETED, actor=actor, users=owners, details=details)
        return len(rows)

    async def set_on(self, id: uuid.UUID, now: datetime) -> None:
        """Switch a webhook on that is off. It is told of what changes from now on."""
        await self._sql.execute("webhook_set", id=id, now=now, off_why=None)

    async def set_off(self, id: uuid.UUID, why: OffWhy, now: datetime) -> None:
        """Switch a webhook off that is on. What it was still to be told is told no more."""
        await self._sql.execute("webhook_set", id=id, now=now, off_why=why)

    async def due(self, now: datetime) -> list[tuple[uuid.UUID, uuid.UUID]]:
        """The webhooks that may have something to be told now, each with its person."""
        return [(row["id"], row["user_id"]) for row in await self._sql.fetch("webhooks_due", now=now)]

    async def begin(self, id: uuid.UUID, message: uuid.UUID, now: datetime) -> BegunMessage | None:
        """Begin a message with all that a webhook is to be told, or go on with the one that is on its way; None where
        the webhook is off or was deleted. No other process does so meanwhile."""
        row = await self._sql.fetch_one("webhook_begin", id=id, message_id=message, now=now)
        if row is None:
            return None
        return BegunMessage(
            row["id"],
            Holder(row["user_id"], row["admin"], row["opted_out"]),
            row["url"],
            tuple(row["pages"]),
            row["place"],
            row["key_id"],
            row["message_id"],
            row["message_at"],
            row["failures"],
            row["failing_since"],
        )

    async def changes(self, message: BegunMessage) -> list[StoredChange]:
        """What a message tells if its person may see it, each once, the first change first."""
        return await self._sql.fetch_as(StoredChange, "webhook_message", id=message.webhook, message_id=message.id)

    async def answered(
        self,
        message: BegunMessage,
        now: datetime,
        *,
        result: str | None,
        over: bool,
        next_at: datetime | None = None,
        off_why: OffWhy | None = None,
    ) -> None:
        """Record how a message was answered (`result` None: it was not sent). `over`: it is not sent again; else not
        before `next_at`. With `off_why` the webhook is switched off."""
        rows = await self._sql.fetch(
            "webhook_answered",
            id=message.webhook,
            message_id=message.id,
            now=now,
            result=result,
            over=over,
            next_at=next_at,
            off_why=off_why,
        )
        if rows and off_why is not None:
            details = {"webhook": str(message.webhook), "why": str(off_why)}
            await self._audit.record(AuditAct.WEBHOOK_OFF, users=[message.holder.user_id], details=details)

    async def tried(self, id: uuid.UUID, result: str, now: datetime) -> None:
        """Record how a webhook that its person tried was answered."""
        await self._sql.execute("webhook_tried", id=id, result=result, now=now)
