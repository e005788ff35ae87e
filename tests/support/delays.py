"""Delays at random in the tests' own process: what two tasks do at once happens in orders that a quiet machine never
shows. A test that fails with them has a race, or shows one in the code."""

import asyncio
import os
import random
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import aiohttp
import asyncpg
import httpx
import redis.asyncio
from aiohttp import web

# What is delayed, before and after: statements, commands of the cache, requests to platforms and models.
DELAYED: Final[tuple[tuple[type, str], ...]] = (
    (asyncpg.Connection, "execute"),
    (asyncpg.Connection, "_execute"),
    (redis.asyncio.Redis, "execute_command"),
    (aiohttp.ClientSession, "_request"),
    (aiohttp.ClientWebSocketResponse, "receive"),
    (web.WebSocketResponse, "send_str"),
    (web.Application, "_handle"),
    (httpx.AsyncClient, "send"),
)
SHORT_SECONDS: Final = 0.004
LONG_SECONDS: Final = 0.04


def delay_everything(seed: str) -> None:
    """Delay from now on: half of all not at all, a fifth by some turns of the loop, most others by up to SHORT_SECONDS.
    The delays depend on the seed and the process; which task gets which one, on the machine."""
    chances = random.Random(f"{seed} {os.environ.get('PYTEST_XDIST_WORKER', '')}")

    async def delay() -> None:
        chance = chances.random()
        if 0.5 <= chance < 0.7:
            for _ in range(chances.randrange(1, 6)):
                await asyncio.sleep(0)
        elif chance >= 0.7:
            await asyncio.sleep(chances.random() * (SHORT_SECONDS if chance < 0.97 else LONG_SECONDS))

    def delayed(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def call(*arguments: Any, **options: Any) -> Any:
            await delay()
            result = await original(*arguments, **options)
            await delay()
            return result

        return call

    for owner, name in DELAYED:
        setattr(owner, name, delayed(getattr(owner, name)))
