"""What somebody has forgotten is in no object of the process any more: not in a cache of ours, nor of a library."""

import contextlib
import gc
import types
from typing import Final

import httpx2
import pytest

from tests.support.api import bearer, key_of
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness
from tests.support.waiting import until


@pytest.fixture
def harness(answering: AppHarness) -> AppHarness:
    return answering


# Written backwards, so that this test itself holds neither; nor may another one write them.
WORD: Final = "flehskoobqz"
WHO: Final = "drawetsqz"


def holders() -> list[str]:
    """The objects of this process that hold a text with one of the two words, by type, and the text. What runs is left
    out."""
    words = (WORD[::-1], WHO[::-1])
    gc.unfreeze()
    gc.collect()
    found = []
    for each in gc.get_objects():
        if each is words or isinstance(each, types.FrameType | types.CoroutineType):
            continue
        for held in gc.get_referents(each):
            text = held.decode("utf-8", "replace") if isinstance(held, bytes | bytearray) else held
            if isinstance(text, str) and any(word in text for word in words):
                found.append(f"{type(each).__name__}: {text[:80]!r}")
    gc.freeze()
    return found


async def test_no_object_of_the_process_holds_what_was_forgotten(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model
) -> None:
    """Not in a cache of ours, nor of a library that has read it: dates, links, names, tokens, patterns."""

    async def say(text: str, **place: str) -> None:
        await harness.say(WHO[::-1], text.replace("WORD", WORD[::-1]), **place)

    async def command(text: str) -> None:
        await harness.command(WHO[::-1], text.replace("WORD", WORD[::-1]), dm="nexus")

    async def post(path: str, **body: str) -> None:
        sent = {name: text.replace("WORD", WORD[::-1]) for name, text in body.items()}
        answer = await client.post(path, json=sent, headers=bearer(key))
        assert answer.status_code < 300

    key = await key_of(harness, WHO[::-1])
    await say("remind me on Friday at 17:00 about WORD", dm="nexus")
    await say("@nexus what of two WORD yesterday? see https://WORD.example.com/x", room="general")
    await say("I prefer three WORD tea, and we decided that WORD ships on 12 June", dm="nexus")
    await command("/nexus fact set WORD.code WORDfour")
    await command("/nexus memories WORD")
    await post("/v1/entries", content="a note of five WORD", title="WORD")
    await post("/v1/query", question="what about six WORD?")
    await post("/v1/chat", content="what about seven WORD?", session="s1")
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    assert holders(), "it is found where it is held: by what the model was shown, for one"
    await command("/nexus forget everything --yes")
    for record in (harness.delivery.replies, harness.delivery.chunks, model.shown):
        record.clear()
    left: list[str] = []

    def is_gone() -> bool:
        left[:] = holders()
        return not left

    with contextlib.suppress(TimeoutError):
        await until(is_gone)
    assert left == []
