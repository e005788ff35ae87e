"""Questions about people as those would say it themselves, for embedding. Pure."""

import re
from collections.abc import Collection, Iterable
from typing import Final

from composer.text.terms import STOP_WORDS

LEAST_GENITIVE: Final = 4  # letters of the shortest word that is taken for one
_WORD: Final = re.compile(r"\b(\w+)\b(?:['\u2019](s)\b)?")  # with its possessive ending
_NAME_WORD: Final = re.compile(r"\w+")
_LETTER_OR_DIGIT: Final = re.compile(r"[^\W_]")


def in_first_person(text: str, people: Collection[str], agents: Collection[str] = ()) -> str:
    """A question with "I" and "my" in place of the names of `people` (participants), and without those of `agents`;
    unchanged if it names none of them, or nothing else would remain.

    "When did Ann paint Bob's boat?" becomes "When did I paint my boat?": people speak of themselves, so the answer says
    "I painted …". In a short line a name outweighs what is asked: any greeting of that person would be nearer.
    """
    agent_words = _words_of(agents)
    person_words = _words_of(people) - agent_words
    parts, end = list[str](), 0
    named = after_name = something_else = False
    for match in _WORD.finditer(text):
        gap, word = text[end : match.start()], match[1].casefold()
        end = match.end()
        if word in person_words:
            if after_name and gap.isspace():  # the next word of one name
                parts.pop()
                gap = ""
            is_genitive = match[2] or without_genitive(word) in person_words - {word}
            parts += (gap, "my" if is_genitive else "I")
            named = True
        elif word in agent_words:
            parts += (gap, " ")
            named = True
        else:
            parts += (gap, match[0])
            something_else = something_else or _LETTER_OR_DIGIT.search(word) is not None
        after_name = word in person_words and not match[2]
    if not named or not something_else:
        return text
    return " ".join("".join((*parts, text[end:])).split())


def without_genitive(word: str) -> str:
    """A word that may be the genitive of a name, without its ending: "Lenas Urlaub" is Lena's."""
    return word[:-1] if len(word) >= LEAST_GENITIVE and word.endswith("s") else word


def _words_of(names: Iterable[str]) -> set[str]:
    return {word.casefold() for name in names for word in _NAME_WORD.findall(name)} - STOP_WORDS
