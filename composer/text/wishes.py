"""Wishes to be reminded, in the words of a message: "remind me in 2 hours to call Tom", in many languages. Pure.

Only imperatives count, where the text begins, with a greeting or a time before them at most (in languages whose verb
stands last, anywhere in its first sentence, but not behind a colon), and outside English only those that name a time
to come and something to do: the same verbs say much else. "Rappelle-moi demain" is "call me back tomorrow", "erinnert
mich an Oma" is "looks like grandma", and "remind me what Bob said" asks what was said.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

from composer.text.dates.when import When, read_when
from composer.text.requests import LEADING

MAX_WISH_CHARS: Final = 2_000  # of a message in which a wish is looked for
_FLAGS: Final = re.IGNORECASE
_ANY_TIME: Final = datetime(2026, 5, 4, 12, tzinfo=UTC)  # whether words name a time to come does not depend on it
# Words that may stand before a verb. "No" is none: in Spanish it denies the verb.
_BEFORE: Final = (
    r"(?:[\s.!\u00a1\u00bf,]|@[\w.-]{1,80}"
    r"|\b(?:please|and|then|also|just|kindly|hey|hi|ok|okay|now|(?:can|could|would|will)\s{1,4}you|you\s{1,4}to"
    r"|bitte|dann|hallo|und|s'il\s{1,4}te\s{1,4}pla[i\u00ee]t|s'il\s{1,4}vous\s{1,4}pla[i\u00ee]t|stp|svp|et"
    r"|por\s{1,4}favor|porfa|y|per\s{1,4}favore|e|alsjeblieft|en|prosz\u0119|pros\u00edm"
    r"|\u043f\u043e\u0436\u0430\u043b\u0443\u0439\u0441\u0442\u0430|\u0431\u0443\u0434\u044c\s\u043b\u0430\u0441\u043a\u0430"
    r"|sn\u00e4lla|tolong|h\u00e3y)\b)"
)
_VERBS_FIRST: Final = (
    r"remind\s{1,8}(?:(?P<en>me)|us|everyone|everybody|all|here|the\s{1,8}(?:room|channel|team|group))\b"
    r"(?!\s{1,8}(?:what|when|where|who|whom|whose|which|why|how|if|whether)\b)",
    r"(?:erinnere?\s{1,4}(?:(?P<de>mich)|uns)\b(?:\s{1,4}bitte\b)?|(?:kannst|k\u00f6nntest|w\u00fcrdest)\s{1,4}du\s{1,4}(?:(?P<de2>mich)|uns)"
    r"(?=[^.!?\n]{1,300}\berinnern\b))",
    r"(?:rappel(?:le|ez)[- ](?:(?P<fr>moi)|nous)\b|(?:peux|pourrais)-tu\s{1,4}(?:(?P<fr2>me)|nous)\s{1,4}rappeler\b)",
    r"(?:recu[e\u00e9]rda(?:(?P<es>me)|nos)\b|(?:puedes|podr\u00edas)\s{1,4}recordar(?:(?P<es2>me)|nos)\b)",
    r"(?:(?:(?P<pt>me)|nos)\s{1,4}lembr[ae]\b|lembr[ae]-(?:(?P<pt2>me)|nos)\b)",
    r"(?:ricorda(?:(?P<it>mi)|ci)\b|puoi\s{1,4}ricordar(?:(?P<it2>mi)|ci)\b)",
    r"herinner\s{1,4}(?:(?P<nl>me|mij)|ons)\b(?:\s{1,4}er\b)?",
    r"przypomnij\s{1,4}(?:(?P<pl>mi)|nam)\b",
    r"\u043d\u0430\u043f\u043e\u043c\u043d\u0438(?:\u0442\u0435)?\s{1,4}(?:(?P<ru>\u043c\u043d\u0435)|\u043d\u0430\u043c)\b",
    r"\u043d\u0430\u0433\u0430\u0434\u0430\u0439(?:\u0442\u0435)?\s{1,4}(?:(?P<uk>\u043c\u0435\u043d\u0456)|\u043d\u0430\u043c)\b",
    r"p\u00e5minn\s{1,4}(?:(?P<sv>mig)|oss)\b(?:\s{1,4}om\b)?",
    r"(?:mind|p\u00e5mind)\s{1,4}(?:(?P<da>mig)|os)\b(?:\s{1,4}om\b)?",
    r"(?:minn|p\u00e5minn)\s{1,4}(?:(?P<nb>meg)|oss)\b(?:\s{1,4}p\u00e5\b)?",
    r"p\u0159ipome\u0148(?:te)?\s{1,4}(?:(?P<cs>mi)|n\u00e1m)\b",
    r"muistuta\s{1,4}(?:(?P<fi>minua)|meit\u00e4)\b",
    r"(?:aminte\u0219te|adu)-(?:(?P<ro>mi)|ne)\b(?:\s{1,4}aminte\b)?",
    r"ingatkan\s{1,4}(?:(?P<id>saya|aku)|kami|kita)\b",
    r"nh\u1eafc\s{1,4}(?:(?P<vi>t\u00f4i|m\u00ecnh)|ch\u00fang\s{1,4}t\u00f4i)\b",
    r"\u0630\u064e?\u0643\u0651?\u0650?\u0631\u0652?(?:(?P<ar>\u0646\u064a)|\u0646\u0627)\b",
    r"\u05ea\u05d6\u05db\u05d9\u05e8(?:\u05d9|\u05d5)?\s{1,4}(?:(?P<he>\u05dc\u05d9)|\u05dc\u05e0\u05d5)\b",
)
_FIRST: Final = re.compile(rf"(?<!\w)(?P<verb>{'|'.join(_VERBS_FIRST)})[\s,:]{{0,4}}", _FLAGS)
_POLITE: Final = re.compile(rf"{LEADING}(?>{_BEFORE}{{0,30}})\Z", _FLAGS)
_LINK: Final = re.compile(  # between a time and the verb: "tomorrow at 9, please remind me"
    r"(?>(?:[\s,]{1,4}(?:@[\w.-]{1,80}|please|bitte|so|then|dann|also|and|und)(?!\w))*)[\s,]*\Z", _FLAGS
)
_COLON: Final = re.compile(r"[:\uff1a](?!\d)")
# Verbs that stand last, or in the middle; who is meant stands before them, or is not said.
_LAST: Final = re.compile(
    r"(?P<us>\u6211\u4eec|\u6211\u5011)?(?:\u63d0\u9192(?P<zh>\u6211(?!\u4eec|\u5011)|\u6211\u4eec|\u6211\u5011|\u5927\u5bb6)"
    r"|(?:\u3092|\u3068)?(?:\u30ea\u30de\u30a4\u30f3\u30c9|\u601d\u3044\u51fa\u3055\u305b|\u77e5\u3089\u305b)\u3057?\u3066(?:\u304f\u3060\u3055\u3044|\u306d|\u307b\u3057\u3044)?"
    r"|(?:\u3092|\u3068)\u6559\u3048\u3066(?:\u304f\u3060\u3055\u3044|\u306d)?"
    r"|(?:\uace0\s?)?(?:\uc54c\ub824|\uc0c1\uae30\uc2dc\ucf1c|\ub9ac\ub9c8\uc778\ub4dc\s?\ud574)\s?(?:\uc918|\uc8fc\uc138\uc694|\uc904\ub798)(?:\uc694)?"
    r"|\bhat\u0131rlat(?:\u0131r\s?m\u0131s\u0131n|sana|\u0131n|\u0131n\u0131z)?(?!\w)"
    r"|(?:\u0915\u0940\s)?\u092f\u093e\u0926\s\u0926\u093f\u0932\u093e(?:\u0928\u093e|\u0913|\s\u0926\u094b|\s\u0926\u0947\u0928\u093e|\u090f\u0901|\u090f\u0902|\u0907\u090f))",
    _FLAGS,
)
_US_LAST: Final = re.compile(
    r"\u6211\u4eec|\u6211\u5011|\u5927\u5bb6|\u307f\u3093\u306a|\u79c1\u305f\u3061|\uc6b0\ub9ac|\ubaa8\ub450|\bbize\b|\u0939\u092e\u0947\u0902"
)
_END: Final = re.compile(r"[!?\n\u3002\uff01\uff1f]|(?<![ap]\.m)(?<!\d)\.(?=\s{1,4}[^\W\d_a-z])|\.\s{0,8}\Z")
_INFINITIVE_FR: Final = re.compile(
    r"(?:\bde\s{1,4}|\bd')(?:(?:ne\s{1,4}pas|me|te|se|nous|le|les|lui|leur|y|en)\s{1,4}|[lmst]'){0,3}\w{2,30}(?:er|ir|re)\b",
    _FLAGS,
)
_ASKS: Final = re.compile(  # what was said, or is known
    r"(?:(?:daran|er|an|de|a|que|of|about|to)[\s,]{1,4})?(?:was|wie|wer|wen|wem|wo|wann|warum|welche\w?|ob|qu[ei\u00e9]\s{1,4}(?:dijo|hicimos|hablamos)"
    r"|qu\u00e9|qui\u00e9n|c\u00f3mo|cu\u00e1ndo|d\u00f3nde|lo\s{1,4}que|quoi|ce\s{1,4}que|comment|quand|o\s{1,4}que|cosa|wat|wie|co|kto|\u0447\u0442\u043e\s{1,4}\u0441\u043a\u0430\u0437\u0430\u043b)\b",
    _FLAGS,
)
_LEAD: Final = re.compile(
    r"(?:to|that|about|of|daran|dass|de|d'|que|di|che|om|er|\u017ce|\u0447\u0442\u043e\u0431\u044b|\u0449\u043e\u0431|\u0623\u0646|att|at|\u017ee|s\u0103)[\s,:]{1,4}|d'|daran,\s{1,4}",
    _FLAGS,
)
_TAIL: Final = re.compile(r"\b(?:daran\s{1,4})?erinnern\b[\s,]{0,4}", _FLAGS)
_LETTERS: Final = re.compile(r"[^\W\d_]{2}|[\u0900-\u097f]{2}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a message asks to be reminded of, and when. `everyone`: everyone in the conversation is to be reminded."""

    when: When
    text: str
    everyone: bool


