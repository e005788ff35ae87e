"""Posts, edits and finds messages on Discord (bot.delivery.outbox.Outbox)."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import discord

from bot.delivery.offers import buttons
from bot.delivery.outbox import CLOCK_SKEW, DELAY_SUFFIX, PostedMessages, is_answer_part, part_of
from bot.discord.reading import FAILURES, TEXT_MESSAGES
from composer.errors import NexusError, Refused, Unavailable
from composer.model import ConversationKind, Offer
from composer.repositories.deliveries import Destination

MAX_DISCORD_MESSAGE_CHARS: Final = 2_000
EDIT_INTERVAL_SECONDS: Final = 1.1  # Discord takes five edits in five seconds
MAX_SEARCHED_MESSAGES: Final = 300  # after a question, when an answer of an earlier process is looked for
DISCORD_UNREACHABLE: Final = "Discord can't be reached at the moment."
FAILING: Final = "Discord has trouble at the moment."
RATE_LIMITED: Final = "Discord limits how often I may post; I try again soon."
DISCORD_OUTAGES: Final = (DISCORD_UNREACHABLE, FAILING, RATE_LIMITED)
THREAD_IS_ARCHIVED: Final = 50_083  # Discord's code for an edit in one
MAX_BUTTON_ID_CHARS: Final = 100
NO_MENTIONS: Final = discord.AllowedMentions.none()


class DiscordOutbox:
    """Posts answers as replies to their questions, and what agents post of themselves as messages of its own. Notifies
    nobody, and posts nothing twice.

    For some minutes, Discord itself drops a second message with the same nonce. After that, an answer is found in the
    channel: its first part refers to the question, and the next ones follow it.
    """

    def __init__(self, client: Callable[[], discord.Client | None], posted: PostedMessages) -> None:
        self._client = client
        self._posted = posted
        self._uncertain: set[str] = set()  # keys of posts that may or may not have taken effect

    @property
    def limit(self) -> int:
        """How many characters one message may have."""
        return MAX_DISCORD_MESSAGE_CHARS

    @property
    def edit_interval(self) -> float:
        """Seconds between two edits of one message."""
        return EDIT_INTERVAL_SECONDS

    async def post(self, to: Destination, text: str, key: str, offers: Sequence[Offer] = ()) -> str:
        """Post a message, with `offers` as buttons below it: as a reply to the question if it is the first part of an
        answer, or says that the answer is delayed. Notices are posted silently, and `find` recognises them by that."""
        delay, notice, unasked = key.endswith(DELAY_SUFFIX), not is_answer_part(key), not to.message
        if delay and text.startswith(DISCORD_OUTAGES):
            raise Unavailable(text)  # pointless to post: once Discord takes the notice, it takes the answer too
        channel = await self.channel(to)
        if unasked and to.thread is not None:
            await self._require_unlocked(int(to.thread))
        is_reply = not unasked and (delay or (not notice and part_of(key) == 0))
        question = (
            None
            if unasked
            else discord.MessageReference(message_id=int(to.message), channel_id=channel.id, fail_if_not_exists=False)
        )
        below = _below(to, offers)
        self._uncertain.add(key)
        with self._settled_if_refused(key), translate_discord_errors():
            if is_reply and question is not None:
                message = await channel.send(
                    text,
                    nonce=key,
                    reference=question,
                    mention_author=False,
                    allowed_mentions=NO_MENTIONS,
                    silent=notice,
                    **below,
                )
            else:
                # By the flag that suppresses previews, `find` tells an agent's own posts from parts of answers.
                message = await channel.send(
                    text,
                    nonce=key,
                    allowed_mentions=NO_MENTIONS,
                    silent=notice,
                    suppress_embeds=unasked,
                    **below,
                )
        self._uncertain.discard(key)
        if message.content != text:  # an earlier message, which was posted with this nonce
            await self.edit(to, str(message.id), text)
        return str(message.id)

    @contextmanager
    def _settled_if_refused(self, key: str) -> Iterator[None]:
        try:
            yield
        except Refused:
            self._uncertain.discard(key)
            raise

    async def _require_unlocked(self, thread: int) -> None:
        """Raise Refused for a thread that somebody has locked: a post would open it again. One that Discord archived by
        itself is opened by the post."""
        with translate_discord_errors():
            found = await self.connected().fetch_channel(thread)
        if isinstance(found, discord.Thread) and found.locked:
            raise Refused("This thread is locked.")

    async def edit(self, to: Destination, message: str, text: str) -> None:
        """Replace the text of one of our messages; do nothing if somebody has deleted it. A thread that is archived is
        opened for that, since nothing in it can be edited."""
        channel = await self.channel(to)
        posted = channel.get_partial_message(int(message))
        with translate_discord_errors(), suppress(discord.NotFound):
            try:
                await posted.edit(content=text, allowed_mentions=NO_MENTIONS, view=None)
            except discord.HTTPException as error:
                if error.code != THREAD_IS_ARCHIVED:
                    raise
                await self.connected().http.edit_channel(channel.id, archived=False)
                await posted.edit(content=text, allowed_mentions=NO_MENTIONS, view=None)

    async def find(self, to: Destination, key: str) -> str | None:
        """The message that an earlier process or an interrupted call posted with this key, if any."""
        if not self._posted.may_have(key) and key not in self._uncertain:
            return None
        channel = await self.channel(to)
        if not to.message:
            return await self._find_own(to, channel)
        question = int(to.message)
        if not is_answer_part(key):
            return await self._find_notice(to, channel, question, delay=key.endswith(DELAY_SUFFIX))
        number = part_of(key)
        with translate_discord_errors():
            answers = [answer async for answer in self._answers(channel, question)]
        for parts in answers:
            if len(parts) > number and not await self._posted.contain(to, parts[number]):
                return parts[number]
        return None

    async def show_typing(self, to: Destination, key: str) -> None:
        """Show for ten seconds that an answer is being written."""
        channel = await self.channel(to)
        with translate_discord_errors():
            await channel.typing()

    async def _find_own(self, to: Destination, channel: discord.PartialMessageable) -> str | None:
        """The first of our own posts since a time that is not known to be posted: those answer no message, and their
        parts are recorded in order."""
        client, since = self.connected(), None if to.since is None else to.since - CLOCK_SKEW
        with translate_discord_errors():
            own = [
                str(message.id)
                async for message in channel.history(after=since, limit=MAX_SEARCHED_MESSAGES, oldest_first=True)
                if client.user is not None and message.author.id == client.user.id and _is_unasked(message)
            ]
        for id in own:
            if not await self._posted.contain(to, id):
                return id
        return None

    async def _find_notice(
        self, to: Destination, channel: discord.PartialMessageable, question: int, *, delay: bool
    ) -> str | None:
        with translate_discord_errors():
            silent = [each async for each in self._silent_messages(channel, question)]
        for message, reference in silent:
            if reference == (question if delay else None) and not await self._posted.contain(to, message):
                return message
        return None

    async def _silent_messages(
        self, channel: discord.PartialMessageable, question: int
    ) -> AsyncIterator[tuple[str, int | None]]:
        """Our silent messages after a question, each with the id of the message that it refers to."""
        client = self.connected()
        after = discord.Object(question)
        async for message in channel.history(after=after, limit=MAX_SEARCHED_MESSAGES, oldest_first=True):
            if client.user is not None and message.author.id == client.user.id and message.flags.silent:
                yield str(message.id), None if message.reference is None else message.reference.message_id

    async def _answers(self, channel: discord.PartialMessageable, question: int) -> AsyncIterator[list[str]]:
        """Our answers to a question, each as the ids of its parts."""
        client = self.connected()
        parts: list[str] = []
        after = discord.Object(question)
        async for message in channel.history(after=after, limit=MAX_SEARCHED_MESSAGES, oldest_first=True):
            ours = client.user is not None and message.author.id == client.user.id
            if not ours or message.flags.silent or _is_unasked(message) or message.type not in TEXT_MESSAGES:
                continue
            if message.reference is None:
                if parts:
                    parts.append(str(message.id))
                continue
            if parts:
                yield parts
            parts = [str(message.id)] if message.reference.message_id == question else []
        if parts:
            yield parts

    def connected(self) -> discord.Client:
        """The client. Raises Unavailable while there is none."""
        client = self._client()
        if client is None or client.is_closed():
            raise Unavailable(DISCORD_UNREACHABLE)
        return client

    async def channel(self, to: Destination) -> discord.PartialMessageable:
        """The channel, thread or DM that an answer goes to."""
        client = self.connected()
        if to.kind is not ConversationKind.DM:
            return client.get_partial_messageable(int(to.thread or to.name))
        if to.user is None:
            raise Refused("This DM can't be sent: its recipient is unknown.")
        with translate_discord_errors():
            dm = await client.create_dm(discord.Object(int(to.user)))
        return client.get_partial_messageable(dm.id)


def _below(to: Destination, offers: Sequence[Offer]) -> dict[str, Any]:
    """The buttons below a message. Presses arrive as interactions, also where discord.py has forgotten the view."""
    found = buttons(to.user or "", offers, MAX_BUTTON_ID_CHARS)
    if not found:
        return {}
    view = discord.ui.View(timeout=1)
    for label, carried in found:
        view.add_item(discord.ui.Button(label=label, custom_id=carried))
    return {"view": view}


def _is_unasked(message: discord.Message) -> bool:
    """Whether one of our messages is a post of an agent's own, and no part of an answer."""
    return message.flags.suppress_embeds and message.reference is None


@contextmanager
def translate_discord_errors() -> Iterator[None]:
    """Turn discord.py's errors into ours: Unavailable where waiting helps (discord.py has retried), else Refused."""
    try:
        yield
    except NexusError:
        raise
    except discord.DiscordServerError as error:
        raise Unavailable(FAILING) from error
    except discord.HTTPException as error:
        if error.status == 429 or error.status >= 500:
            raise Unavailable(RATE_LIMITED) from error
        raise Refused(f"Discord refused this: {error.text or error.status}.") from error
    except (*FAILURES, RuntimeError) as error:
        raise Unavailable(DISCORD_UNREACHABLE) from error
