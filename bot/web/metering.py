"""What each route of the API counts as, and how much of it a plan has left.

Counting a read costs no statement: it is stored in batches (composer/usage/operations.py).
"""

import hashlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from composer.entries.draft import API_ORIGIN
from composer.entries.search import SearchResult
from composer.people.credentials.principal import KeyPermission, Principal
from composer.repositories.operations import Operation
from composer.repositories.tool_reads import ReadRoute
from composer.usage.operations import Actor, OperationMeter, request_digest

QUOTA: Final = "X-Nexus-Quota"
_OPERATION: Final = "counts_as"  # of the function of a route
Handler = TypeVar("Handler", bound=Callable[..., Any])


def counts_as(operation: Operation) -> Callable[[Handler], Handler]:
    """Mark the function of a route: each request that it answers counts as such an operation."""

    def marked(handler: Handler) -> Handler:
        setattr(handler, _OPERATION, operation)
        return handler

    return marked


def operation_of(route: APIRoute) -> Operation | None:
    """What a request to a route counts as; None for nothing."""
    found: Operation | None = getattr(route.endpoint, _OPERATION, None)
    return found


@dataclass(slots=True)
class Metered:
    """A request that counts as an operation, or as `times` of them. `tokens`: an estimate of what it stored or handed
    out, `read` the ids of that, and `route` how. `has_found`: it is a search that found something. `is_counted`: its
    own transaction has counted it, or it repeats one that was counted."""

    meter: OperationMeter
    principal: Principal
    operation: Operation
    times: int = 1
    tokens: int = 0
    has_found: bool = False
    is_counted: bool = False
    read: Sequence[uuid.UUID] = ()
    route: ReadRoute = ReadRoute.API

    def note_found(self, found: SearchResult) -> None:
        """Note what a search hands out."""
        self.tokens, self.has_found = found.tokens, bool(found.hits)
        self.read = [uuid.UUID(hit.item.id) for hit in found.hits]

    @property
    def actor(self) -> Actor:
        """Who asks."""
        return Actor(self.principal.tenant_id, self.principal.user, self.principal.vendor or API_ORIGIN)


async def admit(request: Request, meter: OperationMeter, principal: Principal) -> None:
    """Note what a request counts as. Raises QuotaUsedUp where the plan has nothing left of it; a write finds that out
    in its own transaction, so that one that repeats another is answered."""
    operation = operation_of(request.scope["route"])
    if operation is None:
        return
    request.state.metered = Metered(meter, principal, operation)
    judge = meter.state if operation is Operation.WRITES else meter.admit
    state = await judge(principal.tenant_id, operation)
    if state is None or not state.is_nearly_used_up:
        return
    used = state.description
    if not principal.may(KeyPermission.ADMIN):  # what others do is not told to members, nor that it was much
        state = await meter.own_share(principal.tenant_id, principal.user, state)
        used = f"{state.description} are yours"
    if state.is_nearly_used_up:
        request.state.headers = {QUOTA: f"{used}; they begin again on {state.begins_again}"}


def metered_of(request: Request) -> Metered | None:
    """What a request counts as, once it is known who asks."""
    found: Metered | None = getattr(request.state, "metered", None)
    return found


async def count(request: Request, response: Response) -> None:
    """Count a request that was answered. One with an idempotency key counts once in a day."""
    metered = metered_of(request)
    if metered is None or metered.is_counted or response.status_code >= 400:
        return
    key = request.headers.get("idempotency-key")
    count_now(metered, None if key is None else request_digest(metered.principal.id, key, await whole_request(request)))


async def whole_request(request: Request) -> bytes:
    """The method, the address and the body of a request: the same for one that repeats it."""
    address = f"{request.method} {request.url.path}?{request.url.query}\n".encode("utf-8", "surrogateescape")
    return address + await request.body()


def count_now(metered: Metered, digest: bytes | None) -> None:
    """Count an operation that has succeeded. `digest` stands for its request, if it may be repeated."""
    metered.meter.count(metered.actor, metered.operation, metered.tokens, digest)
    if metered.principal.vendor is not None:
        metered.meter.note_reads(metered.actor, metered.route, metered.read)
    if metered.has_found:
        of_hit = None if digest is None else hashlib.sha256(b"hit" + digest).digest()
        metered.meter.count(metered.actor, Operation.HITS, request=of_hit)
