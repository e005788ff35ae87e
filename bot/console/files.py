"""Files that the terminal writes for one person."""

from pathlib import Path

from composer.errors import BadInput
from composer.settings import private_files


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner may read (0600). Raises BadInput with one sentence if it exists or can't be
    written; then nothing is left behind."""
    try:
        private_files.make(path, text.encode())
    except FileExistsError:
        raise BadInput(f"{path} exists already: name another file, or remove this one.") from None
    except OSError as error:
        raise BadInput(f"{path} can't be written ({error.strerror}): name another file.") from error


def require_folder(path: Path) -> None:
    """Raise BadInput if the folder of a file that somebody named is not there: it may be mistyped, or on a disk that is
    not mounted."""
    if not path.absolute().parent.is_dir():
        raise BadInput(f"There is no folder {path.absolute().parent}: make it first, or name another file.")
