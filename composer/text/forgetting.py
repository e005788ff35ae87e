"""Whether a message asks in words to have what was said forgotten: "forget that", "please don't remember this". Pure.

Such a message is offered the command, so a wrong yes costs a line and erases nothing. "Forget it" and "forget about
that" say "never mind", and "forget that meeting" names something else, so they are no requests.
Requests in German, French and Spanish are read by composer/text/forgetting_elsewhere.py.
"""

import re
from enum import StrEnum
from typing import Final

from composer.text import forgetting_elsewhere as elsewhere

MAX_WISH_CHARS: Final = 2_000  # of a message in which a request is looked for
FEW_WORDS: Final = 2  # besides the request: more, and the message may speak of itself


class Forgetting(StrEnum):
    """What a message asks to forget: what was said before it, that or what the message says itself, or everything."""

    BEFORE = "before"
    THIS = "this"
    EVERYTHING = "everything"


# A request begins a clause, or follows a word that begins one: not "I always forget that", nor "he said: forget that".
_CLAUSE: Final = (
    r"(?:^|[.!?;\n()\u2013\u2014-]|(?<!said)(?<!says),|(?:@[\w.-]{1,80}|\bnexus):?|\b(?:please|pls|plz|(?:can|could|would|will)\s{1,4}you|"
    r"you\s{1,4}(?:can|should|may|must)|then|just|now|ok|okay|actually|oh|no|sorry|oops|wait|hey|hmm))\s{0,8}"
)
_END: Final = (
    r"(?=\s{0,8}(?:\b(?:please|pls|thanks|thank\s{1,4}you|now|again|asap|immediately|for\s{1,4}(?:me|good)|"
    r"from\s{1,4}your\s{1,4}memory|ok|okay|then|message|one|part)\b\s{0,8})?(?:$|[.!?,;:\n()]))"
)
_SAID: Final = (
    r"(?:what|whatever|everything|all|that|the\s{1,4}things?)\s{1,4}(?:that\s{1,4})?i(?:'ve|\s{1,4}have)?"
    r"(?:\s{1,4}(?:just|ever))?\s{1,4}(?:said|told|wrote|typed|posted|sent|mentioned|shared)\b"
)
_MESSAGE: Final = (
    r"my\s{1,4}(?:(?:last|latest|previous|earlier)\s{1,4})?(?:two\s{1,4}|few\s{1,4})?(?:messages?|posts?|comments?)\b"
)
_ERASE: Final = r"(?:please\s{1,4})?(?:forget|erase|delete|remove|wipe)\s{1,4}"
_POLITE: Final = frozenset(
    ["please", "pls", "plz", "can", "could", "would", "will", "you", "just", "now", "ok", "okay", "actually"]
).union(["oh", "no", "sorry", "oops", "wait", "hey", "hmm", "thanks", "thank", "and", "then", "nexus", "hi", "hello"])
_ALL: Final = re.compile(
    rf"{_CLAUSE}{_ERASE}(?:everything|all)(?:{_END}|\s{{1,4}}(?:of\s{{1,4}})?about\s{{1,4}}me\b"
    r"|\s{1,4}(?:that\s{1,4})?you\s{1,4}(?:know|have|remember|stored|saved)\b"
    r"|\s{1,4}(?:that\s{1,4})?i(?:'ve|\s{1,4}have)?\s{1,4}ever\s{1,4})"
)
_BEFORE: Final = re.compile(rf"{_CLAUSE}{_ERASE}(?:{_SAID}|{_MESSAGE})")
_THAT: Final = re.compile(
    rf"{_CLAUSE}{_ERASE}(?:all\s{{1,4}}(?:of\s{{1,4}})?)?(?:that|this|these|those)(?:\s{{1,4}}(?:last\s{{1,4}})?(?:message|one|part|bit))?"
    rf"{_END}"
)
_NOT_KEPT: Final = re.compile(
    rf"{_CLAUSE}(?:please\s{{1,4}})?(?:don't|dont|do\s{{1,4}}not|never)\s{{1,4}}(?:ever\s{{1,4}})?"
    r"(?P<verb>remember|store|save|keep|record|memori[sz]e|log)\s{1,4}"
    rf"(?:(?:any|all)\s{{1,4}}of\s{{1,4}})?(?:(?P<what>that|this|these|those){_END}|{_SAID}|{_MESSAGE})"
)
_WORD: Final = re.compile(r"@?[^\W_]+(?:'[^\W_]+)?")


def asked_to_forget(text: str) -> Forgetting | None:
    """What a message asks to forget; None if it asks for nothing of that."""
    said = text[:MAX_WISH_CHARS].casefold().replace("\u2019", "'")
    if _ALL.search(said) or elsewhere.EVERYTHING.search(said):
        return Forgetting.EVERYTHING
    if _BEFORE.search(said) or elsewhere.BEFORE.search(said):
        return Forgetting.BEFORE
    if elsewhere.THAT.search(said):  # the whole message, so it is about an earlier one
        return Forgetting.BEFORE
    found = _THAT.search(said) or _NOT_KEPT.search(said)
    if found is None or _is_recollection(found, said):
        return None
    words = _WORD.findall(f"{said[: found.start()]} {said[found.end() :]}")
    others = [word for word in words if not word.startswith("@") and word not in _POLITE]
    return Forgetting.BEFORE if len(others) <= FEW_WORDS else Forgetting.THIS


def _is_recollection(found: re.Match[str], said: str) -> bool:
    """Whether it is "(I) don't remember that", which asks for nothing; "please don't remember that" does."""
    groups = found.groupdict()
    return groups.get("verb") == "remember" and groups.get("what") in ("that", "those") and "please" not in said
