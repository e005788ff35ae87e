"""Files for one person in their DM on Slack, which has no files that only one person in a channel sees."""

from datetime import datetime, timedelta
from typing import Final

import aiohttp
import structlog

from bot.commands.command import OUTDATED, AnswerFile, require_current
from bot.delivery.retraction import MAX_REFUSED, MAX_RETRACTION_FAILURES, retry_at
from bot.slack.client import OutcomeUnknown, Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from bot.slack.inbox import SlackInbox
from composer.app import App
from composer.errors import Refused, Unavailable
from composer.model import Workspace
from composer.repositories.posted_files import DueFile

logger = structlog.get_logger()

_OK: Final = 200
_BATCH_SIZE: Final = 100
_GONE: Final = ("file_not_found", "file_deleted")
_SHARING: Final = timedelta(hours=1)  # a call takes seconds, or a few minutes with rate limits


class SlackFiles:
    """Puts files into DMs, and deletes them once their person has forgotten something."""

    def __init__(self, app: App, slack: Slack, directory: SlackDirectory, inbox: SlackInbox) -> None:
        self._app, self._slack, self._directory, self._inbox = app, slack, directory, inbox

    async def send(self, user: str, file: AnswerFile) -> None:
        """Put a file into the DM of a user, in the three steps that Slack asks for. Its id is stored before anybody can
        see it. Raises Unavailable, and Refused: also if something was erased since the text was read, and the file may
        hold it."""
        content, dm, at = file.text.encode(), await self._directory.dm(user), await self._inbox.workspace()
        id = await self._upload(file.name, content)
        async with self._app.database.transaction(at.tenant_id) as tx:
            await require_current(tx, file)  # an erasure either goes before, and is counted, or finds the file
            until = self._app.clock.now() + _SHARING
            await tx.posted_files.record(at.platform, at.name, id, file.user, until)
        files = [{"id": id, "title": file.name}]
        await self._slack.call("files.completeUploadExternal", files=files, channel_id=dm)
        async with self._app.database.transaction(at.tenant_id) as tx:
            stays = await tx.posted_files.share(at.platform, at.name, id)
        if not stays:
            await self._delete(at, DueFile(id, sharing=False))
            raise Refused(OUTDATED)

    async def delete_due(self) -> None:
        """Delete the files of this workspace whose people have forgotten something. One that fails does not stop the
        others. Raises Unavailable."""
        at = await self._inbox.workspace()
        async with self._app.database.transaction(at.tenant_id, "read") as tx:
            due = await tx.posted_files.due(at.platform, at.name, self._app.clock.now(), _BATCH_SIZE)
        failures: list[Unavailable] = []
        for file in due:
            try:
                await self._delete(at, file)
            except Unavailable as error:
                failures.append(error)
                await self._postpone(at, file, self._app.clock.now(), file.refused_since)
            if len(failures) == MAX_RETRACTION_FAILURES:
                break
        if failures:
            raise failures[-1]

    async def _upload(self, name: str, content: bytes) -> str:
        """Upload a file that nobody sees yet, and return its id."""
        ticket = await self._slack.call("files.getUploadURLExternal", filename=name, length=len(content))
        try:
            async with self._slack.session.post(ticket["upload_url"], data=content) as response:
                if response.status != _OK:
                    raise OutcomeUnknown(f"Slack does not take a file at the moment ({response.status}).")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise OutcomeUnknown("Slack does not take a file at the moment.") from error
        return str(ticket["file_id"])

    async def _delete(self, at: Workspace, file: DueFile) -> None:
        """Delete a file on Slack. One that Slack does not find, and that may be shared later, stays due."""
        try:
            await self._slack.call("files.delete", file=file.external_id)
        except Refused as error:
            is_gone = isinstance(error, SlackRefused) and error.code in _GONE
            if is_gone and file.sharing:
                return
            if not is_gone and await self._is_postponed(at, file):
                logger.warning("retraction.file_refused", file=file.external_id, error=str(error))
                return
        async with self._app.database.transaction(at.tenant_id) as tx:
            await tx.posted_files.deleted(at.platform, at.name, file.external_id)

    async def _is_postponed(self, at: Workspace, file: DueFile) -> bool:
        """Try to delete a file again later, unless Slack has refused that for too long."""
        now = self._app.clock.now()
        since = file.refused_since or now
        if now - since > MAX_REFUSED:
            logger.error("retraction.file_given_up", file=file.external_id)
            return False
        await self._postpone(at, file, retry_at(now, since), since)
        return True

    async def _postpone(self, at: Workspace, file: DueFile, retry_at: datetime, refused_since: datetime | None) -> None:
        async with self._app.database.transaction(at.tenant_id) as tx:
            await tx.posted_files.postpone(at.platform, at.name, file.external_id, retry_at, refused_since)
