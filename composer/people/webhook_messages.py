"""What is sent to webhooks: of what has changed, only what their person's open pages would be told of, judged each time
that it is sent; ids, kinds and times, and nobody's words. In the form of Standard Webhooks, at least once."""

import base64
import hmac
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic_core import to_json

from composer.entries.access import access_for_reading
from composer.errors import Conflict
from composer.ingest.tenants import TenantDirectory
from composer.model import EVERY_VENDOR, derived_id
from composer.people.changes import Change
from composer.people.credentials.principal import EVERY_PERMISSION, effective
from composer.people.watching import WatchedPage, Watcher, watcher
from composer.ports.audit import AuditKeys
from composer.ports.clock import Clock
from composer.ports.memberships import Presence
from composer.ports.process_locks import ProcessLocks
from composer.repositories.database import Database, Transaction
from composer.repositories.webhooks import BegunMessage, OffWhy, StoredChange, Webhook
from composer.text.moments import moment
from composer.turn.memberships import Memberships

UNANSWERED: Final = "no answer"
NO_PUBLIC_ADDRESS: Final = "not public"  # its name leads to an address that is not of the public internet
GONE_STATUS: Final = "410"
FIRST_PAUSE: Final = timedelta(seconds=10)  # after a failure; four times as long after each further one
LONGEST_PAUSE: Final = timedelta(hours=8)
GIVEN_UP_AFTER: Final = timedelta(days=3)  # without a success
KEY_LOST: Final = "The key that this webhook's secret was made with is lost here: delete it, and make another one."

# What a change is of, as a message says it, by table.
WHAT: Final[Mapping[str, str]] = {
    "memories": "memories",
    "facts": "facts",
    "landmarks": "decisions",
    "summaries": "summaries",
    "messages": "messages",
    "quarantine": "waiting",
    "conversations": "conversations",
    "members": "room_members",
    "teams": "teams",
    "team_members": "team_members",
    "projects": "projects",
    "project_members": "project_members",
    "invites": "invitations",
    "users": "people",
    "one_time_codes": "people_invitations",
    "api_keys": "keys",
    "web_sessions": "sessions",
    "openid_logins": "logins",
    "webhooks": "webhooks",
}
# Namespaces whose id is that of a place.
_NAME_PLACES: Final = frozenset({"room", "team", "project", "invites", "member"})

Post = Callable[[str, Mapping[str, str], bytes], Awaitable[str]]
"""Sends a body with headers to an address: the status that it answers, UNANSWERED or NO_PUBLIC_ADDRESS."""


@dataclass(frozen=True, slots=True)
class DueWebhook:
    """A webhook that has something to be told."""

    tenant: uuid.UUID
    id: uuid.UUID
    user: uuid.UUID


