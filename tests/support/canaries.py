"""A world of secrets, each a unique token written in one place and one layer, and the simple rule of who may read it.

The rule is implemented again here, from "Who may read what" in docs/architecture.md. It shares no code with
composer.visibility, so that a leak goes unnoticed only if both are wrong in the same way.
"""

import hashlib
import re
import uuid
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bot.commands.table import run_command
from bot.script.places import external, incoming, place_of
from composer.model import CONSOLE, Agent, Attachment, Incoming, Place, Visibility, conversation_id, private_thread
from composer.ports.models import ChatMessage, Chunk
from composer.repositories.recall import IndexEntry
from composer.text.terms import terms
from tests.support.harness import AppHarness

TOPIC: Final = "vault"  # every secret is about it, so that one question brings up all that may be read
KEY: Final = "vault_code"  # of every fact, so that one name asks for all of them
FILLERS: Final = 60  # push what was said before them out of the working view
_TOKEN = re.compile(r"zq\d{3}[0-9a-f]{6}")

# How far a layer's secret goes from where it was told.
POOLED: Final = ("old", "said", "attachment", "stated", "remembered", "summary")  # episodes, memories, summaries
OWN_RUN: Final = ("fact", "landmark")  # are not
OWN_TALK: Final = ("reply",)  # stands in the talk alone
LAYERS: Final = (*POOLED, *OWN_RUN, *OWN_TALK)


@dataclass(frozen=True)
class Spot:
    """A conversation where secrets are told, by whom. Spots of one `run` are one audience.

    `project` is what it reads, `pooled` whether that project reads it.
    """

    name: str
    author: str
    where: Mapping[str, Any]
    run: str = ""
    project: str = ""
    pooled: bool = False
    workspace: str = "acme"


@dataclass(frozen=True)
class Viewer:
    """Someone who asks in a spot. `profiles`: whose shared profile the prompt may hold there."""

    user: str
    spot: Spot
    profiles: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return f"{self.user} in {self.spot.name}"

    @property
    def where(self) -> dict[str, Any]:
        """The place as someone names it who is there already."""
        return {key: value for key, value in self.spot.where.items() if key != "private"}

    @property
    def question(self) -> str:
        return f"@nexus {TOPIC}" if "room" in self.where else TOPIC


@dataclass(frozen=True)
class Canary:
    """A secret: its token, its layer, where it was told and how far it was meant to go."""

    token: str
    layer: str
    spot: Spot
    reach: str = "here"


SPOTS: Final = {
    spot.name: spot
    for spot in (
        Spot("general", "carol", {"room": "general"}, run="general"),
        Spot("thread of general", "bob", {"room": "general", "thread": "t1"}, run="general"),
        Spot("random", "mallory", {"room": "random"}),
        Spot("cave", "alice", {"room": "cave", "private": True}),
        Spot("private thread", "alice", {"room": "general", "thread": "t9", "private": True}),
        Spot("alice's dm", "alice", {"dm": "nexus"}),
        Spot("alice's dm with sage", "alice", {"dm": "sage"}),
        Spot("bob's dm", "bob", {"dm": "nexus"}),
        Spot("zed's dm", "zed", {"dm": "nexus"}),
        Spot("alice's session", "alice", {"session": "s1"}),
        Spot("alice's other session", "alice", {"session": "s2"}),
        Spot("alice's session with sage", "alice", {"session": "s1", "agent": "sage"}),
        Spot("bob's session", "bob", {"session": "s1"}),
        Spot("apollo", "dave", {"room": "apollo"}, project="apollo", pooled=True),
        Spot("rocket", "dave", {"room": "rocket"}, project="apollo", pooled=True),
        Spot("hangar", "dave", {"room": "hangar", "private": True}, project="apollo"),
        Spot("bunker", "dave", {"room": "bunker", "private": True}, project="apollo", pooled=True),
        Spot("dave's session", "dave", {"session": "launch"}, project="apollo", pooled=True),
        Spot("dave's dm", "dave", {"dm": "nexus"}, project="apollo"),
        Spot("gemini", "gus", {"room": "gemini"}, project="gemini", pooled=True),
        Spot("mars", "erin", {"room": "mars"}, project="ares", pooled=True),
        Spot("phobos", "erin", {"room": "phobos"}, project="ares", pooled=True),
        Spot("erin's session", "erin", {"session": "orbit"}, project="ares", pooled=True),
        Spot("erin's dm", "erin", {"dm": "nexus"}, project="ares"),
        Spot("umbrella general", "alice", {"room": "general"}, workspace="umbrella"),
        Spot("umbrella dm", "alice", {"dm": "nexus"}, workspace="umbrella"),
    )
}
PROJECTS: Final = {"apollo": "dave", "gemini": "gus", "ares": "erin"}
ISOLATED: Final = "ares"
ADMIN: Final = "zed"
ALICE: Final = frozenset({"alice"})

