"""Streams of events that tell somebody that something has changed, so that they ask again: to whom it may be shown, and
nothing of what it is."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from fastapi import Request

from bot.web.call import ApiCall
from bot.web.credentials import credential_check
from bot.web.event_stream import HEARTBEAT, event
from bot.web.state import WebState
from composer.errors import Unavailable
from composer.people.changes import Change, Heard
from composer.people.watching import WatchedPage, Watcher, watcher

SILENT_SECONDS: Final = 15.0  # between two looks at whether somebody is still signed in
PAUSE_SECONDS: Final = 0.5  # between two looks at what has changed: several changes are one event
CHANGED_EVENT: Final = event("changed", b"{}")
LATER: Final = b"retry: 30000\n\n"  # to whom all places of theirs are taken by other streams


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched: what a page shows; `of`: of one room, team or project alone."""

    page: WatchedPage
    of: uuid.UUID | None = None

    def shows(self, watcher: Watcher, changes: Sequence[Change]) -> bool:
        """Whether one of the changes may be seen there."""
        return any(watcher.sees(self.page, change, self.of) for change in changes)


async def changes_stream(
    request: Request, call: ApiCall, nexus: WebState, watched: Watched, begins: bytes, seconds: float = float("inf")
) -> AsyncGenerator[bytes, None]:
    """Events for so many seconds, or until the credential ends. `begins`: what is said first. The streams of a person
    have places of their own: the caller gives back those for requests."""
    is_valid = credential_check(request, nexus.app, call.principal)
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + seconds
    async with AsyncExitStack() as held:
        try:
            await held.enter_async_context(nexus.watching.take())
        except Unavailable:
            yield LATER
            return
        with nexus.app.changes.listening(call.principal.tenant_id) as heard:
            yield begins
            known, beats_at = None, loop.time() + SILENT_SECONDS
            while loop.time() < ends_at:
                changes = await _next(heard, min(beats_at, ends_at) - loop.time())
                if loop.time() >= beats_at:  # by the clock alone: what others change must not be told by when it comes
                    if not await is_valid():
                        return
                    known, beats_at = None, loop.time() + SILENT_SECONDS
                    yield HEARTBEAT
                if changes:
                    if known is None or watched.shows(known, changes):
                        if not await is_valid():
                            return
                        known = await _watcher(call, nexus)
                    if watched.shows(known, changes):
                        yield CHANGED_EVENT
                    await asyncio.sleep(max(0.0, min(PAUSE_SECONDS, beats_at - loop.time())))


async def _next(heard: Heard, seconds: float) -> Sequence[Change]:
    """What changed, within some seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await heard.wait()
    except TimeoutError:
        return ()


async def _watcher(call: ApiCall, nexus: WebState) -> Watcher:
    tenant = call.principal.tenant_id
    presence = await call.app.memberships.of(tenant, call.principal.user)
    async with nexus.work.take(), call.reading() as (tx, access):
        return await watcher(tx, access, presence, call.app.directory.quarantine(tenant), call.now)
