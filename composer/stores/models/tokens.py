"""Count tokens as a model does, with vocabulary tables that come with splintr: nothing is downloaded."""

import math
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from composer.ports.models import Tokenizer
from composer.text.caches import emptied_by_erasing

if TYPE_CHECKING:
    from splintr import AnyTokenizer

# By model name, lower case, without the provider's prefix; the first match wins.
_ENCODINGS = tuple(
    (re.compile(pattern), encoding)
    for pattern, encoding in (
        (r"$|offline$", "o200k_base"),
        (r"gpt-oss", "gpt-oss"),
        (r"gpt-4o|gpt-4\.[1-9]|gpt-[5-9]|chatgpt|o[1-9]\b", "o200k_base"),
        (r"gpt-4|gpt-3\.?5|text-embedding-(3|ada)", "cl100k_base"),
        (r"(meta-)?llama-?3", "llama3"),
        (r"deepseek-r1-distill-llama", "llama3"),
        (r"deepseek-r1-distill-qwen", "qwen3"),
        (r"deepseek", "deepseek_v3"),
        (r"qwen|qwq", "qwen3"),
        (r"glm", "glm4"),
        (r"kimi-k3", "kimi_k3"),
        (r"kimi|moonshot", "kimi_k2"),
        (r"mistral-7b(-instruct)?-v0\.[12]|mixtral-8x7b", "mistral_v1"),
        (r"mistral|mixtral|ministral|codestral|devstral", "mistral_v3"),
        (r"phi-?4", "phi4"),
    )
)
ESTIMATE_ENCODING = "o200k_base"
# A margin, not a measurement: until the API reports its own count, an estimate that is too high is safer.
ESTIMATE_FACTOR = 1.15

# An unbroken run of letters takes more than linear time (20,000 letters 70 ms, 1,000,000 letters minutes), so longer
# runs than this are cut. A cut changes the count by about a token.
MAX_RUN = 400
READ_AT_ONCE = 10_000  # characters: the table counts them in 2 ms, in which no other thread runs
_LONG_RUN = re.compile(rf"\S{{{MAX_RUN}}}|\s{{{MAX_RUN}}}")
_LONG_GAP = re.compile(rf"\s{{{MAX_RUN}}}")

_tables: dict[str, "AnyTokenizer"] = {}
_loading = threading.Lock()


def _table(encoding: str) -> "AnyTokenizer":
    """The table of an encoding, loaded once per process: 40 to 100 ms, 20 to 40 MB each."""
    with _loading:
        if encoding not in _tables:
            from splintr import Tokenizer as Tables  # noqa: PLC0415

            _tables[encoding] = Tables.from_pretrained(encoding)
        return _tables[encoding]


@dataclass(frozen=True, slots=True)
class TableTokenizer:
    """A tokenizer with one table. `factor` above 1 makes it an estimate, for a model whose own table is missing."""

    encoding: str
    factor: float = 1.0

    @property
    def exact(self) -> bool:
        """Whether the table is the model's own, so that counts are exact."""
        return self.factor == 1.0

    def count(self, text: str) -> int:
        """The number of tokens in a text. Spellings of special tokens count as text, a lone surrogate as `?`."""
        table = _table(self.encoding)
        return math.ceil(sum(_encoded_length(table, piece) for piece in _pieces(text)) * self.factor)


class _ChunkCaches:
    """The caches of the tables, which map pieces of the counted texts to their tokens. They belong to the library and
    have no owner: a piece is a word or less, and saves a microsecond (docs/limits.md)."""

    def clear(self) -> None:
        """Empty them: 0.1 ms for each table."""
        for table in list(_tables.values()):
            with suppress(ValueError):  # tables of this kind cache nothing
                table.clear_cache()


_chunk_caches = _ChunkCaches()
emptied_by_erasing(_chunk_caches)


def _encoded_length(table: "AnyTokenizer", piece: str) -> int:
    try:
        return len(table.encode_ordinary(piece))
    except UnicodeEncodeError:
        return len(table.encode_ordinary(piece.encode("utf-8", "replace").decode()))


def _pieces(text: str) -> list[str]:
    """The text in pieces of at most READ_AT_ONCE, cut before a space, and inside runs longer than MAX_RUN; joined, they
    are the text."""
    if len(text) < MAX_RUN:
        return [text]
    return [piece for part in _parts(text) for piece in _without_long_runs(part)]


def _parts(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > READ_AT_ONCE:
        end = text.rfind(" ", start + 1, start + READ_AT_ONCE)
        end = end if end > start else start + READ_AT_ONCE
        yield text[start:end]
        start = end
    yield text[start:]


def _without_long_runs(text: str) -> list[str]:
    if not _has_long_run(text):
        return [text]
    cuts = [match.end() for match in _LONG_RUN.finditer(text)]
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True) if start < end]


def _has_long_run(text: str) -> bool:
    """Whether `_LONG_RUN` matches. Searching with it takes three times as long as counting, so this comes first."""
    lengths = list(map(len, text.split()))
    gaps = len(text) - sum(lengths)  # in all
    return max(lengths, default=0) >= MAX_RUN or (gaps - len(lengths) >= MAX_RUN - 2 and bool(_LONG_GAP.search(text)))


def tokenizer_for(model: str) -> Tokenizer:
    """The tokenizer of a model by its name, with or without a provider's prefix (`openai/gpt-4o`).

    "" and "offline" are the offline model. An unknown name gets an estimate, which is rather too high.
    """
    name = model.strip().lower().rsplit("/", 1)[-1]
    for pattern, encoding in _ENCODINGS:
        if pattern.match(name):
            return TableTokenizer(encoding)
    return TableTokenizer(ESTIMATE_ENCODING, ESTIMATE_FACTOR)
