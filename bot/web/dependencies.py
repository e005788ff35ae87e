"""What handlers ask FastAPI for."""

from typing import Annotated, cast

from fastapi import Depends, Request

from bot.web.limits import address_of
from bot.web.serving import Served


async def _served(request: Request) -> Served:
    return cast(Served, request.app.state.nexus)


Nexus = Annotated[Served, Depends(_served)]


async def counted_by_address(request: Request, nexus: Nexus) -> None:
    """For routes that need no key. Raises TooManyRequests."""
    await nexus.fair_use.admit(address_of(request))
