"""The files of an export: a zip, a folder or a single file. Nothing is unpacked, and nothing outside it is read."""

import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Self

from composer.errors import BadInput

MAX_FILES: Final = 2_000_000
MAX_WHOLE_BYTES: Final = 256 * 2**20  # of a file that is read at once
MAX_STREAMED_BYTES: Final = 64 * 2**30  # of a file that is read in chunks
MAX_RATIO: Final = 200  # chat compresses 5 to 20 times; a zip that grows by more than this is an attack
HARMLESS_BYTES: Final = 16 * 2**20  # up to this size a file may grow by any ratio
_OUTSIDE = re.compile(r"^(/|[A-Za-z]:|~)|(^|/)\.\.(/|$)|\\|\x00")


class Archive:
    """Files by name, with `/` between folders. Close it, or use it in a `with`."""

    def __init__(self, path: Path) -> None:
        """Open the archive. Raises BadInput, with the file, when it can't be read or trusted."""
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
                raise BadInput(f"{path} is not a zip file, or is incomplete: download it again.")
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
        """The files' names, sorted."""
        return sorted(self._sizes)

    def __contains__(self, name: str) -> bool:
        """Whether there is a file with this name."""
        return name in self._sizes

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """The content of a small file; None for one of more than `max_bytes`. Raises BadInput."""
        if self._sizes[name] > max_bytes:
            return None
        with self.open(name, max_bytes) as file:
            return file.read()

    def where(self, name: str) -> str:
        """The name of a file in an error."""
        return str(self.path) if self._zip is None and not self.path.is_dir() else f"{self.path}: {name}"

    @contextmanager
    def open(self, name: str, max_bytes: int = MAX_STREAMED_BYTES) -> Iterator[IO[bytes]]:
        """Open a file to be read in chunks. Raises BadInput, also for errors while it is read."""
        if self._sizes[name] > max_bytes:
            raise BadInput(f"{self.where(name)}: the file has {self._sizes[name]:,} bytes; the limit is {max_bytes:,}.")
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

    def contains_bytes(self, name: str, wanted: bytes) -> bool:
        """Whether a file, which is read at once, contains these bytes."""
        with self.open(name, MAX_WHOLE_BYTES) as file:
            return wanted in file.read()

    def json(self, name: str) -> Any:
        """The content of a JSON file. Raises BadInput, with file and line."""
        with self.open(name, MAX_WHOLE_BYTES) as file:
            content = file.read()
        try:
            return json.loads(content)
        except json.JSONDecodeError as error:
            raise BadInput(f"{self.where(name)}:{error.lineno}: this is not JSON ({error.msg}).") from error
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.where(name)}: the file is not in UTF-8 (byte {error.start:,}).") from error
        except ValueError as error:  # a number of thousands of digits
            raise BadInput(f"{self.where(name)}: its JSON has a number that is too long.") from error
        except RecursionError as error:
            raise BadInput(f"{self.where(name)}: its JSON is nested too deeply.") from error


def _in_folder(path: Path) -> Iterator[tuple[str, int]]:
    """The files below a folder with their sizes. Links are left out: they may lead anywhere."""
    for root, _, files in os.walk(path, followlinks=False):
        for file in (Path(root) / name for name in files):
            if not file.is_symlink() and file.is_file():
                yield file.relative_to(path).as_posix(), file.stat().st_size


def _in_zip(path: Path, file: zipfile.ZipFile) -> dict[str, int]:
    """The files of a zip with their sizes. No more than its declared size is ever read of a file."""
    entries = [entry for entry in file.infolist() if not entry.is_dir()]
    if len(entries) > MAX_FILES:
        raise BadInput(f"{path} contains {len(entries):,} files; the limit is {MAX_FILES:,}.")
    for entry in entries:
        if _OUTSIDE.search(entry.filename) or PurePosixPath(entry.filename).is_absolute():
            raise BadInput(f"{path}: the zip names a file outside itself ({entry.filename!r}): it is not read.")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise BadInput(f"{path}: {entry.filename} is a link to another file: give a zip without links.")
        if entry.flag_bits & 1:
            raise BadInput(f"{path}: {entry.filename} is encrypted; give a zip without a password.")
        if entry.file_size > max(HARMLESS_BYTES, MAX_RATIO * entry.compress_size):
            raise BadInput(f"{path}: {entry.filename} grows from {entry.compress_size:,} to {entry.file_size:,} bytes.")
    total, packed = sum(entry.file_size for entry in entries), path.stat().st_size
    if total > max(HARMLESS_BYTES, MAX_RATIO * packed):  # files that share their bytes each look harmless
        raise BadInput(f"{path} has {packed:,} bytes and would grow to {total:,}: such a zip is not read.")
    return {entry.filename: entry.file_size for entry in entries}
