"""Imports of files that admins upload. Such a file is not trusted like one of whoever runs Nexus: its lists of members
and channels, its workspace and its times may be forged.

It brings what was said in public rooms of a workspace of the admin's own tenant, and nothing else. What is known of a
room decides who may read it, then Discord, and the file only where Nexus knows nothing; where nobody says it, nothing
of the room is stored. Nobody becomes a member of a room, and every message is known to come from an upload, and whose
it was.
"""

import asyncio
import os
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

import structlog

from bot.importers.archive import Archive, ArchiveBounds
from bot.importers.detection import format_of
from bot.importers.discord_export import DiscordExport
from bot.importers.export import (
    DISCORD_EXPORT,
    NOT_CHOSEN,
    NOT_PUBLIC,
    SLACK_EXPORT,
    TO_COME,
    ImportOptions,
    LeftOut,
    MessageOfExport,
    PlatformExport,
    RoomOfExport,
)
from bot.importers.export_loading import ImportResult, load_export
from bot.importers.platform_exports import SurveyedExport, open_exports, privacy_by_discord
from bot.importers.slack_export import SLACK_LISTS, slack_folders
from bot.importers.undoing import undo_run
from composer.app import App
from composer.errors import BadInput, Conflict, NexusError, NotFound, Unavailable
from composer.ingest.imports import FoundRun, short_id
from composer.ingest.rooms import rooms_with_later_ids
from composer.ingest.uploads import UploadedChannel, UploadedFile, UploadFolder, UploadState
from composer.model import ConversationKind, Incoming, Workspace, room_id
from composer.operations.import_estimate import ImportEstimator
from composer.repositories.audit import AuditAct
from composer.repositories.database import Transaction
from composer.repositories.imports import ImportRun
from composer.rights.relations import TenantFacts
from composer.rights.table import Act, judge
from composer.tasks.shares import acting_for
from composer.tasks.signals import end_tasks
from composer.text.cleaning import shorten

logger = structlog.get_logger()

MAX_UPLOAD_BYTES: Final = 512 * 2**20
MAX_UPLOADED_MESSAGES: Final = 1_000_000
MAX_UPLOADED_CHANNELS: Final = 900  # with messages; a form of a page has at most 1,000 fields
MAX_LISTED_CHANNELS: Final = 5_000  # also private and empty ones
MAX_WORKSPACES: Final = 20
MAX_SHOWN_NAME: Final = 40  # characters of a name out of a file
MAX_NAME_CHARS: Final = 100  # of a file or a channel, as it is shown
NOTED_EACH: Final = 1.0  # seconds between notes of how far it is
UPLOAD_BOUNDS: Final = ArchiveBounds(total=4 * 2**30, directory=32 * 2**20, whole=64 * 2**20, values=2_000_000)
BUSY: Final = "An upload of this organisation is being read, imported or undone: wait until that is done."
WAITS: Final = "There is an uploaded file already: import it or throw it away first. After a day it is gone by itself."
NO_UPLOAD: Final = "There is no such upload: it is imported, thrown away, or older than a day. Upload the file again."
NO_EXPORT: Final = (
    "This is neither an export of Slack (a zip) nor of DiscordChatExporter (its JSON, or a zip of it). Whoever runs "
    "Nexus imports other files, with nexus import."
)
NOT_YOURS: Final = (
    "This file is of the workspace {name}, which does not belong to this organisation, so nothing of it can be "
    "imported here. Whoever runs Nexus can add the workspace to it, in nexus.toml."
)
NOTHING: Final = "There is nothing in it that can be imported here: no message of a public channel."
NONE_CHOSEN: Final = "Choose at least one of the channels."
TOO_MANY_MESSAGES: Final = f"It has more than {MAX_UPLOADED_MESSAGES:,} messages: whoever runs Nexus imports it."
TOO_MANY_CHANNELS: Final = (
    f"It has more than {MAX_UPLOADED_CHANNELS:,} channels: whoever runs Nexus imports such files."
)
FAILED: Final = "Something went wrong here: the log of Nexus says what. Nothing is stored twice when it is run again."


