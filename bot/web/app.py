"""The app of the web port: its routes, the layers that every request passes, and the document of its API."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from bot.importers.uploads import MAX_UPLOAD_BYTES, Uploads
from bot.slack.signed_http import MAX_REQUEST_BYTES, SLACK_EVENTS_PATH, SlackHttp
from bot.web import pages, routes
from bot.web.bodies import BodyLimits, JsonRoute
from bot.web.document import document
from bot.web.edge import Edge
from bot.web.gateway.errors import GATEWAY_PATHS as GATEWAY_PATHS
from bot.web.gateway.gateway import Gateway
from bot.web.jobs import JobSchedule
from bot.web.limits import FairUse
from bot.web.mcp import transport
from bot.web.mcp.endpoint import McpEndpoint
from bot.web.metering import operation_of
from bot.web.metrics import Metrics
from bot.web.oauth.documents import ClientDocuments
from bot.web.oauth.metadata import CONSENT, PROTECTED_RESOURCE, REGISTER, RESOURCE_PATH, REVOKE, TOKEN
from bot.web.oauth.server import OAuthServer
from bot.web.openid import OpenIdProvider
from bot.web.pages import admin_import, ask, joining, memory_acts
from bot.web.pages.rendering import error_page
from bot.web.problems import add_problems, documented
from bot.web.routes import admin_imports, chat, exchange, gateway, health, login, oauth
from bot.web.routes.billing import STRIPE_EVENTS_PATH
from bot.web.sessions import ApiSessions
from bot.web.state import Connected, WebState
from bot.web.webhooks import WebhookPost
from composer import __version__
from composer.app import App
from composer.operations.billing import configured_billing
from composer.tasks.shares import Places

TITLE: Final = "Nexus"
REQUESTS_AT_ONCE: Final = 256  # of all who have a credential, open streams too
PLACE_SECONDS: Final = 5.0  # for a request to begin where others are in progress
WORK_AT_ONCE: Final = 8  # requests that only read: more would only take turns on one processor
WORK_SECONDS: Final = 15.0
BODIES_MIB: Final = 128  # of long bodies at once, which are held in memory several times over
WATCHING_AT_ONCE: Final = 400  # pages that are open in front of somebody, and are told of changes
DOCUMENT: Final = "/openapi.json"
# Asked by machines inside under any name (health), or only by who signs (Slack).
FREE_PATHS: Final = frozenset({*health.HEALTH_PATHS, SLACK_EVENTS_PATH})
SLASHED_PATHS: Final = (RESOURCE_PATH, f"{PROTECTED_RESOURCE}{RESOURCE_PATH}")
SHOWN_TO_PAGES: Final = ("ETag", "Location", "Retry-After", "WWW-Authenticate", "X-Nexus-Memory", "X-Nexus-Quota")
BODY_BYTES: Final[Mapping[str, int]] = {
    SLACK_EVENTS_PATH: MAX_REQUEST_BYTES,
    login.LOGIN_PATH: login.MAX_LOGIN_FORM_BYTES,
    joining.INVITE_PATH: joining.MAX_INVITE_FORM_BYTES,
    chat.CHAT_PATH: chat.MAX_CHAT_BYTES,
    ask.ASK: ask.MAX_ASK_BYTES,
    exchange.IMPORT_PATH: exchange.IMPORT_BYTES,
    memory_acts.IMPORT_PAGE: exchange.IMPORT_BYTES,
    **dict.fromkeys(GATEWAY_PATHS, gateway.MAX_GATEWAY_REQUEST_BYTES),
    **dict.fromkeys((CONSENT, TOKEN, REGISTER, REVOKE), oauth.MAX_OAUTH_FORM_BYTES),
}
# Of files that are written to disk as they arrive, by the whole path.
STREAMED_BYTES: Final[Mapping[str, int]] = {
    admin_imports.UPLOADS_PATH: MAX_UPLOAD_BYTES,
    admin_import.UPLOAD_PAGE: MAX_UPLOAD_BYTES + admin_import.FORM_BYTES,
}
# FastAPI would report to OpenTelemetry, where that is set up: nothing but the log and the metrics knows of requests.
NO_TELEMETRY: Final[Any] = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def _collected() -> list[APIRoute]:
    """The routes of all modules of bot.web.routes and bot.web.pages, in the order in which a request looks for its own:
    a path without a parameter comes before those that would take it as one, and what counts as an operation is asked
    most."""
    modules = [
        import_module(f"{package.__name__}.{each.name}")
        for package in (routes, pages)
        for each in iter_modules(package.__path__)
    ]
    routers = {id(each): each for module in modules for each in vars(module).values() if isinstance(each, APIRouter)}
    found = [route for router in routers.values() for route in router.routes if isinstance(route, APIRoute)]
    return sorted(found, key=lambda route: ("{" in route.path, operation_of(route) is None, route.path))


ROUTES: Final = tuple(_collected())


def web_app(
    app: App,
    metrics: Metrics,
    connected: Mapping[str, Connected],
    slack_http: SlackHttp | None,
    documents: ClientDocuments | None = None,
    *,
    jobs: JobSchedule | None = None,
) -> FastAPI:
    """The app that serves a running Nexus. `connected` says of each platform whether it is connected;
    `slack_http` takes Slack's events, where they come by HTTP; `documents` fetches what apps say of themselves; `jobs`
    are those that admins see and start."""
    nexus = _state(app, metrics, connected, slack_http, documents, jobs)
    off = {SLACK_EVENTS_PATH: slack_http is None, STRIPE_EVENTS_PATH: nexus.billing is None}

    @asynccontextmanager
    async def open_until_closed(_: FastAPI) -> AsyncIterator[None]:
        yield
        await nexus.close()

    api = FastAPI(
        routes=[each for each in ROUTES if not off.get(each.path, False)],
        title=TITLE,
        version=__version__,
        openapi_url=DOCUMENT,
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        lifespan=open_until_closed,
        responses=documented(),
        middleware=[
            Middleware(Edge, public_url=app.settings.public_url, anywhere=FREE_PATHS, slashed=SLASHED_PATHS),
            *_for_pages_of_others(app.settings.allowed_origins),
            Middleware(BodyLimits, limits=BODY_BYTES, streamed=STREAMED_BYTES),
        ],
    )
    api.state.nexus = nexus
    api.router.route_class = JsonRoute
    add_problems(api, error_page)
    api.openapi = lambda: document(api)  # type: ignore[method-assign]
    return api


def _for_pages_of_others(origins: Sequence[str]) -> list[Middleware]:
    """What lets pages of these origins ask, with a key that they hold: a browser sends them no cookie along."""
    if not origins:
        return []
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE"),
        allow_headers=("*",),
        expose_headers=SHOWN_TO_PAGES,
    )
    return [cors]


def _state(
    app: App,
    metrics: Metrics,
    connected: Mapping[str, Connected],
    slack_http: SlackHttp | None,
    documents: ClientDocuments | None,
    jobs: JobSchedule | None,
) -> WebState:
    settings = app.settings
    return WebState(
        app,
        metrics,
        connected,
        FairUse(app.redis_url, settings.requests_per_minute, settings.admin_requests_per_minute),
        Places(REQUESTS_AT_ONCE, PLACE_SECONDS),
        Places(WORK_AT_ONCE, WORK_SECONDS),
        Places(WATCHING_AT_ONCE, PLACE_SECONDS),
        Places(BODIES_MIB, PLACE_SECONDS),
        ApiSessions(app),
        McpEndpoint(app, transport.manager),
        Gateway(app),
        Uploads(app),
        WebhookPost(settings),
        slack_http,
        None if settings.openid is None else OpenIdProvider(settings.openid),
        None if settings.public_url is None else OAuthServer(app, settings.public_url, documents),
        jobs,
        None if settings.billing is None else configured_billing(settings, app.directory, app.database),
    )
