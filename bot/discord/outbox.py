"""The way back to Discord: posts, edits and finds messages with discord.py (bot.delivery.streaming.Outbox)."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import discord

from bot.delivery.streaming import INTRODUCTION_MARK, TROUBLE_MARK
from bot.discord.reading import FAILURES
from composer.errors import NexusError, Refused, Unavailable
from composer.model import ConversationKind
from composer.repositories.deliveries import Destination

LIMIT: Final = 2_000  # characters a message
PACE: Final = 1.1  # seconds; Discord takes five edits in five seconds
LOOKED_AT: Final = 300  # messages after a question, when an answer of an earlier process is looked for
BESIDE: Final = (TROUBLE_MARK, INTRODUCTION_MARK)
UNREACHABLE: Final = "Discord can't be reached at the moment."
TROUBLED: Final = "Discord has trouble at the moment."
BUSY: Final = "Discord asks us to wait."
OWN_TROUBLES: Final = (UNREACHABLE, TROUBLED, BUSY)
NONE: Final = discord.AllowedMentions.none()


class DiscordOutbox:
    """Posts as replies to what was asked, pings nobody, and posts nothing twice.

    Discord itself drops a second message with the same nonce, for some minutes. After longer than that an answer
    is found in the channel: its first part refers to the question, the next ones follow it.
    """

    def __init__(
        self,
        client: Callable[[], discord.Client | None],
        noted: Callable[[Destination, str], Awaitable[bool]],
        fresh: Callable[[str], bool],
    ) -> None:
        """`noted`: whether a message is known to be (part of) an answer. `fresh`: whether this very process was the
        first to receive a question, so that no earlier one can have begun to answer it."""
        self._client = client
        self._noted = noted
        self._fresh = fresh
        self._doubtful: set[str] = set()  # keys of posts of which we don't know whether they took effect

    @property
    def limit(self) -> int:
        """Characters that one message may have."""
        return LIMIT

    @property
    def pace(self) -> float:
        """Seconds between edits of one message."""
        return PACE

    async def post(self, to: Destination, text: str, key: str) -> str:
        """Post a message, as a reply if it is an answer's first part or tells of trouble with it. What is no part of an
        answer is silent, which is also how it is told from answers later."""
        trouble, notice = key.endswith(TROUBLE_MARK), key.endswith(BESIDE)
        if trouble and text.startswith(OWN_TROUBLES):
            raise Unavailable(text)  # once Discord can show that it could not be reached, it shows the answer
        channel = await self.channel(to)
        first = trouble or (not notice and _part(key) == 0)
        asked = discord.MessageReference(message_id=int(to.message), channel_id=channel.id, fail_if_not_exists=False)
        self._doubtful.add(key)
        with told():
            if first:
                message = await channel.send(
                    text, nonce=key, reference=asked, mention_author=False, allowed_mentions=NONE, silent=notice
                )
            else:
                message = await channel.send(text, nonce=key, allowed_mentions=NONE, silent=notice)
        self._doubtful.discard(key)
        if message.content != text:  # an earlier one, which this nonce had posted
            await self.edit(to, str(message.id), text)
        return str(message.id)

    async def edit(self, to: Destination, message: str, text: str) -> None:
        """Replace the text of a message of ours; one that somebody has deleted stays deleted."""
        channel = await self.channel(to)
        with told():
            try:
                await channel.get_partial_message(int(message)).edit(content=text, allowed_mentions=NONE)
            except discord.NotFound:
                return

    async def find(self, to: Destination, key: str) -> str | None:
        """The message that an earlier process, or an attempt that was cut off, posted with this key."""
        if self._fresh(to.message) and key not in self._doubtful:
            return None
        channel, asked = await self.channel(to), int(to.message)
        if key.endswith(BESIDE):
            with told():
                silent = [each async for each in self._silent(channel, asked)]
            refers = asked if key.endswith(TROUBLE_MARK) else None
            for message, reference in silent:
                if reference == refers and not await self._noted(to, message):
                    return message
            return None
        number = _part(key)
        with told():
            answers = [answer async for answer in self._answers(channel, asked)]
        for parts in answers:
            if len(parts) > number and not await self._noted(to, parts[number]):
                return parts[number]
        return None

    async def typing(self, to: Destination, key: str) -> None:
        """Show that an answer is being written, for ten seconds."""
        channel = await self.channel(to)
        with told():
            await channel.typing()

    async def _silent(self, channel: discord.PartialMessageable, asked: int) -> AsyncIterator[tuple[str, int | None]]:
        """What we said silently after a message, and what each refers to."""
        client = self.connected()
        async for message in channel.history(after=discord.Object(asked), limit=LOOKED_AT, oldest_first=True):
            if client.user is not None and message.author.id == client.user.id and message.flags.silent:
                yield str(message.id), None if message.reference is None else message.reference.message_id

    async def _answers(self, channel: discord.PartialMessageable, asked: int) -> AsyncIterator[list[str]]:
        """What we said in answer to a message, each answer as the ids of its parts."""
        client = self.connected()
        parts: list[str] = []
        async for message in channel.history(after=discord.Object(asked), limit=LOOKED_AT, oldest_first=True):
            ours = client.user is not None and message.author.id == client.user.id
            if not ours or message.flags.silent or message.type not in _OURS:
                continue
            if message.reference is None:
                if parts:
                    parts.append(str(message.id))
                continue
            if parts:
                yield parts
            parts = [str(message.id)] if message.reference.message_id == asked else []
        if parts:
            yield parts

    def connected(self) -> discord.Client:
        """The client. Raises Unavailable while there is none."""
        client = self._client()
        if client is None or client.is_closed():
            raise Unavailable(UNREACHABLE)
        return client

    async def channel(self, to: Destination) -> discord.PartialMessageable:
        """The channel, thread or DM that an answer goes to."""
        client = self.connected()
        if to.kind is not ConversationKind.DM:
            return client.get_partial_messageable(int(to.thread or to.name))
        if to.user is None:
            raise Refused("Nobody is known to whom this DM could be sent.")
        with told():
            dm = await client.create_dm(discord.Object(int(to.user)))
        return client.get_partial_messageable(dm.id)


_OURS: Final = (discord.MessageType.default, discord.MessageType.reply)


def _part(key: str) -> int:
    return int(key.rpartition("-")[2])


@contextmanager
def told() -> Iterator[None]:
    """discord.py's errors as ours: what may pass (it has retried already), and what won't."""
    try:
        yield
    except NexusError:
        raise
    except discord.DiscordServerError as error:
        raise Unavailable(TROUBLED) from error
    except discord.HTTPException as error:
        if error.status == 429 or error.status >= 500:
            raise Unavailable(BUSY) from error
        raise Refused(f"Discord refused this: {error.text or error.status}.") from error
    except (*FAILURES, RuntimeError) as error:
        raise Unavailable(UNREACHABLE) from error
