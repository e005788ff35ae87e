"""Files for one person in their DM on Slack, which has no files that only one person in a channel sees."""

from typing import Final

import aiohttp
import structlog

from bot.commands.command import AnswerFile
from bot.slack.client import OutcomeUnknown, Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from bot.slack.inbox import SlackInbox
from composer.app import App
from composer.errors import Refused

logger = structlog.get_logger()

_OK: Final = 200
_BATCH_SIZE: Final = 100
_GONE: Final = ("file_not_found", "file_deleted")


class SlackFiles:
    """Puts files into DMs, and deletes them once their person has forgotten something."""

    def __init__(self, app: App, slack: Slack, directory: SlackDirectory, inbox: SlackInbox) -> None:
        self._app, self._slack, self._directory, self._inbox = app, slack, directory, inbox

    async def send(self, user: str, file: AnswerFile) -> None:
        """Put a file into the DM of a user, in the three steps that Slack asks for. Its id is stored before anybody can
        see it. Raises Unavailable and Refused."""
        content, dm = file.text.encode(), await self._directory.dm(user)
        ticket = await self._slack.call("files.getUploadURLExternal", filename=file.name, length=len(content))
        try:
            async with self._slack.session.post(ticket["upload_url"], data=content) as response:
                if response.status != _OK:
                    raise OutcomeUnknown(f"Slack does not take a file at the moment ({response.status}).")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise OutcomeUnknown("Slack does not take a file at the moment.") from error
        at, id = await self._inbox.workspace(), str(ticket["file_id"])
        async with self._app.database.transaction(at.tenant_id) as tx:
            await tx.posted_files.record(at.platform, at.name, id, file.user)
        files = [{"id": id, "title": file.name}]
        await self._slack.call("files.completeUploadExternal", files=files, channel_id=dm)

    async def delete_due(self) -> None:
        """Delete the files of this workspace whose people have forgotten something. Raises Unavailable."""
        at = await self._inbox.workspace()
        async with self._app.database.transaction(at.tenant_id, snapshot=True) as tx:
            due = await tx.posted_files.due(at.platform, at.name, _BATCH_SIZE)
        for id in due:
            try:
                await self._slack.call("files.delete", file=id)
            except Refused as error:
                if not isinstance(error, SlackRefused) or error.code not in _GONE:
                    logger.warning("retraction.file_refused", file=id, error=str(error))
            async with self._app.database.transaction(at.tenant_id) as tx:
                await tx.posted_files.deleted(at.platform, at.name, id)
