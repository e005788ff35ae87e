"""Asks everything that a viewer can ask over MCP, for worlds of entries: every tool, resource and prompt."""

import json
import random
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from tests.property.entry_product import Hub
from tests.property.entry_worlds import (
    KINDS,
    PROJECTS,
    QUESTION,
    SESSIONS,
    TAGS,
    TEAMS,
    Asker,
    EntryWorld,
    secret_words,
)
from tests.property.product import WHICH
from tests.support.api import bearer
from tests.support.harness import START

REVISIONS: Final = ("2026-07-28", "2025-11-25")
NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{12}\b")
_DAY: Final = (START + timedelta(days=1)).date().isoformat()


@dataclass(frozen=True)
class Question:
    """One request: a method of the protocol, with its parameters as JSON, in a revision."""

    method: str
    params: str
    revision: str

    @classmethod
    def of(cls, method: str, revision: str = REVISIONS[0], **params: Any) -> "Question":
        return cls(method, json.dumps(params), revision)


@dataclass(frozen=True)
class Offered:
    """What a server offers: tools that read and that write, as they are listed, with resources and prompts."""

    reads: Sequence[Mapping[str, Any]]
    writes: Sequence[Mapping[str, Any]]
    resources: Sequence[str]
    prompts: Sequence[Mapping[str, Any]]


async def ask(hub: Hub, viewer: Asker, asked: Question) -> str:
    """All of an answer: its status, headers and body. What the product makes at random, such as the id of what was just
    written, is numbered as it comes up."""
    WHICH.set(hub.product.url)
    params = json.loads(asked.params)
    headers = {**bearer(hub.keys[str(viewer)]), "Accept": "application/json, text/event-stream"}
    headers["MCP-Protocol-Version"] = asked.revision
    if asked.revision == REVISIONS[0]:
        headers["Mcp-Method"] = asked.method
        if asked.method in NAMED_BY:
            headers["Mcp-Name"] = params[NAMED_BY[asked.method]]
        said = {"protocolVersion": asked.revision, "clientCapabilities": {}}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in said.items()}
    body = {"jsonrpc": "2.0", "id": 1, "method": asked.method, "params": params}
    answer = await hub.client.post("/mcp", json=body, headers=headers)
    await hub._settle()
    assert answer.status_code < 500, f"{viewer} {asked}: {answer.text}"
    assert "Something went wrong" not in answer.text, f"{viewer} {asked}: {answer.text}"
    known = {*hub.ids.values(), *_ID.findall(asked.params)}
    made = {id: f"new-{n}" for n, id in enumerate(dict.fromkeys(_ID.findall(answer.text))) if id not in known}
    text = _ID.sub(lambda found: made.get(found[0], found[0]), answer.text)
    return "\n".join([str(answer.status_code), repr(sorted(answer.headers.items())), text])


def result_of(answer: str) -> Any:
    """What a method answered."""
    return json.loads(answer.rpartition("\n")[2])["result"]


async def offered(hub: Hub, viewer: Asker) -> Offered:
    """What the server offers to somebody."""

    async def listed(method: str) -> Any:
        return result_of(await ask(hub, viewer, Question.of(method)))

    tools = (await listed("tools/list"))["tools"]
    assert (await listed("resources/list"))["resources"] == []
    return Offered(
        [tool for tool in tools if tool["annotations"]["readOnlyHint"]],
        [tool for tool in tools if not tool["annotations"]["readOnlyHint"]],
        [each["uriTemplate"] for each in (await listed("resources/templates/list"))["resourceTemplates"]],
        (await listed("prompts/list"))["prompts"],
    )


