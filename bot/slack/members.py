"""Asks Slack which private channels and group DMs somebody is in, and who has left the workspace."""

from collections.abc import Collection
from typing import Final

import structlog

from bot.slack.channels import SlackChannels
from bot.slack.client import Slack, SlackRefused
from bot.slack.directory import SlackDirectory

logger = structlog.get_logger()

PAGE_SIZE: Final = 200
USER_NOT_FOUND: Final = "user_not_found"
KINDS: Final = "private_channel,mpim"  # these need the scopes groups:read and mpim:read


class SlackMembers:
    """The people of one workspace (composer.ports.memberships.MembershipSource)."""

    def __init__(self, slack: Slack, directory: SlackDirectory, channels: SlackChannels) -> None:
        self._slack = slack
        self._directory = directory
        self._channels = channels

    async def rooms_of(self, workspace: str, person: str) -> Collection[str] | None:
        """The private channels that somebody and we are both in, and that are not archived; each also by the id under
        which it is stored. None for a workspace that is not ours. Raises Unavailable, and Refused without a scope."""
        if workspace != (await self._directory.me()).team:
            return None
        await self._channels.refresh()
        pages = self._slack.pages(
            "users.conversations", user=person, types=KINDS, exclude_archived=True, limit=PAGE_SIZE
        )
        ids = {channel["id"] async for page in pages for channel in page["channels"]}
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
