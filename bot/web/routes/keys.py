"""`/v1/whoami`, `/v1/keys`, `/v1/sessions` and `/v1/logins`: what opens a person's memory, for themselves."""

import secrets
import uuid
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from bot.web.call import Calling, Event
from bot.web.dependencies import Nexus
from bot.web.json_answer import json_answer
from bot.web.principal import Bearer
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.shapes.values import Moment
from composer.errors import Conflict
from composer.people.credentials import openid, own_credentials
from composer.people.credentials.issuing import MAX_KEY_NAME_CHARS, MAX_PERMISSIONS, KeyRequest, NewKey
from composer.people.credentials.keys import SECRET_BYTES
from composer.repositories.api_keys import KeyEntry
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess

SHOWN_ONCE: Final = (
    "An earlier request with this idempotency key made the key, which is shown once: revoke it, and make another one."
)

router = Router("/v1", tags=["keys"])


class WhoAmI(BaseModel):
    """Whom a credential stands for. `permissions` are those it has now; `key` is the beginning of the key, null for a
    web session and a key of the settings. It ends at `expires_at`; null: when somebody ends it."""

    tenant: str
    user: uuid.UUID
    name: str
    vendor: str | None
    kind: Literal["person", "tool"]
    permissions: list[str]
    key: str | None
    expires_at: datetime | None


class NewKeyRequest(BaseModel):
    """A key to be made: of a tool (`vendor`), or of the person. Without `permissions` it has the usual ones, without
    `expires_at` it is valid until it is revoked."""

    model_config = ConfigDict(extra="forbid")

    vendor: Annotated[str, Field(max_length=100)] | None = None
    name: Annotated[str, Field(max_length=MAX_KEY_NAME_CHARS)] = ""
    permissions: Annotated[list[str], Field(min_length=1, max_length=MAX_PERMISSIONS)] | None = None
    expires_at: Moment | None = None


class Key(BaseModel):
    """A key, by its beginning. It was ended at `revoked_at`. `current`: it is the one that asks. A connected app has no
    beginning: `client` is its id, and `redirect_uri` where it is led back to."""

    id: uuid.UUID
    vendor: str | None
    name: str
    prefix: str
    permissions: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    client: str | None
    redirect_uri: str | None
    current: bool


class CreatedKey(Key):
    """A new key. `key` is its text, which is shown this once."""

    key: str


class KeyList(BaseModel):
    """Keys, oldest first. One that has ended is listed for 30 days more."""

    items: list[Key]


class WebSession(BaseModel):
    """A browser that is signed in. `browser` is what it calls itself. `current`: it is the one that asks."""

    id: uuid.UUID
    browser: str
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    current: bool


class WebSessionList(BaseModel):
    """Web sessions, oldest first."""

    items: list[WebSession]


class Login(BaseModel):
    """An account at the OpenID provider that signs the person in. `name` is what the provider called it."""

    id: uuid.UUID
    issuer: str
    name: str
    created_at: datetime
    last_used_at: datetime | None


class LoginList(BaseModel):
    """Accounts that sign the person in, oldest first."""

    items: list[Login]


_ENDED: Final = documented(400, 401, 403, 404, 422)
_MADE: Final[dict[int | str, dict[str, Any]]] = {
    201: {"description": "The key; its text is shown this once", "model": CreatedKey},
    **documented(400, 401, 403, 409, 422),
}


@router.get("/whoami", summary="Say who asks", response_model=WhoAmI, responses=documented(401))
async def whoami(principal: Bearer, nexus: Nexus) -> WhoAmI:
    """Whom the credential stands for, and what it may be used for. For people and tools."""
    app = nexus.app
    async with app.database.transaction(principal.tenant_id, "read") as tx:
        bounds = await own_credentials.bounds_of(tx, principal, app.clock.now())
    return WhoAmI(
        tenant=principal.tenant,
        user=principal.user,
        name=bounds.name,
        vendor=principal.vendor,
        kind="person" if principal.vendor is None else "tool",
        permissions=sorted(principal.permissions),
        key=bounds.prefix,
        expires_at=bounds.expires_at,
    )


