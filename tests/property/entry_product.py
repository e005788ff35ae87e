"""Plays worlds of entries on the real product over its API, and reads everything that a viewer can read there."""

import hashlib
import json
import random
import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import httpx2
from fastapi import FastAPI

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.people.credentials.issuing import KeyRequest, create_key
from tests.property.entry_worlds import (
    ISOLATED,
    KINDS,
    PEOPLE,
    PROJECTS,
    QUESTION,
    READ_ONLY,
    SESSIONS,
    TAGS,
    TEAMS,
    VIEWERS,
    WRITERS,
    Asker,
    EntryWorld,
    Event,
    Grouped,
    Said,
    Stated,
    Written,
    secret_words,
)
from tests.property.product import WHICH, Product
from tests.support.api import bearer
from tests.support.harness import START

END: Final = START + timedelta(days=20)
UNLIMITED: Final = {"requests_per_minute": 10**7, "admin_requests_per_minute": 10**7}
OF_TOOLS: Final = re.compile(r"/v1/(agent/.*|whoami|query)")
COUNTED: Final = re.compile(r"/v1/(export|usage.*)")
# They show nothing of anybody, or a page in a browser; /v1/health says how long it took.
OPEN: Final = re.compile(r"/(health|ready|metrics|v1/health|oauth/.*|\.well-known/.*|v1/models.*)")
_TEMPLATE: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Read:
    """One request that changes nothing."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: str | None = None


@dataclass
class Hub:
    """The API of a product, for one world. `ids` are those of what was made, by its name in the world."""

    product: Product
    name: str
    client: httpx2.AsyncClient
    ids: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)

    async def play(self, world: EntryWorld) -> None:
        """Make the people, teams and projects, then what happened, a minute apart; it is END then."""
        WHICH.set(self.product.url)
        self.product.harness.clock.set(START)
        await self._make_people()
        await self._make_groups()
        for event in world.events:
            # Two worlds have other events in between, and the same ones at the same time.
            self.product.harness.clock.set(START + timedelta(days=1 + (event.n >= 1_000), minutes=event.n))
            await self._play(event)
        for stated in world.stated:
            self.product.harness.clock.set(START + timedelta(days=1 + (stated.n >= 1_000), minutes=stated.n))
            await self._state(stated)
        self.product.harness.clock.set(END)
        await self._index()

    async def _make_people(self) -> None:
        here = self.product.workspace(self.name, "main")
        for person in PEOPLE:
            await self.product.harness.say(person, "hello", workspace=here.name, dm="nexus", id=f"hello {person}")
        for asker in {*WRITERS, *VIEWERS}:
            async with self.product.harness.app.database.transaction(here.tenant_id) as tx:
                user = await tx.people.find_user(here.platform, here.name, asker.person)
                assert user is not None
                secret = hashlib.sha256(f"{self.name} {asker}".encode()).digest()
                request = KeyRequest(asker.tool or None, str(asker), asker.permissions)
                made = await create_key(tx, here.tenant, user, request, secret, START, by=None)
            self.keys[str(asker)] = made.text
            self.ids[asker.person] = str(user.id)

    async def _make_groups(self) -> None:
        for team, (admin, *others) in TEAMS.items():
            self.ids[team] = (await self._ask(Asker(admin), "POST", "/v1/teams", team, name=team))["id"]
            for other in others:
                at, invited = f"/v1/teams/{self.ids[team]}", {"user": self.ids[other]}
                await self._ask(Asker(admin), "POST", f"{at}/invites", f"{team} {other}", **invited)
                await self._ask(Asker(other), "POST", f"{at}/accept", "")
        for project, (admin, *others) in PROJECTS.items():
            body = {"name": project, "isolated": project == ISOLATED}
            self.ids[project] = (await self._ask(Asker(admin), "POST", "/v1/projects", project, **body))["id"]
            for other in others:
                at = f"/v1/projects/{self.ids[project]}/members/{self.ids[other]}"
                await self._ask(Asker(admin), "PUT", at, "", role="read" if project == READ_ONLY else "write")
                await self._ask(Asker(other), "POST", f"/v1/projects/{self.ids[project]}/accept", "")
            await self._tell(
                Asker(admin), f"/nexus project assign {project} --yes", f"r {project}", {"room": f"of {project}"}
            )

    async def _play(self, event: Event) -> None:
        if isinstance(event, Grouped):
            named = f"{event.kind}-{event.n}"
            await self._ask(event.by, "POST", f"/v1/{event.kind}s", named, name=named)
            return
        if isinstance(event, Said):
            await self._index()
            body = {"content": event.text, "session": event.session, "id": f"q{event.n}"}
            made = await self._ask(event.by, "POST", "/v1/chat", "", **body)
            self.ids[f"turn {event.n}"] = made["turn"]
            await self.product.harness.app.turns.settle()
            return
        await self._write(event)

    async def _state(self, stated: Stated) -> None:
        name = f"s{stated.n}"
        said = f"fact set {name} {json.dumps(stated.text)}" if stated.kind == "fact" else f"landmark add {stated.text}"
        scope = "everywhere" if stated.project is None else "project"
        where = {"dm": "nexus"} if stated.project is None else {"room": f"of {stated.project}"}
        await self._tell(stated.by, f"/nexus {said} --{scope} --yes", name, where)

    async def _tell(self, by: Asker, line: str, id: str, where: Mapping[str, str]) -> None:
        """Give a command, which has the same id in both products."""
        here = self.product.workspace(self.name, "main")
        place = place_of(where.get("room"), where.get("dm"), None)
        given = incoming(here, place, by.person, line, self.product.harness.clock.now(), id=id)
        answer = await run_command(self.product.harness.app, here, given)
        assert not answer.confirm, answer.text

    async def _write(self, event: Written) -> None:
        body: dict[str, Any] = {"content": event.text, "kind": event.kind, "tags": list(event.tags)}
        body |= {"session": event.session, "allowed_vendors": list(event.vendors), "key": f"key {event.n}"}
        body |= {"metadata": {"n": event.n}, "title": f"On {event.text.split()[1]}"}
        if event.project is not None:
            body["project"] = event.project
        if event.lasts is not None:
            now = self.product.harness.clock.now()
            body["expires_at"] = (now + timedelta(seconds=event.lasts)).isoformat()
        path = "/v1/agent/entries" if event.by.tool else "/v1/entries"
        made = await self._ask(event.by, "POST", path, f"entry {event.n}", **body)
        assert not made["pending"], "what waits is no entry yet"
        self.ids[f"entry {event.n}"] = made["id"]
        at, owner, within = f"/v1/entries/{made['id']}", Asker(event.by.person), ""
        if event.project is not None:
            within = f"?project={event.project}"
        if event.team is not None:
            await self._ask(owner, "PUT", f"{at}/team", "", team=self.ids[event.team])
        if event.changed is not None:
            await self._ask(owner, "PATCH", f"{at}{within}", "", content=event.changed)
        if event.trashed:
            await self._ask(owner, "DELETE", f"{at}{within}", "")
        if event.restored:
            await self._ask(owner, "POST", f"{at}/restore{within}", "")

    async def _ask(self, asker: Asker, method: str, path: str, once: str, **body: Any) -> Any:
        headers = bearer(self.keys[str(asker)]) | ({"Idempotency-Key": once} if once else {})
        answer = await self.client.request(method, path, json=body or None, headers=headers)
        await self._settle()
        assert answer.status_code < 300, f"{asker} {method} {path} {body}: {answer.text}"
        return answer.json() if answer.content else {}

    async def _settle(self, *, counts: bool = False) -> None:
        """Let what is stored on the side be stored: when a key was used, and how much was done."""
        await self.product.harness.app.credentials._last_use.settle()
        if counts:
            await self.product.harness.app.operations.settle()

    async def _index(self) -> None:
        await self.product.harness.app.indexer.catch_up(self.product.workspace(self.name, "main").tenant_id)

    def may_name(self, viewer: Asker, project: str) -> bool:
        """Whether a viewer may know that there is a project."""
        return viewer.person in PROJECTS[project] and viewer.may("projects:read")

    async def read(self, viewer: Asker, asked: Read) -> str:
        """All of an answer: its status, headers and body."""
        WHICH.set(self.product.url)
        headers = bearer(self.keys[str(viewer)])
        body = None if asked.body is None else json.loads(asked.body)
        await self._settle(counts=COUNTED.fullmatch(asked.path) is not None)
        answer = await self.client.request(asked.method, asked.path, params=asked.query, json=body, headers=headers)
        assert answer.status_code < 500, f"{viewer} {asked}: {answer.text}"
        return "\n".join([str(answer.status_code), repr(sorted(answer.headers.items())), answer.text])


@asynccontextmanager
async def open_clients(products: Sequence[Product], **settings: Any) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """A client of each product's API, without a server. `settings` are those that differ."""
    clients = []
    for product in products:
        app = product.harness.app
        unlimited = replace(app, settings=app.settings.model_copy(update=UNLIMITED | settings))
        transport = httpx2.ASGITransport(app=web_app(unlimited, Metrics([]), {}, None))
        clients.append(httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=120))
    try:
        yield clients
    finally:
        for client in clients:
            await client.aclose()