VIEWERS: Final = (
    *(
        Viewer(spot.author, spot, ALICE if spot.author == "alice" and spot.workspace == "acme" else frozenset())
        for spot in SPOTS.values()
    ),
    Viewer("frank", SPOTS["general"]),  # nobody has ever heard of him
    Viewer("zed", SPOTS["random"]),  # an admin is no reader
    Viewer("bob", SPOTS["cave"], ALICE),  # alice speaks there
    Viewer("carol", SPOTS["private thread"], ALICE),
    Viewer("carol", SPOTS["rocket"]),  # a room that is assigned opens its project to all who are in it
    Viewer("alice", SPOTS["mars"]),  # an isolated project lets no profile in
)


def place(where: Mapping[str, Any]) -> Place:
    """The place that a spot's or a viewer's `where` names."""
    names = ("room", "dm", "session", "thread", "private", "agent")
    return place_of(*(where.get(name) for name in names))


def belongs(canary: Canary, viewer: Viewer) -> bool:
    """Whether a secret may, and so must, stand before this viewer."""
    here, there = viewer.spot, canary.spot
    if here.workspace != there.workspace:
        return False
    if canary.reach == "project":
        return here.project == there.project
    if canary.reach == "everywhere":
        return there.author in viewer.profiles and here.project != ISOLATED
    if canary.reach == "global":
        return here.project != ISOLATED
    if here is there:
        return True
    if canary.layer in OWN_TALK:
        return False
    if here.run and here.run == there.run:
        return True
    return canary.layer in POOLED and there.pooled and here.project == there.project


def tokens(text: str) -> set[str]:
    """The secrets that stand in a text."""
    return set(_TOKEN.findall(text))


@dataclass
class World:
    """What was told. `all` grows as it is."""

    all: list[Canary] = field(default_factory=list)

    def new(self, layer: str, spot: Spot, reach: str = "here") -> str:
        number = len(self.all)
        token = f"zq{number:03}{hashlib.sha256(f'{number}'.encode()).hexdigest()[:6]}"
        self.all.append(Canary(token, layer, spot, reach))
        return token

    def expected(
        self, viewer: Viewer, layers: Iterable[str] = LAYERS, *, own_profile_only: bool = False
    ) -> dict[str, str]:
        """The tokens that belong before a viewer, each with a word for a failing test's message."""
        wanted = set(layers)
        return {
            canary.token: f"{canary.layer} of {canary.spot.name}, {canary.reach}"
            for canary in self.all
            if canary.layer in wanted
            and belongs(canary, viewer)
            and not (own_profile_only and canary.reach == "everywhere" and canary.spot.author != viewer.user)
        }

    def difference(self, found: set[str], expected: Mapping[str, str]) -> list[str]:
        """What leaked and what is missing, in words; empty when all is as it must be."""
        words = {c.token: f"{c.layer} of {c.spot.name}, {c.reach}" for c in self.all}
        leaked = [f"LEAKED: {words[token]}" for token in sorted(found - set(expected))]
        return leaked + [f"missing: {expected[token]}" for token in sorted(set(expected) - found)]


class ScriptedModel:
    """A model that says what a test puts into `line`."""

    def __init__(self) -> None:
        self.line = "noted"

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        yield Chunk(text=self.line)


@dataclass
class MessageSender:
    """Sends messages the way an adapter does, and leaves the indexing to the end, where it is quick."""

    harness: AppHarness
    model: ScriptedModel
    world: World = field(default_factory=World)
    told: int = 0

    async def say(self, user: str, text: str, spot: Spot, file: str = "") -> None:
        attachments = (Attachment("plan.txt", "text/plain", file),) if file else ()
        await self.receive(spot, [self._incoming(user, text, spot, attachments)])

    async def receive(self, spot: Spot, batch: Sequence[Incoming]) -> None:
        await self.harness.app.receive(self.harness.workspace(spot.workspace), batch)
        await self.harness.app.turns.settle()

    async def command(self, spot: Spot, text: str) -> None:
        here = self.harness.workspace(spot.workspace)
        await run_command(self.harness.app, here, self._incoming(spot.author, f"/nexus {text}", spot))

    async def fill(self, spot: Spot) -> None:
        """Push what was said before out of the working view, by talk that recall need not find."""
        batch = [self._incoming(spot.author, "nothing new", spot) for _ in range(FILLERS)]
        received = await self.harness.app.receive(self.harness.workspace(spot.workspace), batch, answer=False)
        async with self.harness.app.database.transaction(self.harness.workspace(spot.workspace).tenant_id) as tx:
            await tx.recall.index([], [], received.new)

    def _incoming(self, user: str, text: str, spot: Spot, attachments: tuple[Attachment, ...] = ()) -> Incoming:
        here, at = self.harness.workspace(spot.workspace), self.harness.clock.tick()
        self.told += 1
        return incoming(here, place(spot.where), user, text, at, id=f"t{self.told}", attachments=attachments)


