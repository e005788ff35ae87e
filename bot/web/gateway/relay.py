"""A request of a tool on its way: passed on to the upstream, and the answer passed back as it comes."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final

import httpx2
import structlog
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from bot.web.credentials import CHALLENGE
from bot.web.event_stream import EVENT_STREAM, STREAM_LOOK_SECONDS
from bot.web.gateway.upstreams import (
    UPSTREAM_UNREACHABLE,
    Upstreams,
    masked,
    refused_when_away,
    relayed_headers,
    sent_on,
)
from bot.web.problems import RequestRefused
from bot.web.sessions import REVOKED
from composer.gateway.answers import UsageFilter
from composer.gateway.forms import RequestForms
from composer.gateway.metering import GatewayCall
from composer.settings import Upstream
from composer.tasks.signals import end_tasks
from composer.text.work import COUNTED_PER_READ, off_loop

logger = structlog.get_logger()

MAX_ERROR_BYTES: Final = 2**20


class CutOff(Exception):
    """An answer that ends before its end: the connection is broken, so that nobody takes it for a whole one."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as it is sent to the upstream. `forms` are its bodies. `credential` is the id of what it was let in by,
    and `hidden` are texts that go nowhere: those of its credentials."""

    path: str
    headers: Sequence[tuple[bytes, bytes]]
    credential: uuid.UUID
    forms: RequestForms
    hidden: Sequence[str] = ()


class Relay(Response):
    """The answer of an upstream. It is asked when this is sent, and no more once the client has left, or its credential
    has ended."""

    def __init__(
        self,
        upstreams: Upstreams,
        upstream: Upstream,
        outgoing: Outgoing,
        call: GatewayCall,
        *,
        metered: AbstractAsyncContextManager[None],
        is_valid: Callable[[], Awaitable[bool]],
        count: Callable[[], None],
        ended: Callable[[GatewayCall], Awaitable[None]],
        extra: Callable[[], Sequence[tuple[bytes, bytes]]] = tuple,
    ) -> None:
        """`metered` surrounds the request; `is_valid` says whether the credential is still valid; `count` counts a
        request that was answered, also one whose client left in the middle of the answer; `ended` is called once the
        answer has been passed back whole; `extra` gives headers of the answer."""
        super().__init__()
        self._upstreams, self._upstream, self._outgoing, self._call = upstreams, upstream, outgoing, call
        self._metered, self._is_valid, self._extra = metered, is_valid, extra
        self._count, self._ended = count, ended
        self._begun = self._passed = False
        self._refusal: bytes | None = None  # the body of an error that was read before it is passed back

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask the upstream, and pass its answer back."""
        passing = asyncio.create_task(self._pass(send))
        gone = asyncio.create_task(_has_left(receive))
        ended = asyncio.create_task(_has_ended(self._is_valid))
        try:
            await asyncio.wait((passing, gone, ended), return_when=asyncio.FIRST_COMPLETED)
            if self._passed:  # what is left is to write down what came of it
                await asyncio.wait((passing,))
        finally:
            was_passed = passing.done()
            await end_tasks([passing, gone, ended])
        if not was_passed and not self._call.failed:  # whoever leaves has what came until then
            self._count()
        if was_passed:
            passing.result()
        elif ended.done() and not ended.cancelled() and not gone.done():
            if not self._begun:
                raise RequestRefused(401, REVOKED, CHALLENGE)
            raise CutOff

    async def _pass(self, send: Send) -> None:
        async with self._metered:
            answer = await self._ask()
            try:
                await self._pass_back(answer, send)
            finally:
                await answer.aclose()
        if not self._call.failed:
            self._count()
        await self._ended(self._call)

    async def _ask(self) -> httpx2.Response:
        """The upstream's answer, of which the head has come. Raises RequestRefused."""
        forms = self._outgoing.forms
        with refused_when_away(self._upstream):
            answer = await self._post(forms.body)
            while forms.has_others and answer.status_code in (400, 413, 422, 500):
                try:
                    self._refusal = await _whole(answer)
                finally:
                    await answer.aclose()
                refused = partial(forms.try_another, answer.status_code, self._refusal)
                if not await off_loop(len(forms.body) // COUNTED_PER_READ, refused):
                    break
                self._refusal = None
                answer = await self._post(forms.body)
        if answer.status_code in (401, 403):
            logger.warning("gateway.refused_key", upstream=str(self._upstream.url), status=answer.status_code)
        return answer

    async def _post(self, body: bytes) -> httpx2.Response:
        sent = self._outgoing
        headers = sent_on(sent.headers, sent.credential, sent.hidden)
        request = self._upstreams.request(self._upstream, "POST", sent.path, headers, body)
        self._call.is_waiting = True
        try:
            answer = await self._upstreams.client(self._upstream).send(request, stream=True)
        except httpx2.HTTPError as error:
            self._call.is_waiting = isinstance(error, httpx2.ReadTimeout)
            raise
        self._call.is_waiting = False
        return answer

    async def _pass_back(self, answer: httpx2.Response, send: Send) -> None:
        is_error = answer.status_code >= 400
        body = None
        if is_error:
            body = masked(await _whole(answer) if self._refusal is None else self._refusal, self._upstream.key)
        headers = [*relayed_headers(answer.headers.raw, self._upstream.key), *self._extra()]
        self._begun = True
        await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
        if body is not None:
            self._passed = True
            await send({"type": "http.response.body", "body": body})
            return
        self._call.failed = False
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._call.is_stream = kind == EVENT_STREAM
        dropped = UsageFilter() if self._call.is_stream and self._outgoing.forms.asks_usage else None
        try:
            async for piece in answer.aiter_bytes():
                self._call.copy.add(piece)
                shown = piece if dropped is None else dropped.feed(piece)
                if shown:
                    await send({"type": "http.response.body", "body": shown, "more_body": True})
        except httpx2.HTTPError as error:
            logger.warning("gateway.cut_off", upstream=str(self._upstream.url), error=type(error).__name__)
            raise CutOff from None
        rest = b"" if dropped is None else dropped.rest()
        self._passed = True
        await send({"type": "http.response.body", "body": rest, "more_body": False})


async def _whole(answer: httpx2.Response) -> bytes:
    """The body of an error, or its beginning. Raises RequestRefused where it breaks off."""
    pieces, size = list[bytes](), 0
    try:
        async for piece in answer.aiter_bytes():
            pieces.append(piece)
            size += len(piece)
            if size > MAX_ERROR_BYTES:
                break
    except httpx2.HTTPError:
        raise RequestRefused(502, "The model server broke off.", code=UPSTREAM_UNREACHABLE) from None
    return b"".join(pieces)


async def _has_left(receive: Receive) -> None:
    """Return once the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _has_ended(is_valid: Callable[[], Awaitable[bool]]) -> None:
    """Return once the credential is not valid any more."""
    valid = True
    while valid:
        await asyncio.sleep(STREAM_LOOK_SECONDS)
        valid = await is_valid()
