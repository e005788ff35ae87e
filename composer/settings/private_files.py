"""Files that only their owner may read: backups, exports, keys, what was typed. Every one is written here.

A file is written under a name that nobody can know before, and then takes its own name. So it is complete or missing,
and a file or a link that somebody else has put in its place is neither followed nor kept.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Final

MODE: Final = 0o600
PART: Final = ".part"  # ends the name of a file that is being written
FOLDER_MODE: Final = 0o700  # of folders that are made for such files


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """Write a file that takes the place of what has this name. When the writer fails, nothing has changed.

    Raises OSError.
    """
    with _part(path) as (part, file):
        yield file
        _sync(file)
        part.replace(path)


def make(path: Path, content: bytes) -> None:
    """Write a new file. Raises FileExistsError when anything has its name, a link included, and OSError."""
    with _part(path) as (part, file):
        file.write(content)
        _sync(file)
        try:
            os.link(part, path)  # fails where the name is taken, also by somebody at this moment
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if os.path.lexists(path):
                raise FileExistsError(path) from None
            part.replace(path)


def append(path: Path, content: bytes) -> None:
    """Append to a file, which is made if it is missing. Raises OSError, also when its name is a link's."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, MODE), "ab") as file:
        os.fchmod(file.fileno(), MODE)  # an older version may have left it open
        file.write(content)


def read(path: Path) -> bytes:
    """The content of a file. Raises OSError, also when its name is a link's."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return file.read()


@contextmanager
def _part(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    _make_folder(path.parent)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=PART)  # new, and 0600
    part = Path(name)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield part, file
    finally:
        with suppress(OSError):
            part.unlink()


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, for their owner alone: mkdir gives its mode to the last."""
    missing = takewhile(lambda each: not each.is_dir(), (folder, *folder.parents))
    for each in reversed(list(missing)):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
