"""The OpenAI-compatible API: `/v1/chat/completions`, `/v1/responses`, `/v1/embeddings` and `/v1/models`.

What its requests and answers hold is their upstream's own; so they are not in the document of the API.
"""

from typing import Final

from fastapi import Request, Response

from bot.web.dependencies import Nexus
from bot.web.gateway.caller import Calling
from bot.web.router import Router
from composer.gateway.requests import Api

MAX_BYTES: Final = 20 * 2**20  # of a request, which may hold images

router = Router("/v1", include_in_schema=False)


@router.post("/chat/completions")
async def chat_completions(request: Request, nexus: Nexus, caller: Calling) -> Response:
    """An answer to messages."""
    return await nexus.gateway.pass_on(Api.CHAT, request, nexus, caller)


@router.post("/responses")
async def responses(request: Request, nexus: Nexus, caller: Calling) -> Response:
    """An answer to input."""
    return await nexus.gateway.pass_on(Api.RESPONSES, request, nexus, caller)


@router.post("/embeddings")
async def embeddings(request: Request, nexus: Nexus, caller: Calling) -> Response:
    """Vectors of texts."""
    return await nexus.gateway.pass_on(Api.EMBEDDINGS, request, nexus, caller)


@router.get("/models")
async def list_models(nexus: Nexus, caller: Calling) -> Response:
    """The models that may be asked for."""
    return await nexus.gateway.models.list(caller.upstream)


@router.get("/models/{name:path}")
async def get_model(name: str, nexus: Nexus, caller: Calling) -> Response:
    """One of them."""
    return await nexus.gateway.models.get(caller.upstream, name)
