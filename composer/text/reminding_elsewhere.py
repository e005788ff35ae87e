"""Requests in German, French and Spanish to be reminded, as composer/text/requests.py reads them in English. Pure.

Only imperatives count that name a time and something to do: "erinnere mich morgen an …", "rappelle-moi demain de …",
"recuérdame mañana que …". The same verbs say much else: "rappelle-moi demain" is "call me back tomorrow", "erinnert
mich an Oma" is "looks like grandma", and "recuérdame de qué hablamos" asks what was said.
"""

import re
from typing import Final

_FLAGS: Final = re.IGNORECASE
# Where a clause begins, or words that may stand before its verb. "No" is none: in Spanish it denies the verb.
_START: Final = (
    r"(?:^|[.!?\u00a1\u00bf,;:\n()]|@[\w.-]{1,80}|\b(?:bitte|dann|ok|okay|hey|hallo|und|s'il\s{1,4}te\s{1,4}pla[i\u00ee]t"
    r"|stp|svp|et|por\s{1,4}favor|porfa|y))\s{0,8}"
)
_CLOCK: Final = r"\d{1,2}:\d\d\b|\d{4}-\d\d-\d\d\b"
_GERMAN_TIME: Final = re.compile(
    rf"\b(?:{_CLOCK}|heute|morgen|(?:\u00fc|ue)bermorgen|(?:um|gegen)\s{{1,4}}\d{{1,2}}|\d{{1,2}}(?:\.\d\d)?\s{{0,4}}uhr"
    r"|in\s{1,4}\w{1,12}(?:\s{1,4}halben)?\s{1,4}(?:minuten?|stunden?|tage?n?|wochen?|monate?n?)"
    r"|(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag)s?)\b",
    _FLAGS,
)
_FRENCH_TIME: Final = (
    rf"\b(?:{_CLOCK}|aujourd'hui|(?:apr\u00e8s-)?demain(?:\s{{1,4}}(?:matin|soir))?|ce\s{{1,4}}soir"
    r"|(?:\u00e0\s{1,4})?\d{1,2}\s{0,4}h(?:eures?|\d\d)?"
    r"|dans\s{1,4}\w{1,12}\s{1,4}(?:minutes?|heures?|jours?|semaines?|mois)"
    r"|(?:le\s{1,4}|chaque\s{1,4})?(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)s?)\b"
)
_SPANISH_TIME: Final = (
    rf"\b(?:{_CLOCK}|hoy|(?:pasado\s{{1,4}})?ma\u00f1ana|esta\s{{1,4}}noche|a\s{{1,4}}las?\s{{1,4}}\d{{1,2}}(?::\d\d)?"
    r"|en\s{1,4}\w{1,12}\s{1,4}(?:minutos?|horas?|d[i\u00ed]as?|semanas?|mes(?:es)?)"
    r"|(?:el\s{1,4}|cada\s{1,4})?(?:lunes|martes|mi[e\u00e9]rcoles|jueves|viernes|s[a\u00e1]bado|domingo))\b"
)
_GERMAN: Final = re.compile(
    rf"{_START}erinnere?\s{{1,4}}(?P<whom>mich|uns)\b(?P<rest>(?:[^.!?\n]|\.(?=\d)){{0,300}})", _FLAGS
)
_GERMAN_TASK: Final = re.compile(r"\b(?:an\s{1,4}\w|daran\b|dass\b|zu\s{1,4}\w)", _FLAGS)
# "… was wir gesagt haben", "ich erinnere mich noch"
_GERMAN_OTHER: Final = re.compile(
    r"\b(?:was|wie|wer|wen|wem|wo|wann|warum|welche\w?|ob|noch|gut|nur|kaum|nicht|dunkel|genau|gerade|auch|sehr|leider|nie"
    r"|wieder)\b",
    _FLAGS,
)
_INFINITIVE_FR: Final = (
    r"(?:de\s{1,4}|d')(?:(?:ne\s{1,4}pas|me|te|se|nous|le|les|lui|leur|y|en)\s{1,4}|[lmst]'){0,3}\w{2,30}(?:er|ir|re)\b"
)
_FRENCH: Final = re.compile(
    rf"{_START}rappel(?:le|ez)[- ](?P<whom>moi|nous)\b"
    rf"(?:(?P<early>(?:[\s,]{{1,4}}{_FRENCH_TIME}){{1,3}})[\s,]{{1,4}}{_INFINITIVE_FR}"
    rf"|\s{{1,4}}{_INFINITIVE_FR}(?P<rest>[^.!?\n]{{0,300}}))",
    _FLAGS,
)
_FRENCH_LATER: Final = re.compile(_FRENCH_TIME, _FLAGS)
_INFINITIVE_ES: Final = r"(?!(?:ayer|mujer|lugar|cualquier)\b)\w{2,30}[aei\u00ed]r(?:me|te|se|l[aeo]s?|nos)?\b"
_SPANISH: Final = re.compile(
    rf"{_START}recu(?:e|(?P<accent>\u00e9))rda(?P<whom>me|nos)\b"
    rf"(?:(?P<early>(?:[\s,]{{1,4}}{_SPANISH_TIME}){{1,3}})[\s,]{{1,4}}(?:{_INFINITIVE_ES}|(?(accent)que\s{{1,4}}\w|(?!)))"
    rf"|\s{{1,4}}{_INFINITIVE_ES}(?P<rest>[^.!?\n]{{0,300}}))",
    _FLAGS,
)
_SPANISH_LATER: Final = re.compile(_SPANISH_TIME, _FLAGS)
_ME: Final = frozenset(["mich", "moi", "me"])


def reminded(text: str) -> str | None:
    """Who is to be reminded, as the message says ("me" in any language); None if it asks for nothing of that."""
    text = text.replace("\u2019", "'")
    for found in (_in_german(text), _timed(_FRENCH, _FRENCH_LATER, text), _timed(_SPANISH, _SPANISH_LATER, text)):
        if found is not None:
            whom = found.casefold()
            return "me" if whom in _ME else whom
    return None


def _in_german(text: str) -> str | None:
    """A task stands before or after its time, so both are looked for in the rest of the sentence."""
    for found in _GERMAN.finditer(text):
        task, times = _GERMAN_TIME.subn(" , ", found["rest"])
        if times and _GERMAN_TASK.search(task) and not _GERMAN_OTHER.search(task):
            return found["whom"]
    return None


def _timed(pattern: re.Pattern[str], time: re.Pattern[str], text: str) -> str | None:
    """Whom the first request names that has its time before what is to be done, or after it."""
    for found in pattern.finditer(text):
        if found["early"] or time.search(found["rest"]):
            return found["whom"]
    return None
