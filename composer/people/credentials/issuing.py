"""Make and revoke the keys to a person's memory. A key's text is returned once, when it is made."""

import re
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.errors import BadInput, NotFound, Refused
from composer.model import User, derived_id
from composer.people.credentials import keys
from composer.people.credentials.keys import CredentialKind
from composer.people.credentials.principal import (
    EVERY_PERMISSION,
    NEVER_OF_TOOLS,
    TOOL_PERMISSIONS,
    KeyPermission,
    Principal,
    Source,
    parse_permission,
)
from composer.people.credentials.stored import StoredCredential, credential_name
from composer.repositories.api_keys import KeyEntry
from composer.repositories.database import Transaction
from composer.repositories.openid_logins import LoginEntry
from composer.settings import VENDOR_RULE, is_vendor
from composer.text.cleaning import clean_line, shorten

MAX_KEYS: Final = 50  # of one person, that are valid at once
MAX_PERMISSIONS: Final = 100  # of one key: those for single projects are many
MAX_KEY_NAME_CHARS: Final = 80
MAX_LIFETIME: Final = timedelta(days=3_650)
MIN_ID_DIGITS: Final = 8
DISABLED: Final = "An admin of the workspace has disabled this person, and nothing opens their memory: ask an admin."
ENDED: Final = "Your key or sign-in has been revoked or has expired: use another key, or sign in again."
_LIFETIME: Final = re.compile(r"([0-9]{1,5})([hdw])", re.ASCII)


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A key that is asked for: of a tool (`vendor`) or of the person (None). `permissions` None: the usual ones."""

    vendor: str | None
    name: str = ""
    permissions: Sequence[str] | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was made. `text` is shown once, and stored nowhere."""

    entry: KeyEntry
    text: str


def wanted_permissions(request: KeyRequest, *, admin: bool) -> tuple[str, ...]:
    """The permissions of a new key, in order. `admin`: its person is an admin of the tenant.

    Raises BadInput for an unknown one, none or too many, and Refused for one that a tool or this person may not have.
    """
    if request.permissions is None:
        usual = TOOL_PERMISSIONS if request.vendor else EVERY_PERMISSION
        return tuple(sorted(usual if admin else usual - {KeyPermission.ADMIN}))
    found = sorted({parse_permission(text) for text in request.permissions[: MAX_PERMISSIONS + 1]})
    if not 1 <= len(found) <= MAX_PERMISSIONS:
        raise BadInput(f"A key has 1 to {MAX_PERMISSIONS} permissions.")
    refused = [each for each in found if request.vendor and each in NEVER_OF_TOOLS]
    if refused:
        raise Refused(f"A tool never gets the permission {refused[0]}: leave it out, or make a key of your own.")
    if KeyPermission.ADMIN in found and not admin:
        raise Refused("Only an admin of the workspace may have a key with the permission admin.")
    return tuple(found)


def lifetime_of(text: str) -> timedelta:
    """How long a key is valid: hours, days or weeks, as in 12h, 90d and 4w. Raises BadInput."""
    found = _LIFETIME.fullmatch(text)
    units = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
    lifetime = timedelta() if found is None else int(found[1]) * units[found[2]]
    if not timedelta() < lifetime <= MAX_LIFETIME:
        raise BadInput(f"'{shorten(text, 40)}' is not a duration: write 12h, 90d or 4w, at most 10 years.")
    return lifetime


async def lock_keys(tx: Transaction, user: uuid.UUID) -> tuple[uuid.UUID, ...]:
    """Let nobody else make keys to a person's memory until the end of the transaction; returns their users."""
    users = (user, *(await tx.people.linked_users([user])).get(user, ()))
    await tx.people.serialize(users)
    return users


async def lock_by_credential(tx: Transaction, principal: Principal, now: datetime) -> tuple[uuid.UUID, ...]:
    """The same for who asks by a credential, which was looked at before this transaction. Raises Refused where it has
    ended since: who leaves, or forgets everything, leaves no key behind that was being made."""
    users = await lock_keys(tx, principal.user)
    await require_valid(tx, principal, now)
    return users


async def require_valid(tx: Transaction, principal: Principal, now: datetime) -> None:
    """Return if the credential of who asks, which was looked at before this transaction, has not ended since. Raises
    Refused."""
    if principal.source is Source.SETTINGS:
        return
    if not await tx.api_keys.is_valid(principal.id, now):
        raise Refused(ENDED)


async def require_enabled(tx: Transaction, user: uuid.UUID) -> None:
    """Return if a person is not disabled. Raises Refused."""
    if await tx.people.disabled_since(user) is not None:
        raise Refused(DISABLED)


