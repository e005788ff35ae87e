"""Invitations to an organisation: a link by which somebody becomes a person of it, once, within a week. By the first
one, which whoever runs Nexus is given, somebody becomes its first admin."""

import itertools
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.errors import BadInput, Conflict, NotFound, Refused
from composer.model import Agent, Workspace, derived_id
from composer.people.credentials import keys
from composer.people.credentials.keys import CredentialKind
from composer.people.credentials.openid import ANOTHERS, NOT_CONNECTED, OpenIdAccount
from composer.people.credentials.principal import KeyPermission, Principal
from composer.people.credentials.sign_in import make_login_link, open_session
from composer.repositories.database import Database, Transaction
from composer.repositories.one_time_codes import OpenInvitation
from composer.repositories.people import NAMELESS
from composer.text.cleaning import clean_line
from composer.text.names import UNNAMED, looks, person_name

INVITATION_LIFETIME: Final = timedelta(days=7)
FIRST_ADMIN_LIFETIME: Final = timedelta(days=1)
MAX_OPEN_INVITATIONS: Final = 100
MAX_NAME_CHARS: Final = 60
MAX_ADDRESS_CHARS: Final = 254
NO_INVITATION: Final = (
    "This invitation was accepted already, was taken back, or is older than a week: ask who sent it for another one."
)
UNKNOWN_INVITATION: Final = "There is no such invitation."
NO_ADDRESS: Final = "An e-mail address is written as dana@example.com."
BY_ACCOUNT: Final = "This invitation is to an e-mail address: sign in with the account that has it."
NO_NAME: Final = "Choose a name that has letters in it."
NO_NAME_OF_A_PERSON: Final = "An agent, an app or a group is called so, or nearly: choose another name."


@dataclass(frozen=True, slots=True)
class MadeInvitation:
    """An invitation that was made. `code` is shown once, in its link, and stored nowhere."""

    made: OpenInvitation
    code: str


def invitation_url(address: str, code: str) -> str:
    """The link of an invitation. `address` is that of the web port, without a slash at its end."""
    return f"{address}/invite/{code}"


async def open_invitations(tx: Transaction, principal: Principal, now: datetime) -> Sequence[OpenInvitation]:
    """The invitations that nobody has accepted yet, oldest first. Raises AdminNeeded."""
    principal.require(KeyPermission.ADMIN)
    return [each for each in await tx.one_time_codes.invitations(now) if each.by is not None]


async def invite(
    tx: Transaction, principal: Principal, name: str, secret: bytes, now: datetime, *, email: str = ""
) -> MadeInvitation:
    """Invite somebody to the organisation. `name`: whom; "": whoever has the link. `email`: their address, if they are
    to accept by signing in with an account that has it. `secret` is 32 random bytes.

    Raises AdminNeeded, BadInput for a name that is too long and for what is no address, and Refused where too many are
    open.
    """
    if len(await open_invitations(tx, principal, now)) >= MAX_OPEN_INVITATIONS:
        raise Refused(f"There are {MAX_OPEN_INVITATIONS} open invitations already: take one back first.")
    if len(name) > MAX_NAME_CHARS:
        raise BadInput(f"A name has at most {MAX_NAME_CHARS} characters.")
    address = _address(email)
    code = keys.make(CredentialKind.INVITATION, principal.tenant, secret)
    ends, digest = now + INVITATION_LIFETIME, keys.digest(code)
    return MadeInvitation(await tx.one_time_codes.invite(digest, clean_line(name), principal.user, ends, address), code)


async def revoke_invitation(tx: Transaction, principal: Principal, id: uuid.UUID, now: datetime) -> None:
    """Take an invitation back: its link works no more. Raises AdminNeeded and NotFound."""
    found = next((each for each in await open_invitations(tx, principal, now) if each.id == id), None)
    if found is None or not await tx.one_time_codes.end_invitation(found, revoked_by=principal.user):
        raise NotFound(UNKNOWN_INVITATION)


