"""The texts of attached files: of documents, and what is spoken in voice notes. They are read once their message is
stored, so that no message waits for its files.

So only what a room or a person lets be stored, or answered, is loaded, and sent to the model that writes down what is
spoken; whether they still do is asked again before each is sent. The text lies under the message: forgetting, export,
recall and prompts treat it as the message's own words.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import structlog
from cachetools import LRUCache

from composer.errors import NexusError, Refused, Unavailable, for_operator, where_raised
from composer.ingest.recording import Recording, decide_recording
from composer.ingest.validation import clean_attachment
from composer.model import Attachment, Message
from composer.ports.documents import DocumentReader, DocumentText
from composer.ports.files import FileSource
from composer.ports.models import UsageAccount, WorkKind
from composer.ports.process_locks import ProcessLocks
from composer.repositories.database import Database, Transaction
from composer.repositories.recall import episode_id_of
from composer.tasks.shares import Places
from composer.tasks.signals import end_tasks
from composer.text.file_kinds import MAX_DOCUMENT_BYTES, file_kind, too_large
from composer.usage.transcription import TranscriptionMeter

logger = structlog.get_logger()

MAX_AUDIO_BYTES: Final = 10_000_000  # of one voice note
MAX_AUDIO_SECONDS: Final = 600
MAX_MESSAGE_FILES: Final = 10  # of one message: as many as Discord and Slack take
MAX_VOICE_NOTES: Final = 5  # of one message
MAX_TRANSCRIPT_CHARS: Final = 100_000  # of what is spoken in one
MAX_READING_SECONDS: Final = 180.0  # for all files of one message
MAX_AT_ONCE: Final = 4  # messages; each may hold a file in memory
MAX_REMEMBERED: Final = 10_000  # messages whose files were tried
EARLIER_SECONDS: Final = 10.0  # that a question waits for files that came before it in its conversation
RETRY_SECONDS: Final = (0.5, 3.0, 10.0)  # before a file is loaded again
MAX_ATTACHED_TEXT_BYTES: Final = 800_000  # of all files of one message in UTF-8, which is indexed to its end
STORING_TRIES: Final = 3


class FileTexts:
    """Reads the files of stored messages, each message once. What a process was interrupted in, another one tries
    again. Without a meter no voice note is transcribed."""

    def __init__(
        self,
        database: Database,
        reader: DocumentReader,
        meter: TranscriptionMeter | None,
        written: Callable[[uuid.UUID], object],
        locks: ProcessLocks,
    ) -> None:
        """`written` is called with a tenant in which a message has got its text, and is to be indexed."""
        self._database, self._reader, self._meter = database, reader, meter
        self._written, self._locks = written, locks
        self._sources: dict[str, FileSource] = {}
        self._places = Places(MAX_AT_ONCE)
        self._tasks: LRUCache[uuid.UUID, asyncio.Task[None]] = LRUCache(MAX_REMEMBERED)
        self._open: dict[uuid.UUID, set[asyncio.Task[None]]] = {}  # by conversation

    def register_source(self, adapter: str, source: FileSource) -> None:
        """Load the files of messages that came through `adapter` from `source`."""
        self._sources[adapter] = source

    @property
    def transcribes(self) -> bool:
        """Whether what is spoken in voice notes is written down."""
        return self._meter is not None

    def is_unread(self, attached: Attachment, *, spoken: bool = True) -> bool:
        """Whether a file has no text yet, and may get one. `spoken`: voice notes are transcribed."""
        if attached.text or attached.note or not attached.address:
            return False
        if attached.is_audio:
            return spoken and self.transcribes
        return file_kind(attached.name, attached.type) is not None

    def start(
        self, tenant: uuid.UUID, message: uuid.UUID, adapter: str, conversation: uuid.UUID | None = None
    ) -> Awaitable[None]:
        """Begin to read the files of a stored message, unless that was begun. What is returned ends with it, and never
        fails."""
        task = self._tasks.get(message)
        if task is None:
            task = asyncio.create_task(self._read_message(tenant, message, adapter))
            self._tasks[message] = task
            if conversation is not None:
                self._open.setdefault(conversation, set()).add(task)
                task.add_done_callback(lambda done: self._close(conversation, done))
        return asyncio.shield(task)

    def _close(self, conversation: uuid.UUID, task: asyncio.Task[None]) -> None:
        remaining = self._open.get(conversation, set())
        remaining.discard(task)
        if not remaining:
            self._open.pop(conversation, None)

    async def take_over(self, tenants: Iterable[uuid.UUID], served: Sequence[str]) -> int:
        """Begin to read what dead processes of these tenants were interrupted in, where this one serves
        (`TurnWorker.served`). Returns how many messages. Raises Unavailable."""
        count = 0
        for tenant in tenants:
            async with self._database.transaction(tenant) as tx:
                unowned = await tx.unread_files.unowned(served)
            for message, adapter in unowned:
                if message not in self._tasks and message in await self._locks.take([message]):
                    count += await self._begin_again(tenant, message, adapter)
        return count

    async def _begin_again(self, tenant: uuid.UUID, message: uuid.UUID, adapter: str) -> bool:
        """Begin with a message that a dead process was interrupted in, unless that has happened too often."""
        async with self._database.transaction(tenant) as tx:
            if wanted := await tx.unread_files.begin_again(message):
                self.start(tenant, message, adapter)
            else:
                await tx.unread_files.end(message)
        if not wanted:
            logger.warning("file.not_read", message=str(message), error="It was interrupted.")
            await self._locks.release([message])
        return wanted

    async def with_texts(
        self, tenant: uuid.UUID, message: Message, adapter: str, conversation: uuid.UUID | None = None
    ) -> Message:
        """The message with the texts of its files, as far as they can be had; without any, as it is. Waits a while for
        those that came before it in its `conversation`."""
        if earlier := self._open.get(conversation, set()) if conversation else set():
            await asyncio.wait(set(earlier), timeout=EARLIER_SECONDS)
        if not any(map(self.is_unread, message.attachments)):
            return message
        await self.start(tenant, message.id, adapter)
        async with self._database.transaction(tenant, "read") as tx:
            return await tx.messages.get(message.id) or message

    async def stop(self) -> None:
        """Cancel what is being read."""
        await end_tasks(task for task in self._tasks.values() if not task.done())

    async def _read_message(self, tenant: uuid.UUID, id: uuid.UUID, adapter: str) -> None:
        with suppress(Unavailable):
            await self._locks.take([id])  # shows that it is being done; where another process does it, both may
        try:
            async with self._places.take(tenant), asyncio.timeout(MAX_READING_SECONDS):
                await self._read_stored(tenant, id, adapter)
        except Unavailable as error:  # the database, in an outage or a long erasure: it is taken over (`take_over`)
            logger.warning("file.reading_interrupted", message=str(id), error=for_operator(error))
            with suppress(Unavailable):
                await self._locks.release([id])
            self._tasks.pop(id, None)
            return
        except NexusError as error:
            logger.warning("file.not_read", message=str(id), error=for_operator(error))
        except TimeoutError:
            logger.warning("file.not_read", message=str(id), error="It took too long.")
        except Exception as error:
            logger.warning("file.not_read", message=str(id), **where_raised(error))
        await self._end(tenant, id)
        with suppress(Unavailable):
            await self._locks.release([id])

    async def _end(self, tenant: uuid.UUID, id: uuid.UUID) -> None:
        """Note that nothing is left to do. Without it, in an outage, a later process tries the message again."""
        try:
            async with self._database.transaction(tenant) as tx:
                await tx.unread_files.end(id)
        except NexusError as error:
            logger.warning("file.reading_not_ended", message=str(id), error=for_operator(error))

    async def _read_stored(self, tenant: uuid.UUID, id: uuid.UUID, adapter: str) -> None:
        source = self._sources.get(adapter)
        async with self._database.transaction(tenant, "read") as tx:
            message = await _wanted(tx, id)
            place = await tx.messages.conversation_of(id)
        if message is None or place is None:
            return
        if source is None:
            raise Refused("Files from this platform are not supported.")
        account = UsageAccount(tenant, WorkKind.TRANSCRIPTION, None, place, message.user_id)
        unread = [each for each in message.attachments if self.is_unread(each)]
        notes = [each for each in unread if each.is_audio][:MAX_VOICE_NOTES]
        files = [each for each in unread if not each.is_audio][:MAX_MESSAGE_FILES]
        left = MAX_ATTACHED_TEXT_BYTES
        for each in files:
            found = _cut(await self._document_text(source, message, each), left)
            left -= len(found.text.encode("utf-8", "replace"))
            await self._store(tenant, place, id, each, found)
        for each in notes:
            await self._store(tenant, place, id, each, await self._spoken_text(source, message, each, account))

    async def _store(
        self, tenant: uuid.UUID, place: uuid.UUID, id: uuid.UUID, file: Attachment, found: DocumentText
    ) -> None:
        """Store the text of a file with its message, unless that was taken away meanwhile. It may have been edited."""
        if not (found.text or found.note):
            return
        read = clean_attachment(replace(file, text=found.text, note=found.note))
        for _ in range(STORING_TRIES):
            async with self._database.transaction(tenant) as tx:
                message = await _wanted(tx, id)
                if message is None:
                    return
                attached = tuple(read if each == file else each for each in message.attachments)
                if attached == message.attachments:
                    return
                if not await tx.messages.set_files(message, attached):
                    continue
                await tx.recall.remove([episode_id_of(id)])
                await tx.conversations.bump_versions([place])
            self._written(tenant)
            return

    async def _document_text(self, source: FileSource, message: Message, file: Attachment) -> DocumentText:
        """The text of a document, or why it has none."""
        if file.size > MAX_DOCUMENT_BYTES:
            return DocumentText(note=too_large(file.size))
        try:
            content = await _loaded(source, message, file, MAX_DOCUMENT_BYTES)
        except Unavailable as error:
            logger.warning("file.not_read", message=str(message.id), error=for_operator(error))
            return DocumentText(note="could not be read: its platform did not provide it")
        except Refused as error:
            logger.warning("file.not_read", message=str(message.id), error=for_operator(error))
            return DocumentText(note=f"could not be read: {error}")
        return await self._reader.read(file.name, file.type, content)

    async def _spoken_text(
        self, source: FileSource, message: Message, note: Attachment, account: UsageAccount
    ) -> DocumentText:
        """What is spoken in a voice note; nothing where it can't be had."""
        try:
            return DocumentText(await self._transcribed(source, message, note, account))
        except NexusError as error:
            logger.warning("voice_note.not_transcribed", message=str(message.id), error=for_operator(error))
            return DocumentText()

    async def _transcribed(self, source: FileSource, message: Message, note: Attachment, account: UsageAccount) -> str:
        """What is spoken in a voice note. Raises Unavailable, Refused, Misconfigured and BudgetUsedUp."""
        assert self._meter is not None
        if note.size > MAX_AUDIO_BYTES or note.seconds > MAX_AUDIO_SECONDS:
            raise Refused(
                f"A voice note of {note.size:,} bytes and {note.seconds:,.0f} seconds is too long; the limits "
                f"are {MAX_AUDIO_BYTES:,} and {MAX_AUDIO_SECONDS:,}."
            )
        content = await _loaded(source, message, note, MAX_AUDIO_BYTES)
        if not content or len(content) > MAX_AUDIO_BYTES:
            raise Refused("A voice note is empty, or larger than its platform said.")
        async with self._database.transaction(account.tenant_id, "read") as tx:
            if await _wanted(tx, message.id) is None:  # loading it took a while, and so did those before it
                raise Refused("It is not to be stored any more.")
        media_type = note.type.partition(";")[0].strip().lower()
        text = await self._meter.transcribe(note.name, media_type, content, account, note.seconds)
        return text[:MAX_TRANSCRIPT_CHARS]


