"""The OpenAI-compatible API: `/v1/chat/completions`, `/v1/responses`, `/v1/embeddings` and `/v1/models`.

What its requests and answers hold is their upstream's own; the document of the API says what is fixed
(bot/web/standards.py).
"""

from typing import Annotated, Final

from fastapi import Depends, Request, Response

from bot.web.dependencies import Nexus
from bot.web.gateway.caller import GatewayCaller
from bot.web.limits import address_of
from bot.web.metering import counts_as
from bot.web.principal import gateway_key_of, hold_body, principal_of
from bot.web.problems import RequestRefused
from bot.web.router import Router
from composer.errors import Refused
from composer.gateway.requests import Api
from composer.people.credentials.principal import KeyPermission
from composer.repositories.operations import Operation

MAX_GATEWAY_REQUEST_BYTES: Final = 20 * 2**20  # of a request, which may hold images
NOT_FOR_KEY: Final = (
    "This key may not ask models: make a new one, which has the permission gateway (/nexus keys create in a DM)."
)

router = Router("/v1", include_in_schema=False)


async def _require_on(request: Request, nexus: Nexus) -> None:
    """Return if there is a gateway for anybody; else 404, as for an address where there is nothing."""
    settings = nexus.app.settings
    if not any(settings.upstream_of(slug) is not None for slug in ("", *settings.tenants)):
        await nexus.fair_use.admit(address_of(request))
        raise RequestRefused(404)


async def _caller(request: Request, nexus: Nexus, _: Annotated[None, Depends(_require_on)] = None) -> GatewayCaller:
    """Who asks. 401 for a wrong key, 403 for one without the permission, 404 where their tenant has no gateway."""
    key = await gateway_key_of(request, nexus)
    principal = await principal_of(request, nexus) if key is None else None
    if principal is not None and not principal.may(KeyPermission.GATEWAY):
        raise Refused(NOT_FOR_KEY)
    found = key or principal
    assert found is not None, "else it was refused"
    upstream = nexus.app.settings.upstream_of(found.tenant)
    if upstream is None:
        raise RequestRefused(404)
    await hold_body(request, nexus)
    return GatewayCaller(found.tenant_id, found.id, upstream, principal)


Calling = Annotated[GatewayCaller, Depends(_caller)]


@router.post("/chat/completions")
@counts_as(Operation.CHATS)
async def chat_completions(request: Request, nexus: Nexus, caller: Calling) -> Response:
    """An answer to messages."""
    return await nexus.gateway.pass_on(Api.CHAT, request, caller)


@router.post("/responses")
@counts_as(Operation.CHATS)
async def responses(request: Request, nexus: Nexus, caller: Calling) -> Response:
    """An answer to input."""
    return await nexus.gateway.pass_on(Api.RESPONSES, request, caller)


@router.post("/embeddings")
async def embeddings(request: Request, nexus: Nexus, caller: Calling) -> Response:
    """Vectors of texts."""
    return await nexus.gateway.pass_on(Api.EMBEDDINGS, request, caller)


@router.get("/models")
async def list_models(nexus: Nexus, caller: Calling) -> Response:
    """The models that may be asked for."""
    return await nexus.gateway.models.list(caller.upstream)


@router.get("/models/{name:path}")
async def get_model(name: str, nexus: Nexus, caller: Calling) -> Response:
    """One of them."""
    return await nexus.gateway.models.get(caller.upstream, name)
