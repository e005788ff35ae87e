"""What handlers ask FastAPI for."""

from typing import Annotated, cast

from fastapi import Depends, Request

from bot.web.limits import address_of
from bot.web.state import WebState


async def _state(request: Request) -> WebState:
    return cast(WebState, request.app.state.nexus)


Nexus = Annotated[WebState, Depends(_state)]


async def counted_by_address(request: Request, nexus: Nexus) -> None:
    """For routes that need no key. Raises TooManyRequests."""
    await nexus.fair_use.admit(address_of(request))
