"""Names that people choose: no person may be taken for an agent, and no name for a part of the prompt. Pure."""

import re
import unicodedata
from collections.abc import Collection
from functools import cache
from typing import Final

from composer.text.gate import clean_line, normalised, shorten

AGENT_LABEL: Final = "You"  # an agent as a speaker in its own prompt
ROLES: Final = ("Assistant", "System")  # as models call the others of a conversation
DECORATIONS: Final = frozenset({"the", "official", "real", "bot", "app", "ai", "agent", "assistant"})  # "Nexus Bot"
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


def speaker_label(name: str) -> str:
    """A name at the beginning of a line of a prompt: one line, without the characters that set off headings, marks and
    times. A person whose name was stored before the gate is not called "You" either."""
    label = shorten(_SIGNS.sub(" ", clean_line(name, MAX_LABEL_CHARS)), MAX_LABEL_CHARS).lstrip("- ") or NOBODY
    return f"a person named {label}" if label.casefold() in _RESERVED else label


def in_quotes(name: str) -> str:
    """A name or title within a sentence of a prompt: one line in quotation marks, which it can't leave."""
    return f'"{clean_line(name, MAX_LABEL_CHARS).replace(_QUOTE, _APOSTROPHE)}"'


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
