"""Whether a message asks in words to have something stored, or to be reminded. Pure.

A model may write only what its message asks to store: other people's words, which it reads as well, can ask for it too.
The words of a request are English, German, French and Spanish, of what is to be stored also the commonest ones of a few
other languages; to others the commands are open. To be reminded, German, French and Spanish are read by
composer/text/reminding_elsewhere.py.
"""

import re
from typing import Final

from composer.text import reminding_elsewhere

MAX_REQUEST_CHARS: Final = 20_000  # of a message in which a request is looked for
_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_REMEMBER: Final = frozenset(["remember", "memorize", "memorise"])
_NOT_ASKED: Final = frozenset(["what", "when", "where", "who", "whom", "whose", "which", "why", "how", "if", "whether"])
_OF_SOMEBODY: Final = frozenset(["i", "we", "they", "he", "she", "it", "who"])
_ASKING: Final = frozenset(["can", "could", "would", "will", "should", "please"])
# Where a clause begins, or what stands before its verb: "please", "can you".
_CLAUSE: Final = (
    r"(?:^|[.!?,;:\n()\u2013\u2014-]|@[\w.-]{1,80}|\b(?:please|and|then|also|just|(?:can|could|would|will)\s{1,4}you"
    r"|you\s{1,4}to|kindly|hey|ok|okay|now|hi))\s{0,8}"
)
_VERB: Final = re.compile(
    _CLAUSE + r"(?:(?:note|save|store|record|set|log)\b(?!\s{1,4}(?:up|off|me\b|us\b))"
    r"|write\s{1,4}(?:down|this|that|it)\b|jot\b|(?:make|take)\s{1,4}(?:a\s{1,4})?note\b"
    r"|(?:keep|bear)\s{1,4}(?:in\s{1,4}mind|this|that|a\s{1,4}note)\b"
    r"|add\s{1,4}(?:this|that|to|a\s{1,4}note|a\s{1,4}fact)\b)",
    re.IGNORECASE,
)
_DONT_FORGET: Final = re.compile(r"\b(?:don['\u2019]?t|do\s{1,8}not|never)\s{1,8}forget\b", re.IGNORECASE)
_ELSEWHERE: Final = re.compile(
    r"\b(?:merk\w{0,3}|notier\w{0,3}|speicher\w{0,3}|vergiss\s{1,8}nicht"
    r"|souviens|rappelle|retiens|retenez|enregistre\w{0,2}|n['\u2019]oubliez?\s{1,8}pas"
    r"|recuerd[ae]|acu\u00e9rdate|an[o\u00f3]ta\w{0,2}|apunta\w{0,2}|guarda\w{0,2}|no\s{1,8}olvides"
    r"|lembr[ae]|guarde|n\u00e3o\s{1,8}esque\u00e7a|ricord[ai]\w{0,2}|annota\w{0,2}|non\s{1,8}dimenticare"
    r"|onthoud|noteer|bewaar|vergeet\s{1,8}niet)\b",
    re.IGNORECASE,
)
_NO: Final = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|without|hardly|cannot|false|wrong|\w{1,10}n['\u2019]t"
    r"|nicht|kein\w{0,2}|nie|niemals|ohne|pas|jamais|aucun\w?|sans|nunca|jam\u00e1s|ning\u00fan\w?|sin|n\u00e3o|nem|sem|non"
    r"|mai|nessun\w?|senza|niet|geen|nooit|zonder)\b",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(r"[.!?;\n]")
_REMIND: Final = re.compile(
    _CLAUSE + r"remind\s{1,8}(?P<whom>me|us|everyone|everybody|all|here|the\s{1,8}(?:room|channel|team|group))\b"
    r"(?!\s{1,8}(?:what|when|where|who|whom|whose|which|why|how|if|whether)\b)",
    re.IGNORECASE,
)
_SET_REMINDER: Final = re.compile(
    r"\b(?:set|make|create|add|schedule|need|want)\s{1,8}(?:me\s{1,8}|us\s{1,8})?(?:a|another)\s{1,8}reminder\b",
    re.IGNORECASE,
)


def asks_for_reminder(text: str) -> bool:
    """Whether a message asks to be reminded of something; not one that asks what was said ("remind me what …")."""
    return _reminded(text) is not None or _SET_REMINDER.search(text[:MAX_REQUEST_CHARS]) is not None


def reminds_all(text: str) -> bool:
    """Whether it is everyone in the conversation who is to be reminded: "remind us"."""
    return _reminded(text) not in (None, "me")


def _reminded(text: str) -> str | None:
    """Who is to be reminded, as the message says ("me" in any language); None if it asks for nothing of that."""
    found = _REMIND.search(text[:MAX_REQUEST_CHARS])
    if found is not None:
        return found["whom"].casefold()
    return reminding_elsewhere.reminded(text[:MAX_REQUEST_CHARS])


def asks_to_store(text: str) -> bool:
    """Whether a message asks to remember, note or set something; not one that only asks what is remembered."""
    text = text[:MAX_REQUEST_CHARS]
    patterns = (_VERB, _DONT_FORGET, _ELSEWHERE)
    return any(pattern.search(text) for pattern in patterns) or _asks_to_remember(text)


def denied_outside(text: str, start: int, end: int) -> bool:
    """Whether the sentence around a part of a message, from `start` to `end`, has a "no" or "not" outside that part:
    then the part alone may say the contrary. "Don't forget that" is none."""
    before = [found.end() for found in _CLAUSE_END.finditer(text, 0, start)]
    after = _CLAUSE_END.search(text, end)
    outside = f"{text[before[-1] if before else 0 : start]} | {text[end : after.start() if after else len(text)]}"
    return _NO.search(_DONT_FORGET.sub(" ", outside)) is not None


def _asks_to_remember(text: str) -> bool:
    words = [word.casefold() for word in _WORD.findall(text)]
    return any(word in _REMEMBER and _is_request(words, place) for place, word in enumerate(words))


def _is_request(words: list[str], place: int) -> bool:
    """Whether the verb at this place is said to whom is asked: "can you remember that", not "do you remember"."""
    before, after = words[max(place - 3, 0) : place], words[place + 1 : place + 2]
    if _NOT_ASKED.intersection(after) or _OF_SOMEBODY.intersection(before[-1:]):
        return False
    if any(_NO.fullmatch(word) for word in before):
        return False
    return before[-1:] != ["you"] or bool(_ASKING.intersection(before))