def reads(document: Mapping[str, Any], hub: Hub, world: EntryWorld, viewer: Asker, rng: random.Random) -> list[Read]:
    """Every read of the document that a viewer may use, with random parameters, and some questions."""
    secrets = secret_words(world, viewer)
    found: list[Read] = []
    for path, operations in document["paths"].items():
        if "get" not in operations or OPEN.fullmatch(path) or (viewer.tool and not OF_TOOLS.fullmatch(path)):
            continue
        parameters = [each for each in operations["get"].get("parameters", ()) if each["in"] != "header"]
        lists = any(each["name"] == "stats" for each in parameters)
        named = [each["name"] for each in parameters if each["in"] == "path"]
        for turn in range(3 if lists or named else 1):
            made = _TEMPLATE.sub(lambda match: _named(match[1], path, hub, rng), path)  # noqa: B023
            asked = [each["name"] for each in parameters if each["in"] == "query"]
            chosen = [name for name in asked if (lists and name == "stats") or (turn and rng.random() < 0.25)]
            values = [(name, _value(name, path, hub, secrets, rng)) for name in chosen]
            found.append(Read("GET", made, tuple((name, value) for name, value in values if value)))
    for question in (QUESTION, f"what of {rng.choice(secrets or ['nothing'])}?"):
        body = {"question": question, "project": rng.choice((None, None, *PROJECTS)), "answer": rng.random() < 0.3}
        found.append(Read("POST", "/v1/query", body=json.dumps(body)))
    return found


