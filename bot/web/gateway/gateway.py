"""The gateway: takes requests of tools, and passes them on to the model server of their tenant."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fastapi import Request, Response

from bot.web.gateway.caller import Caller
from bot.web.gateway.models import ModelLists
from bot.web.gateway.relay import Outgoing, Relay
from bot.web.gateway.upstreams import Upstreams
from bot.web.metering import count_now, metered_of
from bot.web.principal import bearer_of, still_stands_for
from bot.web.problems import RequestRefused
from composer.errors import BadInput
from composer.gateway.json_text import applied
from composer.gateway.metering import Passage
from composer.gateway.requests import Api, GatewayRequest, parsed, usage_edits
from composer.ports.models import Account, WorkKind
from composer.text.cleaning import clean_line
from composer.text.work import COUNTED_PER_READ, off_loop

if TYPE_CHECKING:
    from bot.web.serving import Served
    from composer.app import App

MEMORY: Final = b"x-nexus-memory"
UNKNOWN_MODEL: Final = "model_not_found"


@dataclass(frozen=True, slots=True)
class _Taken:
    """A request that was let in."""

    request: Request
    nexus: "Served"
    caller: Caller
    asked: GatewayRequest


class Gateway:
    """Passes requests on. `close` it at the end."""

    def __init__(self, app: "App") -> None:
        self._app = app
        self.upstreams = Upstreams()
        self.models = ModelLists(self.upstreams)

    async def close(self) -> None:
        """Close the connections to the upstreams."""
        await self.upstreams.close()

    async def pass_on(self, api: Api, request: Request, nexus: "Served", caller: Caller) -> Response:
        """The answer of the upstream to a request. Raises RequestRefused."""
        if "content-encoding" in request.headers:
            raise RequestRefused(415, "The request's body is compressed: send it as it is.")
        body = await request.body()
        try:
            asked = await off_loop(len(body) // COUNTED_PER_READ, lambda: parsed(api, body))
        except BadInput as error:
            raise RequestRefused(400, str(error)) from None
        if not caller.upstream.allows(asked.model):
            name = clean_line(asked.model, 100)
            raise RequestRefused(
                404, f"The model '{name}' can't be asked here; GET /v1/models lists those that can.", code=UNKNOWN_MODEL
            )
        return self._relay(_Taken(request, nexus, caller, asked))

    def _relay(self, taken: _Taken) -> Relay:
        asked, caller, request = taken.asked, taken.caller, taken.request
        usage = usage_edits(asked)
        body = applied(asked.text, usage).encode() if usage else asked.text.encode()
        outgoing = Outgoing(
            asked.api,
            request.headers.raw,
            body,
            asked.text.encode() if usage else None,
            bearer_of(request) or "",
        )
        user = None if caller.principal is None else caller.principal.user
        account, passage = Account(caller.tenant_id, WorkKind.GATEWAY, user_id=user), Passage(asked)
        ended = self._counted(request)
        metered = self._app.gateway_meter.passage(account, passage)
        return Relay(
            self.upstreams, caller.upstream, outgoing, passage, metered, _stands(taken), [(MEMORY, b"off")], ended
        )

    def _counted(self, request: Request) -> Callable[[int, Passage], Awaitable[None]]:
        """What counts a request as an operation once it was answered, and not before."""
        metered = metered_of(request)
        if metered is not None:
            metered.is_counted = True

        async def ended(status: int, passage: Passage) -> None:
            if metered is not None and status < 400:
                count_now(metered, None)

        return ended


def _stands(taken: _Taken) -> Callable[[], Awaitable[bool]]:
    """What says whether the credential of a request is still valid. A key of the settings is as long as they are."""
    principal = taken.caller.principal
    if principal is None:

        async def always() -> bool:
            return True

        return always
    return still_stands_for(taken.request, taken.nexus, principal, "gateway")
