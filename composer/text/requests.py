"""Whether a message asks in words to have something stored. Pure.

A model may write only what its message asks to store: other people's words, which it reads as well, can ask for it too.
The words of a request are English, and of some twenty other languages the commonest ones; to others the commands are
open. Wishes to be reminded are read by composer/text/wishes.py.
"""

import re
from dataclasses import dataclass
from typing import Final

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
_ACT: Final = (
    r"(?:(?:note|save|store|record|set|log)\b(?!\s{1,4}(?:up|off|me|us)\b)"
    r"|write\s{1,4}(?:down|this|that|it)\b|jot\b|(?:make|take)\s{1,4}(?:a\s{1,4})?note\b"
    r"|(?:keep|bear)\s{1,4}(?:in\s{1,4}mind|this|that|a\s{1,4}note)\b"
    r"|add\s{1,4}(?:this|that|to|a\s{1,4}note|a\s{1,4}fact)\b|setze?\b(?!\s{1,4}(?:dich|mich|uns|euch)\b))"
)
_VERB: Final = re.compile(_CLAUSE + _ACT, re.IGNORECASE)
_DONT_FORGET: Final = re.compile(r"\b(?:don['\u2019]?t|do\s{1,8}not|never)\s{1,8}forget\b", re.IGNORECASE)
_ELSEWHERE: Final = re.compile(
    r"\b(?:merk\w{0,3}|notier\w{0,3}|speicher\w{0,3}|vergiss\s{1,8}nicht"
    r"|souviens|rappelle|retiens|retenez|enregistre\w{0,2}|n['\u2019]oubliez?\s{1,8}pas"
    r"|recuerd[ae]|acu\u00e9rdate|an[o\u00f3]ta\w{0,2}|apunta\w{0,2}|guarda\w{0,2}|no\s{1,8}olvides"
    r"|lembr[ae]|guarde|n\u00e3o\s{1,8}esque\u00e7a|ricord[ai]\w{0,2}|annota\w{0,2}|non\s{1,8}dimenticare"
    r"|onthoud|noteer|bewaar|vergeet\s{1,8}niet"
    r"|zapami\u0119taj\w{0,4}|zanotuj\w{0,4}|zapisz\w{0,4}|nie\s{1,8}zapomnij"
    r"|\u0437\u0430\u043f\u043e\u043c\u043d\u0438\w{0,2}|\u0437\u0430\u043f\u0438\u0448\u0438\w{0,2}|\u043d\u0435\s{1,8}\u0437\u0430\u0431\u0443\u0434\u044c\w{0,2}"
    r"|\u0437\u0430\u043f\u0430\u043c['\u2019]?\u044f\u0442\u0430\u0439\w{0,2}|\u043d\u043e\u0442\u0443\u0439\w{0,2}"
    r"|unutma|akl\u0131nda\s{1,8}tut|not\s{1,8}al|kaydet"
    r"|kom\s{1,8}ih\u00e5g|notera|husk|not\u00e9r|zapamatuj|poznamenej|nezapome\u0148|muista|\u021bine\s{1,8}minte|noteaz\u0103"
    r"|ingat(?:lah)?|catat(?:lah)?|ghi\s{1,8}nh\u1edb|h\u00e3y\s{1,8}nh\u1edb"
    r"|\u062a\u0630\u0643\u0651?\u0631\u064a?|\u0627\u062d\u0641\u0638\u064a?|\u0633\u062c\u0651?\u0644\u064a?|\u0644\u0627\s{1,8}\u062a\u0646\u0633\u064e?\u064a?"
    r"|\u05ea\u05d6\u05db\u05d5\u05e8|\u05d6\u05db\u05d5\u05e8|\u05ea\u05e8\u05e9\u05d5\u05dd)\b"
    # Scripts without a bound between words.
    r"|\u092f\u093e\u0926\s{1,8}\u0930\u0916|\u0928\u094b\u091f\s{1,8}\u0915\u0930"
    r"|\u8bb0\u4f4f|\u8a18\u4f4f|\u8bb0\u4e0b|\u8a18\u4e0b|\u522b\u5fd8|\u5225\u5fd8"
    r"|\u899a\u3048\u3066|\u30e1\u30e2\u3057\u3066|\u8a18\u61b6\u3057\u3066|\u5fd8\u308c\u306a\u3044\u3067"
    r"|\uae30\uc5b5\ud574|\uba54\ubaa8\ud574|\uc78a\uc9c0\s?\ub9c8",
    re.IGNORECASE,
)
# What may stand before the words that ask: a greeting, please, "can you".
LEADING: Final = (
    r"(?>(?:[\s,.!\u00a1\u00bf]|\b(?:please|kindly|hey|hi|hello|ok|okay|and|then|also|just|now|so"
    r"|(?:good\s{1,4})?morning|thanks|thank\s{1,4}you|great|btw|by\s{1,4}the\s{1,4}way|danke|super|\u00fcbrigens"
    r"|guten\s{1,4}(?:morgen|tag|abend)|moin|hola|bonjour|salut|ciao|ol\u00e1|\u043f\u0440\u0438\u0432\u0435\u0442"
    r"|i(?:['\u2019]d\s{1,4}like|\s{1,4}(?:want|need))\s{1,4}you\s{1,4}to|bitte|hallo|und|dann|auch|jetzt|mal"
    r"|(?P<question>(?:can|could|would|will)\s{1,4}you|(?:kannst|k\u00f6nntest|w\u00fcrdest)\s{1,4}du(?:\s{1,4}dir)?))\b){0,30})"
)
# What may stand behind all that is asked: thanks, and the name of who is asked.
_THANKS: Final = re.compile(
    r"(?:[\s,.!]{1,8}+(?:please|thanks|thank\s{1,4}you|bitte|danke)\b){1,3}[\s.!]*\Z", re.IGNORECASE
)
_NAMED: Final = re.compile(r"[\s,]{1,8}+@[\w.-]{1,80}+[\s.!]*\Z")
_LEADING: Final = re.compile(LEADING, re.IGNORECASE)
# The words that ask where they begin a sentence, with all that may stand before them, and those that lead on from them.
_ASKING_WORDS: Final = re.compile(
    rf"{LEADING}"
    rf"(?:{_ACT}|(?:remember|memori[sz]e)\b|{_DONT_FORGET.pattern}|{_ELSEWHERE.pattern})"
    r"(?>(?:[\s:,\u2013\u2014]|-(?!\d)|\b(?:that|down|please|also|in\s{1,4}mind|for\s{1,4}(?:me|us)|of(?=\s{1,4}the\s{1,4}fact\b)"
    r"|the\s{1,4}fact(?=\s{1,4}that\b)|dir|euch|bitte|mal|auch|dass|da\u00df|folgendes|the\s{1,4}following|toi|que|che|dat"
    r"|\u0447\u0442\u043e|\u0449\u043e|\u017ce|(?:this|it|das|dies)(?=\s{0,4}(?:[:,.!?;\n\u2013\u2014]|please\b|bitte\b|\Z)))\b){0,30})",
    re.IGNORECASE,
)
_NO: Final = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|without|hardly|cannot|false|wrong|\w{1,10}n['\u2019]t"
    r"|nicht|kein\w{0,2}|nie|niemals|ohne|pas|jamais|aucun\w?|sans|nunca|jam\u00e1s|ning\u00fan\w?|sin|n\u00e3o|nem|sem|non"
    r"|mai|nessun\w?|senza|niet|geen|nooit|zonder)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Opening:
    """The words that ask, at the beginning of a sentence. `end`: where what they ask to store begins. `question`: "can
    you", so that a question mark is theirs."""

    end: int
    question: bool


def opening(text: str, start: int, end: int) -> Opening | None:
    """The words that ask to store something and begin the sentence from `start` to `end`: "please remember that". None
    where it does not ask, or has other words before them, which may turn it around."""
    found = _ASKING_WORDS.match(text, start, end)
    if found is None or not asks_to_store(text[start + after_greeting(text[start:end]) : end]):
        return None
    return Opening(found.end(), found["question"] is not None)


def after_greeting(text: str) -> int:
    """Where the words end with which a text leads up to what it says: a greeting, please. 0 where it has none."""
    found = _LEADING.match(text)
    return 0 if found is None else found.end()


def without_thanks(text: str, *, named: bool = False) -> str:
    """A text without the thanks at its end. `named`: also without a mention there."""
    plain = _THANKS.sub("", text)
    return _THANKS.sub("", _NAMED.sub("", plain)) if named else plain


def asks_to_store(text: str) -> bool:
    """Whether a message asks to remember, note or set something; not one that only asks what is remembered."""
    text = text[:MAX_REQUEST_CHARS]
    patterns = (_VERB, _DONT_FORGET, _ELSEWHERE)
    return any(pattern.search(text) for pattern in patterns) or _asks_to_remember(text)


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
    if before[-1:] == ["should"] and _OF_SOMEBODY.intersection(before[-2:]):
        return False
    return before[-1:] != ["you"] or bool(_ASKING.intersection(before))
