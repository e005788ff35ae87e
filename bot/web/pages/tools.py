"""`/tools`: what opens a person's memory from outside, what each may do, what each tool read and wrote, how another
tool is connected, and how each is ended."""

import secrets
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.connecting import addresses_for, guides
from bot.web.pages.rendering import page
from bot.web.pages.viewer import LOGIN, PageRouter, SignedIn, Viewer
from bot.web.routes.webhooks import watchable_pages
from composer.entries import listing
from composer.errors import NotFound
from composer.people.credentials import openid, own_credentials
from composer.people.credentials.issuing import KeyRequest, lifetime_of
from composer.people.credentials.keys import SECRET_BYTES
from composer.people.credentials.principal import (
    EVERY_PERMISSION,
    NEVER_OF_TOOLS,
    KeyPermission,
    effective,
    project_of,
)
from composer.people.credentials.redirects import host_of
from composer.people.credentials.sign_in import SESSION_LIFETIME, login_url
from composer.people.known_people import links_by_others
from composer.people.tool_activity import tool_activity
from composer.people.webhooks import UNKNOWN_WEBHOOK, delete_own_webhook, own_webhooks
from composer.repositories.api_keys import Holder, KeyEntry
from composer.repositories.database import Transaction
from composer.repositories.entries import EntryFilter
from composer.text.cleaning import clean_line, shorten
from composer.visibility import EntryAccess, owned_by_bearer

TOOLS: Final = "/tools"
MAX_VENDOR_CHARS: Final = 32
SHOWN_WRITTEN: Final = 20  # of what a tool wrote
MAX_TRIED_CHARS: Final = 80  # of the latest entry, by which a new key is tried
router = PageRouter(TOOLS)


class OpenerKind(StrEnum):
    """What opens a memory, or is told of it, as an address names it."""

    KEYS = "keys"
    SESSIONS = "sessions"
    LOGINS = "logins"
    WEBHOOKS = "webhooks"


_UNKNOWN: Final = {
    OpenerKind.KEYS: own_credentials.UNKNOWN_KEY,
    OpenerKind.SESSIONS: own_credentials.UNKNOWN_SESSION,
    OpenerKind.LOGINS: openid.UNKNOWN_LOGIN,
    OpenerKind.WEBHOOKS: UNKNOWN_WEBHOOK,
}


@dataclass(frozen=True, slots=True)
class Opener:
    """Something that opens a person's memory, or is told of it. `what`: tool, app, own, browser, account or webhook.
    `detail`: the beginning of a key, where an app leads back to, what a browser calls itself, whose account it is, or
    the address of a webhook. `can` and `cannot` are
    permissions; one for a single project is a pair of the permission without the project, and what the project is
    called. `current`: it is the browser that asks."""

    kind: OpenerKind
    what: str
    id: uuid.UUID
    name: str
    vendor: str
    detail: str
    made: datetime
    used: datetime | None
    until: datetime | None
    can: Sequence[tuple[str, str]] = ()
    cannot: Sequence[tuple[str, str]] = ()
    ended: bool = False
    current: bool = False


@router.get("")
async def show_tools(request: Request, viewer: SignedIn) -> Response:
    """All that opens the person's memory, and the form for one more key."""
    async with viewer.reading() as reading:
        found = await _openers(viewer, reading.tx, reading.access)
        links = await links_by_others(reading.tx, reading.access, viewer.call.now - SESSION_LIFETIME)
        webhooks = await own_webhooks(reading.tx, viewer.principal, reading.access)
    told = watchable_pages(viewer.call) if viewer.call.app.directory.has_webhooks(viewer.principal.tenant_id) else ()
    values: dict[str, Any] = {"openers": found, "links": links, "webhooks": webhooks, "told_of_pages": told}
    return _shown(request, viewer, "tools.html", reading.chrome, **values)


