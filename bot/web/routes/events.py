"""`/v1/events`: tells that something has changed, so that one asks again."""

import uuid
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from bot.web.call import ApiCall, Calling
from bot.web.dependencies import Nexus
from bot.web.event_stream import EVENT_STREAM, HEARTBEAT
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.exchange import ALL_OF_A_PERSON
from bot.web.routes.rooms import require_signed_in
from bot.web.watching import Watched, changes_stream
from composer.people.credentials.principal import KeyPermission
from composer.people.watching import WatchedPage

MAX_EVENT_SECONDS: Final = 600
FOR_BROWSERS: Final = frozenset({WatchedPage.WAITING, WatchedPage.ROOMS, WatchedPage.TEAM})
router = Router("/v1/events", tags=["memory"])
_SCHEMA: Final = {"type": "string", "examples": ["event: changed\ndata: {}\n\n"]}
_TOLD: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "Server-sent events: changed", "content": {EVENT_STREAM: {"schema": _SCHEMA}}},
    **documented(401, 403, 422, 429),
}


@router.get("", summary="Be told of changes", response_class=StreamingResponse, responses=_TOLD)
async def watch_changes(
    request: Request,
    call: Calling,
    nexus: Nexus,
    page: Annotated[WatchedPage, Query(description="What is watched, by the page that shows it.")],
    seconds: Annotated[int, Query(ge=0, le=MAX_EVENT_SECONDS, description="For how long; then ask again.")],
    of: Annotated[uuid.UUID | None, Query(description="Of one room, team or project alone.")] = None,
) -> Response:
    """An event `changed` as soon as something of it was written, moved or erased, without saying what: only where it
    may be read; of what is said in a room with `of` alone. A key needs the permissions of an export, and for `admin`
    and `people` that of an admin; `waiting`, `rooms` and `team` are for who is signed in in a browser."""
    require_watchable(call, page)
    await request.state.held.aclose()
    stream = changes_stream(request, call, nexus, Watched(page, of), HEARTBEAT, seconds)
    return StreamingResponse(stream, media_type=EVENT_STREAM)


def require_watchable(call: ApiCall, page: WatchedPage) -> None:
    """Return if who asks may be told of changes of a page: here, and by a webhook. Raises Refused."""
    for permission in ALL_OF_A_PERSON:
        call.principal.require(permission)
    if page in (WatchedPage.ADMIN, WatchedPage.PEOPLE):
        call.principal.require(KeyPermission.ADMIN)
    if page in FOR_BROWSERS:
        require_signed_in(call)
