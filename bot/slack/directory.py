"""Looks up the users, channels and files of a Slack workspace by id, with a cache."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

import structlog
from cachetools import LRUCache
from yarl import URL

from bot.slack.client import HIDDEN_CHANNEL, Slack, SlackRefused
from bot.slack.reading import BotIdentity, attachment_of, is_unknown, trust_of, zone_of
from composer.errors import NexusError, Unavailable
from composer.model import Attachment, Trust
from composer.ports.clock import Clock

logger = structlog.get_logger()

_PLAIN_HOST = re.compile(r"[a-z0-9.-]+")  # nothing encoded

PERSON_MAX_AGE: Final = 600.0  # seconds
ADMIN_MAX_AGE: Final = 60.0
ROOM_MAX_AGE: Final = 30.0
NO_MAX_AGE: Final = float("inf")
MAX_CACHED: Final = 10_000  # entries of each kind
MAX_CLOCK_DIFFERENCE: Final = timedelta(seconds=5)  # between Slack's clock and ours
SLACK_LOOKUP_SECONDS: Final = 1.5  # at most, for a name: an event must be acknowledged within three
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class SlackPerson:
    """A person as Slack describes them; `admin` means an admin of the whole workspace, which only a member is. A guest
    is somebody whom Slack restricts to some channels, or who belongs to another organisation. `certain`: Slack has said
    so, as of `stated_at`; else it did not answer, and the name is their id. `left`: their account is closed.
    `timezone`: the name of their time zone."""

    name: str
    admin: bool = False
    trust: Trust = Trust.MEMBER
    certain: bool = True
    left: bool = False
    stated_at: datetime | None = None
    timezone: str = ""


@dataclass(frozen=True, slots=True)
class SlackRoom:
    """A channel as Slack described it. `creator` is the id of who made it. `outsiders`: it is shared with another
    organisation, or about to be.

    `stated_at` is a time from which on a public channel was described so, a little early since Slack's clock may differ
    from ours: what Slack says of a later time holds. None for a private one, which is to be private at once. `asked_at`
    is the same time, also for a private one. `ours`: we are in it.
    """

    name: str | None
    private: bool
    creator: str = ""
    outsiders: bool = False
    stated_at: datetime | None = None
    asked_at: datetime | None = None
    ours: bool = True

    @property
    def outsiders_at(self) -> datetime | None:
        """The time of which `outsiders` is said: a yes is so now (None), a no was so when Slack was asked."""
        return None if self.outsiders else self.asked_at


class CachedLookup(Generic[V]):
    """A cache of answers by id. Concurrent callers share one lookup; a failed one is not cached.

    The maximum age belongs to the caller, who may need a fresher answer for one purpose than for another: that is why
    this is not a cachetools.TTLCache.
    """

    def __init__(self, look_up: Callable[[str], Awaitable[V]], monotonic: Callable[[], float]) -> None:
        self._look_up = look_up
        self._monotonic = monotonic
        self._answers: LRUCache[str, tuple[float, asyncio.Future[V]]] = LRUCache(MAX_CACHED)

    async def get(self, id: str, *, max_age: float) -> V:
        """The answer, at most `max_age` seconds old. Raises what the lookup raises."""
        known = self._answers.get(id)
        if known is None or self._monotonic() - known[0] > max_age or _failed(known[1]):
            known = (self._monotonic(), asyncio.ensure_future(self._look_up(id)))
            self._answers[id] = known
        return await asyncio.shield(known[1])

    def put(self, id: str, value: V) -> None:
        """Cache a value learnt from an event."""
        answer: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        answer.set_result(value)
        self._answers[id] = (self._monotonic(), answer)

    def drop(self, id: str) -> None:
        """Remove an outdated value."""
        self._answers.pop(id, None)

    def clear(self) -> None:
        """Remove every value."""
        self._answers.clear()


def _failed(answer: asyncio.Future[V]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)


class SlackDirectory:
    """The users, channels and files of one workspace, and the bot's own ids."""

    def __init__(self, slack: Slack, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._slack = slack
        self._clock = clock
        self._me: CachedLookup[BotIdentity] = CachedLookup(self._look_up_me, monotonic)
        self._team: str | None = None
        self._people: CachedLookup[SlackPerson] = CachedLookup(self._look_up_person, monotonic)
        self._rooms: CachedLookup[SlackRoom] = CachedLookup(self._look_up_room, monotonic)
        self._handles: CachedLookup[Mapping[str, str]] = CachedLookup(self._look_up_handles, monotonic)
        self._dms: CachedLookup[str] = CachedLookup(self._look_up_dm, monotonic)

    async def me(self) -> BotIdentity:
        """The bot's own ids. Raises Unavailable while Slack does not answer."""
        return await self._me.get("", max_age=NO_MAX_AGE)

    @property
    def known_team(self) -> str | None:
        """The id of our workspace; None until Slack has told it."""
        return self._team

    def forget_me(self) -> None:
        """The token was revoked: look up the bot's ids again."""
        self._me.drop("")

    async def person(self, user: str) -> SlackPerson:
        """A person; with the id as the name, and as a guest, when Slack does not answer in time."""
        try:
            async with asyncio.timeout(SLACK_LOOKUP_SECONDS):
                return await self._people.get(user, max_age=PERSON_MAX_AGE)
        except (NexusError, TimeoutError) as error:
            logger.warning("slack.person_unknown", user=user, error=str(error))
            return SlackPerson(user, trust=Trust.GUEST, certain=False)  # when unsure

    async def is_admin(self, user: str) -> bool:
        """Whether someone is an admin or owner of the workspace; False when Slack does not answer in time."""
        try:
            async with asyncio.timeout(SLACK_LOOKUP_SECONDS):
                return (await self._people.get(user, max_age=ADMIN_MAX_AGE)).admin
        except (NexusError, TimeoutError):
            return False

    async def is_room_admin(self, channel: str, user: str) -> bool:
        """Whether someone is an admin of the workspace, or a member of it who made a channel; False when Slack does not
        say in time."""
        if await self.is_admin(user):
            return True
        try:
            made = (await self.room(channel)).creator == user != ""
            return made and (await self.person(user)).trust is Trust.MEMBER
        except NexusError:
            return False

    async def room(self, channel: str) -> SlackRoom:
        """A channel. Raises Unavailable, and Refused if we are not in it."""
        try:
            async with asyncio.timeout(SLACK_LOOKUP_SECONDS):
                return await self._rooms.get(channel, max_age=ROOM_MAX_AGE)
        except TimeoutError as error:
            raise Unavailable("Slack did not answer in time which channel that is; try again.") from error

    async def may_post(self, channel: str) -> bool:
        """Whether we can post in a channel; True when Slack does not say."""
        try:
            if not (await self.room(channel)).ours:
                self.forget_room(channel)  # we may have been added meanwhile
            return (await self.room(channel)).ours
        except SlackRefused as error:
            return error.code != HIDDEN_CHANNEL
        except NexusError:
            return True

    async def title(self, channel: str) -> str | None:
        """The name of a channel; None when Slack does not answer in time."""
        try:
            async with asyncio.timeout(SLACK_LOOKUP_SECONDS):
                return (await self._rooms.get(channel, max_age=PERSON_MAX_AGE)).name
        except (NexusError, TimeoutError):
            return None

    async def handles(self) -> Mapping[str, str]:
        """The names of the workspace's user groups, by id; none when Slack does not answer in time, or may not say."""
        try:
            async with asyncio.timeout(SLACK_LOOKUP_SECONDS):
                return await self._handles.get("", max_age=PERSON_MAX_AGE)
        except (NexusError, TimeoutError):
            return {}

    async def is_public(self, channel: str) -> bool:
        """Whether a channel is public; False when Slack does not say so in time."""
        try:
            async with asyncio.timeout(SLACK_LOOKUP_SECONDS):
                return not (await self._rooms.get(channel, max_age=ROOM_MAX_AGE)).private
        except (NexusError, TimeoutError):
            return False

    async def outsiders(self, channel: str) -> tuple[bool, datetime | None]:
        """Whether a channel is shared with another organisation, and of which time that is said (None: it is so now).
        Raises Unavailable and Refused."""
        try:
            async with asyncio.timeout(SLACK_LOOKUP_SECONDS):
                room = await self._rooms.get(channel, max_age=PERSON_MAX_AGE)
                return room.outsiders, room.outsiders_at
        except TimeoutError as error:
            raise Unavailable("Slack did not answer in time who reads that channel; try again.") from error

    async def dm(self, user: str) -> str:
        """The channel of our DM with someone. Raises Unavailable and Refused."""
        return await self._dms.get(user, max_age=NO_MAX_AGE)

    async def partner(self, channel: str) -> str:
        """Who is in a DM with us; "" when Slack does not tell us of that DM. Raises Unavailable."""
        try:
            return str((await self._slack.call("conversations.info", channel=channel))["channel"].get("user") or "")
        except SlackRefused as error:
            logger.warning("slack.partner_unknown", channel=channel, error=str(error))
            return ""

    def note_dm(self, user: str, channel: str) -> None:
        """Cache the channel of a DM, learnt from a message in it."""
        self._dms.put(user, channel)

    def forget_changes(self) -> None:
        """Events may have been missed: look up people and channels again."""
        self._people.clear()
        self._rooms.clear()

    def forget_person(self, user: str) -> None:
        """A name or a role has changed."""
        self._people.drop(user)

    def forget_room(self, channel: str) -> None:
        """A name or the privacy of a channel has changed."""
        self._rooms.drop(channel)

    async def members(self, channel: str) -> set[str]:
        """The ids of everyone in a channel. Raises Unavailable and Refused."""
        pages = self._slack.pages("conversations.members", channel=channel, limit=1000)
        return {user async for page in pages for user in page["members"]}

    async def attachment(self, file: Attachment) -> Attachment:
        """A file, also where its event says only that Slack must be asked. Raises Unavailable."""
        if not is_unknown(file):
            return file
        return attachment_of((await self._slack.call("files.info", file=file.address))["file"])

    def is_slack_address(self, url: str) -> bool:
        """Whether our token may be sent to an address: one of Slack's own hosts, encrypted."""
        try:
            address = URL(url)
            if address.origin() == self._slack.origin:
                return True
        except ValueError:
            return False
        host = address.host or ""
        ours = host == "slack.com" or host.endswith(".slack.com")
        return address.scheme == "https" and ours and _PLAIN_HOST.fullmatch(host) is not None

    async def _look_up_me(self, _: str) -> BotIdentity:
        found = await self._slack.call("auth.test")
        self._team = found["team_id"]
        bot, name, url = (str(found.get(key, "")) for key in ("bot_id", "user", "url"))
        return BotIdentity(found["team_id"], found["user_id"], bot, name, url, str(found.get("enterprise_id") or ""))

    async def _look_up_person(self, user: str) -> SlackPerson:
        asked_at = self._clock.now() - MAX_CLOCK_DIFFERENCE
        found, me = (await self._slack.call("users.info", user=user))["user"], await self.me()
        profile = found.get("profile", {})
        name = profile.get("display_name") or profile.get("real_name") or found.get("real_name") or found.get("name")
        admin = any(found.get(right) for right in ("is_admin", "is_owner", "is_primary_owner"))
        trust, left = trust_of(found, me), found.get("deleted") is True
        admin = admin and trust is Trust.MEMBER
        return SlackPerson(str(name or user), admin, trust, left=left, stated_at=asked_at, timezone=zone_of(found))

    async def _look_up_room(self, channel: str) -> SlackRoom:
        asked_at = self._clock.now() - MAX_CLOCK_DIFFERENCE
        found = (await self._slack.call("conversations.info", channel=channel))["channel"]
        private = any(found.get(kind) for kind in ("is_private", "is_group", "is_mpim", "is_im"))
        shared = found.get("is_shared") and not found.get("is_org_shared")  # of a workspace of ours, if it says so
        outsiders = shared or any(found.get(mark) for mark in ("is_ext_shared", "is_pending_ext_shared"))
        stated_at, ours = None if private else asked_at, found.get("is_member") is not False
        return SlackRoom(
            found.get("name"), private, str(found.get("creator") or ""), bool(outsiders), stated_at, asked_at, ours
        )

    async def _look_up_handles(self, _: str) -> Mapping[str, str]:
        try:
            found = (await self._slack.call("usergroups.list")).get("usergroups") or ()
        except SlackRefused as error:  # the app was installed without the scope
            logger.warning("slack.groups_unknown", error=str(error))
            return {}
        return {str(group["id"]): str(group["handle"]) for group in found if group.get("handle")}

    async def _look_up_dm(self, user: str) -> str:
        return str((await self._slack.call("conversations.open", users=user))["channel"]["id"])