class WebhookMessages:
    """Sends what webhooks are to be told. Several processes may look for it: each message is sent by one at a time."""

    def __init__(
        self,
        database: Database,
        directory: TenantDirectory,
        memberships: Memberships,
        locks: ProcessLocks,
        keys: AuditKeys,
        clock: Clock,
        new_id: Callable[[], uuid.UUID],
    ) -> None:
        """`new_id` makes random ids."""
        self._database = database
        self._directory = directory
        self._memberships = memberships
        self._locks = locks
        self._keys = keys
        self._clock = clock
        self._new_id = new_id
        self._sending: set[uuid.UUID] = set()

    @property
    def key_id(self) -> str:
        """The id of the key that secrets of new webhooks are made with."""
        return self._keys.current_id

    def secret(self, tenant: uuid.UUID, id: uuid.UUID, key_id: str) -> str | None:
        """The secret of a webhook, as its person is shown it once; None where the key is lost that it was made with. It
        is stored nowhere."""
        made = self._keys.derive(key_id, f"webhook {tenant} {id}".encode())
        return None if made is None else "whsec_" + base64.b64encode(made).decode()

    async def due(self) -> list[DueWebhook]:
        """The webhooks that have something to be told now, of all tenants. Raises Unavailable."""
        found = list[DueWebhook]()
        for tenant, _ in await self._database.tenants():
            async with self._database.transaction(tenant, "read") as tx:
                found += [DueWebhook(tenant, *each) for each in await tx.webhooks.due(self._clock.now())]
        return found

    async def send(self, due: DueWebhook, post: Post) -> bool:
        """Tell a webhook all that it is to be told. Returns whether something was sent. Raises Unavailable."""
        lock = derived_id("webhook", str(due.id))
        if due.id in self._sending or not await self._locks.take([lock]):
            return False
        self._sending.add(due.id)
        try:
            presence = await self._memberships.of(due.tenant, due.user)
            async with self._database.transaction(due.tenant) as tx:
                body, message = await self._begun(tx, due, presence)
            if message is None:
                return False
            secret = self.secret(due.tenant, due.id, message.key_id)
            if secret is None:
                await self._end(due, message, None, OffWhy.KEY)
                return False
            headers = signed_headers(secret, str(message.id), self._clock.now(), body)
            await self._end(due, message, await post(message.url, headers, body))
            return True
        finally:
            self._sending.discard(due.id)
            await self._locks.release([lock])

    async def try_out(self, tenant: uuid.UUID, webhook: Webhook, post: Post) -> str:
        """Send a message of the type ping, once; returns how it was answered. Raises Conflict where the webhook has no
        secret any more, and Unavailable."""
        secret, now = self.secret(tenant, webhook.id, webhook.key_id), self._clock.now()
        if secret is None:
            raise Conflict(KEY_LOST)
        body = message_body("ping", now, {})
        result = await post(webhook.url, signed_headers(secret, str(self._new_id()), now, body), body)
        async with self._database.transaction(tenant) as tx:
            await tx.webhooks.tried(webhook.id, result, now)
        return result

    async def _begun(self, tx: Transaction, due: DueWebhook, presence: Presence) -> tuple[bytes, BegunMessage | None]:
        """The message that is to be sent, as its person may see what it tells now; None where there is none."""
        now = self._clock.now()
        message = await tx.webhooks.begin(due.id, self._new_id(), now)
        if message is None:
            return b"", None
        stored, changes = await tx.webhooks.changes(message), list[dict[str, Any]]()
        if stored and self._directory.has_webhooks(due.tenant) and await tx.people.disabled_since(due.user) is None:
            permissions = effective(EVERY_PERMISSION, None, message.holder)
            access = await access_for_reading(tx, due.tenant, due.user, EVERY_VENDOR, permissions)
            known = await watcher(tx, access, presence, self._directory.quarantine(due.tenant), now)
            changes = told(known, due.tenant, message, stored)
        if not changes:
            await tx.webhooks.answered(message, now, result=None, over=True)
            return b"", None
        return message_body("changed", message.at, {"changes": changes}), message

    async def _end(self, due: DueWebhook, message: BegunMessage, result: str | None, why: OffWhy | None = None) -> None:
        now = self._clock.now()
        is_taken = result is not None and result.startswith("2")
        if why is None and not is_taken:
            why = _given_up(message, result, now)
        next_at = None if is_taken or why is not None else now + pause_after(message.failures + 1)
        async with self._database.transaction(due.tenant) as tx:
            await tx.webhooks.answered(message, now, result=result, over=is_taken, next_at=next_at, off_why=why)


def told(
    known: Watcher, tenant: uuid.UUID, message: BegunMessage, changes: Sequence[StoredChange]
) -> list[dict[str, Any]]:
    """Of changes those that the person's pages would be told of, each kind and place once, in order."""
    pages = [WatchedPage(page) for page in message.pages]
    found = dict[tuple[str, str | None], dict[str, Any]]()
    for each in changes:
        change = Change(tenant, each.namespace, each.visibility, each.owner_id, each.changed)
        seen = [page.value for page in pages if known.sees(page, change, message.place)]
        if seen:
            what, place = WHAT[change.table], _place(change)
            of_before = found.get((what, place), {"pages": []})["pages"]
            shown = [page.value for page in pages if page in seen or page in of_before]
            found[what, place] = {"what": what, "place": place, "pages": shown}
    return list(found.values())


def _place(change: Change) -> str | None:
    """The id of the room, team or project that a change is in; None for what is the person's own."""
    return change.place if change.namespace.partition(":")[0] in _NAME_PLACES else None


def message_body(type: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    """The body of a message, as JSON."""
    return to_json({"type": type, "timestamp": moment(at).isoformat(), "data": data})


def signed_headers(secret: str, id: str, now: datetime, body: bytes) -> dict[str, str]:
    """The headers by which a receiver knows that we sent this, and when (standardwebhooks.com)."""
    at, key = str(int(now.timestamp())), base64.b64decode(secret.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.digest(key, f"{id}.{at}.".encode() + body, "sha256")).decode()
    return {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": at,
        "webhook-signature": f"v1,{signature}",
    }


def pause_after(failures: int) -> timedelta:
    """For how long nothing is sent after so many failures in a row."""
    pause: timedelta = FIRST_PAUSE * 4 ** min(failures - 1, 10)
    return min(LONGEST_PAUSE, pause)


def _given_up(message: BegunMessage, result: str | None, now: datetime) -> OffWhy | None:
    """Why nothing more is sent after a failure; None where it is tried again."""
    if result == GONE_STATUS:
        return OffWhy.GONE
    since = message.failing_since
    return OffWhy.FAILING if since is not None and now - since >= GIVEN_UP_AFTER else None