# A value for each parameter of a read; a new one fails the test until it is here.
_VALUES: Final[Mapping[str, Sequence[str]]] = {
    "kind": KINDS,
    "tag": TAGS,
    "vendor": ("api", "claude", "cursor"),
    "tool": ("claude", "cursor"),
    "author": ("alice", "bob"),
    "shelf": ("notes", "facts", "trash"),
    "place": ("your entries", "#general"),
    "sort": ("newest", "oldest", "changed"),
    "zone": ("Europe/Berlin",),
    "by": ("day",),
    "until": (START.date().isoformat(),),
    "on": ((START + timedelta(days=1, minutes=12)).isoformat(),),
    "history": ("deploy_day",),
    "month": (START.date().isoformat(),),
    "day": (START.date().isoformat(),),
    "budget": ("2000",),
    "strategy": ("recent",),
    "session": SESSIONS,
    "q": ("note", "salary", "deploy", "key"),
    "trashed": ("true",),
    "expired": ("true",),
    "project": tuple(PROJECTS),
    "since": ((START + timedelta(days=1, minutes=8)).isoformat(),),
    "before": ((START + timedelta(days=1, minutes=12)).isoformat(),),
    "limit": ("1", "2", "5"),
    "cursor": ("",),  # of an answer: it is followed
    "page": ("1", "2"),
    "offset": ("1", "3"),
    "stats": ("true",),
    "snippets": ("true", "false"),
    "agent": ("nexus", "scout"),
    "months": ("1",),
}


def _value(name: str, path: str, hub: Hub, secrets: Sequence[str], rng: random.Random) -> str:
    if name == "team":
        return hub.ids[rng.choice(list(TEAMS))]
    assert name in _VALUES, f"GET {path} has a new parameter {name}: say in _VALUES what it is asked with"
    if name == "q" and secrets and rng.random() < 0.5:
        return rng.choice(secrets)
    return rng.choice(_VALUES[name])


def _named(parameter: str, path: str, hub: Hub, rng: random.Random) -> str:
    """A name or id for a path; mostly one of what the path is about, whoever may read it."""
    if parameter == "name":
        return rng.choice(TAGS)
    if parameter == "session":
        return rng.choice(SESSIONS)
    kinds = {"team": list(TEAMS), "teams": list(TEAMS), "projects": list(PROJECTS)}
    of = next((names for part, names in kinds.items() if f"/{part}/" in path), None)
    of = of or [name for name in hub.ids if name.startswith("turn" if parameter == "turn" else "entry")]
    return hub.ids[rng.choice(of)] if of and rng.random() < 0.9 else str(uuid.UUID(int=7))


def document_of(client: httpx2.AsyncClient) -> Mapping[str, Any]:
    """The OpenAPI document of what a client asks, which is made once."""
    served: Any = client._transport
    app: FastAPI = served.app
    return app.openapi()