def questions(found: Offered, hub: Hub, world: EntryWorld, viewer: Asker, rng: random.Random) -> Iterator[Question]:
    """Every list, tool, resource and prompt, each a few times with random parameters; what writes comes last, as it
    changes the world."""
    values = _Values(hub, secret_words(world, viewer), rng)
    for method in ("server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        yield Question.of(method)
    for tool in found.reads:
        for turn in range(4):
            yield _call(tool, values, turn, rng)
    for template in found.resources:
        for _ in range(3):
            uri = re.sub(r"\{(\w+)\}", lambda match: str(values.of(match[1], template)), template)  # noqa: B023
            yield Question.of("resources/read", rng.choice(REVISIONS), uri=uri)
    for prompt in found.prompts:
        given = {each["name"]: values.of(each["name"], prompt["name"]) for each in prompt.get("arguments", ())}
        yield Question.of("prompts/get", rng.choice(REVISIONS), name=prompt["name"], arguments=given)
    for turn in range(6):
        for tool in found.writes:
            yield _call(tool, values, turn, rng)
    for tool in found.reads:
        yield _call(tool, values, 0, rng)


def _call(tool: Mapping[str, Any], values: "_Values", turn: int, rng: random.Random) -> Question:
    """A call with what the tool requires; not at the first turn, with more. Each parameter has a value here."""
    name, schema = tool["name"], tool["inputSchema"]
    every = {parameter: values.of(parameter, name) for parameter in schema["properties"]}
    required = schema.get("required", ())
    chosen = [each for each in every if each in required or (turn and rng.random() < 0.35)]
    if name == "forget_own" and not chosen:
        chosen = ["kind"]
    if name == "forget_own" and {"kind", "older_than"} & {*chosen}:
        chosen = [each for each in chosen if each != "everything"]
    given = {each: every[each] for each in chosen}
    return Question.of("tools/call", rng.choice(REVISIONS), name=name, arguments=given)


@dataclass
class _Values:
    """Values for parameters; of ids and names, those of everybody. A new parameter fails until it has one here."""

    hub: Hub
    secrets: Sequence[str]
    rng: random.Random

    def of(self, parameter: str, by: str) -> Any:
        made: dict[str, Sequence[Any]] = {
            "query": (QUESTION, self._about_secret()),
            "topic": (QUESTION, self._about_secret()),
            "about": ("", *self.secrets[:3], "s5"),
            "words": ("note", "salary", *self.secrets[:2]),
            "id": (self._entry(),),
            "team": (*TEAMS, *(self.hub.ids[team] for team in TEAMS)),
            "project": (*PROJECTS, *(self.hub.ids[project] for project in PROJECTS)),
            "day": (_DAY, _DAY, "2001-01-01"),
            "kind": KINDS,
            "kinds": ([KINDS[0]], list(KINDS[:2]), ["fact"]),
            "tag": TAGS,
            "tags": ([TAGS[0]], list(TAGS[:2])),
            "session": SESSIONS,
            "limit": (1, 2, 5),
            "cursor": (None,),  # of an answer: it is followed
            "content": ("It is written by a tool.", f"It is said of {self._about_secret()}"),
            "title": ("A title",),
            "key": ("k", *(name.replace("entry", "key") for name in self.hub.ids if name.startswith("entry "))),
            "metadata": ({"n": 1},),
            "allowed_vendors": (["*"], ["claude"], ["cursor"]),
            "expires_at": ((START + timedelta(days=40)).isoformat(),),
            "older_than": ((START + timedelta(days=1, minutes=8)).isoformat(),),
            "everything": (True,),
        }
        assert parameter in made, f"{by} has a new parameter {parameter}: say here what it is asked with"
        return self.rng.choice(made[parameter])

    def _about_secret(self) -> str:
        return f"what of {self.rng.choice(self.secrets)}?" if self.secrets else "what of nothing?"

    def _entry(self) -> str:
        """The id of an entry, whoever may read it; or of none."""
        of = [id for name, id in self.hub.ids.items() if name.startswith("entry")]
        return self.rng.choice(of) if of and self.rng.random() < 0.9 else str(uuid.UUID(int=7))
