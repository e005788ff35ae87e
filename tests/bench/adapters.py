"""Delay that the chat adapters add to an answer, and how fast they receive: the real SDKs with servers of our own.

Those servers and the model's run in the same process and share its time, so all figures are rather too high. On a
machine with other load, `best` and the CPU time are the most reliable figures.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import asyncpg
import discord
import numpy as np
import yarl
from aiohttp import web
from discord.gateway import DiscordWebSocket
from discord.http import Route
from pydantic import SecretStr

from bot.discord.adapter import DiscordAdapter
from bot.slack.adapter import SlackAdapter
from composer.app import App, open_app
from composer.model import Workspace
from composer.settings import Settings
from composer.stores.embedded.servers import Servers
from tests.bench.report import Report, quantile
from tests.bench.world import Vocabulary, data_folder, stores
from tests.support.discord.rest import Call
from tests.support.discord.server import DiscordServer
from tests.support.model_server import Hang, ModelServer, Say
from tests.support.slack.server import SlackServer

ROOMS: Final = 50
SEEDED: Final = 20  # messages in each room before the first question
MENTIONS: Final = 40
MENTION_EVERY: Final = 0.5  # seconds, over all rooms
TALK_EVERY: Final = 5.0  # seconds between messages that address no agent, in each busy room
LISTENED: Final = 3_000
IN_FLIGHT: Final = 150  # events that wait for their acknowledgement: Slack sends any number
STILL: Final = 20.0  # seconds without a further message after which missing ones count as lost
SHARES: Final = ("in best", "in p50", "in p95", "out best", "out p50", "out p95")
AIMS: Final = "aims at p50: 25 ms and 10 ms"
_MARK: Final = re.compile(r"ask\d{5}")


@dataclass
class Watch:
    """Times (perf_counter seconds) of each step of each question, by the question's mark."""

    heard: dict[str, float] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)
    shown: dict[str, float] = field(default_factory=dict)
    count: int = 0

    def question(self, text: str) -> str:
        """Make a question with a mark of its own and start its time."""
        self.count += 1
        mark = f"ask{self.count:05}"
        self.heard[mark] = time.perf_counter()
        return f"{text} {mark}"

    def note_shown(self, text: str) -> None:
        """Record that a text is visible on the platform."""
        for mark in _MARK.findall(text):
            self.shown.setdefault(mark, time.perf_counter())

    def spans(self) -> tuple[list[float], list[float]]:
        """Return the milliseconds from event to model, and from the answer to the platform; of complete answers."""
        whole = [mark for mark in self.heard if mark in self.shown and mark in self.asked]
        return (
            [1000 * (self.asked[mark] - self.heard[mark]) for mark in whole],
            [1000 * (self.shown[mark] - self.answered[mark]) for mark in whole],
        )


