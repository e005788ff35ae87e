"""Files that admins upload for an import, one of a tenant at a time: below Nexus's home, with a note of what became of
each, until it is imported, thrown away, or a day old. Whoever works on one holds a lock, which ends with their process.
"""

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from composer.settings import private_files

UPLOADS: Final = "uploads"  # the folder in Nexus's home
KEPT_FOR: Final = timedelta(days=1)
_FILE: Final = "export.json"  # a zip is known by what is in it
_NOTE: Final = "about.json"
_LOCK: Final = "lock"


class UploadState(StrEnum):
    """How far an upload is. STOPPED: the process that worked on it has ended meanwhile."""

    READING = "reading"
    READY = "ready"
    IMPORTING = "importing"
    STOPPED = "stopped"
    FAILED = "failed"
    DONE = "done"


_AT_WORK: Final = frozenset({UploadState.READING, UploadState.IMPORTING})


@dataclass(frozen=True, slots=True)
class UploadedChannel:
    """A public channel of an upload. `id` and `workspace` are the platform's; `tokens` and `cost` are what models are
    expected to use for it (cost: in the currency of the settings, None without a price)."""

    workspace: str
    id: str
    title: str
    messages: int
    people: int
    first: datetime
    last: datetime
    tokens: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """An upload: whose it is, what is in it, and what became of it.

    `channels` are those that can be imported, and in the end those that were. Of all others only how many there are is
    noted, never their names: `private` ones, and those of which it is `unknown` who may view them. `skipped` counts the
    messages of an import that were not stored, by the reason. `done` of `total` messages are read or stored.
    """

    id: uuid.UUID
    by: uuid.UUID
    name: str
    size: int
    at: datetime
    state: UploadState = UploadState.READING
    channels: tuple[UploadedChannel, ...] = ()
    private: int = 0
    unknown: int = 0
    messages: int = 0
    people: int = 0
    done: int = 0
    total: int = 0
    error: str = ""
    run: uuid.UUID | None = None
    new: int = 0
    known: int = 0
    skipped: dict[str, int] = field(default_factory=dict)

    @property
    def can_run(self) -> bool:
        """Whether it can be imported now."""
        return bool(self.channels) and self.state in (UploadState.READY, UploadState.STOPPED, UploadState.FAILED)


class UploadFolder:
    """Where the upload of a tenant is."""

    def __init__(self, home: Path, tenant: uuid.UUID) -> None:
        self._path = home / UPLOADS / str(tenant)

    @property
    def file(self) -> Path:
        """The uploaded file."""
        return self._path / _FILE

    def lock(self) -> int | None:
        """The descriptor of the lock of a tenant's upload, which is closed to give it back; None while somebody has it.
        Makes the folder."""
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._path.mkdir(mode=0o700, exist_ok=True)
        return _locked(self._path)

    @property
    def is_held(self) -> bool:
        """Whether somebody has the lock."""
        descriptor = _locked(self._path)
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is None and self._path.exists()

    def note_of_holder(self) -> UploadedFile | None:
        """What is noted of the upload, for whoever holds the lock; None where there is none. What was at work has
        stopped."""
        found = self._read()
        return replace(found, state=UploadState.STOPPED) if found is not None and found.state in _AT_WORK else found

    def _read(self) -> UploadedFile | None:
        try:
            return _upload(json.loads((self._path / _NOTE).read_bytes()))
        except FileNotFoundError:
            return None

    def note(self) -> UploadedFile | None:
        """What is noted of the upload; None where there is none. One that is at work and that nobody holds has
        stopped."""
        found = self._read()
        if found is not None and found.state in _AT_WORK:
            descriptor = _locked(self._path)
            if descriptor is not None:
                os.close(descriptor)
                return replace(found, state=UploadState.STOPPED)
        return found

    def write(self, upload: UploadedFile) -> None:
        """Note what became of the upload. Whoever does so holds the lock."""
        with private_files.replaced(self._path / _NOTE) as file:
            file.write(json.dumps(asdict(upload), default=str).encode())

    def erase_file(self) -> None:
        """Delete the file, and keep what is noted of it."""
        self.file.unlink(missing_ok=True)

    def erase(self) -> None:
        """Delete the file and the note. Whoever does so holds the lock."""
        self.erase_file()
        (self._path / _NOTE).unlink(missing_ok=True)


def remove_old_uploads(home: Path, now: datetime) -> int:
    """Delete the uploads of all tenants that are a day old and that nobody works on, with what a broken upload has
    left; returns how many."""
    removed = 0
    for folder in _folders(home / UPLOADS):
        descriptor = _locked(folder)
        if descriptor is None:
            continue
        try:
            times = [each.stat().st_mtime for each in folder.iterdir() if each.name != _LOCK]
            if times and max(times) < (now - KEPT_FOR).timestamp():
                shutil.rmtree(folder)
                removed += 1
        finally:
            os.close(descriptor)
    return removed


def _folders(path: Path) -> Iterator[Path]:
    try:
        yield from [each for each in path.iterdir() if each.is_dir() and not each.is_symlink()]
    except FileNotFoundError:
        return


def _locked(folder: Path) -> int | None:
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _upload(note: dict[str, Any]) -> UploadedFile:
    channels = tuple(
        UploadedChannel(
            **{
                **each,
                "first": datetime.fromisoformat(each["first"]),
                "last": datetime.fromisoformat(each["last"]),
            }
        )
        for each in note["channels"]
    )
    ids = {name: uuid.UUID(note[name]) for name in ("id", "by")}
    run = None if note["run"] is None else uuid.UUID(note["run"])
    at, state = datetime.fromisoformat(note["at"]), UploadState(note["state"])
    return UploadedFile(**{**note, **ids, "run": run, "at": at, "state": state, "channels": channels})
