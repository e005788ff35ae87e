"""`/mcp`: the memory over the Model Context Protocol, for people's AI tools."""

from typing import Final

from fastapi import APIRouter, Depends, Request, Response
from starlette.types import Receive, Scope, Send

from bot.web.dependencies import Nexus
from bot.web.limits import address_of
from bot.web.mcp.caller import PRINCIPAL
from bot.web.principal import Bearer
from bot.web.problems import RequestRefused
from bot.web.serving import Served

PATH: Final = "/mcp"


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

    def __init__(self, nexus: Served) -> None:
        super().__init__()
        self._nexus = nexus

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._nexus.mcp.serve(self._nexus, scope, receive, send)


@router.post(PATH, include_in_schema=False)
async def mcp(request: Request, nexus: Nexus, principal: Bearer) -> Response:
    """One request of an MCP client. The client opens no stream of its own: there is nothing that it is told unasked."""
    setattr(request.state, PRINCIPAL, principal)
    return _Handed(nexus)
