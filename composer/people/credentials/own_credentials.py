"""What a person does over the API with what opens their memory: see it, make keys, end keys and web sessions.

A key never makes one that may do more, or is valid for longer, than itself: who finds a key gains nothing by that.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from composer.errors import NotFound, Refused
from composer.model import Trust, User
from composer.people.credentials.issuing import KeyRequest, NewKey, create_key, lock_by_credential, wanted_permissions
from composer.people.credentials.principal import KeyPermission, Principal, Source, includes
from composer.people.credentials.sign_in import make_login_link
from composer.repositories.api_keys import KeyEntry
from composer.repositories.database import Transaction
from composer.repositories.web_sessions import SessionEntry
from composer.visibility import EntryAccess, owned_by_bearer

UNKNOWN_KEY: Final = "There is no such key."
UNKNOWN_SESSION: Final = "There is no such web session."
NO_KEYS_FOR_GUESTS: Final = (
    "Guests, and people of whom no message is stored, make no keys: whoever runs Nexus makes one, with nexus keys "
    "create."
)
LINK_BY_BROWSER: Final = "A browser is signed in from one that is, or by a link from a direct message: not with a key."


@dataclass(frozen=True, slots=True)
class Bounds:
    """The name of whom a credential stands for, when it ends, and the beginning of the key where it is a stored one."""

    name: str
    prefix: str | None
    expires_at: datetime | None


async def bounds_of(tx: Transaction, principal: Principal, now: datetime) -> Bounds:
    """What a credential may know of itself."""
    name = (await tx.people.names([principal.user])).get(principal.user, "")
    if principal.source is Source.KEY:
        key = next((each for each in await tx.api_keys.of([principal.user]) if each.id == principal.id), None)
        return Bounds(name, None, None) if key is None else Bounds(name, key.prefix, key.expires_at)
    if principal.source is Source.WEB_SESSION:
        sessions = await tx.web_sessions.of([principal.user], now)
        return Bounds(name, None, next((each.expires_at for each in sessions if each.id == principal.id), None))
    return Bounds(name, None, None)


async def own_keys(tx: Transaction, principal: Principal, access: EntryAccess) -> list[KeyEntry]:
    """The keys to the person's memory, oldest first. Raises Refused without the permission."""
    principal.require(KeyPermission.MANAGE)
    return await tx.api_keys.of(owned_by_bearer(access).users)


async def own_sessions(tx: Transaction, principal: Principal, access: EntryAccess, now: datetime) -> list[SessionEntry]:
    """The browsers that are signed in as the person, oldest first. Raises Refused without the permission."""
    principal.require(KeyPermission.MANAGE)
    return await tx.web_sessions.of(owned_by_bearer(access).users, now)


async def create_own_key(
    tx: Transaction, principal: Principal, request: KeyRequest, secret: bytes, now: datetime
) -> NewKey:
    """Make a key to one's own memory. What it may do, and until when, is at most what the credential may that asks.

    Raises BadInput and Refused as `create_key`, and Refused for more than the credential has, and where that has ended.
    """
    principal.require(KeyPermission.MANAGE)
    await lock_by_credential(tx, principal, now)
    if await tx.people.trust(principal.user) is Trust.GUEST:
        raise Refused(NO_KEYS_FOR_GUESTS)
    bounds, admin = await bounds_of(tx, principal, now), principal.may(KeyPermission.ADMIN)
    ends = bounds.expires_at if principal.source is Source.KEY else None
    if ends is not None and (request.expires_at is None or request.expires_at > ends):
        raise Refused(f"The key that asks ends at {ends:%Y-%m-%d %H:%M} UTC: give the new one an earlier expires_at.")
    wanted = _within(principal, request, wanted_permissions(request, admin=admin))
    person = User(principal.user, bounds.name, admin)
    request = replace(request, permissions=wanted)
    return await create_key(tx, principal.tenant, person, request, secret, now, by=principal.user)


async def revoke_own_key(
    tx: Transaction, principal: Principal, access: EntryAccess, id: uuid.UUID, now: datetime
) -> None:
    """Revoke a key to one's own memory; one that is revoked stays so. Raises NotFound and Refused."""
    if id not in {each.id for each in await own_keys(tx, principal, access)}:
        raise NotFound(UNKNOWN_KEY)
    await tx.api_keys.revoke([id], now, principal.user)


async def end_own_session(
    tx: Transaction, principal: Principal, access: EntryAccess, id: uuid.UUID, now: datetime
) -> None:
    """Sign a browser out that is signed in as oneself. Raises NotFound and Refused."""
    if id not in {each.id for each in await own_sessions(tx, principal, access, now)}:
        raise NotFound(UNKNOWN_SESSION)
    await tx.web_sessions.end([id], principal.user)


async def link_to_sign_in(tx: Transaction, principal: Principal, secret: bytes, now: datetime) -> str:
    """The code of a link that signs another browser of the person in. `secret` is 32 random bytes.

    Raises Refused for a key: a browser may do all that its person may.
    """
    if principal.source is not Source.WEB_SESSION:
        raise Refused(LINK_BY_BROWSER)
    await lock_by_credential(tx, principal, now)
    return await make_login_link(tx, principal.tenant, principal.user, secret, now, by=principal.user)


def _within(principal: Principal, request: KeyRequest, wanted: Sequence[str]) -> Sequence[str]:
    """The permissions of a new key: where none are named, those of the usual ones that the credential has."""
    lacking = [each for each in wanted if not includes(principal.permissions, each)]
    if request.permissions is None:
        return [each for each in wanted if each not in lacking]
    if lacking:
        raise Refused(f"The key that asks has no permission {lacking[0]}, so it can't give it to another one.")
    return wanted
