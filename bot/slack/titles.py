"""The titles of conversations in the agent's pane: each quotes its first question, and follows what becomes of that."""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from cachetools import LRUCache

from bot.platform.retry import Backoff
from bot.platform.tasks import BackgroundTasks
from bot.slack.outbox import FORGOTTEN_TITLE
from bot.slack.text import plain
from composer.errors import NexusError

logger = structlog.get_logger()

MAX_TITLE_CHARS: Final = 60
MAX_THREADS: Final = 10_000
MAX_TRIES: Final = 6
Thread = tuple[str, str]  # the channel of a DM, and the `ts` of the conversation in it


class PaneTitles:
    """The titles that this process has set. A title is set in the background, and the last one that is wanted stays."""

    def __init__(self, set_title: Callable[[str, str, str], Awaitable[None]], backoff: Backoff) -> None:
        """`set_title` sets the title of a thread; it raises Unavailable."""
        self._set_title = set_title
        self._backoff = backoff
        self._tasks = BackgroundTasks()
        self._untitled: LRUCache[Thread, bool] = LRUCache(MAX_THREADS)
        self._titled: LRUCache[tuple[str, str], str] = LRUCache(MAX_THREADS)  # threads, by the question that they quote
        self._wanted: dict[Thread, str] = {}  # titles that are not shown yet

    def begin(self, channel: str, thread: str) -> None:
        """Somebody began a conversation."""
        self._untitled[channel, thread] = True

    def on_question(self, channel: str, ts: str, thread: str, text: str) -> None:
        """Quote a question, in Slack's markup, in the title of a conversation that has none yet."""
        if self._untitled.pop((channel, thread), False):
            self._titled[channel, ts] = thread
            self._want((channel, thread), text)

    def on_change(self, channel: str, ts: str, text: str | None) -> None:
        """A message was edited, or (None) deleted: so is the title that quotes it."""
        thread = self._titled.get((channel, ts))
        if thread is not None:
            self._want((channel, thread), text)

    async def close(self) -> None:
        """Set no more titles."""
        await self._tasks.cancel()

    def _want(self, thread: Thread, text: str | None) -> None:
        is_being_set = thread in self._wanted
        quoted = "" if text is None else " ".join(plain(text, {}).split())[:MAX_TITLE_CHARS]
        self._wanted[thread] = quoted or FORGOTTEN_TITLE
        if not is_being_set:
            self._tasks.start(self._show(thread))

    async def _show(self, thread: Thread) -> None:
        async def show() -> None:
            shown = ""
            while shown != self._wanted[thread]:
                shown = self._wanted[thread]
                await self._set_title(*thread, shown)

        try:
            await self._backoff.retry(show, "slack.title_retrying", max_tries=MAX_TRIES)
        except NexusError as error:
            logger.info("slack.title_not_set", error=str(error))
        finally:
            del self._wanted[thread]
