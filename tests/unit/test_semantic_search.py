"""What a search is asked for."""

import uuid
from datetime import UTC, datetime
from typing import Any, cast

from composer.layers import semantic
from composer.layers.semantic import Retrieval, SearchQuery, Shown
from composer.model import (
    Attachment,
    Conversation,
    ConversationKind,
    Item,
    Message,
    Visibility,
    room_namespace,
)
from composer.repositories.recall import Found, Recall
from composer.visibility import AccessContext, readable

ROOM, BOB = uuid.UUID(int=1), uuid.UUID(int=2)
NOW = datetime(2026, 5, 4, tzinfo=UTC)
MAY_READ = readable(
    AccessContext(Conversation(ROOM, uuid.UUID(int=3), ConversationKind.ROOM, "r", room_namespace(ROOM)), BOB), []
)


class Asked:
    """Finds nothing, and keeps what was asked for."""

    def __init__(self) -> None:
        self.exclude: list[uuid.UUID] = []
        self.long: list[uuid.UUID] = []

    async def search(self, *given: Any) -> Found:
        self.exclude, self.long = given[4], given[9]
        return Found([], {})


def said(number: int, text: str, *files: Attachment) -> Message:
    tag = (room_namespace(ROOM), Visibility.PUBLIC)
    return Message(uuid.UUID(int=number), f"m{number}", number, NOW, BOB, None, "bob", text, *tag, files)


async def test_of_what_is_shown_that_alone_is_looked_up_which_may_be_in_several_passages() -> None:
    file = Attachment("notes.txt", "text/plain", "all of it")
    messages = [said(1, "short"), said(2, "long " * 300), said(3, "\u65e5" * 401), said(4, "with a file", file)]
    summary = Item(
        "episodic", "day", str(uuid.UUID(int=9)), "What was said.", NOW, room_namespace(ROOM), Visibility.PUBLIC
    )
    asked = Asked()
    query = SearchQuery("when do we ship?", None, [], ("nexus",))
    shown = Shown(messages, [summary])
    await semantic.read(cast(Recall, cast(Any, asked)), MAY_READ, query, shown, Retrieval(), NOW, floor=False)
    episodes = [semantic.episode_id(each) for each in messages]
    assert asked.exclude == [*episodes, uuid.UUID(int=9)]
    assert asked.long == [*episodes[1:], uuid.UUID(int=9)]
