"""Cut a long text into passages that overlap at the bounds of its sentences and lines. Pure, in linear time."""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Final

MAX_WHOLE_BYTES: Final = 1_200  # in UTF-8; a text that is not longer is one passage. About 300 tokens in any script
PASSAGE_BYTES: Final = 1_000  # at most so many, of which OVERLAP_BYTES are in the passage before, too
OVERLAP_BYTES: Final = 200
MAX_PASSAGES: Final = 1_000  # of one text; the rest is not found

# After a line, or after a sentence: possessive, so that a run of marks is read once. All begin with a sign of one set,
# which the library looks for fastest. A run of `_SENTENCE_MARKS` that nothing follows ends no sentence.
_BOUND: Final = re.compile(
    r"[\n.!?\u2026\u3002\uff01\uff1f]"
    r"(?:(?<=\n)\n*+|(?<=[\u3002\uff01\uff1f])[\u3002\uff01\uff1f]*+|[.!?\u2026]*+(?>(?:[\"'\u201d\u2019)\]]*+\s++)?))"
)
_SENTENCE_MARKS: Final = ".!?\u2026"
_SPACE: Final = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text: its number, where it begins, and how many characters it has (None: it is the whole text)."""

    part: int = 1
    start: int = 0
    chars: int | None = None

    def of(self, text: str) -> str:
        """Its words."""
        return text if self.chars is None else text[self.start : self.start + self.chars]


def is_whole(text: str) -> bool:
    """Whether a text is one passage."""
    return len(text) <= MAX_WHOLE_BYTES and _bytes_of(text) <= MAX_WHOLE_BYTES


def passages(text: str) -> list[Passage]:
    """The passages of a text, in their order: a short one is one passage, and so is an empty one."""
    size = _bytes_of(text)
    if size <= MAX_WHOLE_BYTES:
        return [Passage()]
    share = len(text) / size  # characters a byte: passages of any script are of about so many tokens
    most, overlap = max(2, int(PASSAGE_BYTES * share)), int(OVERLAP_BYTES * share)
    ends = bounds_of(text)
    found: list[Passage] = []
    start = 0
    while len(found) < MAX_PASSAGES:
        end = _end(text, ends, start + most // 2, start + most) if len(text) - start > most else len(text)
        found.append(Passage(len(found) + 1, start, end - start))
        if end == len(text):
            break
        start = _start(text, ends, end - overlap, end)
    return found


def bounds_of(text: str) -> list[int]:
    """Where the lines and sentences of a text end, with the space after them."""
    return [end for end in (found.end() for found in _BOUND.finditer(text)) if text[end - 1] not in _SENTENCE_MARKS]


def _bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _end(text: str, bounds: list[int], least: int, most: int) -> int:
    """Where a passage ends: after its last sentence, else after its last word, else anywhere."""
    before = bisect_right(bounds, most) - 1
    if before >= 0 and bounds[before] > least:
        return bounds[before]
    spaces = [space.end() for space in _SPACE.finditer(text, least, most)]
    return spaces[-1] if spaces else most


def _start(text: str, bounds: list[int], least: int, most: int) -> int:
    """Where the next passage begins: at the first sentence of the overlap, else at its first word, else at the end."""
    after = bisect_left(bounds, least)
    if after < len(bounds) and bounds[after] < most:
        return bounds[after]
    space = _SPACE.search(text, least, most)
    return most if space is None else space.end()
