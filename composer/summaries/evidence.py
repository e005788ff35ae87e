"""What of a model's summary is said by whom it names: sentence by sentence, by their own words. Pure.

A model reads the words of many at once, and may obey one of them. So a sentence that names people must be what they
said themselves: half of its words and every number are of them together, and each of them said a word of it. A name
that several have is of who has no other, or else each of them must have said it. A sentence that names nobody is of
whom the one before it in its line names, else it must be of what all said. The rest is left out. Of 1,936 sentences
that people and models wrote of 99 conversations (LoCoMo), 90% stay.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import chain, groupby
from operator import itemgetter
from typing import Final

from composer.memory.authorship import MIN_SUPPORT, says_some, support, words_of
from composer.summaries.texts import SummaryInput, is_own
from composer.text.cleaning import clean_text
from composer.text.names import APP, plain_words
from composer.text.own_words import own_words
from composer.text.terms import STOP_WORDS, sentences, terms

MIN_KEPT: Final = 0.5  # of the sentences of a summary: of one with less, nothing is believed

_WORD: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"\[\d{1,3}\]")  # of those who are called alike (composer/prompt/lines.py)
_LIST_ITEM: Final = re.compile(r"\A\s*(?:[-*+\u2022]|\d{1,3}[.)])\s")

Name = frozenset[str]  # the words of a name


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was said: by each name, and by all. `labels` are the names as they stand before lines."""

    by_name: Mapping[Name, frozenset[str]]
    by_all: frozenset[str]
    labels: Mapping[Name, str]


def evidence_of(inputs: Sequence[SummaryInput], zone: tzinfo, people: Collection[str] = ()) -> Evidence:
    """What the inputs of a summary say. What stands in a file is nobody's word. A line of an earlier summary is of whom
    it begins with, as "alice: …", or else of everybody whom it names of the authors of inputs and of these `people`."""
    labels = {*people, *(each.author for each in inputs if each.author and is_own(each.author))}
    names = {label: name for label in labels if (name := _name_words(label))}
    said = {name: set[str]() for name in names.values()}
    all_words = set(words_of(*labels))
    for each in inputs:
        moment = words_of(f"{(at := each.at.astimezone(zone)):%Y-%m-%d %H:%M} {at.day} {at:%B}")
        all_words |= words_of(each.text, *each.files) | moment
        if each.author:
            _add(said, [names.get(each.author)], words_of(own_words(each.text)) | moment)
            continue
        for line in filter(str.strip, each.text.splitlines()):
            speaker, colon, _ = _LIST_ITEM.sub("", line).partition(": ")
            of: Iterable[Name] = chain.from_iterable(_named(line, names.values()))
            if colon and (speaker in names or not is_own(speaker)):
                of = [names[speaker]] if speaker in names else []
            _add(said, of, words_of(line) | moment)
    by_name = {name: frozenset(words) for name, words in said.items()}
    return Evidence(by_name, frozenset(all_words), {name: label for label, name in sorted(names.items())})


def _add(said: Mapping[Name, set[str]], of: Iterable[Name | None], words: frozenset[str]) -> None:
    for name in of:
        if name is not None:
            said[name].update(words)


def supported_text(text: str, evidence: Evidence) -> str:
    """The sentences of a summary that its evidence says; none when these are less than half of them. Headings are left
    out, and are no sentences."""
    lines, count, left = list[str](), 0, 0
    for line in clean_text(text).splitlines():
        item = _LIST_ITEM.match(line)
        mark, words = (line[: item.end()], line[item.end() :]) if item else ("", line)
        if words.rstrip(" *_").endswith(":"):
            continue
        kept = list(_supported(words, evidence))
        count, left = count + len(sentences(words)), left + len(kept)
        for label, part in groupby(kept, key=itemgetter(0)):  # a line each: the tier above reads whose they are
            said = " ".join(sentence for _, sentence in part)
            lines.append(f"{mark}{label}: {said}" if label else mark + said)
    return "\n".join(lines) if left >= MIN_KEPT * count else ""


def _supported(line: str, evidence: Evidence) -> Iterator[tuple[str, str]]:
    """The sentences of a line that somebody said, each after its label."""
    said: list[frozenset[str]] = []  # by each whom the sentence, or the one before it, names
    label = ""
    for sentence in sentences(line):
        named = _named(sentence, evidence.by_name)
        said = [frozenset.intersection(*(evidence.by_name[name] for name in group)) for group in named] or said
        names = _name_words(sentence) & frozenset().union(*chain.from_iterable(named))
        words = _NUMBER.sub(" ", sentence) if any(map(_NUMBER.fullmatch, names)) else sentence
        if said:
            together = frozenset().union(*said)
            is_said = support(together, words, names) >= MIN_SUPPORT
            is_said = is_said and all(says_some(each, words, names) for each in said)
        else:  # may begin with the name of somebody who said nothing, so half is not enough
            is_said = support(evidence.by_all, words) > MIN_SUPPORT
        if named or not said:  # else it goes on with what the one before it says, under that one's label
            label = _label(words, names, evidence)
        if is_said:
            yield label, sentence


def _label(sentence: str, names: Collection[str], evidence: Evidence) -> str:
    """Whose a sentence is that one person alone said and that does not begin with their name, or that an app said,
    which may be called like a person; "" for any other."""
    alone = [name for name, said in evidence.by_name.items() if support(said, sentence, names) >= MIN_SUPPORT]
    if len(alone) != 1:
        return ""
    first = _WORD.search(sentence)
    is_told = first is not None and APP not in alone[0] and not alone[0].isdisjoint(_name_words(first[0]))
    return "" if is_told else evidence.labels[alone[0]]


def _named(text: str, names: Collection[Name]) -> list[list[Name]]:
    """The names in a text: those of each person, and of all who are called so. "Ann Miller" is not every Miller, and
    "Ann" not every Ann where somebody is called so alone."""
    words, found = _name_words(text), defaultdict[Name, list[Name]](list)
    for name in names:
        if common := name & words:
            found[common].append(name)
    most = {common: group for common, group in found.items() if not any(common < other for other in found)}
    return [[common] if common in group else group for common, group in most.items()]


def _name_words(text: str) -> Name:
    """The words of a text that may be names, also in letters that look like those of others, and the numbers of those
    who are called alike: "Will" is one, and "will" is none."""
    words = _NUMBER.sub(" ", text)
    capitals = (word.casefold() for word in _WORD.findall(words) if not word[0].islower())
    stops = (word for word in capitals if word in STOP_WORDS)
    alike = () if words.isascii() else terms(" ".join(plain_words(words)))
    return frozenset(chain(terms(words), stops, alike, _NUMBER.findall(text)))