@router.get("/keys", summary="List keys", response_model=KeyList, responses=documented(401, 403))
async def list_keys(call: Calling) -> KeyList:
    """The keys to the person's memory: of themselves and of their tools. It needs the permission manage."""
    async with call.reading() as (tx, access):
        found = await own_credentials.own_keys(tx, call.principal, access)
    return KeyList(items=[Key(**_values(each, call.principal.id)) for each in found])


@router.post("/keys", summary="Make a key", response_class=Response, status_code=201, responses=_MADE)
async def make_key(call: Calling, sent: NewKeyRequest) -> Response:
    """It may do at most what the credential may that asks, and is valid for no longer than a key that asks. It needs
    the permission manage."""
    request = KeyRequest(sent.vendor, sent.name, sent.permissions, sent.expires_at)

    async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, NewKey]:
        secret = secrets.token_bytes(SECRET_BYTES)
        made = await own_credentials.create_own_key(tx, call.principal, request, secret, call.now)
        return made.entry.id, made

    async def again(tx: Transaction, access: EntryAccess, event: Event, id: uuid.UUID) -> NewKey:
        raise Conflict(SHOWN_ONCE)

    made, _ = await call.once(make, again)
    values = _values(made.entry, call.principal.id) | {"key": made.text}
    return json_answer(values, 201)


@router.delete("/keys/{id}", summary="Revoke a key", status_code=204, responses=_ENDED)
async def revoke_key(call: Calling, id: uuid.UUID) -> None:
    """It opens nothing from the next request on, also where it is the one that asks. It needs the permission manage."""
    await call.act(lambda tx, access: own_credentials.revoke_own_key(tx, call.principal, access, id, call.now))


@router.get("/sessions", summary="List web sessions", response_model=WebSessionList, responses=documented(401, 403))
async def list_web_sessions(call: Calling) -> WebSessionList:
    """The browsers that are signed in as the person. It needs the permission manage."""
    async with call.reading() as (tx, access):
        found = await own_credentials.own_sessions(tx, call.principal, access, call.now)
    items = [
        WebSession(
            id=each.id,
            browser=each.browser,
            created_at=each.created_at,
            expires_at=each.expires_at,
            last_used_at=each.last_used_at,
            current=each.id == call.principal.id,
        )
        for each in found
    ]
    return WebSessionList(items=items)


@router.delete("/sessions/{id}", summary="End a web session", status_code=204, responses=_ENDED)
async def end_web_session(call: Calling, id: uuid.UUID) -> None:
    """That browser is signed out from its next request on. It needs the permission manage."""
    await call.act(lambda tx, access: own_credentials.end_own_session(tx, call.principal, access, id, call.now))


@router.get("/logins", summary="List logins", response_model=LoginList, responses=documented(401, 403))
async def list_logins(call: Calling) -> LoginList:
    """The accounts at the OpenID provider that sign the person in. It needs the permission manage."""
    async with call.reading() as (tx, access):
        found = await openid.own_logins(tx, call.principal, access)
    return LoginList(
        items=[
            Login(
                id=each.id,
                issuer=each.issuer,
                name=each.name,
                created_at=each.created_at,
                last_used_at=each.last_used_at,
            )
            for each in found
        ]
    )


@router.delete("/logins/{id}", summary="Disconnect a login", status_code=204, responses=_ENDED)
async def disconnect_login(call: Calling, id: uuid.UUID) -> None:
    """That account signs the person in no more; browsers that it signed in stay so. It needs the permission manage."""
    await call.act(lambda tx, access: openid.disconnect_own(tx, call.principal, access, id))


def _values(key: KeyEntry, current: uuid.UUID) -> dict[str, Any]:
    return {
        "id": key.id,
        "vendor": key.vendor,
        "name": key.name,
        "prefix": key.prefix,
        "permissions": list(key.permissions),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
        "client": key.client,
        "redirect_uri": key.redirect_uri,
        "current": key.id == current,
    }
