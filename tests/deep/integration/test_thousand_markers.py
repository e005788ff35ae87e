"""A thousand markers through every layer, half of them forgotten by every route: none of those is found anywhere, byte
by byte, in tables, cache, dump and files, and every other one still is."""

import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest

from bot.console import schedule
from bot.script.places import incoming, place_of
from composer.model import Agent, Attachment
from composer.ports.models import ChatMessage, Chunk
from composer.settings import AgentSettings, Settings
from composer.stores.embedded.service_account import binaries
from tests.support.api import bearer, key_of
from tests.support.embedder import HashedWords
from tests.support.erased_ids import find_remains
from tests.support.harness import AppHarness, open_harness

COUNT = 1_000
ROUTES = ("words", "message", "here", "everything", "deletion", "edit", "room", "user", "project", "opt-out", "off")
OF_MESSAGES = ("message", "deletion", "edit", "opt-out", "off")  # these reach nothing else
OF_ALL = ("room", "project")  # and these what everybody said there
WORDS = ("the word is", "I prefer", "decided to use", "filler2099", "in mind", "gus-words", "we use", "also")
FILLER = " ".join(f"filler{n}" for n in range(2_100))
MARKER = re.compile(r"zq[0-9]{4}[a-z]+")


class Paraphraser:
    """A model that answers and summarises with every marker that it is shown, in words of its own."""

    async def stream(self, agent: Agent, messages: list[ChatMessage]) -> AsyncIterator[Chunk]:
        shown = "\n".join(message.content for message in messages)
        markers = list(dict.fromkeys(MARKER.findall(shown)))
        yield Chunk(" ".join(f"It was {marker}." for marker in markers[-60:]))


@dataclass
class Markers:
    """Markers by the person whose they are. Those of a person who forgets must go, the others must stay."""

    forgotten: list[str]
    retained: list[str]
    _numbers: Iterator[int]

    def next(self, kind: str, *, forget: bool) -> str:
        marker = f"zq{next(self._numbers):04d}{kind}"
        (self.forgotten if forget else self.retained).append(marker)
        return marker


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),), "extraction": "pattern"})
    async with open_harness(plain, model=Paraphraser(), embedder=HashedWords()) as harness:
        yield harness


async def post(harness: AppHarness, user: str, room: str, texts: dict[str, str], file: str = "") -> list[str]:
    """Messages of a person in a room, by id, received together, with a long text file if `file`. Returns the ids."""
    at, place = harness.workspace(), place_of(room, None, None)
    attached = (Attachment(f"{file}.txt", "text/plain", f"{FILLER} {file}"),) if file else ()
    batch = [
        replace(incoming(at, place, user, text, harness.clock.tick(1), id=id), attachments=attached)
        for id, text in texts.items()
    ]
    await harness.app.receive(at, batch)
    return list(texts)


async def plant(
    harness: AppHarness,
    client: httpx2.AsyncClient,
    markers: Markers,
    route: str,
    user: str,
    *,
    forget: bool,
    each: int,
) -> list[str]:
    """What one person says and stores in the room of a route: `each` messages, long ones, files, facts, notes and
    landmarks, each with a marker. Returns the ids of the messages."""
    said = {f"{route}-{user}-{n}": f"the word is {markers.next('said', forget=forget)}" for n in range(each)}
    said[f"{route}-{user}-pref"] = f"I prefer {markers.next('pref', forget=forget)} tea in the morning"
    said[f"{route}-{user}-again"] = f"In the morning I prefer {markers.next('merged', forget=forget)} tea."
    said[f"{route}-{user}-decided"] = f"we decided to use {markers.next('decided', forget=forget)} for storage"
    said[f"{route}-{user}-long"] = f"{FILLER} {markers.next('tail', forget=forget)}"
    ids = await post(harness, user, route, said)
    ids += await post(harness, user, route, {f"{route}-{user}-file": "a file"}, markers.next("file", forget=forget))
    if route not in OF_MESSAGES:
        note, fact, pin = (markers.next(kind, forget=forget) for kind in ("note", "fact", "pin"))
        await harness.command(user, f"/nexus remember I keep {note} in mind", room=route)
        await harness.command(user, f'/nexus fact set {user} "{fact}"', room=route)
        await harness.command(user, f"/nexus landmark add we use {pin}", room=route)
    if route in ("words", "everything", "user"):  # entries are in no room
        await plant_entry(harness, client, markers, user, forget=forget)
    return ids