@router.post("")
async def make_key(
    request: Request,
    viewer: SignedIn,
    csrf: Annotated[str, Form()],
    vendor: Annotated[str, Form(max_length=MAX_VENDOR_CHARS)],
    lifetime: Annotated[str, Form(max_length=8)] = "",
) -> Response:
    """Make a key for a tool, and show it this once with what to paste where."""
    viewer.require_form(csrf)
    call = viewer.call
    expires_at = call.now + lifetime_of(lifetime) if lifetime else None
    wanted = KeyRequest(vendor.strip().lower(), expires_at=expires_at)
    async with viewer.reading() as reading:
        chrome, own = reading.chrome, EntryFilter(authors=reading.access.users)
        latest = (await listing.page(reading.tx, reading.access, own, call.now, limit=1)).entries
    async with call.writing() as (tx, access):
        secret = secrets.token_bytes(SECRET_BYTES)
        made = await own_credentials.create_own_key(tx, call.principal, wanted, secret, call.now)
        [shown] = await _of_keys(viewer, tx, access, [made.entry])
    tried = shorten(clean_line(latest[0].content), MAX_TRIED_CHARS) if latest else ""
    lines = guides(addresses_for(call.app.settings, viewer.principal.tenant), made.text)
    return _shown(request, viewer, "tools_key.html", chrome, key=made.text, made=shown, guides=lines, tried=tried)


@router.post("/browser")
async def sign_in_elsewhere(request: Request, viewer: SignedIn, csrf: Annotated[str, Form()]) -> Response:
    """Make a link by which the person signs in another browser of theirs, and show it this once."""
    viewer.require_form(csrf)
    call = viewer.call
    async with viewer.reading() as reading:
        chrome = reading.chrome
    async with call.writing() as (tx, _):
        link = await own_credentials.link_to_sign_in(tx, call.principal, secrets.token_bytes(SECRET_BYTES), call.now)
    url = login_url(call.app.settings.web_address, link)
    return _shown(request, viewer, "tools_browser.html", chrome, link=url)


