"""Sign in without a password: a link that works once, for five minutes, and the web session that it opens."""

import uuid
from datetime import datetime, timedelta
from typing import Final

from composer.errors import NotFound
from composer.model import derived_id
from composer.people.credentials import keys
from composer.people.credentials.issuing import require_enabled
from composer.people.credentials.keys import CredentialKind
from composer.repositories.database import Database, Transaction
from composer.repositories.one_time_codes import CodePurpose
from composer.repositories.web_sessions import SessionEntry
from composer.text.cleaning import clean_line

LINK_LIFETIME: Final = timedelta(minutes=5)
SENT_LINK_LIFETIME: Final = timedelta(hours=1)  # of a link that an admin makes, and sends to its person
SESSION_LIFETIME: Final = timedelta(days=30)
LOCAL_LINK: Final = (
    "No NEXUS_PUBLIC_URL is set, so this link opens only on the machine that Nexus runs on: whoever runs Nexus sets "
    "the address by which others reach it."
)
MAX_BROWSER_CHARS: Final = 200
USED_LINK: Final = (
    "This link was used already, is too old, or a newer one was made: get another one with /nexus login, in a direct "
    "message, or from whoever made it."
)


async def make_login_link(
    tx: Transaction,
    tenant: str,
    user: uuid.UUID,
    secret: bytes,
    now: datetime,
    *,
    by: uuid.UUID | None,
    lifetime: timedelta = LINK_LIFETIME,
) -> str:
    """The code of a new link that signs a person in; the one before ends. Recorded in the audit log.

    `tenant` is the slug of their tenant, `secret` 32 random bytes, `by` who asks for it (None: whoever runs Nexus).
    Raises Refused for who is disabled.
    """
    await require_enabled(tx, user)
    code = keys.make(CredentialKind.LOGIN_LINK, tenant, secret)
    await tx.one_time_codes.store(CodePurpose.LOGIN, user, keys.digest(code), now + lifetime, actor=by)
    return code


def login_url(address: str, code: str) -> str:
    """The link itself. `address` is that of the web port, without a slash at its end."""
    return f"{address}/login?code={code}"


async def person_of_link(database: Database, code: str, now: datetime) -> str:
    """Whom the code of a link would sign in, as `alice of acme`. The link still works afterwards: programs that show a
    preview of it open it too.

    Raises NotFound as `sign_in`.
    """
    parsed = keys.parse(code, CredentialKind.LOGIN_LINK)
    tenant = keys.tenant_of(parsed)
    async with database.transaction(tenant, "read") as tx:
        owner = await tx.one_time_codes.find(CodePurpose.LOGIN, keys.digest(code), now)
    if owner is None or parsed is None:
        raise NotFound(USED_LINK)
    return f"{owner.name} of {parsed.tenant}"


async def sign_in(
    database: Database, code: str, browser: str, secret: bytes, now: datetime
) -> tuple[SessionEntry, str]:
    """Redeem the code of a link: the new web session, and the text of its cookie. `browser` is what the browser calls
    itself, `secret` 32 random bytes.

    Raises NotFound for a code that is wrong, used, replaced or too old: one sentence for all of them.
    """
    parsed = keys.parse(code, CredentialKind.LOGIN_LINK)
    tenant = keys.tenant_of(parsed)
    async with database.transaction(tenant) as tx:
        owner = await tx.one_time_codes.find(CodePurpose.LOGIN, keys.digest(code), now, redeem=True)
        if owner is None or parsed is None:
            raise NotFound(USED_LINK)
        return await open_session(tx, parsed.tenant, owner.id, browser, secret, now)


async def open_session(
    tx: Transaction,
    tenant: str,
    user: uuid.UUID,
    browser: str,
    secret: bytes,
    now: datetime,
    *,
    login: uuid.UUID | None = None,
) -> tuple[SessionEntry, str]:
    """A new web session of a person who has shown who they are, and the text of its cookie. `login`: the OpenID login
    that showed it. The rest is as for `sign_in`. Raises Refused for who is disabled."""
    await require_enabled(tx, user)
    cookie = keys.make(CredentialKind.WEB_SESSION, tenant, secret)
    digest = keys.digest(cookie)
    session = SessionEntry(
        derived_id("web session", digest.hex()),
        user,
        now,
        now + SESSION_LIFETIME,
        None,
        clean_line(browser, MAX_BROWSER_CHARS),
    )
    await tx.web_sessions.insert(session, digest, login)
    return session, cookie