async def build_world(harness: AppHarness, model: ScriptedModel) -> World:
    """Build the world the way adapters do; only summaries are inserted by hand."""
    sender = MessageSender(harness, model)
    for spot in SPOTS.values():
        await _enter(sender, spot)
    await _make_admin(harness)
    for spot in SPOTS.values():
        await _write_everything(sender, spot)
    for reach, name in (
        ("project", "apollo"),
        ("project", "gemini"),
        ("project", "mars"),
        ("everywhere", "alice's dm"),
        ("global", "zed's dm"),
    ):
        await _write_widely(sender, SPOTS[name], reach)
    await sender.say("bob", "good morning", SPOTS["cave"])
    await sender.say("carol", "good morning", SPOTS["private thread"])
    for workspace in ("acme", "umbrella"):
        await harness.app.indexer.catch_up(harness.workspace(workspace).tenant_id)
    return sender.world


async def _enter(sender: MessageSender, spot: Spot) -> None:
    await sender.command(spot, "help")
    if spot.name in PROJECTS:
        await sender.command(spot, f"project create {spot.name}")
    if spot.name == "mars":
        await sender.command(spot, f"project create {ISOLATED} --isolated")
    if spot.project:
        pool = " --pool" if spot.pooled and spot.where.get("private") else ""
        await sender.command(spot, f"project assign {spot.project}{pool} --yes")


async def _make_admin(harness: AppHarness) -> None:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        found = await tx.people.find_user(CONSOLE, harness.name, ADMIN)
        assert found is not None
        await tx.people.set_admin(found.id, True)


async def _write_everything(sender: MessageSender, spot: Spot) -> None:
    new = sender.world.new
    await sender.say(spot.author, f"the {TOPIC} is {new('old', spot)}", spot)
    await sender.say(spot.author, f"I prefer the {TOPIC} {new('stated', spot)}.", spot)
    await sender.command(spot, f"remember the {TOPIC} has {new('remembered', spot)}")
    if spot.run in ("", spot.name):  # a second value of one key in one run would replace the first
        await sender.command(spot, f'fact set {KEY} "{new("fact", spot)}"')
    await sender.command(spot, f"landmark add the {TOPIC} opens with {new('landmark', spot)}")
    await _summarise(sender.harness, spot, f"they spoke of the {TOPIC}: {new('summary', spot)}")
    await sender.fill(spot)
    sender.model.line = f"the {TOPIC}, as I said: {new('reply', spot)}"
    await sender.say(spot.author, "@nexus good morning", spot)
    sender.model.line = "noted"
    await sender.say(spot.author, "see the file", spot, file=f"the {TOPIC} on paper: {new('attachment', spot)}")
    await sender.say(spot.author, f"the {TOPIC} moved: {new('said', spot)}", spot)


async def _write_widely(sender: MessageSender, spot: Spot, reach: str) -> None:
    new = sender.world.new
    await sender.command(spot, f"remember the {TOPIC} has {new('remembered', spot, reach)} --{reach} --yes")
    await sender.command(spot, f'fact set {KEY} "{new("fact", spot, reach)}" --{reach} --yes')
    await sender.command(spot, f"landmark add the {TOPIC} opens with {new('landmark', spot, reach)} --{reach} --yes")


async def _summarise(harness: AppHarness, spot: Spot, text: str) -> None:
    here = harness.workspace(spot.workspace)
    async with harness.app.database.transaction(here.tenant_id) as tx:
        author = await tx.people.find_user(CONSOLE, here.name, external(spot.author))
        assert author is not None
        agents = {agent.slug: agent.id for agent in harness.app.directory.agents(here.tenant_id)}
        told = place(spot.where)
        told = private_thread(told) if told.private and told.thread else told
        slug = spot.where.get("dm") or spot.where.get("agent") or "nexus"
        conversation = await tx.conversations.get(conversation_id(here, told, author.id, agents[slug]))
        assert conversation is not None
        private = conversation.visibility is Visibility.PRIVATE
        now = harness.clock.now()
        await insert_summary(
            tx,
            here.tenant_id,
            IndexEntry(
                uuid.uuid5(conversation.id, "summary"),
                "summary",
                conversation.namespace,
                conversation.visibility,
                author.id if private else None,
                now,
                dict.fromkeys(terms(text), 1),
            ),
            text,
        )


async def insert_summary(tx: Any, tenant: uuid.UUID, summary: IndexEntry, text: str) -> None:
    """A day's summary, as the job that is to come will write it: stored, and findable."""
    await tx.recall._sql._connection.execute(
        "INSERT INTO summaries (tenant_id, id, tier, namespace, user_id, visibility, starts_at, ends_at, text, tokens,"
        " model, created_at) VALUES ($1, $2, 'day', $3, $4, $5, $6, $6, $7, 10, 'by hand', $6)",
        tenant,
        summary.id,
        summary.namespace,
        summary.user_id,
        str(summary.visibility),
        summary.at,
        text,
    )
    await tx.recall.index([], [summary], [])