async def require_key_capacity(tx: Transaction, users: Sequence[uuid.UUID], now: datetime) -> None:
    """Return if a person, who has these users, may have one more key. Raises Refused."""
    if sum(not key.ended(now) for key in await tx.api_keys.of(users)) >= MAX_KEYS:
        raise Refused(f"There are {MAX_KEYS} keys to this memory already: revoke one first.")


async def create_key(
    tx: Transaction,
    tenant: str,
    person: User,
    request: KeyRequest,
    secret: bytes,
    now: datetime,
    *,
    by: uuid.UUID | None,
) -> NewKey:
    """Make a key to a person's memory. Recorded in the audit log.

    `tenant` is the slug of their tenant, `secret` 32 random bytes, `by` who asks for it (None: whoever runs Nexus).

    Raises BadInput and Refused.
    """
    if request.vendor is not None and not is_vendor(request.vendor):
        raise BadInput(f"That is no name of a tool: {VENDOR_RULE}.")
    if request.expires_at is not None and not now < request.expires_at <= now + MAX_LIFETIME:
        raise BadInput(f"A key expires at a time to come, within {MAX_LIFETIME.days:,} days, or never.")
    permissions = wanted_permissions(request, admin=person.admin)
    users = await lock_keys(tx, person.id)
    await require_enabled(tx, person.id)
    await require_key_capacity(tx, users, now)
    text = keys.make(CredentialKind.KEY, tenant, secret)
    digest = keys.digest(text)
    name = clean_line(request.name, MAX_KEY_NAME_CHARS) or request.vendor or "my key"
    entry = KeyEntry(
        id=derived_id("key", digest.hex()),
        user_id=person.id,
        vendor=request.vendor,
        name=name,
        prefix=keys.shown(text),
        permissions=permissions,
        created_at=now,
        expires_at=request.expires_at,
        revoked_at=None,
        last_used_at=None,
    )
    await tx.api_keys.insert(entry, digest, by)
    return NewKey(entry, text)


async def revoke(
    tx: Transaction, id: str, users: Collection[uuid.UUID] | None, now: datetime, *, by: uuid.UUID | None
) -> StoredCredential:
    """Revoke the key, end the web session or disconnect the login of these users (None: of anyone) whose id begins so,
    and return it.

    Raises BadInput for what is no beginning of an id, or of several, and NotFound.
    """
    beginning = id.lower().replace("-", "")
    if not MIN_ID_DIGITS <= len(beginning) <= 32 or not set(beginning) <= set("0123456789abcdef"):
        raise BadInput(f"An id has {MIN_ID_DIGITS} to 32 of the digits 0-9 and a-f; the list of keys shows them.")
    stored = await tx.api_keys.of(users)
    sessions, logins = await tx.web_sessions.of(users, now), await tx.openid_logins.of(users)
    valid: list[StoredCredential] = [*(key for key in stored if not key.ended(now)), *sessions, *logins]
    found = [each for each in valid if each.id.hex.startswith(beginning)]
    if not found:
        raise NotFound(_not_valid(beginning, [key for key in stored if key.id.hex.startswith(beginning)]))
    if len(found) > 1:
        raise BadInput(f"Several begin with '{beginning}'; write more of the id: {found[0].id.hex}")
    if isinstance(found[0], KeyEntry):
        await tx.api_keys.revoke([found[0].id], now, by)
    elif isinstance(found[0], LoginEntry):
        await tx.openid_logins.disconnect([found[0].id], by)
    else:
        await tx.web_sessions.end([found[0].id], by)
    return found[0]


def _not_valid(beginning: str, over: Sequence[KeyEntry]) -> str:
    """Why nothing that opens a memory begins so: `over` are the keys that do, and are revoked or have expired."""
    if len(over) != 1:
        return f"There is no key, web session or login '{beginning}'."
    [key] = over
    if key.revoked_at is not None:
        return (
            f"{credential_name(key)} is revoked already, since {key.revoked_at:%Y-%m-%d %H:%M} UTC: it opens nothing."
        )
    return f"{credential_name(key)} has expired on {key.expires_at:%Y-%m-%d %H:%M} UTC: it opens nothing."


async def delete_credentials(tx: Transaction, users: Sequence[uuid.UUID]) -> dict[str, int]:
    """Delete all that opens the memory of people who are erased or have left, and what is told of it; returns how many
    there were of each kind that lasts."""
    tx.require_alone()  # what is being made is made before, and deleted, or finds its credential gone
    logins = await tx.openid_logins.disconnect(users=users)
    keys, sessions = await tx.api_keys.delete_of(users), await tx.web_sessions.end(users=users)
    webhooks = await tx.webhooks.delete(users=users)
    return {"key": keys, "web session": sessions, "login": logins, "webhook": webhooks}