def _cut(found: DocumentText, most: int) -> DocumentText:
    """The beginning of a text, of so many bytes in UTF-8."""
    encoded = found.text.encode("utf-8", "replace")
    if len(encoded) <= most:
        return found
    limit = f"{MAX_ATTACHED_TEXT_BYTES // 1_000} kB of text"
    note = f"only its beginning is read: the limit of the files of a message is {limit}"
    return DocumentText(encoded[:most].decode("utf-8", "ignore"), note)


async def _loaded(source: FileSource, message: Message, file: Attachment, limit: int) -> bytes:
    """The content of a file, tried again while its platform does not answer. Raises Unavailable and Refused."""
    for seconds in RETRY_SECONDS:
        try:
            return await source.fetch(None, message, file, limit)
        except Unavailable:
            await asyncio.sleep(seconds)
    return await source.fetch(None, message, file, limit)


async def _wanted(tx: Transaction, id: uuid.UUID) -> Message | None:
    """A stored message, unless it would not be stored if it were sent now: its sender has opted out since, or its
    room's memory was turned off. One that is stored only until its answer is sent is wanted until then."""
    message = await tx.messages.get(id)
    if message is None or message.ephemeral:
        return message
    facts = await tx.messages.recording_of(id)
    recording = decide_recording(facts.policy, opted_out=facts.opted_out, wants_answer=facts.answered)
    return message if recording is Recording.STORE else None
