"""Two owners, and what is computed for one of them: as much whether the other has said, stored, asked or forgotten the
very same sentence before, or nobody has. Computations are counted, so no clock is involved."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import asyncpg
import httpx2
import pytest

from composer.layers import disentanglement
from composer.repositories.erasure import ERASED
from composer.stores.database.process_locks import PostgresProcessLocks
from composer.stores.models import minilm, tokens
from composer.text import names
from composer.text.caches import OwnedCache
from tests.support.api import bearer, key_of
from tests.support.harness import AppHarness
from tests.support.mcp_clients import MODES, called, mcp_client
from tests.support.waiting import TIMEOUT_SECONDS, until

pytestmark = pytest.mark.usefixtures("tools_made_once")

# As long, and of the same kinds of words.
KNOWN: Final = "I resign on the third of December, case zqalpha: how do I tell the board?"
UNKNOWN: Final = "I resign on the ninth of November, case zqomega: how do I tell the board?"
WARM: Final = "I resign on the sixth of February, case zqkappa: how do I tell the board?"
OTHER: Final = "umbrella"  # the workspace of another organisation
NOTED_SOON: Final = ("operations_add", "credential_used")  # counts and last uses, stored beside requests


@pytest.fixture
def harness(answering: AppHarness) -> AppHarness:
    return answering


@pytest.fixture
def computed(statements: Counter[str], monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often texts are embedded, counted in tokens and compared, how often names are, and each statement is run."""

    def count(owner: Any, name: str, called: str, amount: Callable[..., int] = lambda *_: 1) -> None:
        doing = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            statements[called] += amount(*args)
            return doing(*args, **options)

        monkeypatch.setattr(owner, name, counted)

    count(minilm.MiniLM, "_prepare", "embedded", lambda self, texts: len(texts))
    count(tokens, "_encoded_length", "tokenised")
    count(disentanglement, "_mixed", "compared")
    count(names, "_look", "looked at")
    return statements


class Asker:
    """Somebody of another organisation, with the sentence, over every surface."""

    def __init__(
        self, harness: AppHarness, client: httpx2.AsyncClient, url: str, name: str, key: str, tool: str
    ) -> None:
        self._harness, self._client, self._url = harness, client, url
        self._name, self._key, self._tool = name, key, tool

    async def _request(self, method: str, path: str, **options: Any) -> None:
        answer = await self._client.request(method, path, headers=bearer(self._key), **options)
        assert answer.status_code < 300, answer.text
        await self._harness.app.indexer.catch_up(self._harness.workspace(OTHER).tenant_id)

    async def search(self, said: str) -> None:
        await self._request("GET", "/v1/agent/search", params={"q": said})

    async def query(self, said: str) -> None:
        await self._request("POST", "/v1/query", json={"question": said})

    async def chat(self, said: str) -> None:
        await self._request("POST", "/v1/chat", json={"content": said, "session": "s1"})

    async def write(self, said: str) -> None:
        await self._request("POST", "/v1/entries", json={"content": said})

    async def bring_in(self, said: str) -> None:
        entry = {"content": said, "kind": "note"}
        sent = {"format": "nexus-entries", "version": 1, "entries": [entry]}
        await self._request("POST", "/v1/entries/import", json=sent)

    async def tool_search(self, said: str) -> None:
        async with mcp_client(self._url, self._tool, MODES[0]) as client:
            await called(client, "search", query=said)

    async def tool_write(self, said: str) -> None:
        async with mcp_client(self._url, self._tool, MODES[0]) as client:
            await called(client, "write_entry", content=said)
        await self._harness.app.indexer.catch_up(self._harness.workspace(OTHER).tenant_id)

    async def dm(self, said: str) -> None:
        await self._harness.say(self._name, said, dm="nexus", workspace=OTHER)

    async def room(self, said: str) -> None:
        await self._harness.say(self._name, f"@nexus {said}", room=f"of {self._name}", workspace=OTHER)

    async def remember(self, said: str) -> None:
        await self._harness.command(self._name, f"/nexus remember {said}", dm="nexus", workspace=OTHER)

    async def recall(self, said: str) -> None:
        await self._harness.command(self._name, f"/nexus memories {said}", dm="nexus", workspace=OTHER)

    async def compose(self, said: str) -> None:
        await self._harness.compose(self._name, said, dm="nexus", workspace=OTHER)


async def asker(harness: AppHarness, client: httpx2.AsyncClient, url: str, name: str) -> Asker:
    keys = [await key_of(harness, name, vendor, workspace=OTHER) for vendor in (None, "claude")]
    return Asker(harness, client, url, name, *keys)


SURFACES: Final = [name for name in vars(Asker) if not name.startswith("_")]