class _Stopped(Exception):
    """The process ends."""


@dataclass(slots=True)
class _Counts:
    """What is in a channel."""

    messages: int = 0
    people: set[str] = field(default_factory=set)
    first: datetime | None = None
    last: datetime | None = None


class _Contents:
    """What an upload holds, channel by channel, as it is read."""

    def __init__(self, app: App) -> None:
        self._settings = app.settings
        self.channels: dict[tuple[str, str], _Counts] = {}
        self._costs: dict[tuple[str, str], ImportEstimator] = {}

    def add(self, message: Incoming) -> None:
        """Count a message of a room."""
        if message.place.kind not in (ConversationKind.ROOM, ConversationKind.THREAD):
            return
        key = message.workspace, message.place.name
        if key not in self.channels:
            if len(self.channels) >= MAX_UPLOADED_CHANNELS:
                raise BadInput(TOO_MANY_CHANNELS)
            self.channels[key], self._costs[key] = _Counts(), ImportEstimator(self._settings)
        counts = self.channels[key]
        counts.messages += 1
        counts.people.add(message.user)
        counts.first = message.at if counts.first is None else min(counts.first, message.at)
        counts.last = message.at if counts.last is None else max(counts.last, message.at)
        self._costs[key].add_message(message)

    def channel(self, key: tuple[str, str], title: str) -> UploadedChannel:
        """A channel as it is shown."""
        counts, cost = self.channels[key], self._costs[key].result()
        assert counts.first is not None
        assert counts.last is not None
        return UploadedChannel(
            *key,
            shown_name(title) or key[1],
            counts.messages,
            len(counts.people),
            counts.first,
            counts.last,
            0 if cost is None else cost.tokens,
            None if cost is None or any(part.cost is None for part in cost.parts) else float(cost.cost),
        )


class _OfUpload:
    """The part of an export (a PlatformExport) that an upload may bring: chosen public rooms, with neither members nor
    the contents of files."""

    def __init__(
        self, export: PlatformExport, public: Mapping[tuple[str, str], bool], workspace: str, now: datetime
    ) -> None:
        """`public`: the public rooms by workspace and id, and whether each was chosen."""
        self._export, self._public, self._workspace, self._now = export, public, workspace, now
        self.platform = export.platform
        self.people = export.people
        self.rooms: Mapping[str, RoomOfExport] = {
            id: RoomOfExport(id, room.title, private=False)
            for id, room in export.rooms.items()
            if public.get((workspace, id))
        }

    @property
    def left_out(self) -> LeftOut:
        """What the export has beside messages."""
        return self._export.left_out

    def messages(self) -> Iterator[MessageOfExport]:
        """All messages."""
        for entry in self._export.messages():
            if entry.incoming is None:
                yield entry
            elif reason := self._refusal(entry.incoming):
                yield MessageOfExport(entry.position, reason=reason, room=entry.room)
            else:
                yield replace(entry, incoming=_without_files(entry.incoming), files=())

    def _refusal(self, message: Incoming) -> str:
        """Why a message is not stored; "" where it is."""
        place = message.place
        chosen = self._public.get((message.workspace, place.name))
        in_room = place.kind in (ConversationKind.ROOM, ConversationKind.THREAD) and not (
            place.private or place.room_private
        )
        if message.workspace != self._workspace or not in_room or chosen is None:
            return NOT_PUBLIC
        if not chosen:
            return NOT_CHOSEN
        return TO_COME if message.at > self._now else ""


def _without_files(message: Incoming) -> Incoming:
    """The message with the names of its files alone."""
    return replace(message, attachments=tuple(replace(a, text="", note="", address="") for a in message.attachments))


def shown_name(name: str) -> str:
    """A name out of a file, as it is shown: without what is no letter, and not too long."""
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[:MAX_NAME_CHARS]


