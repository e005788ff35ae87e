"""Webhooks: addresses of people's own programs, which are told what `/v1/events` tells that person. Made, listed, tried
and deleted by their person; what is sent: composer/people/webhook_messages.py."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from composer.errors import BadInput, Conflict, NotFound, Refused
from composer.model import Trust
from composer.people.credentials.issuing import lock_by_credential, require_enabled
from composer.people.credentials.own_credentials import bounds_of
from composer.people.credentials.principal import KeyPermission, Principal, Source
from composer.people.watching import WatchedPage
from composer.repositories.database import Transaction
from composer.repositories.webhooks import OffWhy, Webhook
from composer.text.cleaning import clean_line
from composer.visibility import EntryAccess, owned_by_bearer

MAX_WEBHOOKS: Final = 10  # of one person
MAX_URL_CHARS: Final = 500
MAX_NAME_CHARS: Final = 80
TOLD_PAGES: Final = tuple(page for page in WatchedPage if page is not WatchedPage.ADMIN)  # jobs are of no organisation
UNKNOWN_WEBHOOK: Final = "There is no such webhook."
WEBHOOKS_OFF: Final = "Webhooks are switched off here: ask whoever runs Nexus (NEXUS_WEBHOOKS, docs/settings.md)."
NO_GUESTS: Final = "Guests, and people of whom no message is stored, make no webhooks."
KEY_ENDS: Final = (
    "A key that ends makes no webhook, which would outlast it: use a key without an end, or sign in in a browser."
)
NO_PAGES: Final = "Choose what the webhook is told of."
IS_OFF: Final = "This webhook is off: switch it on first."
NO_WEBHOOK_URL: Final = (
    "The address of a webhook begins with https, and has at most 500 visible ASCII characters, and no login and no "
    "fragment."
)


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A webhook that is asked for. `place`: of one room, team or project alone."""

    url: str
    name: str = ""
    pages: Sequence[WatchedPage] = ()
    place: uuid.UUID | None = None


def check_url(url: str, hosts: Collection[str]) -> str:
    """The address of a webhook, as it is. To `hosts`, which the settings name, http leads too. Raises BadInput."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadInput(NO_WEBHOOK_URL) from None
    plain = len(url) <= MAX_URL_CHARS and url.isascii() and url.isprintable() and not {" ", "\\"} & set(url)
    scheme = parts.scheme == "https" or (parts.scheme == "http" and host in hosts)
    if not plain or not scheme or not host or port == 0 or "@" in parts.netloc or parts.fragment:
        raise BadInput(NO_WEBHOOK_URL)
    return url


async def create_webhook(
    tx: Transaction,
    principal: Principal,
    request: WebhookRequest,
    id: uuid.UUID,
    key_id: str,
    hosts: Collection[str],
    now: datetime,
) -> Webhook:
    """Make a webhook of the person who asks. What it may be told of was judged before. `id` is random, `key_id` names
    the key of the installation that its secret is made with. Recorded in the audit log. Raises BadInput and Refused."""
    principal.require(KeyPermission.MANAGE)
    url = check_url(request.url, hosts)
    users = await lock_by_credential(tx, principal, now)
    await require_enabled(tx, principal.user)
    if await tx.people.trust(principal.user) is Trust.GUEST:
        raise Refused(NO_GUESTS)
    if principal.source is Source.KEY and (await bounds_of(tx, principal, now)).expires_at is not None:
        raise Refused(KEY_ENDS)
    if len(await tx.webhooks.of(users)) >= MAX_WEBHOOKS:
        raise Refused(f"A person has at most {MAX_WEBHOOKS} webhooks: delete one first.")
    name = clean_line(request.name, MAX_NAME_CHARS) or (urlsplit(url).hostname or "")
    pages = tuple(page.value for page in TOLD_PAGES if page in request.pages)
    if not pages:
        raise BadInput(NO_PAGES)
    webhook = Webhook(id, principal.user, name, url, pages, request.place, key_id, now)
    await tx.webhooks.insert(webhook)
    return webhook


async def own_webhooks(tx: Transaction, principal: Principal, access: EntryAccess) -> list[Webhook]:
    """The person's webhooks, oldest first. Raises Refused for a tool, and without the permission."""
    principal.require(KeyPermission.MANAGE)
    return await tx.webhooks.of(owned_by_bearer(access).users)


async def own_webhook(tx: Transaction, principal: Principal, access: EntryAccess, id: uuid.UUID) -> Webhook:
    """A webhook of the person. Raises NotFound, and as `own_webhooks`."""
    found = next((each for each in await own_webhooks(tx, principal, access) if each.id == id), None)
    if found is None:
        raise NotFound(UNKNOWN_WEBHOOK)
    return found


async def webhook_to_try(tx: Transaction, principal: Principal, access: EntryAccess, id: uuid.UUID) -> Webhook:
    """A webhook of the person that is on. Raises Conflict, and as `own_webhook`."""
    found = await own_webhook(tx, principal, access, id)
    if found.off_at is not None:
        raise Conflict(IS_OFF)
    return found


async def delete_own_webhook(tx: Transaction, principal: Principal, access: EntryAccess, id: uuid.UUID) -> None:
    """Delete a webhook of the person: nothing is sent any more. Raises as `own_webhook`."""
    await own_webhook(tx, principal, access, id)
    await tx.webhooks.delete([id], principal.user)


async def switch_own_webhook(
    tx: Transaction, principal: Principal, access: EntryAccess, id: uuid.UUID, now: datetime, *, on: bool
) -> Webhook:
    """Switch a webhook of the person on or off. What changed while it was off is not told. Raises as `own_webhook`."""
    await own_webhook(tx, principal, access, id)
    if on:
        await tx.webhooks.set_on(id, now)
    else:
        await tx.webhooks.set_off(id, OffWhy.PERSON, now)
    return await own_webhook(tx, principal, access, id)