class TimedModel(ModelServer):
    """Answers each question with its mark."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        now = time.perf_counter()
        body = await request.json()
        for mark in _MARK.findall(body["messages"][-1]["content"])[
            -1:
        ]:  # extraction calls the same model, without a mark
            self._watch.asked[mark] = now
        return await super()._chat(request)

    async def _streamed(self, request: web.Request, body: Mapping[str, Any], reply: Say | Hang) -> web.StreamResponse:
        marks = _MARK.findall(body["messages"][-1]["content"])
        if not marks:
            return await super()._streamed(request, body, reply)
        mark = marks[-1]
        pieces = (f"To {mark}: it is on Friday, as was decided in the meeting of last week. ", "Bring a hat.")
        self._watch.answered[mark] = time.perf_counter()
        return await super()._streamed(request, body, Say(pieces))


@dataclass
class Platform:
    """A platform with one bot and `rooms`; `say` posts as a person, `mention` mentions the bot."""

    name: str
    app: App
    workspace: Workspace
    rooms: Sequence[Any]
    say: Callable[[Any, str], Awaitable[None]]
    mention: str


Opening = Callable[[Settings, Watch, bool], AbstractAsyncContextManager[Platform]]


@asynccontextmanager
async def on_slack(settings: Settings, watch: Watch, index: bool) -> AsyncIterator[Platform]:
    """Slack, by Socket Mode."""
    async with SlackServer() as slack:
        team = await slack.add_team()
        alice = await slack.add_user(team, "alice")
        rooms = [await slack.add_channel(team, f"room{number}", [alice]) for number in range(ROOMS)]
        answer = slack.api.answer

        def answered(method: str, secret: str, args: Any) -> Any:
            if method.startswith("chat."):
                watch.note_shown(str(dict(args)))
            return answer(method, secret, args)

        slack.api.answer = answered  # type: ignore[method-assign]
        tokens = {"slack_bot_token": SecretStr(team.bot_token), "slack_app_token": SecretStr(slack.app_token)}

        async def say(channel: str, text: str) -> None:
            while slack.outbox._sending >= IN_FLIGHT:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            await slack.post(channel, alice, text)

        async with open_app(settings.model_copy(update=tokens), index=index) as app:
            adapter = SlackAdapter(app, base_url=slack.base_url, report=print)
            serving = asyncio.create_task(adapter.run())
            await slack.wait_for(lambda: slack.outbox.connections and adapter.reconciliation.completed)
            try:
                yield Platform("Slack", app, await adapter.inbox.workspace(), rooms, say, f"<@{team.bot_user}>")
            finally:
                await app.turns.stop()
                await adapter.stop()
                await asyncio.wait([serving], timeout=20)


@asynccontextmanager
async def on_discord(settings: Settings, watch: Watch, index: bool) -> AsyncIterator[Platform]:
    """Discord, over its gateway."""

    async def at_once(*_: Any, **__: Any) -> None:
        return None

    async with DiscordServer() as server:
        kept = (Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY, discord.Client.before_identify_hook)
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = server.api, yarl.URL(server.gateway_url)
        discord.Client.before_identify_hook = at_once  # type: ignore[method-assign]
        guild = await server.add_guild()
        alice = await server.add_member(guild, "alice")
        rooms = [await server.add_channel(guild, f"room{number}") for number in range(ROOMS)]
        perform = server.rest.perform

        def performed(request: web.Request, call: Call, handler: Any) -> web.Response:
            if call.route.endswith("/messages"):
                watch.note_shown(str(call.form.get("content")))
            return perform(request, call, handler)

        server.rest.perform = performed  # type: ignore[method-assign]

        async def say(channel: Any, text: str) -> None:
            await server.post(channel, alice, text)
            await asyncio.sleep(0)

        with_token = settings.model_copy(update={"discord_token": SecretStr(server.token)})
        async with open_app(with_token, index=index) as app:
            adapter = DiscordAdapter(app)
            serving = asyncio.create_task(adapter.run())
            while len(adapter._inboxes) < 2 or not all(box.is_released for box in adapter._inboxes.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            workspace = app.directory.workspace("discord", str(guild.id))
            try:
                yield Platform("Discord", app, workspace, rooms, say, f"<@{server.bot.id}>")
            finally:
                await app.turns.stop()
                await adapter.stop()
                await serving
                Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = kept[0], kept[1]
                discord.Client.before_identify_hook = kept[2]  # type: ignore[method-assign]


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Measure both platforms: mentions with one and with fifty busy rooms, then messages at the highest rate."""
    report = Report("adapters")
    added: list[list[object]] = []
    heard: list[list[object]] = []
    with data_folder() as home:
        async with stores(home) as servers:
            for name, opening in (("slack", on_slack), ("discord", on_discord)):
                await _mentions(name, opening, home, servers, quick, note, added)
                await _listening(name, opening, home, servers, quick, note, heard)
    for row in added:
        report.figures[f"{row[0]}, {row[1]} busy"] = dict(zip(("n", *SHARES), row[2:], strict=True))
    for row in heard:
        report.figures[f"{row[0]} listening"] = {"sent": row[1], "stored": row[2], "a second": row[3], "cpu_ms": row[4]}
    report.table(
        f"milliseconds that an adapter adds to a mention ({AIMS})",
        ["platform", "busy rooms", "answered", *SHARES],
        added,
    )
    report.table(
        "listening (aim: 1,000 a second, none lost)", ["platform", "said", "stored", "a second", "CPU ms each"], heard
    )
    return report


async def _settings(home: Path, servers: Servers, name: str, model: str = "") -> Settings:
    connection = await asyncpg.connect(servers.database_url)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    url = servers.database_url.replace("/nexus?", f"/{name}?")
    api = (
        {
            "openai_base_url": model,
            "openai_api_key": SecretStr("bench"),
            "agents": [{"slug": "nexus", "model": "bench"}],
        }
        if model
        else {}
    )
    return Settings.model_validate({"home": home, "database_url": url, "redis_url": servers.redis_url, **api})


