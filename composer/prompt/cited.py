"""What an answer took from its prompt, as far as the answer itself shows it:

the sources that it cites by their marks, and the lines that an answer without a model quotes. Pure.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from composer.prompt.explain import ExplainedSection, ExplainedSource
from composer.prompt.sections import RECALL, RELATED, TOOLS, WORKING
from composer.text.marks import marks_in
from composer.text.offline import OFFLINE

_QUOTED: Final = re.compile(r"^- (?:\((?P<mark>[^()\s]{1,40})\) )?(?P<text>.+)$", re.MULTILINE)
_SPEAKER: Final = re.compile(r"\A(?:[^\n]{0,100}?\(\d{4}-\d\d-\d\d[^)\n]{0,30}\)|\d{4}-\d\d-\d\d[^:\n]{0,30}): ")
_CONTINUED: Final = re.compile(r"\n  \| ?")
_WITHOUT_LINES: Final = (RELATED, WORKING)  # whose text is not divided among their sources


@dataclass(frozen=True, slots=True)
class Cited:
    """One thing that an answer cites or quotes: the section where it stands, its text, and its source where that is
    known."""

    section: str
    text: str
    source: ExplainedSource | None = None


def cited(sections: Sequence[ExplainedSection], answer: str) -> list[Cited]:
    """What an answer cites or quotes of these sections, in the order of the answer, each once. What its reader may not
    read any more is not among them, since `sections` are without it."""
    found = _quoted(sections, answer) if OFFLINE in answer else _marked(sections, answer)
    return list({(each.section, each.text): each for each in found}.values())


def marked(sections: Sequence[ExplainedSection], taken: Sequence[Cited]) -> tuple[ExplainedSection, ...]:
    """The sections with what an answer cites or quotes marked as such."""
    ids = {each.source.id for each in taken if each.source is not None}
    return tuple(
        replace(section, sources=tuple(replace(s, cited=s.cited or s.id in ids) for s in section.sources))
        for section in sections
    )


def _marked(sections: Sequence[ExplainedSection], answer: str) -> Iterator[Cited]:
    sources = {s.mark: (each.name, s) for each in sections if each.name in (RECALL, TOOLS) for s in each.sources}
    for mark in marks_in(answer):
        if mark in sources:
            name, source = sources[mark]
            yield Cited(name, source.text, source)


def _quoted(sections: Sequence[ExplainedSection], answer: str) -> Iterator[Cited]:
    recalled = {source.mark: source for each in sections if each.name == RECALL for source in each.sources}
    for match in _QUOTED.finditer(answer):
        mark, text = match["mark"], match["text"]
        if mark in recalled:
            yield Cited(RECALL, recalled[mark].text, recalled[mark])
            continue
        words = _plain(_SPEAKER.sub("", text)).removesuffix("\u2026")
        for section in sections:
            source = next((each for each in section.sources if words in _plain(each.text)), None)
            if source is not None or (section.name in _WITHOUT_LINES and words in _plain(section.text)):
                yield Cited(section.name, f"- {text}" if source is None else source.text, source)
                break


def _plain(text: str) -> str:
    """A text on one line, without the bars of a prompt."""
    return " ".join(_CONTINUED.sub(" ", text).split())
