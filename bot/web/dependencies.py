"""What handlers ask FastAPI for."""

from typing import Annotated, cast

from fastapi import Depends, Request

from bot.web.serving import Served


async def _served(request: Request) -> Served:
    return cast(Served, request.app.state.nexus)


Nexus = Annotated[Served, Depends(_served)]
