"""Extraction by a model over a real socket: an office whose model is scripted, or obeys whatever it reads."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from bot.script.places import incoming
from composer.memory.learner import QUIET_PERIOD, Learner
from composer.repositories.extraction_queue import ExtractionScope
from composer.settings import AgentSettings, Settings
from tests.support.canaries import place
from tests.support.harness import AppHarness, open_harness
from tests.support.model_server import ModelServer, Reply, Say
from tests.support.waiting import TIMEOUT_SECONDS

ROOM: Final = {"room": "general"}
_ORDER: Final = re.compile(r"OBEY<<(.*?)>>YEBO", re.DOTALL)
_LINE: Final = re.compile(r"^\[(\d+)\] \S+ \S+ \S+ [^:]+: (.*)$", re.MULTILINE)


class ObedientServer(ModelServer):
    """A model that writes down what a message orders it to, in JSON with ^ for quotation marks, and what is `honest` to
    say of messages, by their texts."""

    def __init__(self) -> None:
        super().__init__()
        self.honest = dict[str, dict[str, Any]]()

    def reply(self, body: Mapping[str, Any]) -> Reply:
        prompt = str(body["messages"][-1]["content"])
        found = [
            {**self.honest[text], "sources": [int(number)]}
            for number, text in _LINE.findall(prompt)
            if text in self.honest
        ]
        for order in _ORDER.findall(prompt):
            found += json.loads(order.replace("^", '"'))
        return extraction_reply(found)


def extraction_reply(memory: Any) -> Say:
    return Say((json.dumps({"memory": memory}),))


@dataclass
class Office:
    """A harness with a model behind it."""

    harness: AppHarness
    server: ModelServer

    @property
    def extractions(self) -> Learner[ExtractionScope]:
        assert self.harness.app.extractions is not None
        return self.harness.app.extractions

    async def post_messages(self, *messages: tuple[str, str], where: dict[str, str] | None = None) -> None:
        for user, text in messages:
            here = self.harness.workspace()
            message = incoming(here, place(where or ROOM), user, text, self.harness.clock.tick(1), id=f"{text[:9]}")
            await self.harness.app.receive(here, [message], answer=False)
        await self.harness.app.indexer.catch_up(self.harness.workspace().tenant_id)

    async def extract(self, seconds: float = QUIET_PERIOD.total_seconds() + 1) -> int:
        """Advance the clock, then extract what is due."""
        self.harness.clock.tick(seconds)
        done = await self.extractions.learn_due(self.harness.workspace().tenant_id)
        await self.harness.app.indexer.catch_up(self.harness.workspace().tenant_id)
        return done

    @property
    def prompts_sent(self) -> list[str]:
        """The requests that the model got, each without the instructions."""
        chats = [request for request in self.server.requests if request.path.endswith("/chat/completions")]
        return [request.body["messages"][-1]["content"] for request in chats]

    async def rows(self, statement: str) -> list[Any]:
        connection = await asyncpg.connect(self.harness.app.settings.database_url)
        try:
            return [tuple(row) for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    async def texts(self) -> list[str]:
        return [row[0] for row in await self.rows("SELECT text FROM memories ORDER BY text")]

    async def waiting(self) -> int:
        [(count,)] = await self.rows("SELECT count(*) FROM extraction_queue")
        return int(count)


@asynccontextmanager
async def office_on(settings: Settings, server: ModelServer | None = None) -> AsyncIterator[Office]:
    async with server or ModelServer() as server:
        agents = (AgentSettings(model="m"),)
        update = {"openai_base_url": server.url, "agents": agents, "model_timeout": TIMEOUT_SECONDS}
        async with open_harness(settings.model_copy(update=update)) as harness:
            yield Office(harness, server)