async def known_to_alice(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    """Alice says, asks and stores the sentence wherever she can."""
    key = bearer(await key_of(harness, "alice"))
    await harness.say("alice", KNOWN, dm="nexus")
    await harness.say("alice", f"@nexus {KNOWN}", room="general")
    await harness.command("alice", f"/nexus remember {KNOWN}", dm="nexus")
    await client.post("/v1/entries", json={"content": KNOWN}, headers=key)
    for _ in range(2):
        await client.post("/v1/query", json={"question": KNOWN}, headers=key)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)


@pytest.mark.parametrize("forgotten", [False, True], ids=["known", "forgotten"])
async def test_another_persons_same_sentence_changes_no_computation(
    harness: AppHarness, client: httpx2.AsyncClient, url: str, computed: Counter[str], forgotten: bool
) -> None:
    askers = {UNKNOWN: await asker(harness, client, url, "bob"), KNOWN: await asker(harness, client, url, "ben")}
    await known_to_alice(harness, client)
    for surface in SURFACES:  # what is loaded once, and made once for each person
        for each in askers.values():  # of several that say the same, chance decides which is recalled
            await getattr(each, surface)(f"The paint of the {surface} in the kitchen is green and still wet.")
    if forgotten:
        await harness.command("alice", "/nexus forget everything --yes", dm="nexus")
    counts: dict[tuple[str, str], Counter[str]] = {}
    for surface in SURFACES:
        for said, each in askers.items():
            await harness.app.operations.settle()  # what was counted before is stored soon, not now
            computed.clear()
            await getattr(each, surface)(said)
            counts[surface, said] = Counter({name: n for name, n in computed.items() if name not in NOTED_SOON})
    different = {
        surface: (counts[surface, UNKNOWN] - counts[surface, KNOWN], counts[surface, KNOWN] - counts[surface, UNKNOWN])
        for surface in SURFACES
        if counts[surface, UNKNOWN] != counts[surface, KNOWN]
    }
    assert different == {}
    assert all(counts[surface, KNOWN]["embedded"] for surface in SURFACES)


async def test_what_a_conversation_keeps_is_of_use_to_it_alone(
    harness: AppHarness, computed: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same talk in another room is compared anew; a second question in the same room is not."""
    monkeypatch.setattr(disentanglement, "MIN_PEOPLE", 1)
    compared = []
    for room, workspace in (("general", None), ("lobby", None), ("general", OTHER)):
        await harness.say_all("ann", [f"line {n} of the talk" for n in range(41)], room=room, workspace=workspace)
        for _ in range(2):
            computed.clear()
            await harness.compose("ann", "@nexus what was said?", room=room, workspace=workspace)
            compared.append(computed["compared"])
    assert compared == [1, 0] * 3


async def test_what_an_answer_is_compared_with_is_embedded_once_for_its_conversation(
    harness: AppHarness, computed: Counter[str]
) -> None:
    """The same talk in another room is embedded anew, and after something was erased all of it."""
    talk = [f"line {n} of the talk" for n in range(20)]
    for room in ("general", "lobby"):
        await harness.say_all("ann", talk, room=room)
    tenant = harness.workspace().tenant_id
    embedded = []
    for room, forgets in (("general", False), ("general", False), ("lobby", False), ("general", True)):
        if forgets:
            await harness.command("bob", "/nexus forget everything --yes", dm="nexus")
        await harness.app.indexer.catch_up(tenant)
        computed.clear()
        await harness.ask("ann", "@nexus what was said?", room=room)
        embedded.append(computed["embedded"])
    assert min(embedded[0], embedded[2], embedded[3]) > len(talk)
    assert embedded[1] < len(talk) / 2


async def test_a_turn_embeds_its_question_once_before_the_model_is_asked(
    harness: AppHarness, computed: Counter[str]
) -> None:
    await harness.say("ann", "hello", dm="nexus")
    computed.clear()
    await harness.compose("ann", WARM, dm="nexus")
    assert computed["embedded"] == 1


async def test_erasing_empties_the_caches_of_every_process(harness: AppHarness) -> None:
    """Each is told by the database."""
    await harness.say("alice", KNOWN, dm="nexus")
    told = asyncio.Event()
    assert harness.app.settings.database_url is not None
    other = PostgresProcessLocks(harness.app.settings.database_url, uuid.uuid4().int >> 66)
    await other.open(lambda notice: told.set() if notice == ERASED else None)
    try:
        await harness.command("alice", "/nexus forget everything --yes", dm="nexus")
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await told.wait()
    finally:
        await other.close()


async def test_a_process_empties_its_caches_when_another_one_erases_or_can_not_be_heard(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    kept = OwnedCache[str](4)
    kept.put("room:1", KNOWN)
    await raw.execute("SELECT pg_notify('turns', 'erased')")
    await until(lambda: len(kept) == 0)
    kept.put("room:1", KNOWN)
    await raw.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
    await until(lambda: len(kept) == 0)
