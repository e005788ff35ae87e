"""The files of an export: a zip, a tar, a folder or a single file. Nothing outside it is read, and nothing is unpacked,
except that the JSON of a tar, which can only be read in its order, is copied into one temporary file without a name."""

import io
import json
import os
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

# What ZipFile itself finds the directory by, also that of a zip of more than 4 GB.
from zipfile import _EndRecData  # type: ignore[attr-defined]

from bot.importers.file_names import is_junk, legacy_name, plain_name
from composer.errors import BadInput
from composer.gateway.json_text import require_few_values

MAX_FILES: Final = 2_000_000
MAX_WHOLE_BYTES: Final = 256 * 2**20  # of a file that is read at once
MAX_STREAMED_BYTES: Final = 64 * 2**30  # of a file that is read in chunks
MAX_RATIO: Final = 200  # chat compresses 5 to 20 times; a zip that grows by more than this is an attack
HARMLESS_BYTES: Final = 16 * 2**20  # up to this size a file may grow by any ratio
_OUTSIDE = re.compile(r"^(/|[A-Za-z]:|~)|(^|/)\.\.(/|$)|\x00")
_DIRECTORY_SIZE: Final = 5  # in what _EndRecData returns
UTF8_NAME: Final = 0x800  # the flag of a zip's entry whose name is UTF-8
_TARS: Final = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True, slots=True)
class ArchiveBounds:
    """How much of an archive is taken: so many bytes of all its files, and of the `directory` that lists them; so many
    of one that is read at once, with so many `values` of its JSON."""

    total: int
    directory: int
    whole: int = MAX_WHOLE_BYTES
    values: int | None = None


OF_OPERATOR: Final = ArchiveBounds(2**60, 2**40)


class NotJson(BadInput):
    """A file is not the JSON that it should be; others of the archive may well be."""


class Archive:
    """Files by name, with `/` between folders; names are in the normal form NFC. Close it, or use it in a `with`.

    `junk` counts what operating systems leave beside files (`__MACOSX`, `._…`, Thumbs.db): it is left out.
    """

    def __init__(self, path: Path, bounds: ArchiveBounds = OF_OPERATOR) -> None:
        """Open the archive. Raises BadInput, with the file, when it can't be read or trusted."""
        self.path = path
        self._bounds = bounds
        self.junk = 0
        self._zip: zipfile.ZipFile | None = None
        self._tar: IO[bytes] | None = None
        self._starts: dict[str, int] = {}  # of a tar: where in the copy a file begins
        self._sizes: dict[str, int] = {}
        self._stored: dict[str, str] = {}  # the names as the archive has them, where they differ
        try:
            size = path.stat().st_size
            if path.is_dir():
                self._add(_in_folder(path))
            elif zipfile.is_zipfile(path):
                _require_short_directory(path, bounds.directory)
                self._zip = zipfile.ZipFile(path)
                self._add(_in_zip(path, self._zip))
            elif path.suffix.lower() == ".zip":
                raise BadInput(f"{path} is not a zip file, or is incomplete: download it again.")
            elif path.name.lower().endswith(_TARS):
                self._tar = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
                self._add(self._from_tar(self._tar))
            else:
                self._sizes = {path.name: size}
        except OSError as error:
            raise BadInput(f"{path} can't be read: {error.strerror or error}.") from error
        except tarfile.TarError as error:
            raise BadInput(f"{path} is not a tar file, or is incomplete ({error}): download it again.") from error
        except (zlib.error, EOFError) as error:
            raise BadInput(f"{path} is damaged ({error}): download it again.") from error
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise BadInput(f"{path} is a damaged zip file ({error}): download it again.") from error
        if (total := sum(self._sizes.values())) > bounds.total:
            raise BadInput(f"{path} has {total:,} bytes in its files; {bounds.total:,} are taken here.")

    def _add(self, files: Iterator[tuple[str, str, int]]) -> None:
        """Add files by their names as people read them, as the archive has them, and their sizes."""
        for shown, stored, size in files:
            if is_junk(shown):
                self.junk += 1
                continue
            name = plain_name(shown)
            name = stored if name in self._sizes else name  # two names that differ in their normal form alone
            self._sizes[name] = size
            if name != stored:
                self._stored[name] = stored

    def _from_tar(self, copy: IO[bytes]) -> Iterator[tuple[str, str, int]]:
        """Copy the JSON of a tar, which is read once. All others have no content here: only their names count."""
        total, most = 0, max(HARMLESS_BYTES, MAX_RATIO * self.path.stat().st_size)
        with tarfile.open(self.path, "r|*") as tar:
            for number, entry in enumerate(tar):
                if number >= MAX_FILES:
                    raise BadInput(f"{self.path} contains more than {MAX_FILES:,} files.")
                if _OUTSIDE.search(entry.name):
                    raise BadInput(f"{self.path}: the tar names a file outside itself ({entry.name!r}): don't read it.")
                if entry.issym() or entry.islnk():
                    continue  # it may lead anywhere
                if not entry.isfile():
                    continue
                total += entry.size
                if total > most:
                    raise BadInput(f"{self.path} would grow to more than {most:,} bytes: such a tar is not read.")
                name = entry.name.removeprefix("./")
                if not name.lower().endswith((".json", ".jsonl")) or is_junk(name):
                    yield name, name, 0
                    continue
                content = tar.extractfile(entry)
                if content is None:
                    continue
                self._starts[plain_name(name)] = copy.tell()
                while chunk := content.read(2**20):
                    copy.write(chunk)
                yield name, plain_name(name), entry.size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._zip, self._tar):
            if file is not None:
                file.close()

    @property
    def names(self) -> list[str]:
        """The files' names, sorted."""
        return sorted(self._sizes)

    def __contains__(self, name: str) -> bool:
        """Whether there is a file with this name, in any normal form."""
        return plain_name(name) in self._sizes

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """The content of a small file; None for one of more than `max_bytes`. Raises BadInput."""
        name = plain_name(name)
        if self._sizes[name] > max_bytes:
            return None
        with self.open(name, max_bytes) as file:
            return file.read()

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        return self._sizes[plain_name(name)]

    def where(self, name: str) -> str:
        """The name of a file in an error."""
        is_file = self._zip is None and self._tar is None and not self.path.is_dir()
        return str(self.path) if is_file else f"{self.path}: {name}"

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
        except RecursionError:
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise BadInput(f"{self.where(name)}: the file is damaged ({error}): download the zip again.") from error

    def _opened(self, name: str) -> IO[bytes]:
        if self._tar is not None:
            return io.BufferedReader(_Part(self._tar, self._starts.get(name, 0), self._sizes[name]))
        name = self._stored.get(name, name)
        if self._zip is not None:
            return self._zip.open(name)
        return (self.path / name if self.path.is_dir() else self.path).open("rb")

    def contains_bytes(self, name: str, wanted: bytes) -> bool:
        """Whether a file, which is read at once, contains these bytes."""
        with self.open(name, self._bounds.whole) as file:
            return wanted in file.read()

    def json(self, name: str) -> Any:
        """The content of a JSON file. Raises NotJson, with file and line."""
        with self.open(name, self._bounds.whole) as file:
            content = file.read()
        if self._bounds.values is not None:
            try:
                require_few_values(content.decode("latin-1"), self._bounds.values)
            except BadInput:
                sentence = f"{self.where(name)}: its JSON has more than {self._bounds.values:,} values."
                raise BadInput(sentence) from None
        try:
            return json.loads(content)
        except json.JSONDecodeError as error:
            raise NotJson(f"{self.where(name)}:{error.lineno}: this is not JSON ({error.msg}).") from error
        except UnicodeDecodeError as error:
            raise NotJson(f"{self.where(name)}: the file is not in UTF-8 (byte {error.start:,}).") from error
        except ValueError as error:  # a number of thousands of digits
            raise NotJson(f"{self.where(name)}: its JSON has a number that is too long.") from error
        except RecursionError as error:
            raise NotJson(f"{self.where(name)}: its JSON is nested too deeply.") from error