def file_name(name: str) -> str:
    """The name of an uploaded file, without folders."""
    return shown_name(name.replace("\\", "/").rpartition("/")[2]) or "export"


class Uploads:
    """The uploads of all tenants, as this process works on them."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    @property
    def at_work(self) -> bool:
        """Whether this process works on an upload of anybody."""
        return bool(self._tasks)

    async def close(self) -> None:
        """Stop. What was under way says so, and can be run again."""
        self._closing = True
        await end_tasks([*self._tasks])

    async def of(self, tenant: uuid.UUID, admin: uuid.UUID) -> UploadedFile | None:
        """The upload of an admin; of somebody else's only that there is one, while something can be done with it."""
        await self._require(tenant, admin)
        found = self._folder(tenant).note()
        if found is None or found.by == admin:
            return found
        if found.state not in (UploadState.READING, UploadState.IMPORTING) and _is_over(found):
            return None
        return replace(found, name="", channels=(), error="", skipped={}, private=0, unknown=0, messages=0, people=0)

    async def receive(
        self, tenant: uuid.UUID, admin: uuid.UUID, name: str, content: AsyncIterable[bytes]
    ) -> UploadedFile:
        """Keep a file, and begin to read what is in it. Raises BadInput for one that is too long, Conflict while there
        is another, and Unavailable when the disk is full."""
        await self._require(tenant, admin)
        folder = self._folder(tenant)
        lock = _locked(folder)
        try:
            note = folder.note_of_holder()
            if note is not None and not _is_over(note):
                raise Conflict(WAITS)
            try:
                folder.erase()
                size = await _write(folder.file, content)
                upload = UploadedFile(uuid.uuid4(), admin, file_name(name), size, self._app.clock.now())
                async with self._app.database.transaction(tenant) as tx:
                    await tx.audit.record(AuditAct.IMPORT_UPLOADED, actor=admin, details={"bytes": size})
                folder.write(upload)
            except BaseException:
                folder.erase()
                raise
        except BaseException:
            os.close(lock)
            raise
        self._begin(lock, self._read(tenant, folder, upload), folder, upload)
        return upload

    async def run(
        self, tenant: uuid.UUID, admin: uuid.UUID, id: uuid.UUID, channels: Collection[str] | None
    ) -> UploadedFile:
        """Begin to import the chosen channels (None: all) of one's own upload, by their ids. Repeating it stores
        nothing twice. Raises NotFound, BadInput for none of its channels, and Conflict while it is worked on."""
        await self._require(tenant, admin)
        folder = self._folder(tenant)
        lock = _locked(folder)
        try:
            upload = folder.note_of_holder()
            if upload is None or upload.id != id or upload.by != admin or not upload.can_run:
                raise NotFound(NO_UPLOAD)
            known = {each.id for each in upload.channels}
            chosen = known if channels is None else known & set(channels)
            if not chosen:
                raise BadInput(NONE_CHOSEN)
            async with self._app.database.transaction(tenant) as tx:
                undone = {each.id for each in await _runs(tx, tenant) if each.undone_at is not None}
                again = None if upload.run in undone else upload.run
                run = ImportRun(again or uuid.uuid4(), upload.name, admin)
                state, total = UploadState.IMPORTING, 2 * upload.messages  # it is read again, then stored
                upload = replace(upload, state=state, run=run.id, done=0, total=total, error="", skipped={})
                details: dict[str, str | int | bool] = {"import": short_id(run.id), "channels": len(chosen)}
                await tx.audit.record(AuditAct.IMPORT_BEGUN, actor=admin, details=details)
            folder.write(upload)
        except BaseException:
            os.close(lock)
            raise
        self._begin(lock, self._load(tenant, folder, upload, run, frozenset(chosen)), folder, upload)
        return upload

    async def discard(self, tenant: uuid.UUID, admin: uuid.UUID, id: uuid.UUID) -> None:
        """Delete an upload with its file; any admin may. What was imported stays. Raises NotFound, and Conflict
        while it is worked on."""
        await self._require(tenant, admin)
        folder = self._folder(tenant)
        lock = _locked(folder)
        try:
            upload = folder.note_of_holder()
            if upload is None or upload.id != id:
                raise NotFound(NO_UPLOAD)
            folder.erase()
        finally:
            os.close(lock)

    async def runs(self, tenant: uuid.UUID, admin: uuid.UUID) -> list[FoundRun]:
        """What admins of a tenant have imported, newest first."""
        await self._require(tenant, admin)
        async with self._app.database.transaction(tenant, "read") as tx:
            return await _runs(tx, tenant)

    async def undo(self, tenant: uuid.UUID, admin: uuid.UUID, run: uuid.UUID) -> None:
        """Begin to erase what an import of an admin has brought. Raises NotFound for another one."""
        await self._require(tenant, admin)
        async with self._app.database.transaction(tenant, "read") as tx:
            found = next((each for each in await _runs(tx, tenant) if each.id == run), None)
        if found is None:
            raise NotFound("There is no such import here.")
        folder = self._folder(tenant)
        lock = _locked(folder)

        async def work() -> None:
            await undo_run(self._app, found, by=admin)

        self._begin(lock, work(), folder, None)

    def is_busy(self, tenant: uuid.UUID) -> bool:
        """Whether an upload of a tenant is being read, imported or undone."""
        return self._folder(tenant).is_held

    async def _require(self, tenant: uuid.UUID, admin: uuid.UUID) -> None:
        async with self._app.database.transaction(tenant, "read") as tx:
            judge([Act.IMPORT_HISTORY], TenantFacts(await tx.people.is_admin(admin)))

    def _folder(self, tenant: uuid.UUID) -> UploadFolder:
        return UploadFolder(self._app.settings.home, tenant)

    def _begin(self, lock: int, work: Any, folder: UploadFolder, upload: UploadedFile | None) -> None:
        """Work in the background, with the lock of the upload."""

        async def guarded() -> None:
            try:
                await work
            except _Stopped:
                pass  # it says so by the lock that nobody holds
            except NexusError as error:
                if upload is None:
                    logger.warning("import.not_undone", error=type(error).__name__)
                else:
                    _note_error(folder, str(error), self._app.settings.home)
            except Exception:
                logger.exception("import.failed")
                if upload is not None:
                    _note_error(folder, FAILED, self._app.settings.home)
            finally:
                os.close(lock)

        with acting_for(None, background=True):
            task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _progress(self, folder: UploadFolder, upload: UploadedFile) -> Callable[[int], None]:
        """What receives how many more messages are done, and notes it now and then."""
        done, noted = upload.done, time.monotonic()

        def progress(more: int) -> None:
            nonlocal done, noted
            if self._closing:
                raise _Stopped
            done += more
            if upload.state is UploadState.READING and done > MAX_UPLOADED_MESSAGES:
                raise BadInput(TOO_MANY_MESSAGES)
            if time.monotonic() - noted >= NOTED_EACH:
                folder.write(replace(upload, done=done))
                noted = time.monotonic()

        return progress

    async def _opened(
        self,
        tenant: uuid.UUID,
        folder: UploadFolder,
        upload: UploadedFile,
        opened: ExitStack,
        contents: _Contents | None,
    ) -> list[SurveyedExport]:
        """The exports of an upload, read as a whole. Raises BadInput for what may not be imported here."""
        progress, settings = self._progress(folder, upload), self._app.settings

        def read() -> list[SurveyedExport]:
            format, add = _format(folder.file), _ignore if contents is None else contents.add
            options, bounds = ImportOptions(), UPLOAD_BOUNDS
            return open_exports([folder.file], format, options, settings, opened, progress, add, bounds)

        exports = await asyncio.to_thread(read)
        for each in exports:
            if len(each.export.rooms) > MAX_LISTED_CHANNELS:
                raise BadInput(TOO_MANY_CHANNELS)
            for name in {*each.survey.workspaces, *_guilds(each.export)}:
                if self._app.directory.workspace(each.export.platform, name).tenant_id != tenant:
                    raise BadInput(NOT_YOURS.format(name=shorten(name, MAX_SHOWN_NAME)))
        for each in exports:
            await privacy_by_discord(self._app, each.export)
        return exports

    async def _read(self, tenant: uuid.UUID, folder: UploadFolder, upload: UploadedFile) -> None:
        """Find out what is in a file."""
        contents = _Contents(self._app)
        with ExitStack() as opened:
            exports = await self._opened(tenant, folder, upload, opened, contents)
            public: dict[tuple[str, str], str] = {}
            private = unknown = 0
            for each in exports:
                privacy = await self._privacy(each)
                for key in [key for key in privacy if key in contents.channels]:
                    if privacy[key]:
                        public[key] = each.export.rooms[key[1]].title
                    private += privacy[key] is False
                    unknown += privacy[key] is None
            found = await asyncio.to_thread(lambda: [contents.channel(key, title) for key, title in public.items()])
            skipped = sum((each.survey.skipped for each in exports), Counter[str]())
        people = {user for key in contents.channels for user in contents.channels[key].people}
        folder.write(
            replace(
                upload,
                state=UploadState.READY if found else UploadState.FAILED,
                error="" if found else NOTHING,
                channels=tuple(sorted(found, key=lambda channel: (-channel.messages, channel.title))),
                private=private,
                unknown=unknown,
                messages=sum(each.survey.read for each in exports),
                people=len(people),
                skipped=dict(skipped),
            )
        )
        if not found:
            folder.erase_file()

    async def _load(
        self, tenant: uuid.UUID, folder: UploadFolder, upload: UploadedFile, run: ImportRun, chosen: Collection[str]
    ) -> None:
        """Import what was chosen of a file, and delete it."""
        with ExitStack() as opened, acting_for(tenant, upload.by, background=True):
            exports = await self._opened(tenant, folder, upload, opened, None)
            read = replace(upload, done=upload.messages)
            progress, now = self._progress(folder, read), self._app.clock.now()
            results = []
            for each in exports:
                public = {key: key[1] in chosen for key, said in (await self._privacy(each)).items() if said}
                for name in sorted(each.survey.workspaces):
                    own = _OfUpload(each.export, public, name, now)
                    latest = each.survey.latest_at
                    survey = replace(
                        each.survey, workspaces={name}, latest_at=None if latest is None else min(latest, now)
                    )
                    results.append(await load_export(self._app, own, survey, progress, run))
        self._app.indexer.due(tenant)
        folder.write(_done(upload, results, chosen))
        folder.erase_file()

    async def _privacy(self, surveyed: SurveyedExport) -> dict[tuple[str, str], bool | None]:
        """Whether everyone may read each room of an export, by workspace and id; None where nobody says so. What Nexus
        knows of a room decides, and what the file says only where that is stricter, or nothing is known."""
        found: dict[tuple[str, str], bool | None] = {}
        export = surveyed.export
        for name in surveyed.survey.workspaces:
            workspace = self._app.directory.workspace(export.platform, name)
            states = await self._stored_privacy(workspace, list(export.rooms))
            for id, room in export.rooms.items():
                if room.private is True or states.get(id) is True:
                    found[name, id] = False
                else:
                    found[name, id] = True if room.private is False or id in states else None
        return found

    async def _stored_privacy(self, workspace: Workspace, rooms: Sequence[str]) -> dict[str, bool]:
        """Which of the rooms that are stored are private, by the ids of the file."""
        renamed = {
            id: room.name for room in await rooms_with_later_ids(self._app.database, workspace) for id in room.later_ids
        }
        ids = {id: room_id(workspace, renamed.get(id, id)) for id in rooms}
        async with self._app.database.transaction(workspace.tenant_id, "read") as tx:
            states = await tx.conversations.room_states(list(ids.values()))
        return {id: states[stored].private for id, stored in ids.items() if stored in states}