def reminder_wish(text: str, now: datetime, zone: tzinfo) -> Wish | None:
    """The reminder that a message asks for, if its time is understood whole and something is to be done then: what can
    be set without asking again. Days and hours are those of `zone`."""
    for rest, everyone, french in _asked(text):
        found = None if _ASKS.match(rest) else read_when(rest, now, zone)
        if found is None or (french and not _INFINITIVE_FR.match(found[1])):
            continue
        lead = _LEAD.match(found[1])
        what = found[1][lead.end() if lead else 0 :].strip(" ,;:")
        if _LETTERS.search(what) and not _ASKS.match(what):
            return Wish(found[0], what, everyone)
    return None


def asks_for_reminder(text: str) -> bool:
    """Whether a message asks to be reminded of something: in English as its verb says, else as `reminder_wish` reads
    it."""
    return _asked_in_english(text) is not None or reminder_wish(text, _ANY_TIME, UTC) is not None


def reminds_all(text: str) -> bool:
    """Whether it is everyone in the conversation who is to be reminded: "remind us"."""
    english = _asked_in_english(text)
    if english is not None:
        return english
    wish = reminder_wish(text, _ANY_TIME, UTC)
    return wish is not None and wish.everyone


def is_one_sentence(text: str) -> bool:
    """Whether a text has no end of a sentence but the one that it ends with."""
    return _END.search(text.rstrip("?!.\uff1f\uff01\u3002 ")) is None


