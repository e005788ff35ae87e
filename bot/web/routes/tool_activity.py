"""`/v1/keys/{id}/activity`: what the tool of a key wrote and read of one's memory, and how often it asked."""

import uuid
from datetime import date, datetime
from typing import Annotated, Final

from fastapi import Query, Response
from pydantic import BaseModel, Field

from bot.web.call import Calling
from bot.web.entry_pages import Text
from bot.web.json_answer import json_answer
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.exchange import ALL_OF_A_PERSON
from bot.web.routes.memory import MemoryItem, item_values
from bot.web.routes.usage import Months, months_since
from composer.people.tool_activity import ReadKind, tool_activity
from composer.repositories.operations import Operation
from composer.repositories.tool_reads import ReadRoute

router = Router("/v1/keys", tags=["keys"])
MAX_ACTIVITY_PAGE: Final = 100


class ReadItemResponse(BaseModel):
    """An entry, fact or decision that the tool was handed out, as its person may read it now."""

    id: uuid.UUID
    kind: ReadKind
    title: str


class ToolReadingResponse(BaseModel):
    """What the tool was handed out at once: over the API, over MCP, or put into a request by the gateway."""

    at: datetime
    route: ReadRoute
    items: list[ReadItemResponse]


class ToolCount(BaseModel):
    """How often the tool did something over the API and MCP in a month (its first day)."""

    month: date
    operation: Operation
    count: Annotated[int, Field(ge=0)]


class ToolActivityPage(BaseModel):
    """What a tool did, the latest first. `read`: what it was handed out in 30 days, the last 200, each at its last
    time by each route. `written`: what it wrote that is stored or waits; `next`
    is the cursor of its next page; null after the last."""

    tool: str
    read: list[ToolReadingResponse]
    counted: list[ToolCount]
    written: list[MemoryItem]
    next: str | None


@router.get(
    "/{id}/activity",
    summary="Show what a tool read and wrote",
    response_class=Response,
    responses={200: {"model": ToolActivityPage}, **documented(400, 401, 403, 404, 422)},
)
async def show_tool_activity(
    call: Calling,
    id: uuid.UUID,
    months: Months = 1,
    limit: Annotated[int, Query(ge=1, le=MAX_ACTIVITY_PAGE)] = 20,
    cursor: Annotated[Text | None, Query(description="`next` of the page before.")] = None,
) -> Response:
    """For the tool of one of the person's keys, or of an app that they connected; the keys of one tool have the same.
    It needs all that /v1/export needs."""
    for permission in ALL_OF_A_PERSON:
        call.principal.require(permission)
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    since = months_since(call, months)
    await call.app.operations.settle()
    async with call.reading() as (tx, access):
        found = await tool_activity(
            tx, call.principal, access, id, presence, since=since, cursor=cursor, limit=limit, now=call.now
        )
    read = [
        {
            "at": each.at,
            "route": each.route,
            "items": [{"id": item.id, "kind": item.kind, "title": item.title} for item in each.items],
        }
        for each in found.read
    ]
    counted = [{"month": each.month, "operation": each.operation, "count": each.count} for each in found.counted]
    written = [item_values(each, access) for each in found.written.items]
    return json_answer(
        {"tool": found.vendor, "read": read, "counted": counted, "written": written, "next": found.written.next}
    )
