"""The short messages around what was recalled come with it."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from composer.layers import around
from composer.layers.semantic import Retrieval, SearchQuery, Shown
from composer.model import Conversation, ConversationKind, Item, Visibility, room_namespace
from composer.repositories.recall import Recall
from composer.visibility import AccessContext, readable

ROOM, BOB = uuid.UUID(int=1), uuid.UUID(int=2)
NOW = datetime(2026, 5, 4, tzinfo=UTC)
MAY_READ = readable(
    AccessContext(Conversation(ROOM, uuid.UUID(int=3), ConversationKind.ROOM, "r", room_namespace(ROOM)), BOB), []
)
QUERY = SearchQuery("when do we ship?", None, [], ("nexus",))


def said(number: int, text: str, minutes: int, namespace: str = room_namespace(ROOM)) -> Item:
    return Item(
        *(
            "semantic",
            "episode",
            str(uuid.UUID(int=number)),
            text,
            NOW - timedelta(days=1) + timedelta(minutes=minutes),
        ),
        *(namespace, Visibility.PUBLIC, BOB),
        author="bob",
        messages=(f"m{number}",),
    )


class Beside:
    """The messages around every hit."""

    def __init__(self, items: list[Item]) -> None:
        self._items = items

    async def around(self, _: object, episodes: list[uuid.UUID], *__: object) -> dict[uuid.UUID, list[Item]]:
        return dict.fromkeys(episodes, self._items)


async def texts(near: list[Item], **options: Any) -> list[str]:
    hits = [replace(said(n, f"hit number {n}", n), score=1.0) for n in range(100, 112)]
    recall = cast(Recall, cast(Any, Beside(near)))
    found = await around.read(recall, MAY_READ, QUERY, hits, Shown(), Retrieval(**options), NOW)
    assert [item for item in found if item.score] == hits
    return [item.text for item in found]


async def test_what_was_said_shortly_around_a_hit_stands_behind_the_ten_best() -> None:
    near = [said(1, "Yes, on Tuesday.", 90), said(100, "hit number 100", 100)]
    assert (await texts(near))[10:] == ["Yes, on Tuesday.", "hit number 110", "hit number 111"]


async def test_what_is_around_the_six_best_comes() -> None:
    asked: list[uuid.UUID] = []

    class Asked(Beside):
        async def around(self, _: object, episodes: list[uuid.UUID], *__: object) -> dict[uuid.UUID, list[Item]]:
            asked.extend(episodes)
            return {}

    hits = [replace(said(n, f"hit number {n}", n), score=1.0) for n in range(100, 112)]
    await around.read(cast(Recall, cast(Any, Asked([]))), MAY_READ, QUERY, hits, Shown(), Retrieval(), NOW)
    assert asked == [uuid.UUID(int=n) for n in range(100, 106)]


async def test_what_may_not_be_read_or_an_agent_was_asked_is_left_out() -> None:
    near = [
        said(2, "On Wednesday.", 90, room_namespace(BOB)),
        said(3, "@nexus what day is it?", 90),
    ]
    assert len(await texts(near)) == 12


async def test_whoever_wants_ten_or_the_newest_gets_no_others() -> None:
    near = [said(1, "Yes, on Tuesday.", 90)]
    assert len(await texts(near, top_k=10)) == 12
    assert len(await texts(near, strategy="recent")) == 12


async def test_a_talk_of_many_short_messages_comes_whole() -> None:
    near = [said(n, f"short {n}", 90) for n in range(1, 37)]
    assert (await texts(near))[10:-2] == [item.text for item in near]
