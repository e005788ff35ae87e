"""The working layer: the last messages of a conversation, from the cache if it is current, else from the log.

In a busy room, where several discussions are mixed, the last messages are fewer, and earlier
ones of the question's discussion are added. To those of a thread, the question that it hangs under is added with its
answers: on Slack these stand in the thread, and are filed in the channel.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from composer.errors import Unavailable
from composer.layers import disentanglement
from composer.model import Conversation, ConversationKind, Message
from composer.ports.working_cache import WorkingCache
from composer.repositories.messages import Messages
from composer.visibility import Readable

logger = structlog.get_logger()

SHOWN_MESSAGES: Final = 40  # at least, if the conversation has as many
WINDOW_STEP: Final = 20  # the window moves by so many messages at once, so that the prompt's beginning can be reused
READ_MESSAGES: Final = SHOWN_MESSAGES + WINDOW_STEP  # one more than the widest window
BUSY_SHOWN_MESSAGES: Final = 30  # the last messages that the view of a busy room shows at least
RELATED_MESSAGES: Final = SHOWN_MESSAGES - BUSY_SHOWN_MESSAGES  # and so many earlier ones of the same discussion
WHOLLY_RELATED: Final = 1.0  # what a thread hangs under
BUSY_READ_MESSAGES: Final = disentanglement.MAX_VIEW_MESSAGES  # that related ones are looked for in


@dataclass(frozen=True, slots=True)
class Window:
    """The messages of a conversation that are shown, oldest first. `recent` are the last ones, without gaps.

    `related` are earlier ones of the question's discussion with their relatedness, chosen from `candidates` messages
    in all (0: the room is not busy, and none were chosen; of a thread they are what it hangs under).
    """

    recent: tuple[Message, ...]
    related: tuple[tuple[Message, float], ...] = ()
    candidates: int = 0

    @property
    def shown(self) -> list[Message]:
        """All messages of the window, oldest first."""
        return [*(message for message, _ in self.related), *self.recent]


async def read(
    log: Messages,
    cache: WorkingCache,
    readable: Readable,
    conversation: Conversation,
    before: Message,
    *,
    expect_busy: bool = False,
) -> Window:
    """The window of a conversation, up to and without `before`. Each message is checked against `readable` again.

    `expect_busy` is only a hint: it decides how many messages are read first.
    """
    limit = BUSY_READ_MESSAGES if expect_busy else READ_MESSAGES
    messages = await _read_admitted(log, cache, readable, conversation, before, limit)
    if conversation.kind is ConversationKind.THREAD:
        opening = [each for each in await log.opening(readable, conversation) if readable.admits(each)]
        shown = {each.id for each in messages} | {before.id}
        related = tuple((each, WHOLLY_RELATED) for each in opening if each.id not in shown)
        return replace(latest_window(messages), related=related)
    if not is_busy_room(conversation, messages):
        return latest_window(messages)
    if not expect_busy:
        messages = await _read_admitted(log, cache, readable, conversation, before, BUSY_READ_MESSAGES)
    return busy_room_window(messages, before)


def latest_window(messages: Sequence[Message]) -> Window:
    """The last 40 to 59 messages. The oldest one shown changes with every twentieth message only."""
    return Window(tuple(messages[-_window_size(messages, SHOWN_MESSAGES) :]))


def busy_room_window(messages: Sequence[Message], question: Message) -> Window:
    """The last 30 to 49 messages of a busy room, and of the last 180 to 199 up to ten that are most related to the
    question."""
    candidates = messages[-_window_size(messages, BUSY_READ_MESSAGES - WINDOW_STEP) :]
    recent = _window_size(messages, BUSY_SHOWN_MESSAGES)
    earlier = len(candidates) - recent
    related = disentanglement.related_messages(candidates, question, earlier, RELATED_MESSAGES)
    return Window(recent=tuple(candidates[-recent:]), related=tuple(related), candidates=len(candidates))


def is_busy_room(conversation: Conversation, messages: Sequence[Message]) -> bool:
    """Whether the last messages of a room belong to several discussions. The answer changes only when the window moves,
    not with every message."""
    at_last_step = messages[: len(messages) - _since_step(messages)]
    if conversation.kind is not ConversationKind.ROOM or len(at_last_step) < SHOWN_MESSAGES:
        return False
    return disentanglement.is_busy(at_last_step[-SHOWN_MESSAGES:])


def _window_size(messages: Sequence[Message], minimum: int) -> int:
    return minimum + _since_step(messages)


def _since_step(messages: Sequence[Message]) -> int:
    """How many messages ago the window moved."""
    return messages[-1].seq % WINDOW_STEP if messages else 0


async def _read_admitted(
    log: Messages, cache: WorkingCache, readable: Readable, conversation: Conversation, before: Message, limit: int
) -> list[Message]:
    found = await _read_last(log, cache, readable, conversation, before, limit)
    return [message for message in found if readable.admits(message)]


async def _read_last(
    log: Messages, cache: WorkingCache, readable: Readable, conversation: Conversation, before: Message, limit: int
) -> list[Message]:
    """The last messages before one, at most `limit`, and at least as many as a window of `limit` less a step shows."""
    try:
        cached = await cache.read(conversation, limit)
    except Unavailable:
        logger.warning("working.cache_unavailable", conversation=str(conversation.id))
        return await log.latest(readable, conversation, limit, before)
    if cached is None:
        messages = await log.latest(readable, conversation, BUSY_READ_MESSAGES, None)
        try:
            await cache.replace(conversation, messages)
        except Unavailable:
            logger.warning("working.cache_unavailable", conversation=str(conversation.id))
        cached = messages[-limit:]
    earlier = [m for m in cached if (m.at, m.seq) < (before.at, before.seq)]
    pushed_out = len(cached) >= limit  # later messages may have pushed earlier ones out of what was read
    if pushed_out and len(earlier) < _window_size(earlier, limit - WINDOW_STEP):
        return await log.latest(readable, conversation, limit, before)
    return earlier