class _Part(io.RawIOBase):
    """A part of a file, as a file."""

    def __init__(self, whole: IO[bytes], start: int, size: int) -> None:
        self._whole, self._at, self._end = whole, start, start + size

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        self._whole.seek(self._at)
        content = self._whole.read(min(len(buffer), self._end - self._at))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


def _in_folder(path: Path) -> Iterator[tuple[str, str, int]]:
    """The files below a folder with their sizes. Links are left out: they may lead anywhere."""
    for root, _, files in os.walk(path, followlinks=False):
        for file in (Path(root) / name for name in files):
            if not file.is_symlink() and file.is_file():
                name = file.relative_to(path).as_posix()
                yield legacy_name(os.fsencode(name)) if _has_surrogates(name) else name, name, file.stat().st_size


def _has_surrogates(name: str) -> bool:
    """Whether the bytes of a name are not text of this system."""
    return any("\ud800" <= character <= "\udfff" for character in name)


def _require_short_directory(path: Path, most: int) -> None:
    """Return if the directory of a zip has few bytes: it is read as a whole when the zip is opened. Raises BadInput."""
    with path.open("rb") as file:
        end = _EndRecData(file)
    if end is not None and end[_DIRECTORY_SIZE] > most:
        raise BadInput(
            f"{path} lists too many files: {end[_DIRECTORY_SIZE]:,} bytes of names; {most:,} are taken here."
        )


def _in_zip(path: Path, file: zipfile.ZipFile) -> Iterator[tuple[str, str, int]]:
    """The files of a zip with their sizes. No more than its declared size is ever read of a file."""
    infos = file.infolist()
    # Some programs of Windows write backslashes between folders. Names in other code pages may have one in a letter.
    is_windows = any("\\" in info.filename for info in infos) and not any("/" in info.filename for info in infos)

    def slashed(name: str) -> str:
        return name.replace("\\", "/") if is_windows or "\\..\\" in name else name

    entries = [info for info in infos if not slashed(info.filename).endswith("/")]
    if len(entries) > MAX_FILES:
        raise BadInput(f"{path} contains {len(entries):,} files; the limit is {MAX_FILES:,}.")
    for entry in entries:
        if _OUTSIDE.search(slashed(entry.filename)):
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
    for entry in entries:
        is_utf8 = entry.flag_bits & UTF8_NAME or entry.filename.isascii()
        shown = entry.filename if is_utf8 else legacy_name(entry.filename.encode("cp437"))
        yield slashed(shown), entry.filename, entry.file_size
