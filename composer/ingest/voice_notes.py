"""Voice notes: what is spoken in them becomes the text of their attachment, once their message is stored.

So only what a room or a person lets be stored, or answered, is sent to the model that writes it down; whether they
still do is asked again before each is sent. The text lies under the message: forgetting, export, recall and prompts
treat it as they treat the text of an attached file.
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
from composer.model import Attachment, Message
from composer.ports.images import ImageSource
from composer.ports.models import UsageAccount, WorkKind
from composer.ports.process_locks import ProcessLocks
from composer.repositories.database import Database, Transaction
from composer.repositories.recall import episode_id_of
from composer.signals import end_tasks
from composer.usage.transcription import TranscriptionMeter

logger = structlog.get_logger()

MAX_AUDIO_BYTES: Final = 10_000_000  # of one voice note
MAX_AUDIO_SECONDS: Final = 600
MAX_VOICE_NOTES: Final = 5  # of one message
MAX_TRANSCRIPT_CHARS: Final = 100_000  # of what is spoken in one
MAX_TRANSCRIPTION_SECONDS: Final = 90.0  # for all voice notes of one message
MAX_AT_ONCE: Final = 4  # messages; each may hold a voice note in memory
MAX_REMEMBERED_NOTES: Final = 10_000  # messages whose voice notes were tried


class VoiceNotes:
    """Transcribes the voice notes of stored messages, each message once. What a process was interrupted in, another
    one tries again. Without a meter it does nothing."""

    def __init__(
        self,
        database: Database,
        meter: TranscriptionMeter | None,
        written: Callable[[uuid.UUID], object],
        locks: ProcessLocks,
    ) -> None:
        """`written` is called with a tenant in which a message has got its text, and is to be indexed."""
        self._database, self._meter, self._written, self._locks = database, meter, written, locks
        self._sources: dict[str, ImageSource] = {}
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._tasks: LRUCache[uuid.UUID, asyncio.Task[None]] = LRUCache(MAX_REMEMBERED_NOTES)

    def register_source(self, adapter: str, source: ImageSource) -> None:
        """Load the voice notes of messages that came through `adapter` from `source`."""
        self._sources[adapter] = source

    @property
    def are_transcribed(self) -> bool:
        """Whether a model for it is configured."""
        return self._meter is not None

    def start(self, tenant: uuid.UUID, message: uuid.UUID, adapter: str) -> Awaitable[None]:
        """Begin to transcribe the voice notes of a stored message, unless that was begun. What is returned ends with
        it, and never fails."""
        task = self._tasks.get(message)
        if task is None:
            task = asyncio.create_task(self._transcribe_message(tenant, message, adapter))
            self._tasks[message] = task
        return asyncio.shield(task)

    async def take_over(self, tenants: Iterable[uuid.UUID], served: Sequence[str]) -> int:
        """Begin to transcribe what dead processes of these tenants were interrupted in, where this one serves
        (`TurnWorker.served`). Returns how many messages. Raises Unavailable."""
        if self._meter is None:
            return 0
        count = 0
        for tenant in tenants:
            async with self._database.transaction(tenant) as tx:
                unowned = await tx.voice_notes.unowned(served)
            for message, adapter in unowned:
                if message not in self._tasks and message in await self._locks.take([message]):
                    count += await self._begin_again(tenant, message, adapter)
        return count

    async def _begin_again(self, tenant: uuid.UUID, message: uuid.UUID, adapter: str) -> bool:
        """Begin with a message that a dead process was interrupted in, unless that has happened too often."""
        async with self._database.transaction(tenant) as tx:
            if wanted := await tx.voice_notes.begin_again(message):
                self.start(tenant, message, adapter)
            else:
                await tx.voice_notes.end(message)
        if not wanted:
            logger.warning("voice_note.not_transcribed", message=str(message), error="It was interrupted.")
            await self._locks.release([message])
        return wanted

    async def with_transcript(self, tenant: uuid.UUID, message: Message, adapter: str) -> Message:
        """The message with the text of its voice notes, as far as that can be had; without any, as it is."""
        if self._meter is None or not untranscribed(message.attachments):
            return message
        await self.start(tenant, message.id, adapter)
        async with self._database.transaction(tenant, "read") as tx:
            return await tx.messages.get(message.id) or message

    async def stop(self) -> None:
        """Cancel what is being transcribed."""
        await end_tasks(task for task in self._tasks.values() if not task.done())

    async def _transcribe_message(self, tenant: uuid.UUID, id: uuid.UUID, adapter: str) -> None:
        with suppress(Unavailable):
            await self._locks.take([id])  # shows that it is being done; where another process does it, both may
        try:
            async with self._slots, asyncio.timeout(MAX_TRANSCRIPTION_SECONDS):
                await self._transcribe_stored(tenant, id, adapter)
        except NexusError as error:
            logger.warning("voice_note.not_transcribed", message=str(id), error=for_operator(error))
        except TimeoutError:
            logger.warning("voice_note.not_transcribed", message=str(id), error="It took too long.")
        except Exception as error:
            logger.warning("voice_note.not_transcribed", message=str(id), **where_raised(error))
        await self._end(tenant, id)
        with suppress(Unavailable):
            await self._locks.release([id])

    async def _end(self, tenant: uuid.UUID, id: uuid.UUID) -> None:
        """Note that nothing is left to do. Without it, in an outage, a later process tries the message again."""
        try:
            async with self._database.transaction(tenant) as tx:
                await tx.voice_notes.end(id)
        except NexusError as error:
            logger.warning("voice_note.not_ended", message=str(id), error=for_operator(error))

    async def _transcribe_stored(self, tenant: uuid.UUID, id: uuid.UUID, adapter: str) -> None:
        source = self._sources.get(adapter)
        async with self._database.transaction(tenant, "read") as tx:
            message = await _wanted(tx, id)
            place = await tx.messages.conversation_of(id)
        if message is None or place is None:
            return
        if source is None:
            raise Refused("Voice notes from this platform are not supported.")
        account = UsageAccount(tenant, WorkKind.TRANSCRIPTION, None, place, message.user_id)
        texts: dict[str, str] = {}
        for note in untranscribed(message.attachments)[:MAX_VOICE_NOTES]:
            texts[note.address] = await self._text_of(source, message, note, account)
        attached = tuple(replace(each, text=texts.get(each.address) or each.text) for each in message.attachments)
        if attached == message.attachments:
            return
        async with self._database.transaction(tenant) as tx:
            if await _wanted(tx, id) is not None and await tx.messages.set_transcripts(message, attached):
                await tx.recall.remove([episode_id_of(id)])
                await tx.conversations.bump_versions([place])
        self._written(tenant)

    async def _text_of(self, source: ImageSource, message: Message, note: Attachment, account: UsageAccount) -> str:
        """What is spoken in a voice note. Raises Unavailable, Refused, Misconfigured and BudgetUsedUp."""
        assert self._meter is not None
        if note.size > MAX_AUDIO_BYTES or note.seconds > MAX_AUDIO_SECONDS:
            raise Refused(
                f"A voice note of {note.size:,} bytes and {note.seconds:,.0f} seconds is too long; the limits "
                f"are {MAX_AUDIO_BYTES:,} and {MAX_AUDIO_SECONDS:,}."
            )
        content = await source.fetch(None, message, note, MAX_AUDIO_BYTES)
        if not content or len(content) > MAX_AUDIO_BYTES:
            raise Refused("A voice note is empty, or larger than its platform said.")
        async with self._database.transaction(account.tenant_id, "read") as tx:
            if await _wanted(tx, message.id) is None:  # loading it took a while, and so did those before it
                raise Refused("It is not to be stored any more.")
        media_type = note.type.partition(";")[0].strip().lower()
        text = await self._meter.transcribe(note.name, media_type, content, account, note.seconds)
        return text[:MAX_TRANSCRIPT_CHARS]


async def _wanted(tx: Transaction, id: uuid.UUID) -> Message | None:
    """A stored message, unless it would not be stored if it were sent now: its sender has opted out since, or its
    room's memory was turned off. One that is stored only until its answer is sent is wanted until then."""
    message = await tx.messages.get(id)
    if message is None or message.ephemeral:
        return message
    policy, opted_out = await tx.messages.recording_of(id)
    asks = await tx.voice_notes.is_question(id)
    recording = decide_recording(policy, opted_out=opted_out, wants_answer=asks)
    return message if recording is Recording.STORE else None


def untranscribed(attachments: Sequence[Attachment]) -> list[Attachment]:
    """The voice notes among attachments that have no text yet."""
    return [each for each in attachments if each.is_audio and not each.text and each.address]