async def _runs(tx: Transaction, tenant: uuid.UUID) -> list[FoundRun]:
    parts: dict[uuid.UUID, list[tuple[uuid.UUID, Any]]] = {}
    for part in await tx.imports.list():
        if part.uploaded_by is not None:
            parts.setdefault(part.id, []).append((tenant, part))
    return [FoundRun(id, tuple(each)) for id, each in parts.items()]


def _locked(folder: UploadFolder) -> int:
    lock = folder.lock()
    if lock is None:
        raise Conflict(BUSY)
    return lock


def _is_over(upload: UploadedFile) -> bool:
    """Whether nothing can be done with an upload any more."""
    return upload.state is UploadState.DONE or not upload.channels


def _guilds(export: PlatformExport) -> list[str]:
    """The servers that an export of Discord names, also those without a message."""
    return export.guilds if isinstance(export, DiscordExport) else []


def _format(path: Path) -> str:
    """The format of an upload. Raises BadInput for any but two, and for a list of very many channels: each is looked
    for among all folders."""
    with Archive(path, UPLOAD_BOUNDS) as archive:  # what is too long is refused before anything of it is read
        found = format_of(path)
        if found not in (SLACK_EXPORT, DISCORD_EXPORT):
            raise BadInput(NO_EXPORT)
        folders = slack_folders(archive) if found == SLACK_EXPORT else []
        if len(folders) > MAX_WORKSPACES:
            raise BadInput(f"It has {len(folders):,} workspaces: whoever runs Nexus imports such files.")
        for name in (f"{folder}{name}" for folder in folders for name in SLACK_LISTS):
            listed = archive.json(name) if name in archive else []
            if isinstance(listed, list) and len(listed) > MAX_LISTED_CHANNELS:
                raise BadInput(TOO_MANY_CHANNELS)
        if found == SLACK_EXPORT and len({name.rpartition("/")[0] for name in archive.names}) > 2 * MAX_LISTED_CHANNELS:
            raise BadInput(TOO_MANY_CHANNELS)
    return found


