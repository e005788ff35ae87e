"""Names that people give themselves: no person may be taken for an agent, or for a part of the prompt. Pure."""

import re
import unicodedata
from collections.abc import Collection
from functools import cache
from typing import Final

from composer.text.gate import clean_line, normalised

AGENT_LABEL: Final = "You"  # an agent as a speaker in its own prompt
ROLES: Final = ("Assistant", "System")  # as models call the others of a conversation
DECORATIONS: Final = frozenset({"the", "official", "real", "bot", "app", "ai", "agent", "assistant"})  # "Nexus Bot"
NOBODY: Final = "someone"

_WORD: Final = re.compile(r"[^\W_]+")
_ALIKE: Final = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s"})  # among letters and digits of ASCII


def person_name(name: str, agents: Collection[str]) -> str:
    """A person's name as it is stored: cleaned, on one line. May be empty.

    Whoever is called like one of `agents` (their names and slugs), also with other letters that look the same, or like
    "You", "Assistant" or "System", becomes "a person named …".
    """
    cleaned = clean_line(name)
    shape = look(cleaned)
    alike = shape and any(shape == look(other) for other in (AGENT_LABEL, *ROLES, *agents))
    return f"a person named {cleaned}" if alike else cleaned


def look(name: str) -> str:
    """What a name looks like: two names with the same look can be taken for each other.

    Case, accents, punctuation, spaces and decorating words do not count, and every letter counts as the one of ASCII
    that it can be confused with (Unicode's confusables, as UTS #39 uses them).
    """
    folded = normalised(name, "NFKC")
    plain = folded if folded.isascii() else "".join(map(_ascii_letter, folded))
    words = _WORD.findall(plain.casefold())
    bare = [word for word in words if word not in DECORATIONS] or words
    return "".join(bare).translate(_ALIKE).replace("rn", "m").replace("vv", "w")


def _ascii_letter(character: str) -> str:
    if character.isascii():
        return character
    alike = _confusable_with_ascii()
    base = unicodedata.normalize("NFKD", character)[0]
    for candidate in (character, base, character.casefold(), base.casefold()):
        if candidate in alike:
            return alike[candidate]
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