def _asked_in_english(text: str) -> bool | None:
    """Whether "remind us" is asked in English, or "remind me"; None for neither."""
    found, _ = _first_verb(text[:MAX_WISH_CHARS])
    return found["en"] is None if found is not None and found["verb"][:6].casefold() == "remind" else None


def _first_verb(text: str) -> tuple[re.Match[str] | None, str]:
    """The verb with which a text begins, and the time that stands before it: "tomorrow at 9, remind me"."""
    found = _FIRST.search(text, 0, _sentence_end(text))
    if found is None or _POLITE.match(text[: found.start()]):
        return found, ""
    before = _LINK.sub("", text[: found.start()]).strip(" ,")
    read = read_when(before, _ANY_TIME, UTC)
    return (found, before) if read is not None and not read[1] else (None, "")


def _sentence_end(text: str, start: int = 0) -> int:
    end = _END.search(text, start)
    return end.start() if end else len(text)


def _asked(text: str) -> list[tuple[str, bool, bool]]:
    """What is said beside the verb of reminding, whether it is for everyone, and whether it is French."""
    text = text[:MAX_WISH_CHARS].replace("\u2019", "'")
    found = []
    first, before = _first_verb(text)
    if first is not None:
        rest = _TAIL.sub("", text[first.end() : _sentence_end(text, first.end())], count=1)
        whom = {name for name, value in first.groupdict().items() if value and name != "verb"}
        verb = first["verb"].casefold()
        is_french = verb.startswith(("rappell", "rappele")) or "rappeler" in verb
        found.append((f"{before} {rest}".strip(), not whom, is_french))
    sentence = text[: _sentence_end(text)]
    colon = _COLON.search(sentence)
    last = _LAST.search(sentence, 0, colon.start() if colon else len(sentence))
    if last is not None:
        around = (sentence[: last.start()] + sentence[last.end() :]).strip(" ,\u3001")
        found.append((around, _US_LAST.search(sentence[: last.end()]) is not None, False))
    return found
