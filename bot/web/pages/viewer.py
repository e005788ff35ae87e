"""Who looks at a page: the person whose web session the browser has."""

import hashlib
import hmac
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import tzinfo
from typing import Annotated, Any, Final
from urllib.parse import urlsplit, urlunsplit

from fastapi import Depends, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends as DependsParam
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect

from bot.web.bodies import JsonRequest, JsonRoute
from bot.web.call import ApiCall
from bot.web.credentials import cookie_name, only_cookie
from bot.web.dependencies import Nexus
from bot.web.metering import metered_of
from bot.web.pages.refused_forms import CHANGED_BY_OTHERS, page_of_form, with_refusal
from bot.web.pages.rendering import Chrome, Language, error_page, html_page, language_of
from bot.web.principal import hold_body, known_principal, principal_of
from bot.web.problems import MAX_FIELD_CHARS, SENTENCES, RequestRefused, log_unexpected, status_of
from bot.web.router import Router
from composer import visibility
from composer.entries.entries import Writer
from composer.errors import NexusError
from composer.model import API, Trust
from composer.people.credentials.principal import KeyPermission, Principal, Source
from composer.people.reviewing import count_waiting
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.text.zones import zone_named
from composer.visibility import EntryAccess, Owned

LOGIN: Final = "/login"
# What is said of a form or an address that can't be read, by the type of pydantic's error.
INVALID: Final = {
    "missing": "Something is missing in what was sent (`{name}`): go back, and fill it in.",
    "string_too_long": "What stands in `{name}` is too long: it may have {most} characters.",
    "": "What was sent as `{name}` can't be read: go back, and look at it again.",
}
_STALE_FORM: Final = (
    "This form is not from a page of yours that is open now: load the page again, and send it once more."
)


