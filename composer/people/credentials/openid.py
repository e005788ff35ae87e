"""Sign in by an account at the OpenID provider, once its person has connected it to themselves.

An account is known by its issuer and subject alone. Names and e-mail addresses match no person: they change hands. An
address matches an open invitation alone (composer/people/credentials/invitations.py).
"""

import hashlib
import json
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.errors import Conflict, NotFound, Refused
from composer.model import Trust, derived_id, tenant_id
from composer.people.credentials.issuing import lock_by_credential
from composer.people.credentials.principal import KeyPermission, Principal, Source
from composer.people.credentials.sign_in import open_session
from composer.repositories.database import Database, Transaction
from composer.repositories.openid_logins import LoginEntry
from composer.repositories.web_sessions import SessionEntry
from composer.text.cleaning import clean_line
from composer.visibility import EntryAccess, owned_by_bearer

MAX_LOGINS: Final = 10  # of one person
MAX_LOGIN_NAME_CHARS: Final = 80
UNKNOWN_LOGIN: Final = "There is no such login."
NOT_CONNECTED: Final = (
    "This account is connected to nobody here yet. Sign in with a link first (/nexus login, in a direct message), and "
    "connect the account on the page that follows."
)
ANOTHERS: Final = "This account is connected to somebody else here: they disconnect it first."
NO_LOGINS_FOR_GUESTS: Final = (
    "Guests, and people of whom no message is stored, connect no account: they sign in with a link."
)
LOGIN_BY_BROWSER: Final = "An account is connected in a browser that is signed in, not with a key."


@dataclass(frozen=True, slots=True)
class OpenIdAccount:
    """An account, as the provider has vouched for it: `subject` is its id at `issuer`, `name` only to be shown.
    `email`: its verified address in lower case; "": it has none."""

    issuer: str
    subject: str
    name: str
    email: str = ""

    @property
    def digest(self) -> bytes:
        """By what it is looked up."""
        return hashlib.sha256(json.dumps([self.issuer, self.subject]).encode()).digest()

    def login_of(self, user: uuid.UUID, now: datetime) -> LoginEntry:
        """The login by which the account signs a person in."""
        id, name = derived_id("openid login", self.digest.hex()), clean_line(self.name, MAX_LOGIN_NAME_CHARS)
        return LoginEntry(id, user, self.issuer, name, now, None)


async def connect(tx: Transaction, principal: Principal, account: OpenIdAccount, now: datetime) -> LoginEntry:
    """Connect an account to the person who is signed in. Recorded in the audit log.

    Raises Refused for a key, a web session that has ended, guests and too many accounts, and Conflict for the account
    of somebody else.
    """
    principal.require(KeyPermission.MANAGE)
    if principal.source is not Source.WEB_SESSION:
        raise Refused(LOGIN_BY_BROWSER)
    if await tx.people.trust(principal.user) is Trust.GUEST:
        raise Refused(NO_LOGINS_FOR_GUESTS)
    await lock_by_credential(tx, principal, now)
    login = account.login_of(principal.user, now)
    others = [each for each in await tx.openid_logins.of([principal.user]) if each.id != login.id]
    if len(others) >= MAX_LOGINS:
        raise Refused(f"There are {MAX_LOGINS} accounts connected already: disconnect one first.")
    if not await tx.openid_logins.connect(login, account.digest):
        raise Conflict(ANOTHERS)
    return login


async def sign_in_by_account(
    database: Database, tenant: str, account: OpenIdAccount, browser: str, secret: bytes, now: datetime
) -> tuple[SessionEntry, str]:
    """Sign in the person of a tenant who has connected an account: the new web session, and the text of its cookie.

    `tenant` is the slug of the tenant, `browser` what the browser calls itself, `secret` 32 random bytes. Raises
    NotFound for an account that is connected to nobody.
    """
    async with database.transaction(tenant_id(tenant)) as tx:
        found = await tx.openid_logins.use(account.digest, now)
        if found is None:
            raise NotFound(NOT_CONNECTED)
        login, user = found
        return await open_session(tx, tenant, user, browser, secret, now, login=login)


async def own_logins(tx: Transaction, principal: Principal, access: EntryAccess) -> list[LoginEntry]:
    """The accounts that sign the person in, oldest first. Raises Refused without the permission."""
    principal.require(KeyPermission.MANAGE)
    return await tx.openid_logins.of(owned_by_bearer(access).users)


async def disconnect_own(tx: Transaction, principal: Principal, access: EntryAccess, id: uuid.UUID) -> None:
    """Disconnect an account from the person: it signs them in no more. Raises NotFound and Refused."""
    if id not in {each.id for each in await own_logins(tx, principal, access)}:
        raise NotFound(UNKNOWN_LOGIN)
    await tx.openid_logins.disconnect([id], principal.user)
