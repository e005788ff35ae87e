"""Secrets told in every place and layer stand before those they are for, through every door, and before nobody else.

Every surface by every operation is in a table below: a command, a flag or an option that is not classified fails.
"""

import asyncio
import inspect
import itertools
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest
import redis

from bot.commands.table import COMMANDS
from bot.console.main import cli
from composer.errors import NexusError
from composer.settings import AgentSettings, RetrievalSettings, Settings
from composer.stores.embedded.servers import Servers
from tests.support.canaries import (
    ADMIN,
    KEY,
    OWN_RUN,
    POOLED,
    PROJECTS,
    TOPIC,
    VIEWERS,
    Parrot,
    Viewer,
    World,
    tell,
    tokens,
)
from tests.support.databases import database_url
from tests.support.harness import AppHarness, open_harness
from tests.support.program import Program

pytestmark = pytest.mark.integration

# One question brings up everything that may be read: nothing is pushed out by a budget.
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
PRIVATE_NAMES: Final = {"cave": {"alice", "bob"}, "hangar": {"dave"}, "bunker": {"dave"}}
_clones = itertools.count(1)


@dataclass(frozen=True)
class Told:
    """The world, and the database it stands in, of which each test gets a copy."""

    world: World
    servers: Servers

    def settings(self, url: str, home: Path) -> Settings:
        return Settings(
            home=home, database_url=url, redis_url=self.servers.redis_url, agents=AGENTS, retrieval=RETRIEVAL
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
        await self.admin(f"CREATE DATABASE {name} TEMPLATE canaries")
        try:
            yield database_url(self.servers.database_url, name)
        finally:
            await self.admin(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def told(servers: Servers) -> Iterator[Told]:
    made = Told(World(), servers)
    home = Path(tempfile.mkdtemp(prefix="nexus-canaries-"))

    async def build() -> World:
        await made.admin("CREATE DATABASE canaries TEMPLATE template")
        redis.Redis.from_url(servers.redis_url).flushall()
        model = Parrot()
        settings = made.settings(database_url(servers.database_url, "canaries"), home)
        async with open_harness(settings, model=model) as harness:
            return await tell(harness, model)

    made.world.all.extend(asyncio.run(build()).all)
    yield made
    asyncio.run(made.admin("DROP DATABASE canaries WITH (FORCE)"))
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
async def harness(told: Told, tmp_path: Path) -> AsyncIterator[AppHarness]:
    """The world, opened anew, with the honest offline model; its clock stands after all that was told."""
    async with told.copy() as url, open_harness(told.settings(url, tmp_path)) as harness:
        harness.clock.tick(90 * 24 * 3600)
        yield harness


@pytest.fixture
async def program(told: Told, tmp_path: Path) -> AsyncIterator[Program]:
    """The real program on a copy of the world."""
    (tmp_path / "nexus.toml").write_text(TOML)
    async with told.copy() as url:
        settings = {"NEXUS_DATABASE_URL": url, "NEXUS_REDIS_URL": told.servers.redis_url, "NEXUS_HOME": str(tmp_path)}
        yield Program(tmp_path, settings)


def said_in(prompt: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in prompt["role_messages"])


def addressed_to(viewer: Viewer) -> dict[str, str]:
    """A viewer's place as scripts and batches name it."""
    return {"workspace": viewer.spot.workspace, "user": viewer.user, **viewer.where}


async def output_of(harness: AppHarness, viewer: Viewer, text: str) -> str:
    """What a command says to a viewer, or the sentence by which it is refused."""
    try:
        answer = await harness.command(viewer.user, text, workspace=viewer.spot.workspace, **viewer.where)
    except NexusError as error:
        return str(error)
    return answer.text + "".join(f"\n{part}" for section in answer.sections for part in section.parts)


# --- prompts and answers ---------------------------------------------------------------------------------------------


async def test_a_prompt_holds_every_secret_that_belongs_there_and_no_other(harness: AppHarness, told: Told) -> None:
    wrong = {}
    for viewer in VIEWERS:
        composed = await harness.compose(viewer.user, viewer.question, workspace=viewer.spot.workspace, **viewer.where)
        text = said_in(composed.prompt.as_json())
        wrong[viewer.name] = told.world.difference(tokens(text), told.world.expected(viewer))
        # The sources that are shown beside the text say no more than it does.
        assert tokens(composed.prompt.as_text()) == tokens(text)
    assert {name: problems for name, problems in wrong.items() if problems} == {}


async def test_asking_for_a_secret_by_its_very_token_brings_it_up_only_where_it_belongs(
    harness: AppHarness, told: Told
) -> None:
    wrong = {}
    for viewer in VIEWERS:
        expected = told.world.expected(viewer)
        hidden = [canary.token for canary in told.world.all if canary.token not in expected]
        found: set[str] = set()
        for start in range(0, len(hidden), 30):  # a question is searched for by so many words
            asked = await harness.compose(
                viewer.user, " ".join(hidden[start : start + 30]), workspace=viewer.spot.workspace, **viewer.where
            )
            for section in asked.prompt.sections:
                if section.name != "MESSAGE":
                    found |= tokens(section.text)
        wrong[viewer.name] = [p for p in told.world.difference(found, expected) if p.startswith("LEAKED")]
    assert {name: problems for name, problems in wrong.items() if problems} == {}


async def test_a_turn_its_answer_and_its_explanation_hold_what_belongs_there(harness: AppHarness, told: Told) -> None:
    wrong = {}
    quoting = 0
    for viewer in VIEWERS:
        expected = told.world.expected(viewer)
        reply = await harness.ask(viewer.user, viewer.question, workspace=viewer.spot.workspace, **viewer.where)
        assert reply.prompt is not None
        problems = told.world.difference(tokens(said_in(json.loads(reply.prompt))), expected)
        problems += told.world.difference(tokens(reply.prompt), expected)
        answered = tokens(reply.text)
        quoting += bool(answered)
        problems += [p for p in told.world.difference(answered, expected) if p.startswith("LEAKED")]
        explained = tokens(await output_of(harness, viewer, "/nexus why"))
        problems += [f"why {p}" for p in told.world.difference(explained, expected) if p.startswith("LEAKED")]
        recalled = told.world.expected(viewer, (*POOLED, *OWN_RUN))
        in_view = {c.token for c in told.world.all if c.layer == "said" and c.spot is viewer.spot}
        problems += [f"why lacks {recalled[token]}" for token in set(recalled) - explained - in_view]
        wrong[viewer.name] = problems
    assert {name: problems for name, problems in wrong.items() if problems} == {}
    assert quoting == len(VIEWERS), "the answers quoted nothing, so this shows nothing of them"


# --- the table of commands -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Probe:
    """How a command is tried: its texts in this order, the layers whose secrets they show, and its known flags.

    No layers: it shows no secret to anyone. `changes`: it is tried after all that doesn't change the world.
    """

    texts: tuple[str, ...]
    shows: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    changes: bool = False


REACH: Final = frozenset({"everywhere", "project", "global"})
PROBES: Final = {
    "help": Probe(("help",)),
    "agents": Probe(("agents",)),
    "recall": Probe((f"recall {TOPIC}", f"recall where is the {TOPIC}?"), shows=POOLED),
    "fact get": Probe((f"fact get {KEY}", "fact get no_such_key"), shows=("fact",)),
    "fact list": Probe(("fact list",), shows=("fact",)),
    "fact history": Probe((f"fact history {KEY}", "fact history no_such_key"), shows=("fact",)),
    "landmark list": Probe(("landmark list", "landmark list --retired"), ("landmark",), frozenset({"retired"})),
    "landmark accept": Probe(("landmark accept 00000000", "landmark accept")),
    "landmark amend": Probe(("landmark amend 00000000 nothing", "landmark amend")),
    "landmark retire": Probe(("landmark retire 00000000", "landmark retire")),
    "compact": Probe(("compact", "compact no_such_agent")),
    "project list": Probe(("project list",)),
    "project member": Probe(("project member list apollo", "project member add apollo alice", "project member")),
    "project create": Probe(("project create apollo", "project create"), flags=frozenset({"isolated"})),
    "project assign": Probe(("project assign no_such", "project assign"), flags=frozenset({"pool"})),
    "settings": Probe(("settings", "settings top_k", "settings nothing")),
    "history": Probe((f"history {TOPIC}", "history")),
    "why": Probe(("why no_such_message",)),
    "memory": Probe(("memory", "memory sometimes")),
    "link": Probe(("link", "link WRONG234")),
    "unlink": Probe(("unlink",)),
    "opt-out": Probe(("opt-out",), changes=True),
    "opt-in": Probe(("opt-in",), changes=True),
    "remember": Probe(("remember a plain sentence", "remember"), flags=REACH, changes=True),
    "fact set": Probe((f"fact set {KEY} 1", f"fact set {KEY} {{"), flags=REACH, changes=True),
    "landmark add": Probe(("landmark add a plain decision", "landmark add"), flags=REACH, changes=True),
    "project unassign": Probe(("project unassign",), changes=True),
    "forget": Probe(
        (
            *("forget no such words", "forget message no_such", "forget here", "forget everything"),
            *(f"forget {TOPIC}", "forget here --yes", "forget everything --yes"),
        ),
        flags=frozenset({"yes"}),
        changes=True,
    ),
}
# Every command of the program with its options: what it may show, and where that is shown to hold.
PROGRAM: Final = {
    "chat": {"user", "room", "dm", "session", "workspace", "sample"},  # piped, below; typed, in e2e
    "play": {"script", "json_lines"},  # below
    "compose": {
        *("text", "user", "room", "dm", "session", "agent", "workspace", "top_k", "batch", "json_lines"),  # below
    },
    "import": {"files", "format", "room", "workspace", "embed", "bot", "public", "json_lines"},  # shows counts; below
    "doctor": {"json_lines"},  # shows counts; below
    "admin": {"user", "workspace", "remove"},  # shows a name; below
    "migrate": {"json_lines"},  # runs before there is anything to show
    "run": {"discord", "slack", "web", "jobs"},  # shows nothing that was said
    "backup": {"file", "json_lines"},  # shows a path and counts; the file is its owner's alone
    "restore": {"file", "json_lines"},  # the same
    "jobs list": {"json_lines"},  # shows names and counts; tenants are not named
    "jobs run": {"name", "at", "json_lines"},  # the same
    "reembed": {"status", "json_lines"},  # shows counts and names of embedders
}


def test_every_command_and_flag_is_in_the_table() -> None:
    assert {name: frozenset(command.flags) for name, command in COMMANDS.items()} == {
        name: probe.flags for name, probe in PROBES.items()
    }


def test_every_part_of_the_program_and_every_option_is_in_the_table() -> None:
    known = {}
    groups = {f"{group.name} ": group.typer_instance for group in cli.registered_groups}
    for prefix, part in {"": cli, **groups}.items():
        assert part is not None
        assert part is cli or part.registered_groups == [], "a group within a group is not in the table"
        for command in part.registered_commands:
            assert command.callback is not None
            name = prefix + (command.name or command.callback.__name__)
            known[name] = set(inspect.signature(command.callback).parameters)
    assert known == PROGRAM


async def test_a_command_shows_every_secret_that_belongs_there_and_no_other(harness: AppHarness, told: Told) -> None:
    wrong: dict[str, list[str]] = {}
    for name, probe in sorted(PROBES.items(), key=lambda entry: entry[1].changes):
        for viewer in VIEWERS:
            found: set[str] = set()
            for text in probe.texts:
                said = await output_of(harness, viewer, f"/nexus {text}")
                found |= tokens(said)
                names = [room for room, members in PRIVATE_NAMES.items() if viewer.user not in members and room in said]
                wrong.setdefault(f"{name}: {viewer.name}", []).extend(f"LEAKED the room {room}" for room in names)
            # A command knows of nobody but its caller; a question in a room knows who takes part.
            expected = told.world.expected(viewer, probe.shows, own_profile_only=name != "recall")
            wrong[f"{name}: {viewer.name}"] += told.world.difference(found, expected)
    assert {name: problems for name, problems in wrong.items() if problems} == {}


async def test_only_members_and_admins_are_told_of_a_project(harness: AppHarness) -> None:
    for viewer in VIEWERS:
        if viewer.spot.workspace != "acme":
            continue
        said = await output_of(harness, viewer, "/nexus project list")
        listed = {project for project in PROJECTS if re.search(rf"^{project}\b", said, re.MULTILINE)}
        own = {project for project, teller in PROJECTS.items() if teller == viewer.user}
        assert listed == (set(PROJECTS) if viewer.user == ADMIN else own), viewer.name


# --- the program -----------------------------------------------------------------------------------------------------


def test_nexus_compose_shows_what_belongs_there_one_by_one_and_in_batches(program: Program, told: Told) -> None:
    questions = [{"id": str(n), "text": v.question, **addressed_to(v)} for n, v in enumerate(VIEWERS)]
    batch = program.run("compose", "--batch", program.script(*questions, name="batch.jsonl"))
    assert batch.status == 0, batch.err
    wrong = {}
    for viewer, line in zip(VIEWERS, batch.lines, strict=True):
        wrong[viewer.name] = told.world.difference(tokens(json.dumps(line)), told.world.expected(viewer))
    for name in ("frank in general", "alice in alice's dm with sage", "dave in dave's session"):
        viewer = next(v for v in VIEWERS if v.name == name)
        kind, value = next((k, v) for k, v in viewer.where.items() if k in ("room", "dm", "session"))
        where = ("--workspace", "acme", f"--{kind}", value)
        for options in ((), ("--json",)):
            ran = program.run("compose", "--as", viewer.user, *where, viewer.question, *options)
            assert ran.status == 0, ran.err
            wrong[f"{name}, alone"] = told.world.difference(tokens(ran.out + ran.err), told.world.expected(viewer))
    assert {name: problems for name, problems in wrong.items() if problems} == {}


def test_nexus_play_answers_with_what_belongs_there(program: Program, told: Told) -> None:
    events = [
        {"type": "message", "at": "2027-01-01T09:00:00Z", "id": f"q{n}", "text": v.question, **addressed_to(v)}
        for n, v in enumerate(VIEWERS)
    ]
    played = program.play(*events)
    assert played.status == 0, played.err
    wrong = {}
    for number, (viewer, event) in enumerate(zip(VIEWERS, played.lines, strict=True)):
        assert (event["event"], event["to"]) == ("reply", f"q{number}")
        wrong[viewer.name] = told.world.difference(tokens(json.dumps(event)), told.world.expected(viewer))
    assert {name: problems for name, problems in wrong.items() if problems} == {}
    assert tokens(played.err) == set()


def test_nexus_chat_answers_with_what_belongs_there(program: Program, told: Told) -> None:
    seats = [
        (viewer, f"/{kind} {viewer.where[kind]} {viewer.where.get('thread', '')}".strip())
        for viewer in VIEWERS
        for kind in ("room", "dm", "session")
        if kind in viewer.where and "agent" not in viewer.where and viewer.spot.workspace == "acme"
    ]
    lines = [
        line
        for viewer, seat in seats
        for line in ("/room random", f"/as {viewer.user}", seat, viewer.question, "/why", f"/recall {TOPIC}")
    ]
    chatted = program.run("chat", "-w", "acme", "--as", "mallory", "--room", "random", input="\n".join([*lines, ""]))
    assert chatted.status == 0, chatted.err
    assert tokens(chatted.err) == set()
    heard = re.split(r"^\(\w+ [#@~]\S+\)$", chatted.out, flags=re.MULTILINE)[3::3]
    wrong = {}
    for (viewer, _), text in zip(seats, heard, strict=True):
        expected = told.world.expected(viewer)
        wrong[viewer.name] = [p for p in told.world.difference(tokens(text), expected) if p.startswith("LEAKED")]
        recalled = told.world.expected(viewer, OWN_RUN)
        wrong[viewer.name] += [f"why lacks {recalled[token]}" for token in set(recalled) - tokens(text)]
    assert {name: problems for name, problems in wrong.items() if problems} == {}


def test_what_looks_after_the_program_shows_nothing_that_was_said(program: Program) -> None:
    history = {"type": "message", "at": "2027-01-01T09:00:00Z", "room": "general", "user": "carol", "id": "h1"}
    path = program.script(history | {"workspace": "acme", "text": f"the {TOPIC}"}, name="history.jsonl")
    for words in (("doctor",), ("doctor", "--json"), ("import", path), ("admin", "bob", "-w", "acme")):
        ran = program.run(*words)
        assert ran.status == 0, ran.err
        assert tokens(ran.out + ran.err) == set()
