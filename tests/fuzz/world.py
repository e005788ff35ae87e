"""People of two tenants with keys of every kind, and what each of them has: canaries in every text that is stored."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.settings import AgentSettings, Settings
from tests.fuzz.watch import Canary, Findings, Watch
from tests.support.api import bearer, key_of, person
from tests.support.discord.harness import Model
from tests.support.documented import Document
from tests.support.harness import AppHarness, open_harness
from tests.support.web import served_at

ELSEWHERE: Final = "umbrella"
# Whose key a viewer has: the person, the tool (None: the person themselves), its permissions (None: the usual ones).
KEYS: Final[Mapping[str, tuple[str, str | None, tuple[str, ...] | None]]] = {
    "alice": ("alice", None, None),
    "bob": ("bob", None, None),
    "root": ("root", None, None),
    "dora": ("dora", None, None),
    "claude of alice": ("alice", "claude", None),
    "claude of bob": ("bob", "claude", None),
    "writer of alice": ("alice", "gemini", ("entries:write",)),
    "claude of dora": ("dora", "claude", None),
}
PEOPLE: Final = tuple(name for name, (_, vendor, _) in KEYS.items() if vendor is None)
TOOLS: Final = tuple(name for name in KEYS if name not in PEOPLE)


def strangers(viewer: str) -> tuple[str, ...]:
    """The viewers who have nothing of a viewer's own: neither the person nor a tool of theirs."""
    return tuple(name for name, (who, _, _) in KEYS.items() if who != KEYS[viewer][0])


_UNLIMITED: Final = {"requests_per_minute": 10**7, "admin_requests_per_minute": 10**7}


@dataclass
class World:
    """A served Nexus with its people. `keys` are texts by the names of viewers."""

    harness: AppHarness
    url: str
    keys: dict[str, str]
    findings: Findings
    _canaries: dict[bytes, Canary] = field(default_factory=dict)
    _waiting: list[tuple[bytes, frozenset[str]]] = field(default_factory=list)

    def word(self, *viewers: str) -> str:
        """A new canary that these viewers may know, in the thing that is made next."""
        text = f"zq{hashlib.sha256(str(len(self._canaries) + len(self._waiting)).encode()).hexdigest()[:12]}"
        self._waiting.append((text.encode(), frozenset(viewers)))
        return text

    async def make(self, client: httpx2.AsyncClient, viewer: str, method: str, path: str, **body: Any) -> Any:
        """Ask as a viewer; what is made has the canaries that were drawn for it."""
        answer = await client.request(method, path, json=body or None, headers=bearer(self.keys[viewer]))
        assert answer.status_code < 300, (viewer, method, path, answer.text)
        made = answer.json() if answer.content else {}
        ids = frozenset({made["id"]} if "id" in made else ())
        for text, viewers in self._waiting:
            self._canaries[text] = Canary(text, viewers, ids)
        self._waiting.clear()
        return made

    def watch(self) -> None:
        """Begin to judge."""
        self.findings.canaries = dict(self._canaries)
        self.findings.spread.clear()
        self.findings.open_handed.clear()
        self.findings.found.clear()
        self.findings.asked.clear()


@asynccontextmanager
async def open_world(settings: Settings) -> AsyncIterator[World]:
    """Serve a Nexus on these settings, with a world in it that is watched from now on."""
    changed = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),), **_UNLIMITED})
    async with open_harness(changed, model=Model()) as harness:
        root = await person(harness, "root")
        async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
            await tx.people.set_admin(root.id, True)
        keys = {
            name: await key_of(harness, who, vendor, permissions, workspace=ELSEWHERE if who == "dora" else None)
            for name, (who, vendor, permissions) in KEYS.items()
        }
        findings = Findings({}, {name: who for name, (who, _, _) in KEYS.items()})
        served = web_app(harness.app, Metrics([]), {}, None)
        viewers, document = {key: name for name, key in keys.items()}, Document.of(served)
        served.add_middleware(Watch, viewers=viewers, findings=findings, document=document)
        async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
            world = World(harness, url, keys, findings)
            await _furnish(world, client)
            await harness.app.indexer.catch_up(harness.workspace().tenant_id)
            world.watch()
            yield world


async def _furnish(world: World, client: httpx2.AsyncClient) -> None:
    """Give everybody entries, teams, projects, sessions and keys of their own, and alice and bob a team in common."""
    for name in PEOPLE:
        tool = f"claude of {name}"
        for vendors in (["*"], ["chatgpt"]):
            seen = (name, tool) if "*" in vendors else (name,)
            for _ in range(2):
                await world.make(client, name, "POST", "/v1/entries", **_entry(world, *seen), allowed_vendors=vendors)
        if tool in world.keys:
            await world.make(client, tool, "POST", "/v1/agent/entries", **_entry(world, name, tool))
        await world.make(client, name, "POST", "/v1/teams", name=f"Team {world.word(name, tool)}")
        project = await world.make(client, name, "POST", "/v1/projects", name=world.word(name, tool))
        entry = _entry(world, name, tool)
        await world.make(client, name, "POST", "/v1/entries", **entry, project=project["id"])
        said = {"content": f"hello {world.word(name)}", "session": world.word(name)}
        await world.make(client, name, "POST", "/v1/chat", **said)
        await world.make(client, name, "POST", "/v1/keys", vendor="cursor", name=f"key {world.word(name)}")
    await _share(world, client)


async def _share(world: World, client: httpx2.AsyncClient) -> None:
    members = ("alice", "bob", "claude of alice", "claude of bob")
    team = (await world.make(client, "alice", "POST", "/v1/teams", name=f"Team {world.word(*members)}"))["id"]
    bob = (await world.make(client, "bob", "GET", "/v1/whoami"))["user"]
    await world.make(client, "alice", "POST", f"/v1/teams/{team}/invites", user=bob)
    await world.make(client, "bob", "POST", f"/v1/teams/{team}/accept")
    entry = await world.make(client, "alice", "POST", "/v1/entries", **_entry(world, *members), allowed_vendors=["*"])
    await world.make(client, "alice", "PUT", f"/v1/entries/{entry['id']}/team", team=team)


def _entry(world: World, *viewers: str) -> dict[str, Any]:
    return {
        "content": f"the vault has {world.word(*viewers)}",
        "title": f"On {world.word(*viewers)}",
        "kind": "note",
        "key": world.word(*viewers),
        "tags": [world.word(*viewers)],
        "metadata": {"from": world.word(*viewers)},
        "session": world.word(*viewers),
    }
