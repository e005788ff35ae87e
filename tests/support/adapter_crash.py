"""Nexus with one adapter, which kills its own process at a given step of a turn.

Run as `python -m tests.support.adapter_crash ADAPTER STEP OPTIONS`. OPTIONS is JSON: home, database_url, redis_url, and
the addresses of the platform. It writes `up` when it serves. A line on its input arms the step; then `planted` comes.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, Final

import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route
from pydantic import SecretStr

from bot.delivery import due_posts
from bot.discord.adapter import DiscordAdapter
from bot.slack.adapter import SlackAdapter
from composer.app import App, open_app
from composer.model import Agent, Usage
from composer.ports.models import ChatMessage, Chunk
from composer.repositories.deliveries import Deliveries
from composer.repositories.messages import Messages
from composer.repositories.turns import Turns
from composer.settings import Settings
from composer.stores.database.working_cache import RedisWorkingCache
from composer.turn.compose import Composer
from tests.support.crash import die, dying, queues_turns
from tests.support.embedder import HashedWords

# Every step at which a turn over a chat platform can be cut off, in its order.
STEPS: Final = (
    "receiving",  # the message and its turn are written, not committed: the platform has no acknowledgement
    "received",  # committed
    "composed",
    "streaming",  # the first words may be seen
    "storing",  # the answer is written, not committed
    "stored",  # committed, and not sent as a whole
    "posted",  # a part is posted, and that is not recorded
    "marking",  # the whole answer is posted, and it is not marked as sent
)
PIECES: Final = ("It is on a Friday, I recall, ", "and it was decided ", "by everyone.")


class Model:
    """Answers in three chunks; once `dies` is set, ends the process before the third one."""

    dies = False

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        for number, piece in enumerate(PIECES):
            if self.dies and number == 2:
                die()
            yield Chunk(text=piece)
        yield Chunk(usage=Usage(1, 1))


def plant(step: str, model: Model) -> None:
    """Make the process end at this step of the next turn."""
    match step:
        case "receiving":
            dying(Messages, "append", of=queues_turns)
        case "received":
            dying(RedisWorkingCache, "append", before=True)
        case "composed":
            dying(Composer, "compose")
        case "streaming":
            model.dies = True
        case "storing":
            dying(Turns, "store_answer")
        case "stored":
            dying(RedisWorkingCache, "append", before=True, call=2)
        case "posted":
            dying(Deliveries, "record_part", before=True)
        case "marking":
            dying(Turns, "mark_delivered", before=True)


def point_at(given: dict[str, Any]) -> None:
    """Make discord.py talk to the server of the test."""

    async def at_once(*_: Any, **__: Any) -> None:
        return None

    Route.BASE = given["api"]
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(given["gateway"])
    discord.Client.before_identify_hook = at_once  # type: ignore[method-assign]


def make_adapter(app: App, name: str, given: dict[str, Any]) -> DiscordAdapter | SlackAdapter:
    """The adapter as `nexus run` makes it, with other addresses and shorter pauses."""
    if name == "discord":
        point_at(given)
        return DiscordAdapter(app, first_wait=0.05)
    return SlackAdapter(app, base_url=given["base_url"], ping=1.0, first_wait=0.05, edit_interval=0.0)


def is_up(adapter: DiscordAdapter | SlackAdapter) -> bool:
    """Whether history was read and events are let through."""
    if isinstance(adapter, SlackAdapter):
        return adapter.reconciliation.completed > 0
    return len(adapter._inboxes) > 1 and all(box.is_released for box in adapter._inboxes.values())


async def main(name: str, step: str, given: dict[str, Any]) -> None:
    secrets = {key: SecretStr(value) for key, value in given["tokens"].items()}
    urls = {"database_url": given["database_url"], "redis_url": given["redis_url"]}
    settings = Settings(home=Path(given["home"]), **urls).model_copy(update=secrets)
    model = Model()
    async with open_app(settings, model=model, embedder=HashedWords()) as app:
        adapter = make_adapter(app, name, given)
        running = asyncio.create_task(adapter.run())
        looking = asyncio.create_task(due_posts.run(app, every=0.05))
        while not is_up(adapter):  # noqa: ASYNC110 (the adapter has no event for this)
            await asyncio.sleep(0.02)
        print("up", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            plant(line.strip() and step, model)
            print("planted", flush=True)
        looking.cancel()
        await adapter.stop()
        await running


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
