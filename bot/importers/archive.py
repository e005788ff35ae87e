"""The files of an export: a zip, a folder or a single file. Nothing is unpacked, and nothing outside is read."""

import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Self

from composer.errors import BadInput

MOST_FILES: Final = 2_000_000
LARGEST_WHOLE: Final = 256 * 2**20  # bytes of a file that is read at once
LARGEST_STREAMED: Final = 64 * 2**30  # bytes of a file that is read piece by piece
RATIO: Final = 200  # chat compresses 5 to 20 times; a zip that grows by more than this is made to do harm
HARMLESS: Final = 16 * 2**20  # bytes up to which a file may grow as it likes
_OUTSIDE = re.compile(r"^(/|[A-Za-z]:|~)|(^|/)\.\.(/|$)|\\|\x00")


class Archive:
    """Files by their names, with `/` between folders. Close it, or use it in a `with`."""

    def __init__(self, path: Path) -> None:
        """Raises BadInput, naming the file, for what can't be read and for a zip that is not to be trusted."""
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        self._sizes: dict[str, int] = {}
        try:
            size = path.stat().st_size
            if path.is_dir():
                self._sizes = dict(_in_folder(path))
            elif zipfile.is_zipfile(path):
                self._zip = zipfile.ZipFile(path)
                self._sizes = _in_zip(path, self._zip)
            elif path.suffix.lower() == ".zip":
                raise BadInput(f"{path} is no zip file, or it is cut off: download it again.")
            else:
                self._sizes = {path.name: size}
        except OSError as error:
            raise BadInput(f"{path} can't be read: {error.strerror or error}.") from error
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise BadInput(f"{path} is a damaged zip file ({error}): download it again.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._zip is not None:
            self._zip.close()

    @property
    def names(self) -> list[str]:
        """The files, in the order of their names."""
        return sorted(self._sizes)

    def __contains__(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return name in self._sizes

    def read(self, name: str, most: int) -> bytes | None:
        """A small file as a whole; None for one of more than `most` bytes. Raises BadInput."""
        if self._sizes[name] > most:
            return None
        with self.open(name, most) as file:
            return file.read()

    def where(self, name: str) -> str:
        """How a file is named in a sentence."""
        return str(self.path) if self._zip is None and not self.path.is_dir() else f"{self.path}: {name}"

    @contextmanager
    def open(self, name: str, most: int = LARGEST_STREAMED) -> Iterator[IO[bytes]]:
        """A file to be read piece by piece. Raises BadInput, also for what goes wrong while it is read."""
        if self._sizes[name] > most:
            raise BadInput(f"{self.where(name)}: the file has {self._sizes[name]:,} bytes; the most is {most:,}.")
        try:
            with self._opened(name) as file:
                yield file
        except OSError as error:
            raise BadInput(f"{self.where(name)}: the file can't be read: {error.strerror or error}.") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise BadInput(f"{self.where(name)}: the file is damaged ({error}): download the zip again.") from error

    def _opened(self, name: str) -> IO[bytes]:
        if self._zip is not None:
            return self._zip.open(name)
        return (self.path / name if self.path.is_dir() else self.path).open("rb")

    def holds(self, name: str, words: bytes) -> bool:
        """Whether a file that is read at once has these bytes somewhere."""
        with self.open(name, LARGEST_WHOLE) as file:
            return words in file.read()

    def json(self, name: str) -> Any:
        """What a file of JSON holds. Raises BadInput, naming file and line."""
        with self.open(name, LARGEST_WHOLE) as file:
            content = file.read()
        try:
            return json.loads(content)
        except json.JSONDecodeError as error:
            raise BadInput(f"{self.where(name)}:{error.lineno}: this is no JSON ({error.msg}).") from error
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.where(name)}: the file is not in UTF-8 (byte {error.start:,}).") from error
        except RecursionError as error:
            raise BadInput(f"{self.where(name)}: its JSON is nested too deeply.") from error


def _in_folder(path: Path) -> Iterator[tuple[str, int]]:
    """Files below a folder; links are left out, since they may lead anywhere."""
    for root, _, files in os.walk(path, followlinks=False):
        for file in (Path(root) / name for name in files):
            if not file.is_symlink() and file.is_file():
                yield file.relative_to(path).as_posix(), file.stat().st_size


def _in_zip(path: Path, file: zipfile.ZipFile) -> dict[str, int]:
    """Files of a zip, whose sizes hold: what they say is the most that is ever read of them."""
    entries = [entry for entry in file.infolist() if not entry.is_dir()]
    if len(entries) > MOST_FILES:
        raise BadInput(f"{path} holds {len(entries):,} files; the most is {MOST_FILES:,}.")
    for entry in entries:
        if _OUTSIDE.search(entry.filename) or PurePosixPath(entry.filename).is_absolute():
            raise BadInput(f"{path}: the zip names a file outside of itself ({entry.filename!r}), and is not read.")
        if entry.flag_bits & 1:
            raise BadInput(f"{path}: {entry.filename} is encrypted; give a zip without a password.")
        if entry.file_size > max(HARMLESS, RATIO * entry.compress_size):
            raise BadInput(f"{path}: {entry.filename} grows from {entry.compress_size:,} to {entry.file_size:,} bytes.")
    total, packed = sum(entry.file_size for entry in entries), path.stat().st_size
    if total > max(HARMLESS, RATIO * packed):  # files that share their bytes each look harmless
        raise BadInput(f"{path} has {packed:,} bytes and would grow to {total:,}: such a zip is not read.")
    return {entry.filename: entry.file_size for entry in entries}
