"""`/events`: tells a page that is open that what it shows has changed, so that it asks again. Nothing else is told, and
that only to who may read what has changed."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from typing import Final

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from bot.web.credentials import credential_check
from bot.web.dependencies import Nexus
from bot.web.event_stream import EVENT_STREAM, HEARTBEAT
from bot.web.pages.rendering import PAGE_HEADERS
from bot.web.pages.viewer import PageRouter, SignedIn, Viewer
from bot.web.state import WebState
from composer.errors import Unavailable
from composer.people.changes import Change, Heard
from composer.visibility import EntryAccess, decidable_entries, owned_by_bearer

EVENTS: Final = "/events"
SILENT_SECONDS: Final = 15.0  # between two looks at whether somebody is still signed in
PAUSE_SECONDS: Final = 0.5  # between two looks at what has changed: several changes are one event
CHANGED_EVENT: Final = b"event: changed\ndata: \n\n"
RECONNECT: Final = b"retry: 3000\n\n"
LATER: Final = b"retry: 30000\n\n"  # to whom all places of theirs are taken by other pages
router = PageRouter(EVENTS)


class WatchedPage(StrEnum):
    """A page that shows what others change while it is open."""

    MEMORY = "memory"
    WAITING = "waiting"


def _of_memory(access: EntryAccess, change: Change) -> bool:
    return owned_by_bearer(access).admits(change.user_id)


def _of_waiting(access: EntryAccess, change: Change) -> bool:
    return _of_memory(access, change) or decidable_entries(access).admits(change)


# Whether a page of somebody may show what has changed.
_SHOWS: Final[Mapping[WatchedPage, Callable[[EntryAccess, Change], bool]]] = {
    WatchedPage.MEMORY: _of_memory,
    WatchedPage.WAITING: _of_waiting,
}


@router.get("", response_class=StreamingResponse)
async def watch(request: Request, viewer: SignedIn, nexus: Nexus, page: WatchedPage) -> Response:
    """Events for as long as a page is open. A person's open pages have places of their own, and hold none of those for
    requests."""
    await request.state.held.aclose()
    headers = PAGE_HEADERS | {"Content-Type": EVENT_STREAM}
    return StreamingResponse(_events(request, viewer, nexus, page), headers=headers)


async def _events(request: Request, viewer: Viewer, nexus: WebState, page: WatchedPage) -> AsyncGenerator[bytes, None]:
    is_valid = credential_check(request, nexus.app, viewer.principal)
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as held:
        try:
            await held.enter_async_context(nexus.watching.take())
        except Unavailable:
            yield LATER
            return
        with nexus.app.changes.listening(viewer.principal.tenant_id) as heard:
            yield RECONNECT
            access, beats_at = None, loop.time() + SILENT_SECONDS
            while True:
                changes = await _next(heard, beats_at - loop.time())
                if loop.time() >= beats_at:  # by the clock alone: what others change must not be told by when it comes
                    if not await is_valid():
                        return
                    access, beats_at = None, loop.time() + SILENT_SECONDS
                    yield HEARTBEAT
                if changes:
                    if access is None or _shows(page, access, changes):
                        if not await is_valid():
                            return
                        access = await _access(viewer, nexus)
                    if _shows(page, access, changes):
                        yield CHANGED_EVENT
                    await asyncio.sleep(max(0.0, min(PAUSE_SECONDS, beats_at - loop.time())))


def _shows(page: WatchedPage, access: EntryAccess, changes: Sequence[Change]) -> bool:
    return any(_SHOWS[page](access, change) for change in changes)


async def _next(heard: Heard, seconds: float) -> Sequence[Change]:
    """What changed, within some seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await heard.wait()
    except TimeoutError:
        return ()


async def _access(viewer: Viewer, nexus: WebState) -> EntryAccess:
    async with nexus.work.take(), viewer.call.reading() as (_, access):
        return access
