"""What an admin does with the people of their tenant: makes admins, ends what opens a memory from outside, and disables
people, of whom nothing can open it. Each act is recorded in the audit log."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.errors import Conflict, NotFound, Refused
from composer.people.credentials.issuing import DISABLED, lock_keys
from composer.people.credentials.principal import Principal
from composer.people.credentials.sign_in import SENT_LINK_LIFETIME, make_login_link
from composer.repositories.database import Transaction
from composer.rights.relations import TenantFacts
from composer.rights.table import Act, judge

UNKNOWN_PERSON: Final = "There is no such person in this workspace."
ADMIN_DISABLED: Final = "That person is an admin: take the rights of an admin from all of their accounts first."
DISABLED_ADMIN: Final = "That person is disabled: enable them first."
LAST_ADMIN: Final = "A workspace keeps an admin: make somebody else one first."

# Why no admin makes a link that signs somebody in.
OF_PLATFORM: Final = "They get a link themselves where they are known from: with /nexus login, in a direct message."
OF_ACCOUNT: Final = "They sign in with an account that they have connected."
OF_BROWSER: Final = (
    "A browser is signed in as them: there, the page Tools makes a link for another one. If they have lost it, sign "
    "them out everywhere first."
)
OF_ADMIN: Final = "They are an admin: whoever runs Nexus makes a link for them, with nexus login."


@dataclass(frozen=True, slots=True)
class PersonOpeners:
    """How much opens a person's memory from outside: keys of theirs and of tools, connected apps, browsers that are
    signed in, and accounts at an OpenID provider that sign them in."""

    keys: int
    apps: int
    browsers: int
    accounts: int

    @property
    def ends(self) -> int:
        """How many of them end when the person is signed out everywhere: accounts stay."""
        return self.keys + self.apps + self.browsers


@dataclass(frozen=True, slots=True)
class ManagedPerson:
    """A person as an admin sees them, with all of their accounts: never what they wrote. `no_link`: why no admin makes
    a link that signs them in; empty where one may."""

    id: uuid.UUID
    name: str
    admin: bool
    openers: PersonOpeners
    no_link: str
    disabled_since: datetime | None = None


async def managed_person(tx: Transaction, admin: uuid.UUID, user: uuid.UUID, now: datetime) -> ManagedPerson:
    """Somebody of the tenant. Raises AdminNeeded, and NotFound for nobody of this tenant."""
    judge([Act.MANAGE_PEOPLE], TenantFacts(await tx.people.is_admin(admin)))
    name = (await tx.people.names([user])).get(user)
    if name is None:
        raise NotFound(UNKNOWN_PERSON)
    users = (user, *(await tx.people.linked_users([user])).get(user, ()))
    keys = [each for each in await tx.api_keys.of(users) if not each.ended(now)]
    apps = sum(each.client is not None for each in keys)
    browsers, accounts = await tx.web_sessions.of(users, now), await tx.openid_logins.of(users)
    openers = PersonOpeners(len(keys) - apps, apps, len(browsers), len(accounts))
    disabled = await tx.people.disabled_since(user)
    no_link = DISABLED if disabled is not None else await _no_link(tx, users, openers)
    return ManagedPerson(user, name, await tx.people.is_admin(user), openers, no_link, disabled)


async def let_back_in(tx: Transaction, principal: Principal, user: uuid.UUID, secret: bytes, now: datetime) -> str:
    """The code of a link that signs somebody in who has no other way: they came by an invitation, and no browser is
    left. It works once, within an hour, and ends the one before. Whoever has it is signed in as them, so where they
    could get in themselves, or are an admin, none is made: nobody's open memory is opened beside them. They see on the
    page Tools who made it. `secret` is 32 random bytes. Raises Refused, and as `managed_person`."""
    await lock_keys(tx, user)
    found = await managed_person(tx, principal.user, user, now)
    if found.no_link:
        raise Refused(found.no_link)
    return await make_login_link(
        tx, principal.tenant, user, secret, now, by=principal.user, lifetime=SENT_LINK_LIFETIME
    )


async def _no_link(tx: Transaction, users: Sequence[uuid.UUID], openers: PersonOpeners) -> str:
    """Why no admin makes a link that signs in who is all of these users; empty where one may."""
    if any([await tx.people.is_admin(each) for each in users]):
        return OF_ADMIN
    if any([await tx.people.home(each) is not None for each in users]):
        return OF_PLATFORM
    if openers.accounts:
        return OF_ACCOUNT
    return OF_BROWSER if openers.browsers else ""


async def set_tenant_admin(
    tx: Transaction, admin: uuid.UUID, user: uuid.UUID, wanted: bool, now: datetime
) -> ManagedPerson:
    """Make somebody an admin of the tenant, or no longer one; who is so already stays so. Raises Conflict for the last
    admin, and as `managed_person`."""
    await tx.serialize()  # two admins who end each other's rights at once leave one
    found = await managed_person(tx, admin, user, now)
    if found.admin == wanted:
        return found
    if wanted and found.disabled_since is not None:
        raise Conflict(DISABLED_ADMIN)
    if not wanted and [id for id, _, _ in await tx.people.admins()] == [user]:
        raise Conflict(LAST_ADMIN)
    tx.audit.act_for(admin)
    await tx.people.set_admin(user, wanted)
    return await managed_person(tx, admin, user, now) if user != admin else found


async def sign_out_everywhere(tx: Transaction, admin: uuid.UUID, user: uuid.UUID, now: datetime) -> PersonOpeners:
    """End all keys, connected apps, browsers and links of somebody, with all of their accounts; returns how many there
    were. Raises as `managed_person`."""
    users = await lock_keys(tx, user)
    found = await managed_person(tx, admin, user, now)
    tx.audit.act_for(admin)
    await _end_openers(tx, admin, users, now)
    return found.openers


async def set_disabled(
    tx: Transaction, admin: uuid.UUID, user: uuid.UUID, wanted: bool, now: datetime
) -> ManagedPerson:
    """Disable somebody, with all of their accounts: what opens their memory from outside ends, and nothing can be made
    that does, until they are enabled again. What they said and stored stays, and chat platforms have their own ways.
    Raises Conflict for an admin, and as `managed_person`."""
    tx.require_alone()  # who is signing in, or makes a key, does so before, and it ends, or finds that they may not
    found = await managed_person(tx, admin, user, now)
    if (found.disabled_since is not None) == wanted:
        return found
    users = (user, *(await tx.people.linked_users([user])).get(user, ()))
    if wanted and any([await tx.people.is_admin(each) for each in users]):
        raise Conflict(ADMIN_DISABLED)
    tx.audit.act_for(admin)
    await tx.people.set_disabled(user, now if wanted else None)
    if wanted:
        await _end_openers(tx, admin, users, now)
    return await managed_person(tx, admin, user, now)


async def _end_openers(tx: Transaction, admin: uuid.UUID, users: Sequence[uuid.UUID], now: datetime) -> None:
    valid = [each.id for each in await tx.api_keys.of(users) if not each.ended(now)]
    await tx.one_time_codes.end(users)
    if valid:
        await tx.api_keys.revoke(valid, now, admin)
    await tx.web_sessions.end(actor=admin, users=users)
    await tx.webhooks.delete(actor=admin, users=users)