@router.get("/keys/{id}")
async def show_tool(
    request: Request, viewer: SignedIn, id: uuid.UUID, cursor: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """What the tool of a key or an app wrote and read, and what it can do."""
    call = viewer.call
    await call.app.operations.settle()
    since = call.app.operations.month(viewer.principal.tenant_id)
    async with viewer.reading() as reading:
        tx, access = reading.tx, reading.access
        found = await tool_activity(
            tx,
            viewer.principal,
            access,
            id,
            reading.presence,
            since=since,
            cursor=cursor,
            limit=SHOWN_WRITTEN,
            now=call.now,
        )
        opener = next(each for each in await _openers(viewer, tx, access) if each.id == id)
    values: dict[str, Any] = {"found": found, "opener": opener, "cursor": cursor}
    return _shown(request, viewer, "tools_one.html", reading.chrome, **values)


@router.get("/{kind}/{id}/end")
async def show_ending(request: Request, viewer: SignedIn, kind: OpenerKind, id: uuid.UUID) -> Response:
    """What ends, before it does."""
    async with viewer.reading() as reading:
        found = [
            *await _openers(viewer, reading.tx, reading.access),
            *await _webhooks(viewer, reading.tx, reading.access),
        ]
    opener = next((each for each in found if (each.kind, each.id) == (kind, id) and not each.ended), None)
    if opener is None:
        raise NotFound(_UNKNOWN[kind])
    return _shown(request, viewer, "tools_end.html", reading.chrome, opener=opener)


@router.post("/{kind}/{id}/end")
async def end(viewer: SignedIn, kind: OpenerKind, id: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """End a key, an app, a browser or an account, which opens nothing from the next request on; or delete a webhook."""
    viewer.require_form(csrf)
    call, who = viewer.call, viewer.principal
    async with call.writing() as (tx, access):
        match kind:
            case OpenerKind.KEYS:
                await own_credentials.revoke_own_key(tx, who, access, id, call.now)
            case OpenerKind.SESSIONS:
                await own_credentials.end_own_session(tx, who, access, id, call.now)
            case OpenerKind.LOGINS:
                await openid.disconnect_own(tx, who, access, id)
            case OpenerKind.WEBHOOKS:
                await delete_own_webhook(tx, who, access, id)
    return RedirectResponse(LOGIN if id == who.id else TOOLS, 303)


async def _openers(viewer: Viewer, tx: Transaction, access: EntryAccess) -> Sequence[Opener]:
    """Keys and apps, browsers and accounts, each from the oldest on."""
    who, now = viewer.principal, viewer.call.now
    keys = await _of_keys(viewer, tx, access, await own_credentials.own_keys(tx, who, access))
    browsers = [
        Opener(
            OpenerKind.SESSIONS,
            "browser",
            each.id,
            "",
            "",
            each.browser,
            each.created_at,
            each.last_used_at,
            each.expires_at,
            current=each.id == who.id,
        )
        for each in await own_credentials.own_sessions(tx, who, access, now)
    ]
    accounts = [
        Opener(
            OpenerKind.LOGINS,
            "account",
            each.id,
            each.name,
            "",
            each.issuer,
            each.created_at,
            each.last_used_at,
            None,
        )
        for each in await openid.own_logins(tx, who, access)
    ]
    return [*keys, *browsers, *accounts]


async def _webhooks(viewer: Viewer, tx: Transaction, access: EntryAccess) -> Sequence[Opener]:
    return [
        Opener(OpenerKind.WEBHOOKS, "webhook", each.id, each.name, "", each.url, each.created_at, each.last_at, None)
        for each in await own_webhooks(tx, viewer.principal, access)
    ]


async def _of_keys(viewer: Viewer, tx: Transaction, access: EntryAccess, keys: Sequence[KeyEntry]) -> Sequence[Opener]:
    """Keys and apps, with what each may do now."""
    accounts = (await tx.own_data.items(owned_by_bearer(access), ("accounts",)))["accounts"]
    holders = {each["id"]: Holder(uuid.UUID(each["id"]), each["admin"], each["opted_out"]) for each in accounts}
    projects = {each.id: each.slug for each in access.projects}
    return [_of_key(each, holders[str(each.user_id)], projects, viewer.call.now) for each in keys]


def _of_key(key: KeyEntry, holder: Holder, projects: Mapping[uuid.UUID, str], now: datetime) -> Opener:
    what = "app" if key.redirect_uri is not None else "own" if key.vendor is None else "tool"
    can = effective(key.permissions, key.vendor, holder)
    never = NEVER_OF_TOOLS if key.vendor is not None else frozenset() if holder.admin else {KeyPermission.ADMIN}
    lacking = EVERY_PERMISSION - can - never
    return Opener(
        OpenerKind.KEYS,
        what,
        key.id,
        key.name,
        key.vendor or "",
        key.prefix if key.redirect_uri is None else host_of(key.redirect_uri),
        key.created_at,
        key.last_used_at,
        key.expires_at,
        [_permission(each, projects) for each in _in_order(can)],
        [(each, "") for each in _in_order(lacking)],
        ended=key.ended(now),
    )


def _permission(text: str, projects: Mapping[uuid.UUID, str]) -> tuple[str, str]:
    project = project_of(text)
    return (text, "") if project is None else (f"project:{text.rpartition(':')[2]}", projects.get(project, "…"))


def _in_order(permissions: Collection[str]) -> list[str]:
    order = [str(each) for each in KeyPermission]
    return sorted(permissions, key=lambda each: (order.index(each) if each in order else len(order), each))


def _shown(request: Request, viewer: Viewer, template: str, chrome: Any, **values: Any) -> Response:
    """A page with the addresses by which people and tools reach Nexus."""
    at = addresses_for(viewer.call.app.settings, viewer.principal.tenant)
    return page(request, template, viewer.language, chrome=chrome, now=viewer.call.now, at=at, **values)
