"""`/v1/gateway/requests`: what the gateway put into the requests of one's own tools, and what it learns from."""

import uuid
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Response
from pydantic import BaseModel, Field

from bot.web.call import Calling
from bot.web.json_answer import json_answer
from bot.web.problems import documented
from bot.web.router import Router
from composer.people.credentials.principal import KeyPermission
from composer.people.gateway_log import GatewayLine, gateway_log

router = Router("/v1/gateway", tags=["connecting"])
MAX_GATEWAY_LINES: Final = 200


class GivenEntry(BaseModel):
    """An entry that was put in. `standing`: whatever was asked; else it fitted the question."""

    id: uuid.UUID
    title: str
    standing: bool


class GatewayLineResponse(BaseModel):
    """Something that the gateway did for a tool (null: for a key of the person's own). It `put` memory into a request:
    `items` entries, facts and decisions, of which `entries` may be read now. Or it was `said` something to learn from:
    it learnt at `learnt_at`; null: that waits."""

    what: Literal["put", "said"]
    at: datetime
    tool: str | None
    items: Annotated[int, Field(ge=0)]
    entries: list[GivenEntry]
    learnt_at: datetime | None


class GatewayLog(BaseModel):
    """What the gateway did, newest first."""

    items: list[GatewayLineResponse]


@router.get(
    "/requests",
    summary="List what the gateway put in and learnt",
    response_class=Response,
    responses={200: {"model": GatewayLog}, **documented(401, 403, 422)},
)
async def list_gateway_requests(
    call: Calling, limit: Annotated[int, Query(ge=1, le=MAX_GATEWAY_LINES)] = 50
) -> Response:
    """For the person's own tools. What was put in is known while a turn may last, 6 hours, and that something was said
    for 7 days; never what it was. It needs the permission manage."""
    call.principal.require(KeyPermission.MANAGE)
    async with call.reading() as (tx, access):
        found = await gateway_log(tx, access, limit, call.now)
    return json_answer({"items": [_shown(each) for each in found]})


def _shown(line: GatewayLine) -> dict[str, Any]:
    entries = [{"id": each.id, "title": each.title, "standing": line.is_standing(each)} for each in line.entries]
    return {
        "what": "said" if line.act.is_said else "put",
        "at": line.act.at,
        "tool": line.tool,
        "items": line.items,
        "entries": entries,
        "learnt_at": line.act.learnt_at,
    }
