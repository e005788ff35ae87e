"""Short answers to what asks for nothing that is remembered: thanks, "ok", and what a command does."""

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
REMEMBER_HINT: Final = "To have me remember something: /nexus remember the printer is on the second floor."
HELP: Final = "I answer from what was said where you may read it. For all that I can do: /nexus help."
SMALL_TALK_ANSWERS: Final = frozenset((WELCOME, FINE, ALL_RIGHT, FORGET, REMIND, REMEMBER_HINT, HELP))  # all of them

MAX_SMALL_TALK_CHARS: Final = 200  # of a message that may be small talk
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
    r"how (?:do|can) (?:i|we) (?:make|get|have|tell|ask) you (?:to )?remind (?:me|us|everyone)(?: .*)?"
)
_REMEMBER = re.compile(
    r"(?:please )?(?:(?:(?:can|could|will|would) you (?:please )?)?(?:remember|note|keep in mind) that"
    r"|remember(?! (?:what|when|where|who|whom|which|why|how|whether|if)\b)|note down|make a note) .+"
)
_HELP = re.compile(
    r"(?:please )?(?:(?:help|can you help|i need help)(?: me)?(?: please)?"
    r"|(?:who|what) are you|what (?:can|do) you do|what can i (?:do|ask)(?: you)?|how (?:does this|do you) work"
    r"|how (?:do|can) (?:i|we) use (?:you|this)|(?:what|which) commands (?:are there|do you (?:know|have)))"
)


def small_talk(text: str, own_name: Collection[str]) -> str | None:
    """The answer to a message that is small talk or asks for a command; None to any other. `own_name`: the words of the
    agent's name, in lower case, which say nothing here."""
    if len(text) > MAX_SMALL_TALK_CHARS:
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
    asks = text.rstrip().endswith(("?", "\uff1f"))
    for command, sentence in ((_REMIND, REMIND), (_HELP, HELP)):
        if command.fullmatch(said):
            return sentence
    return REMEMBER_HINT if _REMEMBER.fullmatch(said) and (not asks or "you" in words[:2]) else None
