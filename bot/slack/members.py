"""Asks Slack which private channels and group DMs somebody is in, and who has left the workspace."""

from collections.abc import Collection
from typing import Final

import structlog

from bot.slack.channels import SlackChannels
from bot.slack.client import Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from composer.model import Trust
from composer.ports.memberships import RoomsOnPlatform

logger = structlog.get_logger()

PAGE_SIZE: Final = 200
USER_NOT_FOUND: Final = "user_not_found"
KINDS: Final = "public_channel,private_channel,mpim"  # these need the scopes channels:read, groups:read and mpim:read


class SlackMembers:
    """The people of one workspace (composer.ports.memberships.MembershipSource)."""

    def __init__(self, slack: Slack, directory: SlackDirectory, channels: SlackChannels) -> None:
        self._slack = slack
        self._directory = directory
        self._channels = channels

    async def rooms_of(self, workspace: str, person: str) -> RoomsOnPlatform | None:
        """The private channels that somebody and we are both in, and that are not archived; and of all such channels
        those that they are an admin of: as an admin of the workspace, or a member of it who made the channel. Each also
        by the id under which it is stored. None for a workspace that is not ours. Raises Unavailable, and Refused
        without a scope."""
        if workspace != (await self._directory.me()).team:
            return None
        await self._channels.refresh()
        pages = self._slack.pages(
            "users.conversations", user=person, types=KINDS, exclude_archived=True, limit=PAGE_SIZE
        )
        channels = [channel async for page in pages for channel in page["channels"]]
        private = {each["id"] for each in channels if each.get("is_private") or each.get("is_mpim")}
        managed = {each["id"] for each in channels}
        if not await self._directory.is_admin(person):
            member = (await self._directory.person(person)).trust is Trust.MEMBER
            managed = {each["id"] for each in channels if member and each.get("creator") == person}
        return RoomsOnPlatform(self._known(private), self._known(managed))

    def _known(self, ids: set[str]) -> Collection[str]:
        return ids | {self._channels.ids.name(id) for id in ids}

    async def has_left(self, person: str) -> bool:
        """Whether an account is closed, or unknown to Slack. Raises Unavailable."""
        try:
            return bool((await self._slack.call("users.info", user=person))["user"].get("deleted"))
        except SlackRefused as error:
            if error.code == USER_NOT_FOUND:
                return True
            logger.warning("slack.members_refused", user=person, error=str(error))
            return False
