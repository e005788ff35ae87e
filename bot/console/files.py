"""Files that the terminal writes for one person."""

import os
from pathlib import Path

from composer.errors import BadInput


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner may read (0600). Raises BadInput with one sentence if it exists or can't be
    written; then nothing is left behind."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except FileExistsError:
        raise BadInput(f"{path} exists already: name another file, or remove this one.") from None
    except OSError as error:
        raise BadInput(f"{path} can't be written ({error.strerror}): name another file.") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise BadInput(f"{path} can't be written ({error.strerror}): name another file.") from error