async def _mentions(
    name: str,
    opening: Opening,
    home: Path,
    servers: Servers,
    quick: bool,
    note: Callable[[str], None],
    rows: list[list[object]],
) -> None:
    """Ask in rooms that have some history, while people write there; everything is enabled, as in `nexus run`."""
    vocabulary, random = Vocabulary(), np.random.default_rng(1)
    watch = Watch()
    async with TimedModel(watch) as model:
        settings = await _settings(home, servers, f"{name}_mentions", model.url)
        async with opening(settings, watch, True) as platform:
            seeded = 2 if quick else SEEDED
            note(f"{platform.name}: {seeded * ROOMS:,} messages of history")
            for room in [*platform.rooms] * seeded:
                await platform.say(room, vocabulary.text(random))
            await _stored(platform, seeded * ROOMS)
            await platform.app.indexer.catch_up(platform.workspace.tenant_id)
            for busy in (1, ROOMS):
                note(f"{platform.name}: mentions, {busy} busy")
                watch.heard.clear()
                await _ask(platform, watch, platform.rooms[:busy], 10 if quick else MENTIONS, vocabulary, random)
                into, out = watch.spans()
                shares = [quantile(values, share) for values in (into, out) for share in (0, 0.5, 0.95)]
                rows.append([platform.name, busy, f"{len(into)} of {len(watch.heard)}", *shares])


async def _ask(
    platform: Platform,
    watch: Watch,
    rooms: Sequence[Any],
    count: int,
    vocabulary: Vocabulary,
    random: np.random.Generator,
) -> None:
    async def talk() -> None:
        for room in cycle(rooms):
            await platform.say(room, vocabulary.text(random))
            await asyncio.sleep(TALK_EVERY / len(rooms))

    talking = asyncio.create_task(talk())
    for room in islice(cycle(rooms), count):
        text = f"{platform.mention} what of {vocabulary.text(random, 3, 6)}"
        await asyncio.sleep(MENTION_EVERY)
        await platform.say(room, watch.question(text))
        if len(rooms) == 1:  # turns of one room wait for each other, which is not to be measured
            await _shown(watch)
            await platform.app.turns.settle()
    await _shown(watch)
    talking.cancel()
    await asyncio.gather(talking, return_exceptions=True)
    await platform.app.turns.settle()


async def _shown(watch: Watch) -> None:
    """Wait until every question has an answer, or no more answers come."""
    shown, since = 0, time.perf_counter()
    while not watch.heard.keys() <= watch.shown.keys() and time.perf_counter() - since < STILL:
        await asyncio.sleep(0.005)
        if len(watch.shown) > shown:
            shown, since = len(watch.shown), time.perf_counter()


async def _stored(platform: Platform, count: int) -> int:
    """Wait until so many messages are stored, or no more arrive; return how many are."""
    connection = await asyncpg.connect(platform.app.settings.database_url)
    try:
        stored, since = 0, time.perf_counter()
        while stored < count and time.perf_counter() - since < STILL:
            await asyncio.sleep(0.02)
            now = await connection.fetchval("SELECT count(*) FROM messages WHERE agent_id IS NULL")
            if now > stored:
                stored, since = now, time.perf_counter()
    finally:
        await connection.close()
    return stored


async def _listening(
    name: str,
    opening: Opening,
    home: Path,
    servers: Servers,
    quick: bool,
    note: Callable[[str], None],
    rows: list[list[object]],
) -> None:
    """Post as many messages as the adapter receives, over all rooms; indexing follows and is not measured."""
    vocabulary, random = Vocabulary(), np.random.default_rng(2)
    count = 500 if quick else LISTENED
    texts = [vocabulary.text(random) for _ in range(count)]
    async with opening(await _settings(home, servers, f"{name}_listening"), Watch(), False) as platform:
        note(f"{platform.name}: listening to {count:,} messages")
        started, spent = time.perf_counter(), time.process_time()
        for room, text in zip(cycle(platform.rooms), texts):
            await platform.say(room, text)
        stored = await _stored(platform, count)
        rate = round(stored / (time.perf_counter() - started))
        rows.append([platform.name, count, stored, rate, 1000 * (time.process_time() - spent) / count])
