"""Apps that a person connects by OAuth: consent, a code, and tokens that are renewed until somebody ends them.

An access token names one address (its resource), and stands for nobody anywhere else. A refresh token works once: when
one comes again, somebody else may have it, and the whole sign-in ends.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.errors import BadInput, NotFound, Refused
from composer.model import Trust, derived_id
from composer.people.credentials import keys
from composer.people.credentials.issuing import MAX_KEY_NAME_CHARS, lock_by_credential, require_key_capacity
from composer.people.credentials.keys import RENEWED_BYTES, SECRET_BYTES, CredentialKind
from composer.people.credentials.principal import TOOL_PERMISSIONS, KeyPermission, Principal, Source
from composer.repositories.api_keys import KeyEntry
from composer.repositories.connected_apps import TokenRow
from composer.repositories.database import Database, Transaction
from composer.repositories.one_time_codes import AppGrant, AppRequest, CodePurpose
from composer.settings import VENDOR_RULE, is_vendor
from composer.text.cleaning import clean_line

APP_PERMISSIONS: Final = TOOL_PERMISSIONS - {KeyPermission.GATEWAY}  # an app has MCP alone
AUTHORIZATION_CODE_LIFETIME: Final = timedelta(seconds=60)
ACCESS_LIFETIME: Final = timedelta(hours=1)
REFRESH_LIFETIME: Final = timedelta(days=30)
MAX_SIGN_INS: Final = 20  # of one app, of one person: the machines that it runs on
NO_APPS_FOR_GUESTS: Final = "Guests, and people of whom no message is stored, connect no apps."
APP_BY_BROWSER: Final = "An app is connected in a browser that is signed in, not with a key."
UNKNOWN_CODE: Final = "This code was used already, or is older than a minute, or was never given to this app."
UNKNOWN_TOKEN: Final = "This refresh token was used already, or has ended, or was never given to this app."
Random = Callable[[int], bytes]  # so many random bytes


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What an app asks a person for (RFC 6749, section 4.1.1). `client` is its id, `name` what it calls itself,
    `registered` the address as it registered it and `redirect_uri` as it asks to be led back to; `redirect_given` says
    that it named it. `challenge` is the S256 of its secret (RFC 7636), `resource` the address that its tokens are
    for."""

    client: str
    name: str
    registered: str
    redirect_uri: str
    redirect_given: bool
    permissions: tuple[str, ...]
    challenge: str
    resource: str


@dataclass(frozen=True, slots=True)
class AppTokens:
    """Both tokens of a sign-in, shown this once. `permissions` are those of the access token."""

    access: str
    refresh: str
    permissions: tuple[str, ...]


async def require_may_connect(tx: Transaction, principal: Principal) -> None:
    """Return if somebody may connect apps: a person who is signed in, in a browser. Raises Refused."""
    principal.require(KeyPermission.MANAGE)
    if principal.source is not Source.WEB_SESSION:
        raise Refused(APP_BY_BROWSER)
    if await tx.people.trust(principal.user) is Trust.GUEST:
        raise Refused(NO_APPS_FOR_GUESTS)


async def find_connected(
    tx: Transaction, principal: Principal, asked: AuthorizationRequest, now: datetime
) -> list[KeyEntry]:
    """The connections by which the person has allowed this app the same before, newest first: one for each vendor."""
    same = asked.client, asked.registered, tuple(sorted(asked.permissions))
    found = [key for key in await tx.api_keys.of([principal.user]) if not key.ended(now)]
    return [key for key in reversed(found) if (key.client, key.redirect_uri, key.permissions) == same]


async def connect(
    tx: Transaction, principal: Principal, asked: AuthorizationRequest, vendor: str, secret: bytes, now: datetime
) -> str:
    """Let an app use the person's memory as the tool `vendor`: the code by which it gets its tokens. What they have
    allowed before is not recorded again. `secret` is 32 random bytes.

    Raises BadInput for what is no name of a tool, and Refused for a key, a web session that has ended, a guest, a
    permission that no app has, and too many keys.
    """
    await require_may_connect(tx, principal)
    if not is_vendor(vendor):
        raise BadInput(f"That is no name of a tool: {VENDOR_RULE}.")
    if not asked.permissions or not APP_PERMISSIONS.issuperset(asked.permissions):
        raise Refused("An app never gets such a permission.")
    users = await lock_by_credential(tx, principal, now)
    text = keys.make(CredentialKind.APP_CODE, principal.tenant, secret)
    digest = keys.digest(text)
    found = next((each for each in await find_connected(tx, principal, asked, now) if each.vendor == vendor), None)
    if found is None:
        await require_key_capacity(tx, users, now)
        found = _app(principal.user, asked, vendor, digest, now)
        await tx.api_keys.insert(found, None, found.user_id)
    request = AppRequest(asked.challenge, asked.redirect_uri, asked.redirect_given, asked.resource)
    ends_at = now + AUTHORIZATION_CODE_LIFETIME
    await tx.one_time_codes.store(CodePurpose.APP, found.user_id, digest, ends_at, app=(found.id, request))
    return text


def _app(user: uuid.UUID, asked: AuthorizationRequest, vendor: str, digest: bytes, now: datetime) -> KeyEntry:
    """An app that is connected now. It ends with its code, unless it uses that."""
    return KeyEntry(
        id=derived_id("connected app", digest.hex()),
        user_id=user,
        vendor=vendor,
        name=clean_line(asked.name, MAX_KEY_NAME_CHARS) or vendor,
        prefix="",
        permissions=tuple(sorted(asked.permissions)),
        created_at=now,
        expires_at=now + AUTHORIZATION_CODE_LIFETIME,
        revoked_at=None,
        last_used_at=None,
        client=asked.client,
        redirect_uri=asked.registered,
    )


