"""Secrets planted in every place and layer are shown on every surface to those who may read them, and to nobody else.

The tables below list every surface by every operation: a command, a flag or an option that is not classified fails.
"""

import asyncio
import itertools
import json
import re
import shutil
import tempfile
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx2
import pytest
import redis
import typer
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.commands.table import COMMANDS
from bot.console import schedule
from bot.console.command_line import cli
from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.errors import NexusError
from composer.memory.extraction import BatchRules, ConversationSource
from composer.memory.learner import Learner
from composer.model import Agent
from composer.ports.extraction import ExtractedStatement, Extractor, MessageBatch
from composer.ports.models import ChatMessage, Chunk, Tool, ToolCall
from composer.repositories.extraction_queue import ExtractionScope
from composer.settings import AgentSettings, RetrievalSettings, Settings
from composer.stores.embedded.servers import Servers
from composer.stores.models.tokens import tokenizer_for
from composer.summaries.tiers import TIERS
from composer.tasks.shares import Places
from jobs.schedule import JOBS
from tests.support.api import bearer, cookie_of, key_of
from tests.support.canaries import (
    KEY,
    LAYERS,
    OWN_RUN,
    OWN_TALK,
    POOLED,
    PROJECTS,
    TOPIC,
    VIEWERS,
    ScriptedModel,
    Viewer,
    World,
    belongs,
    build_world,
    tokens,
)
from tests.support.databases import database_url, run_sql
from tests.support.harness import AppHarness, open_harness
from tests.support.mcp_office import Wiki, at, serving
from tests.support.pages import Person
from tests.support.program import Program
from tests.support.web import served_at

# Large enough that one question recalls everything readable.
RETRIEVAL: Final = RetrievalSettings(top_k=100, recall_tokens=50_000)
AGENTS: Final = (AgentSettings(), AgentSettings(slug="sage", name="Sage"))
TOML: Final = """
[retrieval]
top_k = 100
recall_tokens = 50000
[[agents]]
slug = "nexus"
[[agents]]
slug = "sage"
name = "Sage"
"""
AUDIT_KEY: Final = "the same key in every data folder of this test"
PRIVATE_NAMES: Final = {"cave": {"alice", "bob"}, "hangar": {"dave"}, "bunker": {"dave"}}
_clones = itertools.count(1)