def _ignore(_: Incoming) -> None:
    """Count nothing."""


@contextmanager
def _said_in_a_sentence() -> Iterator[None]:
    """Raises Unavailable where the disk refuses something."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"The file can't be kept here ({error.strerror}): tell whoever runs Nexus.") from error


def _write_all(file: IO[bytes], piece: bytes) -> None:
    while piece:
        piece = piece[file.write(piece) :]


async def _write(path: Path, content: AsyncIterable[bytes]) -> int:
    """Write a file piece by piece; returns its length."""
    size = 0
    with _said_in_a_sentence():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        async for piece in content:
            size += len(piece)
            if size > MAX_UPLOAD_BYTES:
                raise BadInput(f"The file is too long: {MAX_UPLOAD_BYTES:,} bytes are taken here.")
            with _said_in_a_sentence():
                await asyncio.to_thread(_write_all, file, piece)
    if not size:
        raise BadInput("The file is empty: choose another.")
    return size


def _note_error(folder: UploadFolder, sentence: str, home: Path) -> None:
    """Note why an upload can't be read or imported. The names of our own files are not shown."""
    note = folder.note_of_holder()
    if note is None:
        return
    said = sentence.replace(f"{folder.file}: ", "").replace(str(folder.file), note.name).replace(str(home), "")
    folder.write(replace(note, state=UploadState.FAILED, error=said[:1_000]))
    if not note.channels:
        folder.erase_file()


def _done(upload: UploadedFile, results: Sequence[ImportResult], chosen: Collection[str]) -> UploadedFile:
    skipped = sum((each.skipped for each in results), Counter[str]())
    new, known = sum(each.new for each in results), sum(each.known for each in results)
    return replace(
        upload,
        state=UploadState.DONE,
        done=upload.total,
        channels=tuple(each for each in upload.channels if each.id in chosen),
        new=new,
        known=known,
        skipped={reason: count for reason, count in skipped.items() if count},
    )