class PageRoute(JsonRoute):
    """A route that answers with a page, also where something is wrong. Who is not signed in is led to do so. A page
    that another site leads to is shown without what that site wrote into its address: no site is to search in
    somebody's memory."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with errors as pages."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            if request.url.query and request.headers.get("sec-fetch-site") == "cross-site":
                return RedirectResponse(request.url.path, 303)
            request = JsonRequest(request.scope, request.receive)  # its form is read once
            try:
                return await handle(request)
            except RequestRefused as error:
                if error.status_code == 401:
                    return RedirectResponse(LOGIN, 303)
                return error_page(request, error.status_code, error.detail)
            except RequestValidationError as error:
                return await _refused(request, 422, _invalid(error.errors()[0]))
            except NexusError as error:
                status = status_of(error)
                return await _refused(request, status, str(error) or SENTENCES.get(status, ""))
            except (StarletteHTTPException, ClientDisconnect):
                raise
            except Exception as error:
                log_unexpected(error, self.path)
                return error_page(request, 500, SENTENCES[500])

        return handler


async def _refused(request: Request, status: int, sentence: str) -> Response:
    """What is shown where something is wrong with what was sent: the page of the form again, with what was typed; a
    page of its own where there is none, and a part for a script."""
    if request.method == "POST" and status < 500 and not is_script(request):
        address, form = urlsplit(request.headers.get("referer", "")), await request.form()
        if (shown := await page_of_form(request, PageRoute)) is not None:
            sent = {name: [each for each in form.getlist(name) if isinstance(each, str)] for name in form}
            back, language = urlunsplit(("", "", address.path, address.query, "")), language_of(request)
            told, by_others = language.told(sentence), language.told(CHANGED_BY_OTHERS)
            return html_page(request, with_refusal(shown, request.url.path, sent, told, by_others, back), status)
    return error_page(request, status, sentence)


def _invalid(error: Mapping[str, Any]) -> str:
    """The sentence for the first thing that is wrong with a form or an address, with the field's name and never what
    stands in it."""
    said, most = INVALID.get(error["type"], INVALID[""]), error.get("ctx", {}).get("max_length", "")
    return said.format(name=str(error["loc"][-1])[:MAX_FIELD_CHARS], most=most)


class UploadRoute(PageRoute):
    """A page that takes long files: from those alone who are signed in."""

    async def admit(self, request: Request) -> None:
        """Find out who asks, before the file is read."""
        await known_principal(request, request.app.state.nexus)


class LongFormRoute(UploadRoute):
    """A page that takes forms with files which it holds in memory: a few at once."""

    async def admit(self, request: Request) -> None:
        """Find out who asks, and hold the room that the form takes."""
        await super().admit(request)
        await hold_body(request, request.app.state.nexus)


class AdminUploadRoute(PageRoute):
    """The same for files of admins. To everybody else there is no such page."""

    async def admit(self, request: Request) -> None:
        """Find out who asks, before the file is read."""
        found = await known_principal(request, request.app.state.nexus)
        _require_session(found)
        if not found.may(KeyPermission.ADMIN):
            raise HTTPException(404)


def _require_session(principal: Principal) -> None:
    """Return if somebody is signed in in a browser. Raises RequestRefused."""
    if principal.source is not Source.WEB_SESSION:
        raise RequestRefused(403, "Pages are for people who are signed in: a key opens the API.")


class PageRouter(Router):
    """A router of pages: they are in no document of the API."""

    def __init__(
        self, prefix: str = "", route_class: type[PageRoute] = PageRoute, *, dependencies: Sequence[DependsParam] = ()
    ) -> None:
        super().__init__(prefix, dependencies=dependencies, include_in_schema=False, route_class=route_class)


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at a page, and what they ask. `csrf` is what every form of theirs sends along."""

    request: Request
    call: ApiCall
    csrf: str
    language: Language

    @property
    def principal(self) -> Principal:
        """The person."""
        return self.call.principal

    @property
    def quarantine(self) -> Collection[Trust]:
        """Whose writes wait for approval."""
        return self.call.app.directory.quarantine(self.principal.tenant_id)

    @property
    def zone(self) -> tzinfo:
        """The organisation's, by whose days rooms are shown and summed up."""
        return self.call.app.directory.zone(self.principal.tenant_id)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator["Reading"]:
        """A transaction that reads as of one moment, with what the frame of every page shows."""
        presence = await self.call.app.memberships.of(self.principal.tenant_id, self.principal.user)
        async with self.call.reading() as (tx, access):
            owned = visibility.owned_by_bearer(access)
            yield Reading(tx, access, owned, presence, await self._chrome(tx, access, owned, presence))

    async def _chrome(self, tx: Transaction, access: EntryAccess, owned: Owned, presence: Presence) -> Chrome:
        person = await tx.conversations.in_frame(owned.users, presence, self.call.now)
        return Chrome(
            name=access.name,
            organisation=self.principal.tenant,
            admin=person.admin,
            waiting=await count_waiting(tx, access, person, self.quarantine, self.call.now),
            platforms=[each for each in person.platforms if each != API],
            zone=self._zone(access.settings.timezone or person.zone),
            csrf=self.csrf,
            path=self.request.url.path,
            theme=_theme(self.request),
            has_command_key="Mac" in self.request.headers.get("user-agent", ""),
        )

    def _zone(self, name: str | None) -> tzinfo:
        known = None if name is None else zone_named(name)
        return self.call.app.directory.zone(self.principal.tenant_id) if known is None else known

    async def writer(self, tx: Transaction, access: EntryAccess) -> Writer:
        """The person, as who writes an entry."""
        directory, trust = self.call.app.directory, await tx.people.trust(access.user)
        return Writer(access.name, trust, directory.quarantine(access.tenant_id), directory.plan(access.tenant_id))

    def require_form(self, sent: str) -> None:
        """Return if a form is one of a page that this person has open. Raises RequestRefused."""
        if not hmac.compare_digest(sent.encode(), self.csrf.encode()):
            raise RequestRefused(403, _STALE_FORM)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a page reads from: the transaction, the facts that access is judged by, what the person owns, in which
    private rooms they are, and the frame of the page."""

    tx: Transaction
    access: EntryAccess
    owned: Owned
    presence: Presence
    chrome: Chrome


def _theme(request: Request) -> str:
    chosen = only_cookie(request, THEME_COOKIE)
    return chosen if chosen in THEMES else ""


THEME_COOKIE: Final = "nexus-theme"
THEMES: Final = ("light", "dark")


async def _viewer(request: Request, nexus: Nexus) -> Viewer:
    principal = await principal_of(request, nexus)
    _require_session(principal)
    cookie = only_cookie(request, cookie_name(nexus.app.settings.public_url)[0]) or ""
    token = hmac.new(cookie.encode(), b"a form of a page", hashlib.sha256).hexdigest()[:32]
    return Viewer(request, ApiCall(nexus.app, principal, b"", None, metered_of(request)), token, language_of(request))


SignedIn = Annotated[Viewer, Depends(_viewer)]


async def _admin(viewer: SignedIn) -> Viewer:
    """An admin. To everybody else such a page does not exist: it is answered as any address that nothing is at."""
    if not viewer.principal.may(KeyPermission.ADMIN):
        raise HTTPException(404)
    return viewer


AdminSignedIn = Annotated[Viewer, Depends(_admin)]


def is_script(request: Request) -> bool:
    """Whether a script of a page of ours asks, which takes a part of a page."""
    return request.headers.get("hx-request") == "true"
