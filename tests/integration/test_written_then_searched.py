"""What was just written is found by the next search, before the indexer has run, also where it shares no word with the
question."""

import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from composer.entries import entries
from composer.entries.entries import Writer
from composer.entries.search import MAX_LATEST, EntryQuestion, EntryReader
from composer.errors import Unavailable
from composer.model import EVERY_VENDOR
from composer.ports.models import MINILM_SCALE, Vectors
from tests.support.entries import OF_PERSON, Hub
from tests.unit.test_relevance import candidate, found

PAIRS = [
    ("My car stands in garage B, spot 14.", "where do I park?"),
    ("The launch is on Friday.", "when do we ship?"),
    ("I like espresso best.", "coffee or tea?"),
    ("Dr. Weber treats my back.", "my doctor"),
    ("I can't eat peanuts.", "allergies"),
]


async def written_and_searched(hub: Hub, said: str, asked: str, before: Sequence[str] = ()) -> list[str]:
    async with hub.request("alice", None, None, OF_PERSON) as (tx, access):
        for text in (*before, said):
            sent = {"content": text}
            await entries.write(tx, access, sent, Writer("alice"), str(uuid.uuid4()), hub.harness.clock.tick())  # type: ignore[arg-type]
        reader = EntryReader(access.tenant_id, access.user, EVERY_VENDOR, OF_PERSON)
    result = await hub.harness.app.entry_search.search(reader, EntryQuestion(asked))
    return [hit.item.text for hit in result.hits]


@pytest.mark.parametrize(("said", "asked"), PAIRS)
async def test_what_was_just_written_is_found_by_its_meaning(hub: Hub, said: str, asked: str) -> None:
    await hub.write("alice", "Our office has a blue door.")
    assert said in await written_and_searched(hub, said, asked)


async def test_behind_an_import_a_question_embeds_what_was_just_written_alone(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = [f"Crate {n} holds green bottles." for n in range(70)]
    embedded: list[str] = []
    search = hub.harness.app.entry_search
    real = search._embedder.embed

    async def recording(texts: Sequence[str], *args: Any, **kwargs: Any) -> Vectors:
        embedded.extend(texts)
        return await real(texts, *args, **kwargs)

    monkeypatch.setattr(search._embedder, "embed", recording)
    said, asked = PAIRS[0]
    await written_and_searched(hub, said, asked, imported)
    assert said in embedded
    assert len(embedded) <= MAX_LATEST + 1


async def test_without_an_embedder_it_is_found_by_its_words(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    await hub.write("alice", "Our office has a blue door.")

    class Away:
        scale = MINILM_SCALE

        async def embed(self, *_: object, **__: object) -> None:
            raise Unavailable("The embedder does not answer.")

    monkeypatch.setattr(hub.harness.app.entry_search, "_embedder", Away())
    assert await written_and_searched(hub, "The zqlynx sleeps at noon.", "zqlynx") == ["The zqlynx sleeps at noon."]


def test_words_decide_where_a_text_has_no_vector_yet() -> None:
    unrelated = candidate(1, meaning=0.05)
    assert found([unrelated, candidate(2, meaning=None, matched=0b1)], [5.0])
    assert not found([unrelated, candidate(2, meaning=None)], [5.0])
