"""Fair use: how many requests a person, a key without an owner, or an address without a key has in a minute.

The counts are in Redis, so that all processes count together. While Redis is away each process counts for itself, and
gives half as much: there are never no limits, and never an error because of them.
"""

import asyncio
import hashlib
import ipaddress
import math
import time
from collections.abc import Sequence
from typing import Any, Final

import structlog
from cachetools import TTLCache
from fastapi import Request
from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from bot.web.problems import TooManyRequests
from composer.people.credentials.principal import Principal, Source
from composer.settings.server_urls import ServerUrl

logger = structlog.get_logger()

MINUTE: Final = 60  # seconds
LIMIT_SECONDS: Final = 0.5  # for Redis, which a request waits for
ALONE_SECONDS: Final = 5.0  # for which Redis is left alone after it did not answer
ALONE_SHARE: Final = 2  # a process that counts alone gives this part of what there is
MAX_CALLERS: Final = 20_000  # whom a process that counts alone remembers
BYTES_PER_REQUEST: Final = 256 * 1024  # of a body: a longer one counts as so many requests
BODY_SHARE: Final = 2  # this part of a minute's requests is the most that one body counts as
AGAIN_SECONDS: Final = 5.0  # for which who is refused is refused again, without being looked up
HELD_SECONDS: Final = 1.0  # after which they are told so: each of their connections asks once in this time
TOLD_IN_IT: Final = 20  # of one caller, whatever they ask with: a refusal costs as much as a small answer
MOST_HELD_SECONDS: Final = 30.0  # for which one is held whose others wait before it
IPV6_PREFIX: Final = 64  # bits of an address that one network shares, which has as many addresses as it wants
LIMIT_KEY_PREFIX: Final = "nexus:requests"


class FairUse:
    """Counts requests. `close` it at the end."""

    def __init__(self, redis_url: ServerUrl, per_minute: int, admin_per_minute: int) -> None:
        """`admin_per_minute` is for what only admins may do, besides what every request counts."""
        self._pool = ConnectionPool.from_url(
            str.__str__(redis_url),
            socket_timeout=LIMIT_SECONDS,
            socket_connect_timeout=LIMIT_SECONDS,
            retry=Retry(NoBackoff(), 1),
            driver_info=None,  # the library would read its own version for each connection, and tell the server
        )
        pooled: Any = {"connection_pool": self._pool}  # a connection made by its own code would not know our time-outs
        storage = RedisStorage("async+redis://", implementation="redispy", key_prefix=LIMIT_KEY_PREFIX, **pooled)
        self._shared = SlidingWindowCounterRateLimiter(storage)
        self._alone: TTLCache[str, list[int]] = TTLCache(MAX_CALLERS, MINUTE)
        self._alone_until = -math.inf
        # By who asked, and by what they asked with: who that is, and until when there is nothing for them.
        self._refused: TTLCache[str, tuple[str, float]] = TTLCache(MAX_CALLERS, AGAIN_SECONDS)
        self._told: TTLCache[str, float] = TTLCache(MAX_CALLERS, MINUTE)  # when the last of a caller's is told so
        self._limits = {False: RateLimitItemPerMinute(per_minute), True: RateLimitItemPerMinute(admin_per_minute)}

    async def admit(
        self, caller: str, *, admin: bool = False, credentials: Sequence[str] = (), body_bytes: int = 0
    ) -> None:
        """Count a request of a caller, `person:`, `browsers:` or `key:` with an id or `address:` with one; or with
        `admin`, count it as one for what only admins may do. A long body counts as several: to read it takes everybody
        time. `credentials` are the texts that they ask with: see `require_not_refused`. Raises TooManyRequests."""
        counted_as = f"{'admin:' if admin else ''}{caller}"
        asked_with = [_digest(credentials)] if credentials else []
        if (before := self._refused.get(counted_as)) is not None:
            self._refused.update(dict.fromkeys(asked_with, before))
        await self._require_not_refused(counted_as)
        most = max(1, self._limits[admin].amount // BODY_SHARE)
        seconds = await self._wait(admin, counted_as, min(1 + body_bytes // BYTES_PER_REQUEST, most))
        if seconds is not None:
            refused = counted_as, asyncio.get_running_loop().time() + seconds
            self._refused.update(dict.fromkeys([counted_as, *asked_with], refused))
            raise TooManyRequests(seconds)

    async def require_not_refused(self, credentials: Sequence[str]) -> None:
        """Raises TooManyRequests, after a second, for what `admit` has refused a moment ago, without asking Redis, or
        the database whose it is; later where more of the same caller's are held: who sends hundreds in a second takes
        little of everybody's time."""
        await self._require_not_refused(_digest(credentials))

    async def _require_not_refused(self, asked: str) -> None:
        now = asyncio.get_running_loop().time()
        caller, until = self._refused.get(asked, ("", now))
        if until <= now:
            return
        told = max(now + HELD_SECONDS, self._told.get(caller, now) + HELD_SECONDS / TOLD_IN_IT)
        self._told[caller] = told = min(told, now + MOST_HELD_SECONDS)
        await asyncio.sleep(told - now)
        raise TooManyRequests(max(1, math.ceil(until - told)))

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    async def _wait(self, kind: bool, caller: str, requests: int) -> int | None:
        """The seconds to wait until a caller has another request; None where they have so many now."""
        now = asyncio.get_running_loop().time()
        if now >= self._alone_until:
            try:
                return await self._wait_by_all(kind, caller, requests)
            except (RedisError, OSError, TimeoutError) as error:
                logger.warning("web.fair_use_alone", error=type(error).__name__)
                self._alone_until = now + ALONE_SECONDS
        return self._wait_alone(kind, caller, requests)

    async def _wait_by_all(self, kind: bool, caller: str, requests: int) -> int | None:
        limit = self._limits[kind]
        if await self._shared.hit(limit, caller, cost=requests):
            return None
        ends, _ = await self._shared.get_window_stats(limit, caller)
        return min(MINUTE, math.ceil(ends - time.time()))

    def _wait_alone(self, kind: bool, caller: str, requests: int) -> int | None:
        count = self._alone.get(caller)
        if count is None:
            count = self._alone[caller] = [0]
        count[0] += requests
        return None if count[0] <= max(1, self._limits[kind].amount // ALONE_SHARE) else MINUTE


def _digest(credentials: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(credentials).encode("utf-8", "surrogatepass")).hexdigest()


def person_of(principal: Principal) -> str:
    """Who asks with a credential: a person, by whichever of their keys and tools; or by their browsers, which are
    counted apart: a tool that asks in a loop leaves its person the page on which they end it."""
    return f"{'browsers' if principal.source is Source.WEB_SESSION else 'person'}:{principal.user}"


def address_of(request: Request) -> str:
    """Who asks, where no key says it: an address, or the network of one of IPv6."""
    return f"address:{network_of(request.client.host if request.client is not None else '')}"


def network_of(host: str) -> str:
    """An address, or the network of one of IPv6; empty for what is none."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))
    return str(getattr(address, "ipv4_mapped", None) or address)
