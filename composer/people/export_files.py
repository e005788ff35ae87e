"""The files of exports that the terminal writes: in a folder for each user, so that erasing a person finds theirs."""

import uuid
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

_FOLDER: Final = "exports"  # of Nexus's home


def export_path(home: Path, user: uuid.UUID, name: str, now: datetime) -> Path:
    """Where a file that is made now for a user goes. `name` is the file's, with its type."""
    stem, _, kind = name.rpartition(".")
    return _folder(home, user) / f"{stem}-{now:%Y%m%dT%H%M%S%fZ}.{kind}"


def remove_exports(home: Path, users: Iterable[uuid.UUID]) -> int:
    """Delete the files of these users, and return how many there were. Raises OSError."""
    files = [path for user in users for path in _folder(home, user).glob("*")]
    for path in files:
        path.unlink()
    return len(files)


def _folder(home: Path, user: uuid.UUID) -> Path:
    return home / _FOLDER / str(user)