@dataclass(frozen=True, slots=True)
class FirstAdmin:
    """How the first admin of an organisation gets in: by an invitation, or by a login link of the admin who is called
    `name` and has never signed in."""

    code: str
    name: str | None


async def let_first_admin_in(
    database: Database, workspace: Workspace, agents: Sequence[Agent], secret: bytes, now: datetime
) -> FirstAdmin | None:
    """The code for the first admin of an organisation, which is made if it is new; None where an admin has ever signed
    in. `workspace` is one of its workspaces, `secret` 32 random bytes."""
    async with database.transaction(workspace.tenant_id, "alone") as tx:
        admins = await tx.people.admins()
        if any(signed_in for _, _, signed_in in admins):
            return None
        if admins:
            id, name, _ = admins[0]
            return FirstAdmin(await make_login_link(tx, workspace.tenant, id, secret, now, by=None), name)
        await tx.people.ensure_tenant(workspace.tenant, workspace.platform, workspace.name, agents, now)
        code = keys.make(CredentialKind.INVITATION, workspace.tenant, secret)
        await tx.one_time_codes.invite(keys.digest(code), "", None, now + FIRST_ADMIN_LIFETIME)
        return FirstAdmin(code, None)


@dataclass(frozen=True, slots=True)
class Invited:
    """What an invitation offers: to be a person of an organisation, or its first admin (`by` empty). `bound`: only who
    signs in with the account of an address accepts it, where accounts sign people in."""

    tenant: str
    name: str
    by: str
    expires_at: datetime
    bound: bool


async def look_at(database: Database, code: str, now: datetime) -> Invited:
    """What an invitation offers. It still works afterwards: programs that show a preview of its link open it too.

    Raises NotFound for a code that is wrong, used, revoked or too old: one sentence for all of them.
    """
    parsed = keys.parse(code, CredentialKind.INVITATION)
    async with database.transaction(keys.tenant_of(parsed), "read") as tx:
        found = await _find(tx, code, now)
    assert parsed is not None
    return Invited(parsed.tenant, found.name, found.by_name, found.expires_at, bool(found.email))


async def accept(
    database: Database,
    workspace: Workspace,
    agents: Sequence[Agent],
    code: str,
    name: str,
    browser: str,
    secret: bytes,
    now: datetime,
    *,
    has_accounts: bool,
) -> str:
    """Become a person of the organisation, called `name`, by an invitation, which is used up by that: the text of the
    cookie of a new web session. Of a name that somebody has, or that looks like it, they get one with a number: so a
    link tells nobody who is in the organisation, before it is used up. `workspace` is that of the API in the
    organisation, `browser` what the browser calls itself, `secret` 32 random bytes. `has_accounts`: accounts of OpenID
    sign people in there, so that an invitation to an address is accepted by one of these.

    Raises NotFound as `look_at`, Refused for an invitation to an address, and BadInput for no name and for one of an
    agent: then the invitation is as it was.
    """
    async with database.transaction(workspace.tenant_id, "alone") as tx:
        found = await _find(tx, code, now)
        if found.email and has_accounts:
            raise Refused(BY_ACCOUNT)
        user = await _join(tx, workspace, agents, found, _cleaned(name, agents), now)
        _, cookie = await open_session(tx, workspace.tenant, user, browser, secret, now)
        return cookie


async def accept_by_account(
    database: Database,
    workspace: Workspace,
    agents: Sequence[Agent],
    account: OpenIdAccount,
    browser: str,
    secret: bytes,
    now: datetime,
) -> str:
    """The same by the oldest invitation to the address of an account, which signs the person in from then on. They are
    called as the invitation says, or as the account is. Raises NotFound where nobody has invited that address, and
    Conflict where somebody else has connected the account meanwhile."""
    async with database.transaction(workspace.tenant_id, "alone") as tx:
        invited = await tx.one_time_codes.invitations(now)
        found = next((each for each in invited if account.email and each.email == account.email), None)
        if found is None:
            raise NotFound(NOT_CONNECTED)
        user = await _join(tx, workspace, agents, found, _name_of(found, account, agents), now)
        login = account.login_of(user, now)
        if not await tx.openid_logins.connect(login, account.digest):  # meanwhile
            raise Conflict(ANOTHERS)
        _, cookie = await open_session(tx, workspace.tenant, user, browser, secret, now, login=login.id)
        return cookie


