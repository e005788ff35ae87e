"""An app whose agent asks a scripted model server that calls tools."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from composer.repositories.turns import Answer
from composer.settings import AgentSettings, Settings
from tests.support.harness import AppHarness, open_harness
from tests.support.model_server import ModelServer, Say
from tests.support.model_server import Reply as ScriptedReply

LAB: Final[dict[str, Any]] = {"room": "lab"}
DM: Final[dict[str, Any]] = {"dm": "nexus"}


@dataclass(frozen=True)
class Office:
    """An app whose agent asks a scripted model server."""

    harness: AppHarness
    server: ModelServer

    async def ask(self, user: str, text: str, *steps: ScriptedReply, **place: Any) -> Answer:
        """Ask; the model's steps are scripted, and then it says "Done."."""
        self.server.script.extend((*steps, Say(("Done.",))))
        return await self.harness.ask(user, text, **place)

    @property
    def last_results(self) -> list[str]:
        """What the tools returned to the model in its last request."""
        return [m["content"] for m in self.server.requests[-1].body["messages"] if m["role"] == "tool"]

    def offered(self, request: int = -1) -> list[str]:
        """The names of the tools that a request to the model offers."""
        return [tool["function"]["name"] for tool in self.server.requests[request].body.get("tools", ())]

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(self.harness.app.settings.database_url)
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    async def chatter(self, **place: Any) -> None:
        """Enough messages that those before are in nobody's view any more."""
        await self.harness.say_all("bob", [f"nothing new {number}" for number in range(60)], **place)


@asynccontextmanager
async def opened(settings: Settings, **agent: Any) -> AsyncIterator[Office]:
    async with ModelServer() as server:
        agents = (AgentSettings(model="m", **agent),)
        update = {"openai_base_url": server.url, "agents": agents, "prices": {}}
        async with open_harness(settings.model_copy(update=update)) as harness:
            yield Office(harness, server)


def call(name: str, **arguments: Any) -> Say:
    return Say((), calls=[(name, arguments)])


def prompt_of(reply: Answer) -> Mapping[str, Any]:
    prompt: dict[str, Any] = json.loads(reply.prompt or "{}")
    return prompt
