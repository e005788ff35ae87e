"""What each route of the API counts as, and how much of it a plan has left.

Counting a read costs no statement: it is stored in batches (composer/usage/operations.py).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from fastapi.responses import Response

from composer.credentials.principal import Principal
from composer.entries.draft import API_ORIGIN
from composer.repositories.operations import Operation
from composer.usage.operations import Actor, OperationMeter, request_digest

QUOTA: Final = "X-Nexus-Quota"
_W, _R, _S, _C, _X = Operation.WRITES, Operation.READS, Operation.SEARCHES, Operation.CHATS, Operation.REMOVALS

OPERATIONS: Final[Mapping[tuple[str, str], Operation]] = {
    ("GET", "/v1/entries"): _R,
    ("POST", "/v1/entries"): _W,
    ("GET", "/v1/entries/export"): _R,
    ("POST", "/v1/entries/import"): _W,
    ("GET", "/v1/entries/{id}"): _R,
    ("PATCH", "/v1/entries/{id}"): _W,
    ("DELETE", "/v1/entries/{id}"): _X,
    ("POST", "/v1/entries/{id}/restore"): _W,
    ("POST", "/v1/entries/{id}/forget"): _X,
    ("PUT", "/v1/entries/{id}/team"): _W,
    ("DELETE", "/v1/entries/{id}/team"): _X,
    ("POST", "/v1/entries/forget"): _X,
    ("GET", "/v1/entries/pending"): _R,
    ("POST", "/v1/entries/pending/{id}/approve"): _W,
    ("POST", "/v1/entries/pending/{id}/reject"): _X,
    ("POST", "/v1/agent/entries"): _W,
    ("GET", "/v1/agent/entries"): _R,
    ("GET", "/v1/agent/entries/latest"): _R,
    ("GET", "/v1/agent/entries/by-tag/{name:path}"): _R,
    ("GET", "/v1/agent/entries/{id}"): _R,
    ("POST", "/v1/agent/entries/{id}/forget"): _X,
    ("POST", "/v1/agent/forget"): _X,
    ("GET", "/v1/agent/team/{id}/entries"): _R,
    ("DELETE", "/v1/teams/{id}/entries/{entry}"): _X,
    ("POST", "/v1/query"): _S,
    ("GET", "/v1/agent/search"): _S,
    ("POST", "/v1/chat"): _C,
    ("POST", "/v1/chat/completions"): _C,
    ("POST", "/v1/responses"): _C,
    ("GET", "/v1/chat/turns/{turn}"): _R,
    ("GET", "/v1/chat/sessions"): _R,
    ("DELETE", "/v1/chat/session/{session:path}"): _X,
    ("GET", "/v1/episodes"): _R,
}


@dataclass(slots=True)
class Metered:
    """A request that counts as an operation, or as `times` of them. `tokens`: an estimate of what it stored or handed
    out. `has_found`: it is a search that found something. `is_counted`: its own transaction has counted it, or it
    repeats one that was counted."""

    meter: OperationMeter
    principal: Principal
    operation: Operation
    times: int = 1
    tokens: int = 0
    has_found: bool = False
    is_counted: bool = False

    @property
    def actor(self) -> Actor:
        """Who asks."""
        return Actor(self.principal.tenant_id, self.principal.user, self.principal.vendor or API_ORIGIN)


async def admit(request: Request, meter: OperationMeter, principal: Principal) -> None:
    """Note what a request counts as. Raises QuotaUsedUp where the plan has nothing left of it; a write finds that out
    in its own transaction, so that one that repeats another is answered."""
    operation = OPERATIONS.get((request.method, request.scope["route"].path))
    if operation is None:
        return
    request.state.metered = Metered(meter, principal, operation)
    judge = meter.state if operation is Operation.WRITES else meter.admit
    state = await judge(principal.tenant_id, operation)
    if state is not None and state.is_nearly_used_up:
        request.state.headers = {QUOTA: f"{state.description}; they begin again on {state.begins_again}"}


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
    if metered.has_found:
        of_hit = None if digest is None else hashlib.sha256(b"hit" + digest).digest()
        metered.meter.count(metered.actor, Operation.HITS, request=of_hit)
