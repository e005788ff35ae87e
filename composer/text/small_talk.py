"""Short answers to what asks for nothing that is remembered: thanks, "ok", and what a command does. By examples
(talk.txt) in many languages: a kind, a language, and a sentence, or how one begins ("\u2026")."""

import re
import unicodedata
from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
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


class Talk(StrEnum):
    """What a message says that asks for nothing that is remembered; of several, the first counts."""

    NONE = "none"
    FORGET = "forget"
    REMIND = "remind"
    REMEMBER = "remember"
    HELP = "help"
    HOW = "how"
    THANKS = "thanks"
    HELLO = "hello"
    RIGHT = "right"


SMALL_TALK_ANSWERS: Final[Mapping[Talk, str]] = MappingProxyType(
    {
        Talk.FORGET: FORGET,
        Talk.REMIND: REMIND,
        Talk.REMEMBER: REMEMBER_HINT,
        Talk.HELP: HELP,
        Talk.HOW: FINE,
        Talk.THANKS: WELCOME,
        Talk.RIGHT: ALL_RIGHT,
    }
)

MAX_SMALL_TALK_CHARS: Final = 200  # of a message that may be small talk
MIN_ASKED_WORDS: Final = 3  # a question begins with, that asks to remember something: "can you remember \u2026?"
_WORD: Final = re.compile(r"[^\W\d_]+")
_PARTS: Final = re.compile(r"[.,;:!?\u2026\u3002\u3001\uff0c\uff01\uff1f\n-]")
_REST: Final = "\u2026"  # at the end of an example: any words
_QUESTION: Final = ("?", "\uff1f")


def small_talk(text: str, own_name: Collection[str]) -> Talk | None:
    """What a message says that is small talk or asks for a command; None for any other. `own_name`: the words of the
    agent's name, in lower case, which say nothing here."""
    if len(text) > MAX_SMALL_TALK_CHARS:
        return None
    said = _words(text, own_name)
    if not said:
        emoji = any(unicodedata.category(char) == "So" for char in text)
        return Talk.RIGHT if emoji and not any(char.isalnum() for char in text) else None
    sentences, beginnings = _examples()
    parts = [part for part in (_words(each, own_name) for each in _PARTS.split(text)) if part]
    parts = [said] if said in sentences else parts
    if all(part in sentences for part in parts):
        found = min((sentences[part] for part in parts), key=list(Talk).index)
        return None if found is Talk.NONE else found
    begun = max((each for each in beginnings if said.startswith(each)), key=len, default="")
    kind = beginnings.get(begun, Talk.NONE)
    if kind is Talk.REMEMBER and text.rstrip().endswith(_QUESTION) and len(begun.split()) < MIN_ASKED_WORDS:
        return None  # "remember the swallow?" asks
    return None if kind is Talk.NONE else kind


def _words(text: str, own_name: Collection[str]) -> str:
    return " ".join(word for word in _WORD.findall(text.casefold()) if word not in own_name)


@cache
def _examples() -> tuple[Mapping[str, Talk], Mapping[str, Talk]]:
    """The kinds of sentences by their words, and of beginnings by theirs with a blank at the end."""
    whole, begun = dict[str, Talk](), dict[str, Talk]()
    for line in files("composer.text").joinpath("talk.txt").read_text("utf-8").splitlines():
        kind, _, text = line.split("\t")
        words = _words(text.partition(_REST)[0], ())
        if text.endswith(_REST):
            begun[f"{words} "] = Talk(kind)
        else:
            whole[words] = Talk(kind)
    return whole, begun
