"""Reads who is in the private channels and group DMs that we are in."""

from collections.abc import Sequence
from typing import Final

import structlog

from bot.platform.members import MembershipReader
from bot.platform.retry import Backoff
from bot.slack.channels import SlackChannels
from bot.slack.client import Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from bot.slack.inbox import SlackInbox
from composer.app import App
from composer.ingest.members import known_people

logger = structlog.get_logger()

PAGE_SIZE: Final = 200
UNKNOWN_USER: Final = "user_not_found"
KINDS: Final = ("private_channel", "mpim")  # each needs a scope of its own: groups:read, mpim:read
_BOT: Final = "B"  # begins the id of an app that posts without a user, whom Slack lists in no channel


class SlackMembers:
    """The members of one workspace's private channels. `reader` says when they are read."""

    def __init__(
        self,
        app: App,
        slack: Slack,
        directory: SlackDirectory,
        inbox: SlackInbox,
        channels: SlackChannels,
        backoff: Backoff,
    ) -> None:
        self._app = app
        self._slack = slack
        self._directory = directory
        self._inbox = inbox
        self._ids = channels
        self.reader = MembershipReader(app, inbox.workspace, self._read, self._has_left, backoff)

    async def _read(self, rooms: Sequence[str]) -> list[str]:
        """Read the members of channels, and return those that changed meanwhile. One that is archived, or that we are
        not in, can't be read. Raises Unavailable."""
        changed: list[str] = []
        await self._ids.refresh()
        ids = {channel for kind in KINDS for channel in await self._channels(kind)}
        listed = ids | {self._ids.ids.name(channel) for channel in ids}
        me = (await self._directory.me()).user
        people = await known_people(self._app.database, await self._inbox.workspace())
        bots = [person for person in people if person.startswith(_BOT)]
        for room in rooms:
            since, at = self.reader.doubts_of(room), self._app.clock.now()
            present = await self._members(room) if room in listed else set()
            if me not in present:
                await self.reader.unreadable(room)
            elif not await self.reader.confirm(room, present, at, since, bots=bots):
                changed.append(room)
        return changed

    async def _has_left(self, person: str) -> bool:
        """Whether an account is closed, or unknown to Slack. Raises Unavailable."""
        try:
            return bool((await self._slack.call("users.info", user=person))["user"].get("deleted"))
        except SlackRefused as error:
            if error.code == UNKNOWN_USER:
                return True
            logger.warning("slack.members_refused", user=person, error=str(error))
            return False

    async def _channels(self, kind: str) -> list[str]:
        """The channels of a kind that we are in and that are not archived; none if we lack the scope."""
        try:
            pages = self._slack.pages("users.conversations", types=kind, exclude_archived=True, limit=PAGE_SIZE)
            return [channel["id"] async for page in pages for channel in page["channels"]]
        except SlackRefused as error:
            logger.warning("slack.members_refused", kind=kind, error=str(error))
            return []

    async def _members(self, room: str) -> set[str]:
        try:
            return await self._directory.members(room)
        except SlackRefused as error:
            logger.warning("slack.members_refused", channel=room, error=str(error))
            return set()
