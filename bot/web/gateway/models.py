"""Lists of models: the upstream's own, without those that may not be asked for."""

import re
from typing import Final

import httpx2
from cachetools import TTLCache
from fastapi.responses import Response
from pydantic_core import from_json, to_json

from bot.web.gateway.errors import UNKNOWN_MODEL
from bot.web.gateway.upstreams import Upstreams, masked, refused_when_away, relayed_headers
from bot.web.problems import RequestRefused
from composer.settings import Upstream

KEPT_SECONDS: Final = 60.0
MAX_LISTS: Final = 100
JSON: Final = "application/json"
_NAME: Final = re.compile(r"[\w.:@+-]+(/[\w.:@+-]+)*", re.ASCII)


class ModelLists:
    """Lists of models, each kept for a minute."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._kept: TTLCache[Upstream, bytes] = TTLCache(MAX_LISTS, KEPT_SECONDS)

    async def list(self, upstream: Upstream) -> Response:
        """The models that may be asked for. A server without such a list has those that the settings name."""
        kept = self._kept.get(upstream)
        if kept is None:
            answer = await self._get(upstream, "models")
            listed = _allowed(answer, upstream)
            if listed is None:
                return _relayed(answer, upstream)
            kept = self._kept[upstream] = listed
        return Response(kept, media_type=JSON)

    async def get(self, upstream: Upstream, name: str) -> Response:
        """One model, as the upstream describes it. Raises RequestRefused for one that may not be asked for."""
        parts = name.split("/")
        if not upstream.allows(name) or not _NAME.fullmatch(name) or {".", ".."} & set(parts) or len(name) > 200:
            sentence = "There is no such model; GET /v1/models lists those there are."
            raise RequestRefused(404, sentence, code=UNKNOWN_MODEL)
        return _relayed(await self._get(upstream, f"models/{name}"), upstream)

    async def _get(self, upstream: Upstream, path: str) -> httpx2.Response:
        request = self._upstreams.request(upstream, "GET", path)
        with refused_when_away(upstream):
            return await self._upstreams.client(upstream).send(request)


def _allowed(answer: httpx2.Response, upstream: Upstream) -> bytes | None:
    """A list of models without those that may not be asked for; None for what is no such list, or an error."""
    if answer.status_code == 404 and upstream.models is not None:
        return to_json({"object": "list", "data": [_named(name) for name in sorted(upstream.models)]})
    if answer.status_code != 200:
        return None
    body = masked(answer.content, upstream.key)
    try:
        value = from_json(body)
    except ValueError:
        return None
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(data, list):
        return None
    if upstream.models is None:
        return body
    shown = [each for each in data if isinstance(each, dict) and each.get("id") in upstream.models]
    return to_json({**value, "data": shown})


def _named(name: str) -> dict[str, str | int]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "nexus"}


def _relayed(answer: httpx2.Response, upstream: Upstream) -> Response:
    response = Response(masked(answer.content, upstream.key), answer.status_code)
    response.raw_headers += relayed_headers(answer.headers.raw, upstream.key)
    return response
