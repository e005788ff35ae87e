"""No cache of the process contains a word of a message that was forgotten, deleted or edited."""

import gc
import random
import string
import types
from collections.abc import Iterator
from typing import Any

import pytest

from bot.script.places import incoming, place_of
from composer.stores.models import tokens
from tests.support.harness import AppHarness

ROOM = {"room": "general"}
PEOPLE = ("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi")


def unique_word() -> str:
    """A word of letters that occurs nowhere else, not even as a constant of this file."""
    return "".join(random.choices(string.ascii_lowercase, k=16))


def holders(word: str) -> set[str]:
    """The kinds of objects that refer to a text with this word in it; `word` itself does not count."""
    gc.collect()
    found = set()
    for owner, value in _references():
        if len(value) < len(word):
            continue
        text = value.decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else value
        if text is not word and word in text.casefold():
            found.add(f"{type(owner).__module__}.{type(owner).__qualname__}: {_shape(owner)}")
    return found


def _references() -> Iterator[tuple[object, Any]]:
    """Every text that some object refers to, with that object."""
    checked: set[int] = set()
    waiting = [thing for thing in gc.get_objects() if not isinstance(thing, types.FrameType)]
    while waiting:
        owner = waiting.pop()
        for value in gc.get_referents(owner):
            if isinstance(value, str | bytes | bytearray):
                yield owner, value
            elif not gc.is_tracked(value) and id(value) not in checked:
                checked.add(id(value))  # a container of plain values, which the collector does not list
                waiting.append(value)


def _shape(owner: object) -> str:
    return f"{len(owner)} entries" if isinstance(owner, dict | list | tuple | set) else ""


async def add_discussions(harness: AppHarness, word: str) -> None:
    """A room with several mixed discussions; the word occurs in one message, and in the prompt of an answer."""
    place, workspace = place_of("general", None, None), harness.workspace()
    remarks = [(PEOPLE[n % len(PEOPLE)], f"@{PEOPLE[(n + 4) % len(PEOPLE)]} remark number {n}") for n in range(60)]
    remarks.insert(len(remarks) - 25, ("alice", f"the {word} is in the `{word}_x` vault"))
    batch = [
        incoming(workspace, place, user, text, harness.clock.tick(), id=f"r{n}" if word not in text else "it")
        for n, (user, text) in enumerate(remarks)
    ]
    await harness.app.receive(workspace, batch)
    await harness.app.indexer.catch_up(workspace.tenant_id)
    await harness.ask("bob", "@nexus where is the vault?", **ROOM)
    await harness.ask("carol", "@nexus what is in the vault?", **ROOM)


@pytest.mark.parametrize("by", ["deletion", "edit", "command"])
async def test_no_cache_of_the_process_contains_erased_text(harness: AppHarness, by: str) -> None:
    word = unique_word()
    await add_discussions(harness, word)
    assert holders(word), "the word is cached while it is in use"
    if by == "command":
        await harness.command("alice", f"/nexus forget {word} --yes", **ROOM)
    else:
        await harness.change("it", None if by == "deletion" else "there is no vault")
    harness.delivery.replies.clear()
    harness.delivery.chunks.clear()
    assert holders(word) == set()
    assert [name for name, table in tokens._tables.items() if cached_pieces(table)] == []  # the tables of splintr


def cached_pieces(table: Any) -> int:
    """How many pieces of counted texts a table has cached; a kind that caches none has no such number."""
    try:
        return int(table.cache_len)
    except ValueError:
        return 0