async def find_code(database: Database, client: str, text: str, now: datetime) -> AppGrant | None:
    """What a code is for, if it is one of this app's that has not been used. One that was used ends the sign-in that
    began with it."""
    tenant = _tenant_of(text, CredentialKind.APP_CODE)
    async with database.transaction(tenant) as tx:
        found = await tx.one_time_codes.find(CodePurpose.APP, keys.digest(text), now, client=client)
        if found is None:
            await _end(tx, _sign_in_of(text), client, "code used twice", now)
            return None
        return found.app


async def redeem_code(database: Database, client: str, text: str, random: Random, now: datetime) -> AppTokens | None:
    """Use a code up: the first tokens of a sign-in. None as with `find_code`, of two at once for the second."""
    tenant, parsed = _tenant_of(text, CredentialKind.APP_CODE), keys.parse(text, CredentialKind.APP_CODE)
    async with database.transaction(tenant) as tx:
        found = await tx.one_time_codes.find(CodePurpose.APP, keys.digest(text), now, client=client, redeem=True)
        if found is None or found.app is None or parsed is None:
            await _end(tx, _sign_in_of(text), client, "code used twice", now)
            return None
        refresh = keys.make(CredentialKind.REFRESH_TOKEN, parsed.tenant, random(SECRET_BYTES))
        app = found.app
        tokens, row = _made(parsed.tenant, refresh, app.permissions, random, now)
        await tx.connected_apps.insert_tokens(_sign_in_of(text), app.key_id, app.asked.resource, row, kept=MAX_SIGN_INS)
        return tokens


async def permissions_of(database: Database, client: str, text: str, now: datetime) -> tuple[str, ...]:
    """What a refresh token may be renewed for, if it is valid and this app's. One that was used before ends its
    sign-in. Raises NotFound."""
    async with database.transaction(_tenant_of(text, CredentialKind.REFRESH_TOKEN)) as tx:
        found = await tx.connected_apps.find_refresh(keys.family(text), client)
        if found is not None and found.digest != keys.digest(text):
            await _end(tx, found.id, client, "refresh token used twice", now)
            found = None
    if found is None or found.expires_at <= now or found.revoked_at is not None:
        raise NotFound(UNKNOWN_TOKEN)
    return found.permissions


async def renew(
    database: Database, client: str, text: str, permissions: Sequence[str], random: Random, now: datetime
) -> AppTokens:
    """Use a refresh token up: the tokens that take the place of it and of its access token. `permissions` are among
    those of `permissions_of`. Where it comes twice at once, the second time ends the sign-in. Raises NotFound."""
    tenant, parsed = _tenant_of(text, CredentialKind.REFRESH_TOKEN), keys.parse(text, CredentialKind.REFRESH_TOKEN)
    async with database.transaction(tenant) as tx:
        if parsed is not None:
            refresh = keys.renewed(text, random(RENEWED_BYTES))
            tokens, row = _made(parsed.tenant, refresh, permissions, random, now)
            if await tx.connected_apps.renew(keys.digest(text), row, client, now):
                return tokens
        found = await tx.connected_apps.find_refresh(keys.family(text), client)
        if found is not None:
            await _end(tx, found.id, client, "refresh token used twice", now)
    raise NotFound(UNKNOWN_TOKEN)


async def sign_out(database: Database, client: str, text: str, now: datetime) -> None:
    """End the sign-in of an app that one of its tokens belongs to (RFC 7009). Any other text ends nothing."""
    kind = (
        CredentialKind.ACCESS_TOKEN if keys.parse(text, CredentialKind.ACCESS_TOKEN) else CredentialKind.REFRESH_TOKEN
    )
    async with database.transaction(_tenant_of(text, kind)) as tx:
        if kind is CredentialKind.ACCESS_TOKEN:
            found = await tx.connected_apps.sign_in_of(keys.digest(text), client)
        else:
            stored = await tx.connected_apps.find_refresh(keys.family(text), client)
            found = None if stored is None else stored.id
        if found is not None:
            await _end(tx, found, client, "signed out", now)


async def _end(tx: Transaction, sign_in: uuid.UUID, client: str, why: str, now: datetime) -> None:
    """End a sign-in; with an app's last one, the app too, so its person is asked again."""
    app = await tx.connected_apps.sign_out(sign_in, client, why.replace(" ", "_"))
    if app is not None:
        await tx.api_keys.revoke([app], now)


def _made(
    tenant: str, refresh: str, permissions: Sequence[str], random: Random, now: datetime
) -> tuple[AppTokens, TokenRow]:
    access = keys.make(CredentialKind.ACCESS_TOKEN, tenant, random(SECRET_BYTES))
    allowed = tuple(sorted(permissions))
    row = TokenRow(
        allowed,
        keys.digest(access),
        now + ACCESS_LIFETIME,
        keys.family(refresh),
        keys.digest(refresh),
        now + REFRESH_LIFETIME,
    )
    return AppTokens(access, refresh, allowed), row


def _sign_in_of(code: str) -> uuid.UUID:
    """The id of the sign-in that a code begins: by it, one that is used again finds what it began."""
    return derived_id("app sign-in", keys.digest(code).hex())


def _tenant_of(text: str, kind: CredentialKind) -> uuid.UUID:
    return keys.tenant_of(keys.parse(text, kind))