async def plant_entry(
    harness: AppHarness, client: httpx2.AsyncClient, markers: Markers, user: str, *, forget: bool
) -> None:
    """Entries that a person and their tools write over REST, with a marker in each of their parts: one that waits to
    be approved for a project among them."""
    await harness.command(user, f"/nexus project create of-{user}", dm="nexus")
    writes = ["entries:read", "entries:write", "projects:write"]
    for path, vendor, place in (
        ("/v1/entries", None, {}),
        ("/v1/agent/entries", "claude", {}),
        ("/v1/agent/entries", "cursor", {"project": f"of-{user}"}),
    ):
        kinds = ("content", "title", "tag", "key", "session", "name", "value")
        content, title, tag, key, session, name, value = (markers.next(kind, forget=forget) for kind in kinds)
        sent = {"content": f"I keep {content} in mind", "title": title, "tags": [tag], "key": key, "session": session}
        headers = bearer(await key_of(harness, user, vendor, writes))
        answer = await client.post(path, json={**sent, "metadata": {name: [value]}, **place}, headers=headers)
        assert answer.status_code == 201, answer.text
        assert answer.json()["pending"] == (vendor == "cursor")


async def forget(harness: AppHarness, markers: Markers, route: str, ids: list[str]) -> None:
    """Let gus forget, or have erased, all that is his in the room of a route."""
    room: dict[str, Any] = {"room": route}
    user = f"gus-{route}"
    match route:
        case "words":
            for words in WORDS:
                await harness.command(user, f"/nexus forget {words} --yes", **room)
        case "message":
            for id in ids:
                await harness.command(user, f"/nexus forget message {id} --yes", **room)
        case "here" | "everything":
            await harness.command(user, f"/nexus forget {route} --yes", **room)
        case "deletion" | "edit":
            for id in ids:
                await harness.change(id, None if route == "deletion" or id.endswith("file") else "never mind")
        case "opt-out" | "off":
            by, given = (user, "opt-out") if route == "opt-out" else ("root", "memory off")
            await harness.command(by, f"/nexus {given}", **room)
            for id in ids:
                await harness.change(id, f"something else {markers.next('new', forget=True)}")
        case "room":
            await harness.command("root", "/nexus erase room --yes", **room)
        case "project":
            await harness.command("root", "/nexus erase project project --yes", room="words")
        case "user":
            await harness.command("root", f"/nexus erase user {user} --yes", **room)


def dumped(settings: Settings) -> str:
    """Everything in the database, as pg_dump writes it."""
    command = [str(binaries().postgres / "pg_dump"), "--data-only", str.__str__(settings.database_url)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


async def test_of_a_thousand_markers_the_forgotten_half_is_nowhere_and_the_other_half_is_there(
    harness: AppHarness, client: httpx2.AsyncClient, settings: Settings
) -> None:
    markers = Markers([], [], iter(range(10_000)))
    at = harness.workspace()
    each, said = COUNT // 2 // len(ROUTES) - 8, list[str]()
    for route in ROUTES:
        await harness.command("root", "/nexus help", room=route)
        said += await plant(harness, client, markers, route, f"gus-{route}", forget=True, each=each)
        await plant(harness, client, markers, route, f"ann-{route}", forget=route in OF_ALL, each=each)
    await harness.command("root", "/nexus project create project", room="project")
    await harness.command("root", "/nexus project assign project --yes", room="project")
    while len(markers.retained) < COUNT // 2 or len(markers.forgotten) < COUNT // 2:
        forget_it = len(markers.forgotten) < COUNT // 2
        marker = markers.next("more", forget=forget_it)
        await post(harness, "gus-words" if forget_it else "ann-words", "words", {f"more-{marker}": f"also {marker}"})
    await harness.app.indexer.catch_up(at.tenant_id, embed=False)
    async with harness.app.database.transaction(at.tenant_id) as tx:
        root = await tx.people.find_user(at.platform, at.name, "root")
        assert root is not None
        await tx.people.set_admin(root.id, True)
    harness.clock.tick(30 * 3600)
    assert (await schedule.run(harness.app, "day", harness.clock.now())).done
    for route in ROUTES:
        await harness.ask("bob", "@nexus what was it?", room=route)
        await harness.ask("carol", "@nexus what did you say?", room=route)
    planted = await find_remains(settings, *markers.forgotten, *markers.retained)
    assert planted.keys() == {*markers.forgotten, *markers.retained}
    seen = {place for places in planted.values() for place in places}
    assert seen >= {"messages.text", "memories.text", "facts.value", "landmarks.text", "summaries.text", "turns.prompt"}
    assert seen >= {f"memories.{part}" for part in ("title", "content", "tags", "key", "session", "metadata")}
    assert "quarantine.entry" in seen

    for route in ROUTES:
        await forget(harness, markers, route, [id for id in said if id.startswith(f"{route}-gus")])
    await harness.app.indexer.catch_up(at.tenant_id, embed=False)

    remains = await find_remains(settings, *markers.forgotten, *markers.retained)
    assert sorted(set(remains) & set(markers.forgotten)) == []
    assert sorted(set(markers.retained) - remains.keys()) == []
    found = set(MARKER.findall(dumped(settings)))
    assert found & set(markers.forgotten) == set()
    assert found >= set(markers.retained)
