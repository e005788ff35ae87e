"""Names that people choose: no person may be taken for an agent, and no name for a part of the prompt. Pure."""

import re
import unicodedata
from collections.abc import Collection, Mapping
from functools import cache
from typing import Final

from composer.text.gate import clean_line, normalised, shorten

AGENT_LABEL: Final = "You"  # an agent as a speaker in its own prompt
ROLES: Final = ("Assistant", "System")  # as models call the others of a conversation
DECORATIONS: Final = ("the", "official", "real", "bot", "app", "ai", "agent", "assistant")  # "Nexus Bot"
NOBODY: Final = "someone"
MAX_LABEL_CHARS: Final = 80  # of a name in a prompt

_WORD: Final = re.compile(r"[^\W_]+")
# What sets off times, marks and headings in a prompt, and what Unicode has that looks like it.
_SIGNS: Final = re.compile(
    "[\\[\\]():|\uff3b\uff3d\uff08\uff09\uff1a\uff5c\u2768-\u2775\u27e6-\u27ef\u2985\u2986\u3010\u3011\u3014\u3015\u3018-\u301b"
    "\u02d0\u02f8\u0589\u05c3\u2236\ua789\ufe13\ufe30\ufe47\ufe48\ufe55\ufe59-\ufe5e\u207d\u207e\u208d\u208e\u2223\u23d0\u2758]"
)
_QUOTE, _APOSTROPHE = '"', "'"
_RESERVED: Final = frozenset({AGENT_LABEL.casefold(), *(role.casefold() for role in ROLES)})
# Letters and digits of ASCII that look alike. What are digits alone is a number, and no name in disguise.
_ALIKE: Final = str.maketrans("01i|23456789", "olllzeasbtbg")
# Signs and letters that stand for one of ASCII in names that imitate, and that Unicode's list does not have.
_MORE_ALIKE: Final[Mapping[str, str]] = dict(
    zip(
        "$\u20ac\u00d7\u2715\u2716\u2717\u2718\u014b\u03b7\u043f\u0438\u03b5\u03be\u03c7\u01a8\u144e\u144c",
        "sexxxxxnnnneexsnu",
        strict=True,
    )
)
# A letter of ASCII in a shape of its own, by its name in Unicode.
_LETTER: Final = re.compile(r"(?:LATIN|REGIONAL INDICATOR) .*LETTER (?:SMALL CAPITAL )?([A-Z])(?: WITH .*)?$")
_MARKS_OF_TRADE: Final = re.compile("[\u2122\u2120\u00ae\u00a9]")  # else their normal form is "TM"
_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")  # within "NexusBot"


def person_name(name: str, agents: Collection[str]) -> str:
    """A person's name as it is stored: cleaned, on one line. May be empty.

    Whoever is called like one of `agents` (their names and slugs), also with other letters that look the same, or like
    "You", "Assistant" or "System", becomes "a person named …".
    """
    cleaned = clean_line(name)
    alike = looks(cleaned) & {_look(other) for other in (AGENT_LABEL, *ROLES, *agents)}
    return f"a person named {cleaned}" if alike else cleaned


def speaker_label(name: str) -> str:
    """A name at the beginning of a line of a prompt: one line, without the characters that set off headings, marks and
    times. A person whose name was stored before the gate is not called "You" either."""
    label = shorten(_SIGNS.sub(" ", clean_line(name, MAX_LABEL_CHARS)), MAX_LABEL_CHARS).lstrip("- ") or NOBODY
    return f"a person named {label}" if label.casefold() in _RESERVED else label


def in_quotes(name: str) -> str:
    """A name or title within a sentence of a prompt: one line in quotation marks, which it can't leave."""
    return f'"{clean_line(name, MAX_LABEL_CHARS).replace(_QUOTE, _APOSTROPHE)}"'


def looks(name: str) -> frozenset[str]:
    """What a name looks like: it can be taken for any name whose look is among them.

    Case, accents, punctuation, spaces and decorating words do not count, and every letter and digit counts as the
    letter of ASCII that it can be confused with (Unicode's confusables, as UTS #39 uses them; small capitals, letters
    in circles, squares and flags). A sign may stand for a letter, or be an ornament.
    """
    without_signs = "".join(each for each in name if not unicodedata.category(each).startswith("S"))
    return frozenset({_look(name), _look(without_signs)} - {""})


def _look(name: str) -> str:
    folded = normalised(_MARKS_OF_TRADE.sub(" ", name), "NFKC")
    plain = _WORD_START.sub(" ", "".join(map(_ascii_letter, folded)))
    words = [_shape(word) for word in _WORD.findall(plain.casefold())]
    return _shape("".join([word for word in words if word not in _DECORATIONS] or words))


def _shape(word: str) -> str:
    """A word in which letters that look alike are one. Applied to its own result, it changes nothing."""
    return word if word.isdecimal() else word.translate(_ALIKE).replace("rn", "m").replace("vv", "w")


_DECORATIONS: Final = frozenset(map(_shape, DECORATIONS))


def _ascii_letter(character: str) -> str:
    if character in _MORE_ALIKE or character.isascii():
        return _MORE_ALIKE.get(character, character)
    alike = _confusable_with_ascii()
    base = unicodedata.normalize("NFKD", character)[0]
    for candidate in (character, base, character.casefold(), base.casefold()):
        if candidate in alike or candidate in _MORE_ALIKE:
            return alike.get(candidate) or _MORE_ALIKE[candidate]
        if found := _LETTER.search(unicodedata.name(candidate[0], "")):
            return found[1].lower()
    return base if not unicodedata.combining(base) else ""


@cache
def _confusable_with_ascii() -> dict[str, str]:
    """ASCII characters by those that look like them. Loaded with the first name that is not ASCII: it takes 0.1 s."""
    from confusable_homoglyphs import confusables  # type: ignore[import-untyped] # noqa: PLC0415

    return {
        character: glyph["c"]
        for character, alike in confusables.confusables_data.items()
        if not character.isascii()
        for glyph in alike
        if glyph["c"].isascii()
    }
