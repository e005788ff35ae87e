"""A recording: a folder with one file of traces per family, as compressed lines of JSON."""

import gzip
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

FAMILIES: Final = ("attacks", "api", "play", "week", "wires", "worlds")
META: Final = "meta.json"
Trace = dict[str, Any]


@dataclass
class Recorder:
    """Writes the traces of one family, one after another."""

    folder: Path
    family: str
    count: int = 0
    _file: io.TextIOWrapper | None = field(default=None, repr=False)

    def __enter__(self) -> "Recorder":
        self.folder.mkdir(parents=True, exist_ok=True)
        # No time and no name in the head of the file, so that equal recordings are equal files.
        raw = gzip.GzipFile(filename="", fileobj=(self.folder / f"{self.family}.new").open("wb"), mode="wb", mtime=0)
        self._file = io.TextIOWrapper(raw, encoding="utf-8")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._file is not None
        self._file.close()
        if kind is None:
            (self.folder / f"{self.family}.new").rename(path_of(self.folder, self.family))

    def add(self, id: str, **parts: Any) -> None:
        """Add a trace. `parts`: `input`, which explains differences, and what came of it."""
        assert self._file is not None
        self._file.write(json.dumps({"id": id, **parts}, ensure_ascii=False, sort_keys=True) + "\n")
        self.count += 1


def path_of(folder: Path, family: str) -> Path:
    """The file of a family."""
    return folder / f"{family}.jsonl.gz"


def traces(folder: Path, family: str) -> Iterator[Trace]:
    """The traces of a family, in their order."""
    with gzip.open(path_of(folder, family), "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def note(folder: Path, **facts: Any) -> None:
    """Add facts about a recording to its description."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / META
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def facts_of(folder: Path) -> dict[str, Any]:
    """What is noted of a recording."""
    path = folder / META
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def silence() -> None:
    """Write no logs, which may still be captured."""
    nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the end of the process)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(nowhere))
