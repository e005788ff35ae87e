"""Who and what the ids of a Slack workspace mean, looked up once and kept for a while."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

import structlog
from yarl import URL

from bot.slack.client import Slack
from composer.errors import NexusError, Refused, Unavailable
from composer.model import Attachment

logger = structlog.get_logger()

PERSON_KEPT: Final = 600.0  # seconds
ADMIN_KEPT: Final = 60.0
ROOM_KEPT: Final = 30.0
FOREVER: Final = float("inf")
MOST: Final = 10_000  # entries of each kind
PATIENCE: Final = 1.5  # seconds for a name: an event must be acknowledged within three
LONGEST_FILE: Final = 100_000  # bytes
_TEXTUAL: Final = frozenset(
    {"application/json", "application/xml", "application/x-yaml", "application/yaml", "application/toml"}
    | {"application/javascript", "application/x-sh", "application/sql", "application/x-ndjson", "application/x-python"}
)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Person:
    """A member of the workspace. `admin`: of the workspace as a whole."""

    name: str
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """A channel as Slack shows it now."""

    name: str | None
    private: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """Who we are in the workspace."""

    team: str
    user: str
    bot: str
    name: str = ""


class Kept(Generic[V]):
    """Answers by id; each is asked for once, however many want it, and again when it is old."""

    def __init__(self, ask: Callable[[str], Awaitable[V]], now: Callable[[], float]) -> None:
        self._ask = ask
        self._now = now
        self._kept: OrderedDict[str, tuple[float, asyncio.Future[V]]] = OrderedDict()

    async def get(self, id: str, *, within: float) -> V:
        """The answer, not older than `within` seconds. Raises what asking for it raises."""
        known = self._kept.get(id)
        if known is None or self._now() - known[0] > within or _failed(known[1]):
            known = (self._now(), asyncio.ensure_future(self._ask(id)))
            self._kept[id] = known
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return await asyncio.shield(known[1])

    def put(self, id: str, value: V) -> None:
        """What was learnt otherwise."""
        answer: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        answer.set_result(value)
        self._kept[id] = (self._now(), answer)

    def drop(self, id: str) -> None:
        """It has changed."""
        self._kept.pop(id, None)


def _address(file: dict[str, Any]) -> str:
    return str(file.get("url_private_download") or file.get("url_private") or "")


def _failed(answer: asyncio.Future[V]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)


class SlackDirectory:
    """What the ids of one workspace mean."""

    def __init__(self, slack: Slack, now: Callable[[], float] = time.monotonic) -> None:
        self._slack = slack
        self._me: Kept[Identity] = Kept(self._ask_me, now)
        self._people: Kept[Person] = Kept(self._ask_person, now)
        self._rooms: Kept[Room] = Kept(self._ask_room, now)
        self._ims: Kept[str] = Kept(self._ask_im, now)

    async def me(self) -> Identity:
        """Who we are. Raises Unavailable while Slack does not say."""
        return await self._me.get("", within=FOREVER)

    def forget_me(self) -> None:
        """The token was taken away: ask again."""
        self._me.drop("")

    async def person(self, user: str) -> Person:
        """A person; by the id for a name where Slack does not tell in time."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._people.get(user, within=PERSON_KEPT)
        except (NexusError, TimeoutError) as error:
            logger.warning("slack.person_unknown", user=user, error=str(error))
            return Person(user)

    async def is_admin(self, user: str) -> bool:
        """Whether someone is an admin or owner of the workspace; no, when Slack does not tell."""
        try:
            async with asyncio.timeout(PATIENCE):
                return (await self._people.get(user, within=ADMIN_KEPT)).admin
        except (NexusError, TimeoutError):
            return False

    async def room(self, channel: str) -> Room:
        """A channel. Raises Unavailable, or Refused where we are not in it."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._rooms.get(channel, within=ROOM_KEPT)
        except TimeoutError as error:
            raise Unavailable("Slack does not say in time what channel that is.") from error

    async def title(self, channel: str) -> str | None:
        """What people call a channel, if Slack tells."""
        try:
            async with asyncio.timeout(PATIENCE):
                return (await self._rooms.get(channel, within=PERSON_KEPT)).name
        except (NexusError, TimeoutError):
            return None

    async def im(self, user: str) -> str:
        """The channel of our DM with someone."""
        return await self._ims.get(user, within=FOREVER)

    def note_im(self, user: str, channel: str) -> None:
        """They wrote to us there."""
        self._ims.put(user, channel)

    def forget_person(self, user: str) -> None:
        """They have changed their name or role."""
        self._people.drop(user)

    def forget_room(self, channel: str) -> None:
        """It was renamed, opened or closed."""
        self._rooms.drop(channel)

    async def members(self, channel: str) -> set[str]:
        """Everyone in a channel."""
        people: set[str] = set()
        cursor = ""
        while True:
            page = await self._slack.call("conversations.members", channel=channel, limit=1000, cursor=cursor)
            people.update(page["members"])
            cursor = page.get("response_metadata", {}).get("next_cursor", "")
            if not cursor:
                return people

    async def attachment(self, file: dict[str, Any]) -> Attachment:
        """A file, with its text if it is a short one. Raises Unavailable when Slack does not hand it out now."""
        if file.get("file_access") == "check_file_info":
            file = (await self._slack.call("files.info", file=file["id"]))["file"]
        found = self.unread(file)
        textual = found.type.startswith("text/") or found.type in _TEXTUAL
        url = found.address
        if not textual or not url or not 0 < found.size <= LONGEST_FILE or not self.is_slacks(url):
            return found
        return replace(found, text=await self._download(url))

    def unread(self, file: dict[str, Any]) -> Attachment:
        """A file as the event tells of it, without its text."""
        name, kind = str(file.get("name") or file.get("id") or "file"), str(file.get("mimetype") or "")
        return Attachment(name, kind, size=int(file.get("size") or 0), address=_address(file))

    def is_slacks(self, url: str) -> bool:
        """Whether an address may be shown our token."""
        try:
            there = URL(url)
            if there.origin() == self._slack.origin:
                return True
        except ValueError:
            return False
        host = there.host or ""
        return there.scheme == "https" and (host == "slack.com" or host.endswith(".slack.com"))

    async def _download(self, url: str) -> str:
        try:
            content = await self._slack.download(url, LONGEST_FILE)
        except Refused as error:
            logger.warning("slack.file_refused", error=str(error))
            return ""
        return content.decode("utf-8", "replace").removeprefix("\ufeff")

    async def _ask_me(self, _: str) -> Identity:
        told = await self._slack.call("auth.test")
        return Identity(told["team_id"], told["user_id"], told.get("bot_id", ""), told.get("user", ""))

    async def _ask_person(self, user: str) -> Person:
        about = (await self._slack.call("users.info", user=user))["user"]
        profile = about.get("profile", {})
        name = profile.get("display_name") or profile.get("real_name") or about.get("real_name") or about.get("name")
        admin = any(about.get(right) for right in ("is_admin", "is_owner", "is_primary_owner"))
        return Person(str(name or user), admin)

    async def _ask_room(self, channel: str) -> Room:
        about = (await self._slack.call("conversations.info", channel=channel))["channel"]
        private = any(about.get(mark) for mark in ("is_private", "is_group", "is_mpim", "is_im"))
        return Room(about.get("name"), private)

    async def _ask_im(self, user: str) -> str:
        return str((await self._slack.call("conversations.open", users=user))["channel"]["id"])