@dataclass(frozen=True)
class PlantedWorld:
    """The world and its database, of which each test gets a copy."""

    world: World
    servers: Servers

    def settings(self, url: str, home: Path) -> Settings:
        return Settings(
            home=home,
            database_url=url,
            redis_url=self.servers.redis_url,
            agents=AGENTS,
            retrieval=RETRIEVAL,
            audit_key=SecretStr(AUDIT_KEY),
        )

    async def admin(self, statement: str) -> None:
        connection = await asyncpg.connect(self.servers.database_url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    @asynccontextmanager
    async def copy(self) -> AsyncIterator[str]:
        """The URL of a copy of the world's database, beside an empty cache."""
        name = f"canaries{next(_clones)}"
        redis.Redis.from_url(self.servers.redis_url).flushall()
        await self.admin(f"CREATE DATABASE {name} TEMPLATE canaries STRATEGY file_copy")
        try:
            yield database_url(self.servers.database_url, name)
        finally:
            await self.admin(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def planted(servers: Servers) -> Iterator[PlantedWorld]:
    made = PlantedWorld(World(), servers)
    home = Path(tempfile.mkdtemp(prefix="nexus-canaries-"))

    async def build() -> World:
        await made.admin("CREATE DATABASE canaries TEMPLATE template STRATEGY file_copy")
        redis.Redis.from_url(servers.redis_url).flushall()
        model = ScriptedModel()
        settings = made.settings(database_url(servers.database_url, "canaries"), home)
        async with open_harness(settings, model=model) as harness:
            return await build_world(harness, model)

    made.world.all.extend(asyncio.run(build()).all)
    yield made
    asyncio.run(made.admin("DROP DATABASE canaries WITH (FORCE)"))
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
async def harness(planted: PlantedWorld, tmp_path: Path) -> AsyncIterator[AppHarness]:
    """A harness over a copy of the world, with the offline model; its clock is later than every message."""
    async with planted.copy() as url, open_harness(planted.settings(url, tmp_path)) as harness:
        harness.clock.tick(90 * 24 * 3600)
        yield harness


@pytest.fixture
async def program(planted: PlantedWorld, tmp_path: Path) -> AsyncIterator[Program]:
    """The real program on a copy of the world."""
    (tmp_path / "nexus.toml").write_text(TOML)
    async with planted.copy() as url:
        settings = {
            "NEXUS_DATABASE_URL": url,
            "NEXUS_REDIS_URL": planted.servers.redis_url,
            "NEXUS_HOME": str(tmp_path),
            "NEXUS_AUDIT_KEY": AUDIT_KEY,
        }
        yield Program(tmp_path, settings)


def prompt_text(prompt: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in prompt["role_messages"])


def place_of_viewer(viewer: Viewer) -> dict[str, str]:
    """A viewer's place as scripts and batches name it."""
    return {"workspace": viewer.spot.workspace, "user": viewer.user, **viewer.where}


async def output_of(harness: AppHarness, viewer: Viewer, text: str) -> str:
    """What a command answers a viewer, or the error that refuses it."""
    try:
        answer = await harness.command(viewer.user, text, workspace=viewer.spot.workspace, **viewer.where)
    except NexusError as error:
        return str(error)
    parts = "".join(f"\n{part}" for section in answer.sections for part in section.sources)
    return answer.text + parts + ("" if answer.file is None else answer.file.text)


# --- prompts and answers ---------------------------------------------------------------------------------------------


async def test_a_prompt_contains_every_secret_that_its_viewer_may_read_and_no_other(
    harness: AppHarness, planted: PlantedWorld
) -> None:
    wrong = {}
    for viewer in VIEWERS:
        composed = await harness.compose(viewer.user, viewer.question, workspace=viewer.spot.workspace, **viewer.where)
        text = prompt_text(composed.prompt.as_json())
        wrong[viewer.name] = planted.world.difference(tokens(text), planted.world.expected(viewer))
        # The listed sources contain the same secrets as the text.
        assert tokens(composed.prompt.as_text()) == tokens(text)
    assert {name: problems for name, problems in wrong.items() if problems} == {}


# The spots of the rooms that the person of each DM is in.
JOINED: Final = {
    "alice's dm": {"cave", "private thread"},
    "alice's dm with sage": {"cave", "private thread"},
    "bob's dm": {"general", "thread of general", "cave"},
    "zed's dm": set[str](),
    "dave's dm": {"apollo", "rocket", "hangar", "bunker"},
    "erin's dm": {"mars", "phobos"},
    "umbrella dm": {"umbrella general"},
}


async def test_a_dm_that_is_open_to_rooms_contains_what_those_of_its_person_recall_and_no_more(
    harness: AppHarness, planted: PlantedWorld
) -> None:
    wrong = {}
    viewers = [viewer for viewer in VIEWERS if "dm" in viewer.where]
    assert {viewer.spot.name for viewer in viewers} == set(JOINED)
    for viewer in viewers:
        await output_of(harness, viewer, "/nexus rooms on")
        composed = await harness.compose(viewer.user, viewer.question, workspace=viewer.spot.workspace, **viewer.where)
        expected = planted.world.expected(viewer) | {
            canary.token: f"{canary.layer} of {canary.spot.name}, opened"
            for canary in planted.world.all
            if canary.spot.name in JOINED[viewer.spot.name] and canary.layer in POOLED and canary.reach == "here"
        }
        wrong[viewer.name] = planted.world.difference(tokens(prompt_text(composed.prompt.as_json())), expected)
    for viewer in VIEWERS:  # nobody sees more anywhere else
        if viewer not in viewers:
            where, text = {"workspace": viewer.spot.workspace, **viewer.where}, viewer.question
            shown = tokens(prompt_text((await harness.compose(viewer.user, text, **where)).prompt.as_json()))
            wrong[viewer.name] = planted.world.difference(shown, planted.world.expected(viewer))
    assert {name: problems for name, problems in wrong.items() if problems} == {}


async def test_a_question_with_the_token_of_a_secret_recalls_it_only_for_those_who_may_read_it(
    harness: AppHarness, planted: PlantedWorld
) -> None:
    wrong = {}
    all_tokens = [canary.token for canary in planted.world.all]
    # A query has a limited number of terms. All viewers ask the same ones, of which each is embedded once.
    questions = [" ".join(all_tokens[start : start + 30]) for start in range(0, len(all_tokens), 30)]
    for viewer in VIEWERS:
        found: set[str] = set()
        for question in questions:
            composed = await harness.compose(viewer.user, question, workspace=viewer.spot.workspace, **viewer.where)
            for section in composed.prompt.sections:
                if section.name != "MESSAGE":
                    found |= tokens(section.text)
        expected = planted.world.expected(viewer)
        wrong[viewer.name] = [p for p in planted.world.difference(found, expected) if p.startswith("LEAKED")]
    assert {name: problems for name, problems in wrong.items() if problems} == {}


async def test_a_turn_with_its_answer_and_explanation_contains_the_readable_secrets(
    harness: AppHarness, planted: PlantedWorld
) -> None:
    wrong = {}
    quoting = 0
    for viewer in VIEWERS:
        expected = planted.world.expected(viewer)
        reply = await harness.ask(viewer.user, viewer.question, workspace=viewer.spot.workspace, **viewer.where)
        assert reply.prompt is not None
        problems = planted.world.difference(tokens(prompt_text(json.loads(reply.prompt))), expected)
        problems += planted.world.difference(tokens(reply.prompt), expected)
        answered = tokens(reply.text)
        quoting += bool(answered)
        problems += [p for p in planted.world.difference(answered, expected) if p.startswith("LEAKED")]
        exact = planted.world.difference(tokens(await output_of(harness, viewer, "/nexus why --prompt")), expected)
        problems += [f"why --prompt {problem}" for problem in exact]
        explained = tokens(await output_of(harness, viewer, "/nexus why --details"))
        problems += [f"why {p}" for p in planted.world.difference(explained, expected) if p.startswith("LEAKED")]
        recalled = planted.world.expected(viewer, (*POOLED, *OWN_RUN))
        in_view = {c.token for c in planted.world.all if c.layer in IN_VIEW and c.spot is viewer.spot}
        problems += [f"why lacks {recalled[token]}" for token in set(recalled) - explained - in_view]
        wrong[viewer.name] = problems
    assert {name: problems for name, problems in wrong.items() if problems} == {}
    assert quoting == len(VIEWERS), "the answers quoted nothing, so they were not tested"


class Betraying(ScriptedModel):
    """A model that recalls all that it can, and sends every secret that it reads to a tool server, offered or not."""

    def takes_tools(self, agent: Agent) -> bool:
        return True

    async def stream_with_tools(
        self, agent: Agent, messages: Sequence[ChatMessage], tools: Sequence[Tool]
    ) -> AsyncGenerator[Chunk, None]:
        returned = sum(message.role == "tool" for message in messages)
        if returned > 1:
            yield Chunk(text=self.line)
            return
        read = sorted(tokens("\n".join(message.words for message in messages)))
        calls = [("recall", TOPIC)] if not returned else [("wiki__search", " ".join(read))]
        yield Chunk(calls=tuple(ToolCall(name, name, json.dumps({"query": words})) for name, words in calls))


# The spots where everybody of the organisation may read all of the prompt.
OPEN_TO_ALL: Final = {"general", "thread of general", "random", "gemini"}


async def test_a_model_that_betrays_all_that_it_reads_betrays_nothing_private_to_a_tool_server(
    planted: PlantedWorld, tmp_path: Path
) -> None:
    wrong, reached = {}, set[str]()
    agents = tuple(agent.model_copy(update={"model": "m", "tool_tokens": 50_000}) for agent in AGENTS)
    async with planted.copy() as url, serving(Wiki().add("search")) as wiki:
        settings = planted.settings(url, tmp_path)
        given = {"agents": agents, "mcp": {"wiki": at(wiki, "search", tenants=("acme", "umbrella"))}}
        async with open_harness(settings.model_copy(update=given), model=Betraying()) as harness:
            harness.clock.tick(90 * 24 * 3600)
            for viewer in VIEWERS:
                wiki.calls.clear()
                await harness.ask(viewer.user, viewer.question, workspace=viewer.spot.workspace, **viewer.where)
                sent = tokens(json.dumps([arguments for _, arguments in wiki.calls]))
                reached |= sent
                open_to_all = viewer.spot.name in {*OPEN_TO_ALL, "umbrella general"}
                expected = planted.world.expected(viewer) if open_to_all else {}
                wrong[viewer.name] = planted.world.difference(sent, expected)
    assert {name: problems for name, problems in wrong.items() if problems} == {}
    told = {canary.token: canary for canary in planted.world.all if canary.token in reached}
    assert {told[token].spot.name for token in reached if told[token].reach == "here"} == {
        *OPEN_TO_ALL,
        "umbrella general",
    }


# --- the table of commands -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Probe:
    """How a command is tested: its calls in order, the layers whose secrets they show, and its flags.

    Without layers, it shows no secret to anyone. `changes`: it changes the world and is therefore tested last. `own`:
    it shows what its caller owns wherever that was told, which a test of its own covers. `some`: it shows some of its
    layers' secrets, as an answer does.
    """

    texts: tuple[str, ...]
    shows: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    changes: bool = False
    own: bool = False
    some: bool = False


SCOPE_FLAGS: Final = frozenset({"everywhere", "project", "global"})
ON_FLAG: Final = frozenset({"on"})
PROBES: Final = {
    "help": Probe(("help",)),
    "agents": Probe(("agents",)),
    "recall": Probe((f"recall {TOPIC}", f"recall where is the {TOPIC}?"), shows=POOLED, flags=ON_FLAG),
    "fact get": Probe((f"fact get {KEY}", "fact get no_such_key"), shows=("fact",), flags=ON_FLAG),
    "fact list": Probe(("fact list", "fact list --on 2026-06-01"), shows=("fact",), flags=ON_FLAG),
    "fact history": Probe((f"fact history {KEY}", "fact history no_such_key"), shows=("fact",)),
    "landmark list": Probe(("landmark list", "landmark list --retired"), ("landmark",), frozenset({"retired"})),
    "landmark accept": Probe(("landmark accept 00000000", "landmark accept")),
    "landmark amend": Probe(("landmark amend 00000000 nothing", "landmark amend")),
    "landmark retire": Probe(("landmark retire 00000000", "landmark retire")),
    "compact": Probe(("compact", "compact no_such_agent")),
    "project list": Probe(("project list",)),
    "project member": Probe(("project member list apollo", "project member add apollo alice", "project member")),
    "project accept": Probe(("project accept apollo", "project accept")),
    "project decline": Probe(("project decline apollo", "project decline")),
    "project leave": Probe(("project leave no_such", "project leave"), flags=frozenset({"yes"})),
    "project create": Probe(("project create apollo", "project create"), flags=frozenset({"isolated"})),
    "project assign": Probe(("project assign no_such", "project assign"), flags=frozenset({"pool", "yes"})),
    "settings": Probe(("settings", "settings top_k", "settings nothing")),
    "audit": Probe(("audit",)),
    "usage": Probe(
        ("usage", "usage --by room", "usage --everyone --by person"),
        flags=frozenset({"everyone", "by", "since", "until"}),
    ),
    "history": Probe((f"history {TOPIC}", "history")),
    "why": Probe(
        ("why", "why no_such_message", "why no_such_message --details", "why no_such_message --prompt"),
        flags=frozenset({"details", "prompt"}),
    ),
    "ask": Probe((f"ask {TOPIC}", f"what do you know about {TOPIC}?"), shows=LAYERS, some=True),
    "memory": Probe(("memory", "memory sometimes")),
    "memory pending": Probe(("memory pending",)),
    "memory approve": Probe(("memory approve 00000000", "memory approve"), flags=frozenset({"yes"})),
    "memory reject": Probe(("memory reject 00000000", "memory reject")),
    # What is by somebody is shown to the admins of a place alone (test_quarantine.py).
    "memory by": Probe(("memory by nobody", "memory by")),
    "memory undo": Probe(("memory undo nobody", "memory undo"), flags=frozenset({"yes", "since"})),
    "link": Probe(("link", "link WRONG234"), flags=frozenset({"yes"})),
    "unlink": Probe(("unlink",)),
    "keys create": Probe(("keys create claude", "keys create claude --yes"), flags=frozenset({"expires", "yes"})),
    "keys list": Probe(("keys list",)),
    "keys revoke": Probe(("keys revoke 00000000", "keys revoke")),
    "login": Probe(("login",)),
    "rooms": Probe(("rooms", "rooms on", "rooms", "rooms off", "rooms sometimes"), changes=True),
    "remind me": Probe(("remind me in 20 minutes a plain sentence", "remind me"), changes=True),
    "remind here": Probe(("remind here in 20 minutes a plain sentence", "remind here"), changes=True),
    "follow": Probe(("follow", "follow off", "follow on", "follow sometimes"), changes=True),
    "digest": Probe(("digest", "digest daily 7", "digest off", "digest sometimes"), changes=True),
    # What it shows is cut to a length: that it leaks nothing is a test of its own.
    "catch-up": Probe(("catch-up 2026-01-01", "catch-up", "catch-up sometimes"), own=True),
    "remind list": Probe(("remind list",)),
    "remind cancel": Probe(("remind cancel 00000000", "remind cancel")),
    "privacy": Probe(("privacy",)),
    "export": Probe(("export",), own=True),
    "share": Probe(("share", "share 00000000 everywhere"), flags=frozenset({"yes"}), own=True),
    "opt-out": Probe(("opt-out",), changes=True),
    "opt-in": Probe(("opt-in",), changes=True),
    "timezone": Probe(("timezone", "timezone Berlin", "timezone Atlantis", "timezone off"), changes=True),
    "remember": Probe(("remember a plain sentence", "remember"), flags=SCOPE_FLAGS | {"yes"}, changes=True),
    "fact set": Probe(  # it names other values of the same key that hold here
        (f"fact set {KEY} 1", f"fact set {KEY} {{"),
        shows=("fact",),
        flags=SCOPE_FLAGS | {"yes"},
        changes=True,
        some=True,
    ),
    "landmark add": Probe(("landmark add a plain decision", "landmark add"), flags=SCOPE_FLAGS | {"yes"}, changes=True),
    "project unassign": Probe(("project unassign", "project unassign --yes"), flags=frozenset({"yes"}), changes=True),
    "forget": Probe(
        (
            *("forget no such words", "forget message no_such", "forget here", "forget everything"),
            *(f"forget {TOPIC}", "forget here --yes", "forget everything --yes"),
        ),
        flags=frozenset({"yes", "since", "until", "leave"}),
        changes=True,
        own=True,
    ),
    # Without --yes they only count, for those who may; with it, they would empty the world (test_erasure.py).
    "erase room": Probe(("erase room",), flags=frozenset({"yes", "since", "until"}), changes=True),
    "erase user": Probe(("erase user nobody",), flags=frozenset({"yes", "since", "until"}), changes=True),
    "erase project": Probe(("erase project apollo",), flags=frozenset({"yes", "since", "until"}), changes=True),
}
# Every command of the program with its options: what it may show, and where that is tested.
PROGRAM: Final = {
    "setup": {  # reads no stored text; shows names of settings and of accounts of its own
        *("home", "base_url", "model", "offline", "secrets", "systemd", "compose", "with_weights", "slack_link"),
        *("timezone", "organisation", "workspace", "unchecked", "yes"),
    },
    "chat": {"user", "room", "dm", "session", "workspace", "sample", "platform"},  # piped, below; typed, in e2e
    "web": {"user", "workspace", "sample"},  # serves until stopped; in integration/test_pages.py
    "play": {"script", "json_lines"},  # below
    "compose": {
        *(
            "text",
            "user",
            "room",
            "dm",
            "session",
            "agent",
            "workspace",
            "platform",
            "top_k",
            "batch",
            "json_lines",
        ),  # below
    },
    "import": {  # shows counts, ids and names of files; below
        *("files", "format", "room", "workspace", "embed", "bot", "public", "private", "yes", "json_lines"),
        *("listed", "undo"),
    },
    "usage": {"by", "since", "until", "json_lines"},  # shows counts, and names of people and public rooms; below
    "doctor": {"erased", "live", "json_lines"},  # shows counts; below
    "admin": {"user", "workspace", "remove"},  # shows a name; below
    "migrate": {"json_lines"},  # runs before there is anything to show
    "run": {"discord", "slack", "web", "jobs"},  # shows no message text
    "export": {"file", "user", "workspace", "platform", "json_lines"},  # one person's own; below
    "replay": {"turn", "json_lines"},  # shows names of sections, reasons and counts
    "backup": {"file", "json_lines"},  # shows a path and counts; only its owner can read the file
    "restore": {"file", "trust", "json_lines"},  # the same
    "keys create": {  # shows a new key, and no text
        *("user", "vendor", "name", "permission", "project", "expires", "workspace", "platform", "json_lines"),
    },
    "keys list": {"json_lines"},  # shows names of people, of keys and of browsers
    "keys revoke": {"id", "json_lines"},  # shows a name
    "login": {"user", "workspace", "platform", "json_lines"},  # shows a new link
    "mcp": set(),  # shows what a key opens (tests/integration/test_mcp_rights.py)
    "jobs list": {"json_lines"},  # shows names and counts; tenants are not named
    "jobs run": {"name", "at", "json_lines"},  # the same
    "audit list": {"workspace", "platform", "since", "until", "act", "user", "limit", "json_lines"},  # shows ids; below
    "audit verify": {"json_lines"},  # shows counts and names of tenants; below
    "reembed": {"status", "json_lines"},  # shows counts and names of embedders
}


def test_every_command_and_flag_is_in_the_table() -> None:
    assert {name: frozenset(command.flags) for name, command in COMMANDS.items()} == {
        name: probe.flags for name, probe in PROBES.items()
    }


def test_every_program_command_and_option_is_in_the_table() -> None:
    known = dict(_program_commands(typer.main.get_command(cli), ""))
    assert known == PROGRAM


def _program_commands(command: Any, name: str) -> Iterator[tuple[str, set[str]]]:
    """The name and the options of each command below `command`."""
    if not hasattr(command, "commands"):
        yield name, {parameter.name for parameter in command.params}
    else:
        for word, inner in command.commands.items():
            yield from _program_commands(inner, f"{name} {word}".strip())


async def test_a_command_shows_every_secret_that_its_caller_may_read_and_no_other(
    harness: AppHarness, planted: PlantedWorld
) -> None:
    wrong: dict[str, list[str]] = {}
    in_order = sorted(PROBES.items(), key=lambda entry: entry[1].changes)
    for name, probe in [(name, probe) for name, probe in in_order if not probe.own]:
        for viewer in VIEWERS:
            found: set[str] = set()
            for text in probe.texts:
                output = await output_of(harness, viewer, f"/nexus {text}")
                found |= tokens(output)
                names = [
                    room for room, members in PRIVATE_NAMES.items() if viewer.user not in members and room in output
                ]
                wrong.setdefault(f"{name}: {viewer.name}", []).extend(f"LEAKED the room {room}" for room in names)
            # A command reads only the profile of its caller; a question in a room reads those of all participants.
            one_profile = name not in ("recall", "ask")
            expected = planted.world.expected(viewer, probe.shows, own_profile_only=one_profile)
            problems = planted.world.difference(found, expected)
            wrong[f"{name}: {viewer.name}"] += [each for each in problems if not probe.some or each[:6] == "LEAKED"]
    assert {name: problems for name, problems in wrong.items() if problems} == {}


async def test_an_export_shows_what_its_caller_owns_and_what_they_may_read_in_answers_to_them(
    harness: AppHarness, planted: PlantedWorld
) -> None:
    wrong = {}
    for viewer in VIEWERS:
        mine = [v for v in VIEWERS if (v.user, v.spot.workspace) == (viewer.user, viewer.spot.workspace)]
        readable = {token for each in mine for token in planted.world.expected(each)}
        told = {
            canary.token
            for canary in planted.world.all
            if (canary.spot.author, canary.spot.workspace) == (viewer.user, viewer.spot.workspace)
            and canary.layer != "summary"  # a room's summary belongs to nobody
        }
        found = tokens(await output_of(harness, viewer, "/nexus export"))
        words = {canary.token: f"{canary.layer} of {canary.spot.name}" for canary in planted.world.all}
        problems = [f"LEAKED: {words[token]}" for token in found - told - readable]
        listed = tokens(await output_of(harness, viewer, "/nexus share"))
        problems += [f"LEAKED in the list: {words[token]}" for token in listed - told]
        shown = tokens(await output_of(harness, viewer, f"/nexus forget {TOPIC}"))  # what it would erase
        # Of answers that it would replace it shows those that are posted where the caller reads.
        posted = {c.token for c in planted.world.all if c.layer == "reply" and c.spot.run in {v.spot.run for v in mine}}
        problems += [f"LEAKED before forgetting: {words[token]}" for token in shown - told - posted]
        assert listed or not told
        wrong[viewer.name] = problems + [f"missing: {words[token]}" for token in told - found]
    assert {name: problems for name, problems in wrong.items() if problems} == {}


async def test_the_api_shows_people_their_own_and_their_tools_what_is_for_tools(
    harness: AppHarness, planted: PlantedWorld
) -> None:
    """Every read of the document: a person sees what an export shows; a tool nothing of rooms, DMs and sessions."""
    wrong: dict[str, list[str]] = {}
    words = {canary.token: f"{canary.layer} of {canary.spot.name}, {canary.reach}" for canary in planted.world.all}
    unlimited = harness.app.settings.model_copy(update={"requests_per_minute": 10**6})
    served = web_app(replace(harness.app, settings=unlimited), Metrics([]), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        for user, workspace in sorted({(viewer.user, viewer.spot.workspace) for viewer in VIEWERS}):
            mine = [v for v in VIEWERS if (v.user, v.spot.workspace) == (user, workspace)]
            own = [c for c in planted.world.all if (c.spot.author, c.spot.workspace) == (user, workspace)]
            kept = {c.token for c in own if c.reach == "everywhere" and c.layer in (*OWN_RUN, "remembered")}
            projects = [name for name, owner in PROJECTS.items() if (owner, "acme") == (user, workspace)]
            kept |= {c.token for c in planted.world.all if c.reach == "project" and c.spot.project in projects}
            told = {c.token for c in own} | {token for each in mine for token in planted.world.expected(each)}
            for vendor, allowed in ((None, told), ("claude", kept)):
                key = await key_of(harness, user, vendor, workspace=None if workspace == "acme" else workspace)
                shown = await _shown_over_api(client, key, projects)
                wrong[f"{vendor} {user} {workspace}"] = [f"LEAKED: {words[token]}" for token in shown - allowed]
                assert shown or not kept, f"{vendor} {user}: nothing is shown at all"
    assert {name: problems for name, problems in wrong.items() if problems} == {}


async def _shown_over_api(client: httpx2.AsyncClient, key: str, projects: Sequence[str]) -> set[str]:
    """The secrets in all answers to the reads of the document that take no id, and to questions about them."""
    document = (await client.get("/openapi.json")).json()
    paths = [path for path, operations in document["paths"].items() if "get" in operations and "{" not in path]
    asked = [*paths, *(f"{path}?project={name}" for path in paths for name in projects)]
    answers = [await client.get(path, headers=bearer(key)) for path in asked]
    for project in (None, *projects):
        for question in (f"what of the {TOPIC}?", KEY.replace("_", " ")):
            body = {"question": question, "project": project, "limit": 50, "budget": 16_000}
            answers.append(await client.post("/v1/query", json=body, headers=bearer(key)))
    return set().union(*(tokens(f"{answer.headers} {answer.text}") for answer in answers))


async def test_pages_of_rooms_show_what_is_said_in_rooms_of_their_person_and_nothing_else(
    harness: AppHarness, planted: PlantedWorld
) -> None:
    wrong, seen = {}, set[str]()
    words = {canary.token: f"{canary.layer} of {canary.spot.name}, {canary.reach}" for canary in planted.world.all}
    unlimited = harness.app.settings.model_copy(update={"requests_per_minute": 10**6})
    served = web_app(replace(harness.app, settings=unlimited), Metrics([]), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        for user in sorted({viewer.user for viewer in VIEWERS if viewer.spot.workspace == "acme"}):
            mine = [v for v in VIEWERS if v.user == user and v.spot.workspace == "acme"]
            told = {token for each in mine for token in planted.world.expected(each)}
            shown = await _shown_on_pages_of_rooms(Person(client, await cookie_of(harness, user)))
            wrong[user] = [f"LEAKED: {words[token]}" for token in shown - told]
            seen |= shown
    assert {name: problems for name, problems in wrong.items() if problems} == {}
    assert {canary.layer for canary in planted.world.all if canary.token in seen} >= {"said", "fact", "landmark"}


async def _shown_on_pages_of_rooms(person: Person) -> set[str]:
    """The secrets on all pages of the rooms and projects that a person is in, and in what the API tells their
    browser of these."""
    pages = [listed := await person.page("/rooms"), await person.page("/waiting")]
    for path in dict.fromkeys(re.findall(r'href="(/(?:rooms|projects)/[0-9a-f-]{36})"', listed)):
        for view in ("decisions", "facts", "memories", "entries", "people", "days"):
            pages.append(await person.page(f"{path}?view={view}"))
        days = [f"?day=2026-05-{day:02}" for day in range(1, 32)] if path.startswith("/rooms") else []
        pages += [await person.page(f"{path}{day}") for day in days]
        pages += [(await person.get(f"/v1{path}/{kind}")).text for kind in ("facts", "landmarks")]
    return set().union(*map(tokens, pages))


async def test_a_catch_up_shows_what_is_said_in_its_room_and_nothing_else(
    harness: AppHarness, planted: PlantedWorld
) -> None:
    wrong, shown = {}, set[str]()
    for job in ("day", "week"):
        await schedule.run(harness.app, job, harness.clock.now())
    for viewer in VIEWERS:
        if "room" not in viewer.where:
            continue
        expected = {
            canary.token: f"{canary.layer} of {canary.spot.name}"
            for canary in planted.world.all
            if canary.spot.workspace == viewer.spot.workspace
            and (canary.spot is viewer.spot or (viewer.spot.run and viewer.spot.run == canary.spot.run))
        }
        found = tokens(await output_of(harness, viewer, "/nexus catch-up 2026-01-01"))
        wrong[viewer.name] = [p for p in planted.world.difference(found, expected) if p.startswith("LEAKED")]
        shown |= found
    assert {name: problems for name, problems in wrong.items() if problems} == {}
    assert shown, "nothing was shown, so nothing was tested"


async def test_only_its_members_find_a_project_in_the_list(harness: AppHarness) -> None:
    for viewer in VIEWERS:
        if viewer.spot.workspace != "acme":
            continue
        output = await output_of(harness, viewer, "/nexus project list")
        listed = {project for project in PROJECTS if re.search(rf"^{project}\b", output, re.MULTILINE)}
        own = {project for project, owner in PROJECTS.items() if owner == viewer.user}
        assert listed == own, viewer.name


# --- the jobs --------------------------------------------------------------------------------------------------------

RECOUNTED: Final = "recounted:"  # begins all that a job's model or extractor makes of what it reads


class Recounting(ScriptedModel):
    """An extractor (composer.ports.Extractor) that repeats every secret that it reads, and a model that chooses each
    sentence that has one for a summary, and repeats them all as well."""

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        numbers = (line.partition(".")[0] for line in messages[-1].words.splitlines() if tokens(line))
        yield Chunk(text=f"{', '.join(numbers)}\n{self._recounted(messages[-1].words)}")

    async def extract(self, batch: MessageBatch, near: Callable[..., Any]) -> list[ExtractedStatement]:
        text = self._recounted("\n".join(message.text for message in batch.messages))
        return [ExtractedStatement("statement", text, tuple(message.id for message in batch.messages))]

    def _recounted(self, read: str) -> str:
        return f"the {TOPIC} {RECOUNTED} {' '.join(sorted(tokens(read)))}"


# The layers whose secrets a job may carry on, to those who recall what is said there. A summary has answers and files
# too, which by themselves stay in their talk.
TALK: Final = ("old", "said", "stated")
IN_VIEW: Final = ("said", "attachment")  # of what is told in a conversation, what its view shows
CARRIED_ON: Final = {"extraction": TALK, **dict.fromkeys(TIERS, (*TALK, *OWN_TALK))}


@pytest.mark.parametrize("job", [*CARRIED_ON, "all others"])
async def test_what_a_job_writes_is_shown_to_those_alone_who_may_read_what_it_is_made_from(
    planted: PlantedWorld, tmp_path: Path, job: str
) -> None:
    wrong, recounted = {}, 0
    async with planted.copy() as url:
        model = Recounting()
        agents = tuple(agent.model_copy(update={"model": "m"}) for agent in AGENTS)
        settings = planted.settings(url, tmp_path).model_copy(update={"agents": agents})
        async with open_harness(settings, model=model) as harness:
            harness.clock.tick(90 * 24 * 3600)
            app = replace(harness.app, extractions=extracting(harness, model))
            await queue_everything(url)
            for name in [job] if job in CARRIED_ON else [each.name for each in JOBS if each.name not in CARRIED_ON]:
                with capture_logs() as logs:
                    run = await schedule.run(app, name, harness.clock.now())
                assert (run.state, tokens(f"{run} {logs}")) == ("done", set()), name
            for viewer in VIEWERS:
                where = {"workspace": viewer.spot.workspace, **viewer.where}
                composed = await harness.compose(viewer.user, viewer.question, **where)
                text = prompt_text(composed.prompt.as_json()) + await output_of(
                    harness, viewer, f"/nexus recall {TOPIC}"
                )
                assert RECOUNTED not in text or job == "extraction", "a summary holds no word of its model"
                summed_up = any(each.sources for each in composed.prompt.sections if each.name == "SUMMARIES")
                recounted += summed_up if job in TIERS else RECOUNTED in text
                expected, shown = planted.world.expected(viewer), tokens(text)
                carried_on = {
                    canary.token: f"{canary.layer} of {canary.spot.name}, carried on"
                    for canary in planted.world.all
                    if canary.layer in CARRIED_ON.get(job, ()) and belongs(replace(canary, layer="summary"), viewer)
                }
                carried_on = {token: words for token, words in carried_on.items() if token in shown}
                wrong[viewer.name] = planted.world.difference(shown, expected | carried_on)
    assert {name: problems for name, problems in wrong.items() if problems} == {}
    assert bool(recounted) == (job in CARRIED_ON), "what the job has written was not shown, so it was not tested"


def extracting(harness: AppHarness, extractor: Extractor) -> Learner[ExtractionScope]:
    """The learner of the job that extracts, with this extractor."""
    directory = harness.app.directory
    source = ConversationSource(directory.quarantine, BatchRules(2_000, tokenizer_for("")))
    places = Places(4, is_background=True)
    return Learner(
        *(harness.app.database, harness.clock, uuid.uuid4, source, extractor, directory.zone, lambda _: None, places)
    )


async def queue_everything(url: str) -> None:
    """Queue what people said for extraction, as if it had just been indexed."""
    columns = "tenant_id, conversation_id, namespace, visibility, user_id"
    queue = f"INSERT INTO extraction_queue (message_id, queued_at, {columns}) SELECT id, at, {columns} FROM messages"
    await run_sql(url, f"{queue} WHERE agent_id IS NULL")


# --- the program -----------------------------------------------------------------------------------------------------


def test_nexus_compose_shows_exactly_the_readable_secrets_one_by_one_and_in_batches(
    program: Program, planted: PlantedWorld
) -> None:
    questions = [{"id": str(n), "text": v.question, **place_of_viewer(v)} for n, v in enumerate(VIEWERS)]
    batch = program.run("compose", "--batch", program.script(*questions, name="batch.jsonl"))
    assert batch.status == 0, batch.err
    wrong = {}
    for viewer, line in zip(VIEWERS, batch.lines, strict=True):
        wrong[viewer.name] = planted.world.difference(tokens(json.dumps(line)), planted.world.expected(viewer))
    for name in ("frank in general", "alice in alice's dm with sage", "dave in dave's session"):
        viewer = next(v for v in VIEWERS if v.name == name)
        kind, value = next((k, v) for k, v in viewer.where.items() if k in ("room", "dm", "session"))
        where = ("--workspace", "acme", f"--{kind}", value)
        for options in ((), ("--json",)):
            ran = program.run("compose", "--as", viewer.user, *where, viewer.question, *options)
            assert ran.status == 0, ran.err
            wrong[f"{name}, alone"] = planted.world.difference(
                tokens(ran.out + ran.err), planted.world.expected(viewer)
            )
    assert {name: problems for name, problems in wrong.items() if problems} == {}


def test_nexus_play_shows_exactly_the_readable_secrets(program: Program, planted: PlantedWorld) -> None:
    events = [
        {"type": "message", "at": "2027-01-01T09:00:00Z", "id": f"q{n}", "text": v.question, **place_of_viewer(v)}
        for n, v in enumerate(VIEWERS)
    ]
    played = program.play(*events)
    assert played.status == 0, played.err
    wrong = {}
    for number, (viewer, event) in enumerate(zip(VIEWERS, played.lines, strict=True)):
        assert (event["event"], event["to"]) == ("reply", f"q{number}")
        wrong[viewer.name] = planted.world.difference(tokens(json.dumps(event)), planted.world.expected(viewer))
    assert {name: problems for name, problems in wrong.items() if problems} == {}
    assert tokens(played.err) == set()


def test_nexus_chat_shows_only_readable_secrets(program: Program, planted: PlantedWorld) -> None:
    seats = [
        (viewer, f"/{kind} {viewer.where[kind]} {viewer.where.get('thread', '')}".strip())
        for viewer in VIEWERS
        for kind in ("room", "dm", "session")
        if kind in viewer.where and "agent" not in viewer.where and viewer.spot.workspace == "acme"
    ]
    lines = [
        line
        for viewer, seat in seats
        for line in ("/room random", f"/as {viewer.user}", seat, viewer.question, "/why --details", f"/recall {TOPIC}")
    ]
    chatted = program.run("chat", "-w", "acme", "--as", "mallory", "--room", "random", input="\n".join([*lines, ""]))
    assert chatted.status == 0, chatted.err
    assert tokens(chatted.err) == set()
    outputs = re.split(r"^\(\w+ [#@~]\S+\)$", chatted.out, flags=re.MULTILINE)[3::3]
    wrong = {}
    for (viewer, _), text in zip(seats, outputs, strict=True):
        expected = planted.world.expected(viewer)
        wrong[viewer.name] = [p for p in planted.world.difference(tokens(text), expected) if p.startswith("LEAKED")]
        recalled = planted.world.expected(viewer, OWN_RUN)
        wrong[viewer.name] += [f"why lacks {recalled[token]}" for token in set(recalled) - tokens(text)]
    assert {name: problems for name, problems in wrong.items() if problems} == {}


def test_nexus_export_writes_one_persons_own_into_a_file_and_prints_none_of_it(
    program: Program, planted: PlantedWorld, tmp_path: Path
) -> None:
    path = tmp_path / "bob.json"
    ran = program.run("export", str(path), "--user", "bob", "-w", "acme")
    assert ran.status == 0, ran.err
    assert tokens(ran.out + ran.err) == set()
    assert path.stat().st_mode & 0o777 == 0o600
    mine = [viewer for viewer in VIEWERS if viewer.user == "bob"]
    readable = {token for viewer in mine for token in planted.world.expected(viewer)}
    assert tokens(path.read_text()) - readable == set()
    assert len(tokens(path.read_text())) > 10
    assert program.run("export", str(path), "--user", "bob", "-w", "acme").status == 2, "it overwrites nothing"
    assert program.run("export", "--user", "nobody", "-w", "acme").status == 1


def test_administrative_commands_show_no_message_text(program: Program) -> None:
    history = {"type": "message", "at": "2027-01-01T09:00:00Z", "room": "general", "user": "carol", "id": "h1"}
    path = program.script(history | {"workspace": "acme", "text": f"the {TOPIC}"}, name="history.jsonl")
    for words in (
        ("doctor",),
        ("doctor", "--json"),
        ("import", path),
        ("import", "--list"),
        ("import", "--list", "--json"),
        ("admin", "bob", "-w", "acme"),
        ("audit", "list", "-w", "acme"),
        ("audit", "list", "-w", "acme", "--user", "bob", "--json"),
        ("audit", "verify"),
        ("usage",),
        ("usage", "--by", "room", "--json"),
    ):
        ran = program.run(*words)
        assert ran.status == 0, ran.err
        assert tokens(ran.out + ran.err) == set()
