"""Tells people in their DMs that their messages wait, while a shard does not connect."""

from collections.abc import Callable
from typing import Final

import discord
import structlog

from bot.discord.guilds import Guilds
from bot.discord.outbox import NO_MENTIONS
from bot.discord.reading import FAILURES
from bot.platform.tasks import BackgroundTasks
from composer.errors import Unavailable

logger = structlog.get_logger()

WAITING: Final = (
    "I am still connecting to Discord, and don't know yet which server your direct messages with me belong to. I will "
    "answer as soon as I do. If no answer comes, write to me again."
)


class WaitingDms:
    """People who have written in a DM that can't be stored yet. Each is told so once, after a while."""

    def __init__(self, client: Callable[[], discord.Client | None], guilds: Guilds) -> None:
        self._client = client
        self._guilds = guilds
        self._people: set[str] = set()
        self._tasks = BackgroundTasks()

    def note(self, user: str) -> None:
        """Somebody wrote in a DM. Returns at once."""
        if not self._guilds.are_all_known and user not in self._people:
            self._people.add(user)
            self._tasks.start(self._wait(user))

    async def close(self) -> None:
        """Tell nobody any more."""
        await self._tasks.cancel()

    async def _wait(self, user: str) -> None:
        try:
            await self._guilds.until_all_known()
        except Unavailable:
            await self._tell(user)
            await self._guilds.all_known()
        finally:
            self._people.discard(user)

    async def _tell(self, user: str) -> None:
        client = self._client()
        if client is None or client.is_closed():
            return
        try:
            dm = await client.create_dm(discord.Object(int(user)))
            # Silent, and no reply: it is not taken for a part of an answer, nor for the notice that one is delayed.
            await dm.send(WAITING, allowed_mentions=NO_MENTIONS, silent=True)
        except FAILURES as error:
            logger.warning("discord.wait_untold", user=user, error=type(error).__name__)
