"""Short answers to what asks for nothing that is remembered: thanks, "ok", and how to forget or be reminded."""

import re
import unicodedata
from collections.abc import Collection
from typing import Final

WELCOME: Final = "You're welcome!"
FINE: Final = "I'm fine, thank you! What would you like to know?"
ALL_RIGHT: Final = "All right!"
FORGET: Final = (
    "To have me forget something of yours for good: /nexus forget WORDS. It shows first what it would erase."
)
REMIND: Final = "To be reminded of something: /nexus remind me tomorrow 9:00 call the printer."

MAX_CHARS: Final = 200  # of a message that may be small talk
_LETTERS = re.compile(r"[^\W\d_]+")
_THANKS: Final = frozenset(["thanks", "thank", "thx", "cheers"])
_WITH_THANKS: Final = _THANKS.union(
    ["you", "ty", "so", "very", "much", "a", "lot", "again", "many", "for", "help"],
    ["that", "was", "helpful", "great", "ok", "okay"],
)
_YES: Final = frozenset(["ok", "okay", "kk", "alright", "fine", "great", "cool", "nice", "perfect", "understood"])
_WITH_YES: Final = _YES.union(["that", "all", "very", "sounds", "is", "right", "good", "s"])
_HOW = re.compile(
    r"(?:hello |hi |hey )?(?:how are (?:you|things)(?: doing)?|how (?:is|s) it going|what s up)(?: today)?"
)
_FORGET = re.compile(
    r"(?:how (?:do|can|could|would|should) (?:i|we) (?:make|get|have|let|tell|ask) you (?:to )?forget"
    r"|(?:please )?(?:can|could|will|would) you (?:please )?forget"
    r"|(?:please )?forget (?:that|this|it|what|everything|all|about)) ?.*"
)
_REMIND = re.compile(
    r"(?:please )?(?:(?:can|could|will|would) you (?:please )?|how (?:do|can) (?:i|we) (?:make|get|have|tell|ask) you "
    r"(?:to )?)?remind (?:me|us|everyone)(?! (?:what|when|where|who|whom|which|why|how|whether)\b)(?: .*)?"
)


def small_talk(text: str, own_name: Collection[str]) -> str | None:
    """The answer to a message that is small talk or asks for a command; None to any other. `own_name`: the words of the
    agent's name, in lower case, which say nothing here."""
    if len(text) > MAX_CHARS:
        return None
    words = [word for word in _LETTERS.findall(text.casefold()) if word not in own_name]
    if not words:
        emoji = any(unicodedata.category(char) == "So" for char in text)
        return ALL_RIGHT if emoji and not any(char.isalnum() for char in text) else None
    said = " ".join(words)
    if _THANKS.intersection(words) and _WITH_THANKS.issuperset(words):
        return WELCOME
    if _HOW.fullmatch(said):
        return FINE
    if _YES.intersection(words) and _WITH_YES.issuperset(words):
        return ALL_RIGHT
    if _FORGET.fullmatch(said):
        return FORGET
    return REMIND if _REMIND.fullmatch(said) else None
