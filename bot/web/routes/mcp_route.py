"""`/mcp`: the memory over the Model Context Protocol, for people's AI tools."""

from fastapi import APIRouter, Depends, Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from bot.web.dependencies import Nexus
from bot.web.limits import address_of
from bot.web.mcp.caller import PRINCIPAL
from bot.web.mcp.scopes import scope_needed
from bot.web.oauth.metadata import RESOURCE_PATH, challenge
from bot.web.principal import Bearer
from bot.web.problems import RequestRefused
from bot.web.state import WebState
from composer.people.credentials.principal import Principal, Source


async def _require_on(request: Request, nexus: Nexus) -> None:
    """Return if MCP is served here; else 404, as for an address where there is nothing."""
    if nexus.mcp.is_known_to_be_on:
        return
    await nexus.fair_use.admit(address_of(request))  # before the database is asked for it
    if not await nexus.mcp.is_on():
        raise RequestRefused(404)


router = APIRouter(dependencies=[Depends(_require_on)])


class _Handed(Response):
    """The answer that the MCP server gives to a request."""

    def __init__(self, nexus: WebState, body: bytes) -> None:
        """`body` is that of the request, which was read."""
        super().__init__()
        self._nexus = nexus
        self._unread: bytes | None = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_again() -> Message:
            if self._unread is None:
                return await receive()
            body, self._unread = self._unread, None
            return {"type": "http.request", "body": body, "more_body": False}

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 202:  # it has no body
                given = MutableHeaders(raw=[*message["headers"]])
                del given["content-type"]
                message = {**message, "headers": given.raw}
            await send(message)

        # The SDK refuses whoever does not name both forms, though each answer is JSON, which all of them read.
        headers = MutableHeaders(raw=[*scope["headers"]])
        headers["accept"] = "application/json, text/event-stream"
        await self._nexus.mcp.serve({**scope, "headers": headers.raw}, receive_again, send_on)


@router.post(RESOURCE_PATH, include_in_schema=False)
async def mcp(request: Request, nexus: Nexus, principal: Bearer) -> Response:
    """One request of an MCP client. The client opens no stream of its own: there is nothing that it is told unasked."""
    setattr(request.state, PRINCIPAL, principal)
    body = await request.body()
    if principal.source is Source.OAUTH:
        await _require_scope(request, nexus, principal, body)
    return _Handed(nexus, body)


async def _require_scope(request: Request, nexus: WebState, principal: Principal, body: bytes) -> None:
    """Return if a connected app was given what it calls a tool for. Raises RequestRefused with 403, which has clients
    ask their person for it. What the person may not do now is said by the tool instead: asking would not help."""
    if scope_needed(body, principal.permissions) is None:
        return
    granted = await nexus.app.credentials.granted(request.headers.get("authorization", "").partition(" ")[2])
    lacking, public_url = scope_needed(body, granted), nexus.app.settings.public_url
    if lacking is not None and public_url is not None:
        asked = challenge(public_url, "insufficient_scope", {*granted, lacking})
        raise RequestRefused(403, f"This needs the scope {lacking}.", {"WWW-Authenticate": asked})
