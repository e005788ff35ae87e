"""Two owners, and what is computed for one of them: as much whether the other has said, stored, asked or forgotten the
very same sentence before, or nobody has. Computations are counted, so no clock is involved."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx2
import pytest

from composer.caches import OwnedCache, empty_caches
from composer.layers import disentanglement
from composer.settings import Settings
from composer.stores.database.process_locks import PostgresProcessLocks
from composer.stores.models import minilm, tokens
from composer.text import names
from tests.support.api import bearer, key_of
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.mcp_clients import MODES, called, mcp_client
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("tools_made_once")]

# As long, and of the same kinds of words.
KNOWN: Final = "I resign on the third of December, case zqalpha: how do I tell the board?"
UNKNOWN: Final = "I resign on the ninth of November, case zqomega: how do I tell the board?"
WARM: Final = "I resign on the sixth of February, case zqkappa: how do I tell the board?"
OTHER: Final = "umbrella"  # the workspace of another organisation


@pytest.fixture
def harness(answering: AppHarness, model: Model) -> AppHarness:
    model.text = "Yes."
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

    count(minilm.MiniLM, "_vector", "embedded")
    count(minilm.MiniLM, "_fill", "embedded", lambda self, vectors, texts, rows: len(rows))
    count(tokens, "_encoded_length", "tokenised")
    count(disentanglement, "_mixed", "compared")
    count(names, "_look", "looked at")
    return statements


class Asker:
    """Somebody of another organisation, with the sentence, over every surface."""

    def __init__(self, harness: AppHarness, client: httpx2.AsyncClient, url: str, key: str, tool: str) -> None:
        self._harness, self._client, self._url, self._key, self._tool = harness, client, url, key, tool

    async def _request(self, method: str, path: str, **options: Any) -> None:
        answer = await self._client.request(method, path, headers=bearer(self._key), **options)
        assert answer.status_code < 300, answer.text
        await self._harness.app.indexer.catch_up(self._harness.workspace(OTHER).tenant_id)

    async def search(self, said: str) -> None:
        await self._request("GET", "/v1/agent/search", params={"q": said})

    async def query(self, said: str) -> None:
        await self._request("POST", "/v1/query", json={"question": said})

    async def chat(self, said: str) -> None:
        await self._request("POST", "/v1/chat", json={"message": said, "session": "s1", "stream": False})

    async def write(self, said: str) -> None:
        await self._request("POST", "/v1/entries", json={"content": said})

    async def tool_search(self, said: str) -> None:
        async with mcp_client(self._url, self._tool, MODES[0]) as client:
            await called(client, "search", query=said)

    async def tool_write(self, said: str) -> None:
        async with mcp_client(self._url, self._tool, MODES[0]) as client:
            await called(client, "write_entry", content=said)
        await self._harness.app.indexer.catch_up(self._harness.workspace(OTHER).tenant_id)

    async def dm(self, said: str) -> None:
        await self._harness.say("bob", said, dm="nexus", workspace=OTHER)

    async def room(self, said: str) -> None:
        await self._harness.say("bob", f"@nexus {said}", room="general", workspace=OTHER)

    async def remember(self, said: str) -> None:
        await self._harness.command("bob", f"/nexus remember {said}", dm="nexus", workspace=OTHER)

    async def recall(self, said: str) -> None:
        await self._harness.command("bob", f"/nexus memories {said}", dm="nexus", workspace=OTHER)

    async def compose(self, said: str) -> None:
        await self._harness.compose("bob", said, dm="nexus", workspace=OTHER)


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
    key = await key_of(harness, "bob", workspace=OTHER)
    tool = await key_of(harness, "bob", "claude", workspace=OTHER)
    asker = Asker(harness, client, url, key, tool)
    await known_to_alice(harness, client)
    for surface in SURFACES:  # what is loaded once, and made once in an organisation
        await getattr(asker, surface)(WARM)
    if forgotten:
        await harness.command("alice", "/nexus forget everything --yes", dm="nexus")
    counts: dict[tuple[str, str], Counter[str]] = {}
    for surface in SURFACES:
        for said in (UNKNOWN, KNOWN):
            computed.clear()
            await getattr(asker, surface)(said)
            counts[surface, said] = Counter(computed)
    different = {
        surface: (counts[surface, UNKNOWN] - counts[surface, KNOWN], counts[surface, KNOWN] - counts[surface, UNKNOWN])
        for surface in SURFACES
        if counts[surface, UNKNOWN] != counts[surface, KNOWN]
    }
    assert different == {}
    assert all(counts[surface, KNOWN]["embedded"] for surface in SURFACES)
