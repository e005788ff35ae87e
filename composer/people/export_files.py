"""The files of exports that the terminal writes: in a folder for each user, so that erasing a person finds theirs."""

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

_FOLDER: Final = "exports"  # of Nexus's home


def export_path(home: Path, user: uuid.UUID, name: str, now: datetime) -> Path:
    """Where a file that is made now for a user goes. `name` is the file's, with its type."""
    stem, _, kind = name.rpartition(".")
    return _folder(home, user) / f"{stem}-{now:%Y%m%dT%H%M%S%fZ}.{kind}"


def count_exports(home: Path, users: Iterable[uuid.UUID]) -> int:
    """How many files of these users there are. Raises OSError."""
    return sum(len(files) for _, files in _exports(home, users))


def remove_exports(home: Path, users: Iterable[uuid.UUID]) -> int:
    """Delete the files of these users, and return how many there were. What else is in their folders stays. Raises
    OSError."""
    removed = 0
    for folder, files in _exports(home, users):
        for file in files:
            os.unlink(file, dir_fd=folder)
        removed += len(files)
    return removed


def _exports(home: Path, users: Iterable[uuid.UUID]) -> Iterator[tuple[int, list[str]]]:
    """Each user's folder, open, with the names of the files in it. A link in the place of a folder is an error and not
    followed; one in the place of a file is none of ours."""
    for user in users:
        try:
            with _opened(_FOLDER, str(user), within=home) as folder, os.scandir(folder) as entries:
                yield folder, [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            continue


@contextmanager
def _opened(*names: str, within: Path) -> Iterator[int]:
    """The descriptor of a folder, by the names of the folders that lead to it."""
    with ExitStack() as stack:
        folder = os.open(within, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, folder)
        for name in names:
            folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            stack.callback(os.close, folder)
        yield folder


def _folder(home: Path, user: uuid.UUID) -> Path:
    return home / _FOLDER / str(user)
