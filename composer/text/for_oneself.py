"""Whether a text wants to be for its sender alone: "for me only", "just between us", "privately". Pure.

Where others would read what is stored, it is not stored if that is plain: the wish is a clause of its own, or stands
with the words that ask ("remember for me only: I …"). Where such words may tell something else ("the parking place is
only for me"), their sender is asked (composer/turn/tool_writes.py).
"""

import re
from itertools import islice
from typing import Final

MAX_WISHED_CHARS: Final = 20_000  # of a text in which such a wish is looked for
_ONLY: Final = (
    r"only|just|solely|exclusively|alone|nur|blo\u00df|blos|ausschlie\u00dflich|allein\w{0,2}|seule?ment|seule?|uniquement|juste"
    r"|s\u00f3lo|solo|solamente|\u00fanicamente|s\u00f3|somente|apenas|soltanto|alleen|enkel|tylko|wy\u0142\u0105cznie"
    r"|\u0442\u043e\u043b\u044c\u043a\u043e|\u043b\u0438\u0448\u044c|\u043b\u0438\u0448\u0435|\u0442\u0456\u043b\u044c\u043a\u0438|sadece|yaln\u0131z(?:ca)?|bara|endast|kun|bare|jen|pouze"
    r"|vain|doar|numai|hanya|ch\u1ec9|\u0641\u0642\u0637|\u05e8\u05e7|\u0938\u093f\u0930\u094d\u092b|\u0915\u0947\u0935\u0932"
)
_FOR_ME: Final = (
    r"(?:for|to)\s{1,4}(?:me|myself|self)|between\s{1,4}(?:us|you\s{1,4}and\s{1,4}me)|f\u00fcr\s{1,4}mich|unter\s{1,4}uns|zwischen\s{1,4}uns"
    r"|pour\s{1,4}moi|entre\s{1,4}nous|para\s{1,4}m[\u00edi]m?|entre\s{1,4}(?:nosotros|n\u00f3s)|per\s{1,4}me|[tf]ra\s{1,4}(?:di\s{1,4})?noi"
    r"|voor\s{1,4}(?:mij|mezelf)|onder\s{1,4}ons|dla\s{1,4}mnie|mi\u0119dzy\s{1,4}nami|\u0434\u043b\u044f\s{1,4}\u043c\u0435\u043d[\u044f\u0435]"
    r"|\u043c\u0435\u0436\u0434\u0443\s{1,4}\u043d\u0430\u043c\u0438|\u043c\u0456\u0436\s{1,4}\u043d\u0430\u043c\u0438|benim\s{1,4}i\u00e7in|bana|aram\u0131zda|f\u00f6r\s{1,4}mig|mellan\s{1,4}oss"
    r"|for\s{1,4}m[ei]g|til\s{1,4}m[ei]g|mell[eo]m\s{1,4}os{1,2}|pro\s{1,4}m(?:\u011b|ne)|mezi\s{1,4}n\u00e1mi|minulle|pentru\s{1,4}mine|\u00eentre\s{1,4}noi"
    r"|untuk\s{0,4}(?:saya|ku|aku)|cho\s{1,4}(?:t\u00f4i|m\u00ecnh)|\u0644\u064a|\u05dc\u05d9|\u05d1\u05e9\u05d1\u05d9\u05dc\u05d9|\u092e\u0947\u0930\u0947\s{1,4}\u0932\u093f\u090f"
)
# Words that say it where they lead up to what is to be stored ("privately:", "merk dir vertraulich, dass"), or stand
# behind it by themselves: "the price list is confidential" tells something.
_PRIVATELY: Final = (
    r"privately|in\s{1,4}private|in\s{1,4}confidence|confidential(?:ly)?|in\s{1,4}secret|secret(?:ly)?|private(?:\s{1,4}(?:note|memo))?"
    r"|nobody\s{1,4}else|no\s{1,4}one\s{1,4}else|vertraulich|privat(?:e\s{1,4}notiz)?|insgeheim|geheim"
    r"|en\s{1,4}priv\u00e9|priv\u00e9|confidentiel\w{0,6}|en\s{1,4}(?:secret|privado|secreto)|privado|confidencial\w{0,6}"
    r"|em\s{1,4}(?:privado|particular|segredo)|in\s{1,4}(?:privato|segreto)|privato|riservat\w{1,6}|in\s{1,4}vertrouwen|vertrouwelijk|poufn\w{1,3}"
    r"|prywatnie|w\s{1,4}tajemnicy|\u043f\u043e\s{1,4}\u0441\u0435\u043a\u0440\u0435\u0442\u0443|\u043b\u0438\u0447\u043d\u043e|\u043a\u043e\u043d\u0444\u0438\u0434\u0435\u043d\w{1,10}|gizlice|konfidentiellt|fortroligt"
    r"|d\u016fv\u011brn\u011b|luottamuksellisesti|confiden\u021bial|rahasia|b\u00ed\s{1,4}m\u1eadt|\u0633\u0631\u064b?\u0627|\u05d1\u05e1\u05d5\u05d3"
)
_WISH: Final = re.compile(
    rf"\b(?:{_ONLY})\s{{1,4}}(?:\w{{1,12}}\s{{1,4}})?(?:{_FOR_ME})\b|\b(?:{_FOR_ME})\s{{1,4}}(?:\w{{1,12}}\s{{1,4}})?(?:{_ONLY})\b"
    rf"|\b(?:{_PRIVATELY})(?:\s{{0,4}}[:\uff1a)]|[\s,]{{1,4}}(?:that|dass|da\u00df|que|qu['\u2019]|che|dat|att|at|\u017ce|\u017ee|\u0447\u0442\u043e)(?!\w))"
    rf"|[,.;(\u2013\u2014-]\s{{0,4}}(?:{_PRIVATELY})[\s.!)]{{0,4}}\Z"
    # At the end of a clause: "keep this between us", but not "the contract between us and Bremen".
    r"|\b(?:between\s{1,4}(?:us|you\s{1,4}and\s{1,4}me)|unter\s{1,4}uns|entre\s{1,4}(?:nous|nosotros|n\u00f3s)|[tf]ra\s{1,4}noi|onder\s{1,4}ons)"
    r"(?=\s{0,4}(?:\Z|[.,:;!?)\n\u2013\u2014-]))"
    r"|\b(?:keep\s{1,4}(?:it|this|that)\s{1,4}to\s{1,4}yourself|my\s{1,4}eyes\s{1,4}only)\b|\b(?:don['\u2019]?t|do\s{1,4}not|never)\s{1,4}tell\s{1,4}(?:any(?:one|body)|the\s{1,4}(?:others|team|room))\b"
    r"|\bbehalt\w{0,2}\s{1,4}(?:\w{1,12}\s{1,4}){0,2}f\u00fcr\s{1,4}dich\b|\b(?:sag|verrat)\w{0,2}\s{1,4}(?:\w{1,12}\s{1,4})?niemand\w{0,2}\b"
    # Scripts without a bound between words.
    r"|[\u53ea\u4ec5\u50c5](?:\u7ed9|\u7d66|\u4e3a|\u70ba|\u9650|\u8ba9|\u8b93|\u5bf9|\u5c0d)?\u6211(?!\u4eec|\u5011)|\u79c1\u4e0b|\u4fdd\u5bc6[:\uff1a\uff0c]"
    r"|(?:\u79c1|\u50d5|\u4ffa|\u81ea\u5206)(?:\u306e\u305f\u3081|\u7528)?\u306b?(?:\u3060\u3051|\u306e\u307f)(?:\u306e\u305f\u3081\u306b?)?|(?:\u5185\u7dd2|\u5167\u7dd2|\u79d8\u5bc6)[\u3067\u306b]|\u3053\u3053\u3060\u3051\u306e\u8a71"
    r"|(?:\ub098|\uc800)(?:(?:\ud55c\ud14c)?\ub9cc|\s?\ud63c\uc790\ub9cc|\ub97c?\s?\uc704\ud574\uc11c?\ub9cc)|\ube44\ubc00\ub85c|\uc6b0\ub9ac\ub07c\ub9ac",
    re.IGNORECASE,
)
MAX_WISHES: Final = 20  # of a text, that are looked at
MAX_WORDS_BESIDE: Final = 2  # of a clause that is a wish and what asks: "remember privately", "keep it between us"
MAX_CLAUSE_CHARS: Final = 60  # on either side of a wish, that are looked at
_CLAUSE_END: Final = re.compile(
    r"[.,;:()!?\n\u2013\u2014\u3002\uff0c\uff1a\u3001]|@[\w.-]+|\b(?:that|dass|da\u00df|que|qu['\u2019]|che|dat|att|at|\u017ce|\u017ee|\u0447\u0442\u043e)(?!\w)",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{1,3}|[^\W_]+")  # three signs count as a word


def is_for_oneself(text: str) -> bool:
    """Whether a text says that it is for its sender alone, or tells something in such words."""
    return _WISH.search(text[:MAX_WISHED_CHARS]) is not None


def is_plainly_for_oneself(text: str) -> bool:
    """Whether a text says that it is for its sender alone in a clause that tells nothing else."""
    text = text[:MAX_WISHED_CHARS]
    for wish in islice(_WISH.finditer(text), MAX_WISHES):
        before = _CLAUSE_END.split(text[max(0, wish.start() - MAX_CLAUSE_CHARS) : wish.start()])[-1]
        after = _CLAUSE_END.split(text[wish.end() : wish.end() + MAX_CLAUSE_CHARS])[0]
        ends = _CLAUSE_END.search(wish[0])  # "privately that"
        if len(_WORD.findall(before)) + (0 if ends else len(_WORD.findall(after))) <= MAX_WORDS_BESIDE:
            return True
    return False
