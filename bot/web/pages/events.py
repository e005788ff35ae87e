"""`/events`: tells a page that is open that what it shows has changed, so that it asks again."""

import uuid
from typing import Final

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from bot.web.dependencies import Nexus
from bot.web.event_stream import EVENT_STREAM
from bot.web.pages.rendering import PAGE_HEADERS
from bot.web.pages.viewer import PageRouter, SignedIn
from bot.web.watching import Watched, changes_stream
from composer.people.watching import WatchedPage

EVENTS: Final = "/events"
RECONNECT: Final = b"retry: 3000\n\n"
router = PageRouter(EVENTS)


@router.get("", response_class=StreamingResponse)
async def watch(
    request: Request, viewer: SignedIn, nexus: Nexus, page: WatchedPage, of: uuid.UUID | None = None
) -> Response:
    """Events for as long as a page is open. `of`: the room, team or project that it shows alone. A person's open pages
    have places of their own, and hold none of those for requests."""
    await request.state.held.aclose()
    headers = PAGE_HEADERS | {"Content-Type": EVENT_STREAM}
    stream = changes_stream(request, viewer.call, nexus, Watched(page, of), RECONNECT)
    return StreamingResponse(stream, headers=headers)
