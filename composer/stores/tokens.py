"""Counts tokens as the model does, with tables that splintr carries: nothing is downloaded."""

import math
import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from composer.ports.models import Tokenizer

if TYPE_CHECKING:
    from splintr import AnyTokenizer

# Model names without the provider's prefix, lower case; the first match counts.
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
# A margin, not a measurement: until an API has said what it counts, an estimate should rather be too high.
ESTIMATE_FACTOR = 1.15

# A run of letters without a break is merged in more than linear time (20,000 letters 70 ms, 1,000,000 minutes),
# so no run longer than this is handed over whole. A cut changes the count by about a token.
MAX_RUN = 400
_LONG_RUN = re.compile(rf"\S{{{MAX_RUN}}}|\s{{{MAX_RUN}}}")
_LONG_GAP = re.compile(rf"\s{{{MAX_RUN}}}")

# A token never reaches over a line's end into a next line that begins with anything but white space or a slash, so
# lines are counted one by one, and those of the turn before are known. (Not so in tables that know no words.)
_WHOLE = frozenset({"mistral_v1"})
_NEXT_LINE = re.compile(r"(?<=\n)(?=[^\s/])")
KNOWN_LINES = 30_000
LONGEST_KNOWN = 2_000  # characters

_tables: dict[str, "AnyTokenizer"] = {}
_loading = threading.Lock()


def _table(encoding: str) -> "AnyTokenizer":
    """The table, loaded once in a process: 40 to 100 ms, 20 to 40 MB each."""
    with _loading:
        if encoding not in _tables:
            from splintr import Tokenizer as Tables  # noqa: PLC0415

            _tables[encoding] = Tables.from_pretrained(encoding)
        return _tables[encoding]


@dataclass(frozen=True, slots=True)
class TableTokenizer:
    """Counts with one table; `factor` above 1 makes it an estimate for a model whose own table nobody has."""

    encoding: str
    factor: float = 1.0

    @property
    def exact(self) -> bool:
        """Whether the table is the model's own."""
        return self.factor == 1.0

    def count(self, text: str) -> int:
        """Tokens in `text`; special-token spellings count as ordinary text, a lone surrogate as `?`."""
        lines = [text] if self.encoding in _WHOLE else _lines(text)
        counted = sum(_known(self.encoding, line) for line in lines)
        return math.ceil(counted * self.factor)


def _lines(text: str) -> list[str]:
    return _NEXT_LINE.split(text) if "\n" in text else [text]


def _known(encoding: str, line: str) -> int:
    return _remembered(encoding, line) if len(line) <= LONGEST_KNOWN else _counted(encoding, line)


def _counted(encoding: str, text: str) -> int:
    table = _table(encoding)
    return sum(_encoded_length(table, piece) for piece in _pieces(text))


_remembered = lru_cache(maxsize=KNOWN_LINES)(_counted)


def _encoded_length(table: "AnyTokenizer", piece: str) -> int:
    try:
        return len(table.encode_ordinary(piece))
    except UnicodeEncodeError:
        return len(table.encode_ordinary(piece.encode("utf-8", "replace").decode()))


def _pieces(text: str) -> list[str]:
    """`text` itself, or cut inside its overlong runs; the pieces joined are `text`."""
    if len(text) < MAX_RUN or not _has_long_run(text):
        return [text]
    cuts = [match.end() for match in _LONG_RUN.finditer(text)]
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True) if start < end]


def _has_long_run(text: str) -> bool:
    """Whether `_LONG_RUN` finds anything; it alone would take three times as long as the counting itself."""
    return max(map(len, text.split()), default=0) >= MAX_RUN or _LONG_GAP.search(text) is not None


def tokenizer_for(model: str) -> Tokenizer:
    """The tokenizer of a model by its name, with or without a provider's prefix (`openai/gpt-4o`).

    "" and "offline" stand for the offline model. An unknown name gets an estimate that rather counts too much.
    """
    name = model.strip().lower().rsplit("/", 1)[-1]
    for pattern, encoding in _ENCODINGS:
        if pattern.match(name):
            return TableTokenizer(encoding)
    return TableTokenizer(ESTIMATE_ENCODING, ESTIMATE_FACTOR)