async def _join(
    tx: Transaction, workspace: Workspace, agents: Sequence[Agent], found: OpenInvitation, name: str, now: datetime
) -> uuid.UUID:
    """Make the person who accepts an invitation, which is used up by that."""
    chosen = _free(name, await tx.people.every_name(), agents)
    await tx.one_time_codes.end_invitation(found)
    await tx.people.ensure_tenant(workspace.tenant, workspace.platform, workspace.name, agents, now)
    user = derived_id("invited person", str(workspace.tenant_id), found.digest.hex())
    await tx.people.join(workspace.name, user, chosen, found.id, now)
    if found.by is None:
        await tx.people.set_admin(user, True)
    return user


def tenant_invited_to(code: str) -> str | None:
    """The slug of the organisation that an invitation says it is to; None for what is no code of one."""
    parsed = keys.parse(code, CredentialKind.INVITATION)
    return None if parsed is None else parsed.tenant


async def _find(tx: Transaction, code: str, now: datetime) -> OpenInvitation:
    found = await tx.one_time_codes.invitations(now, keys.digest(code))
    if not found or keys.parse(code, CredentialKind.INVITATION) is None:
        raise NotFound(NO_INVITATION)
    if found[0].by is None and any(signed_in for _, _, signed_in in await tx.people.admins()):
        raise NotFound(NO_INVITATION)
    return found[0]


def _address(text: str) -> str:
    """An e-mail address as it is compared. Raises BadInput."""
    cleaned = clean_line(text).strip().lower()
    name, at, host = cleaned.rpartition("@")
    is_one = bool(name and at and "." in host.strip(".")) and " " not in cleaned and len(cleaned) <= MAX_ADDRESS_CHARS
    if cleaned and not is_one:
        raise BadInput(NO_ADDRESS)
    return cleaned


def _name_of(found: OpenInvitation, account: OpenIdAccount, agents: Sequence[Agent]) -> str:
    """What somebody is called who accepts an invitation by an account. Raises BadInput."""
    for each in (found.name, account.name, account.email.partition("@")[0]):
        with suppress(BadInput):
            return _cleaned(each, agents)
    raise BadInput(NO_NAME)


def _cleaned(name: str, agents: Sequence[Agent]) -> str:
    """A name as it is stored. Raises BadInput."""
    cleaned = clean_line(name)
    if len(cleaned) > MAX_NAME_CHARS:
        raise BadInput(f"A name has at most {MAX_NAME_CHARS} characters.")
    if not looks(cleaned) or cleaned.casefold() in (NAMELESS, UNNAMED):
        raise BadInput(NO_NAME)
    if _is_no_persons(cleaned, agents):
        raise BadInput(NO_NAME_OF_A_PERSON)
    return cleaned


def _free(name: str, names: Sequence[str], agents: Sequence[Agent]) -> str:
    """A name that looks like none of others: the one that was chosen, or that with the first number that fits."""
    taken = frozenset[str]().union(*map(looks, names))
    numbered = (f"{name[: MAX_NAME_CHARS - 6].rstrip()} {number}" for number in itertools.count(2))
    return next(
        each for each in itertools.chain([name], numbered) if not (looks(each) & taken or _is_no_persons(each, agents))
    )


def _is_no_persons(name: str, agents: Sequence[Agent]) -> bool:
    return person_name(name, [each for agent in agents for each in (agent.name, agent.slug)]) != name
