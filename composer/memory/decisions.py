"""Recognise a statement that is plainly a decision of the group that is talking. Pure.

Only such a statement is proposed as a landmark, since every prompt of the conversation shows it. When in doubt the
answer is no: the statement is remembered all the same, and a person can pin it with `/nexus landmark add`.
"""

import re
from typing import Final

from composer.text.examples import examples, words_and_signs
from composer.text.own_words import DECISION_LABEL

_APOSTROPHE: Final = r"['\u2018\u2019\u02bc\u2032`\u00b4\uff07]"
_GROUP: Final = r"(?:we|the\s(?:whole\s)?(?:team|group|board|council|committee)|our\steam|everyone|everybody)"
_ADVERB: Final = r"(?:(?:all|both|now|just|finally|already|also|therefore|have|has|officially|unanimously|jointly)\s)"
# Words that may stand between the beginning of a sentence and its subject: "ok so we decided", "@bob FYI: we agreed".
_LEAD: Final = (
    r"(?:@?[\w.-]{1,40}[:,]\s?|@[\w.-]{1,40}\s|(?:ok|okay|alright|so|and|but|well|yes|yeah|yep|fyi|update|note|hi|hey|all|team|folks"
    r"|today|yesterday|tonight|also|then|finally|in\sthe\s(?:end|meeting|standup|retro|call)|(?:after|for)\s[^,;:?]{1,60},)[,:;!.]?\s)"
)
_START: Final = rf"^\W{{0,3}}{_LEAD}{{0,3}}"
_OBJECT: Final = (
    r"\s(?!(?:it|this|that|these|those|them|him|her|you|me|us|anything|something|nothing)\b(?:\s*$|\s*[.,;!]))\w"
)
_NO_CHOICE: Final = (  # picked up, approved of, chose poorly, picked a bad time
    r"\s(?:up|of|well|wisely|poorly|badly|(?:a|the)\s(?:good|great|bad|right|wrong)\s(?:day|time|moment|one))\b"
)
_CHOSEN: Final = (
    r"(?:decided\s(?:(?:on|against|that|to|not\sto|upon)\b|in\sfavou?r)|agreed\s(?:to|on|upon|that|not\sto)\b|settled\son\b"
    rf"|(?:chose|chosen|picked|selected|adopted|approved)(?!{_NO_CHOICE})|voted\s(?:to|for|against|on)\b|opted\s(?:for|to)\b"
    r"|committed\sto\b|signed\soff\son\b|went\swith\b(?!\s(?:him|her|them|me|us|you)\b))"
)
_COURSE: Final = (
    r"(?:going\swith|going\sto\s(?:use|adopt|switch\sto|move\sto|migrate\sto|ship|release|stick\s(?:with|to)|drop|standardi[sz]e\son)"
    r"|switching\sto|moving\sto|migrating\sto|standardi[sz]ing\son|sticking\s(?:with|to)|dropping(?!\s(?:by|in|off)\b))"
)
_WILL: Final = (
    r"(?:use(?!\sthe\stime\b)|go\swith|adopt|switch\sto|move\sto|migrate\sto|ship|release|deploy|launch(?!\sinto\b)|stick\s(?:with|to)"
    r"|standardi[sz]e\son|drop(?!\s(?:by|in|off)\b)|freeze|host|hire|support(?!\s(?:you|him|her|them|each)\b)|require|hold)"
)
_DECISION: Final = re.compile(
    rf"{_START}{_GROUP}(?:{_APOSTROPHE}ve)?\s{_ADVERB}{{0,3}}{_CHOSEN}{_OBJECT}"
    rf"|{_START}we(?:{_APOSTROPHE}re|\sare)\s{_ADVERB}{{0,2}}{_COURSE}{_OBJECT}"
    rf"|{_START}(?:the\s|our\s)team\sis\s{_ADVERB}{{0,2}}{_COURSE}{_OBJECT}"
    rf"|{_START}(?:we(?:{_APOSTROPHE}ll|\swill)|(?:the\s|our\s)team\swill)\s{_ADVERB}{{0,2}}{_WILL}{_OBJECT}"
    rf"|{_START}(?:the\s|our\s|final\s|team\s){{0,2}}(?:decision|consensus|resolution)\s?(?::|is\s(?:to|that)\b|was\s(?:to|that)\b){_OBJECT}"
    rf"|{_START}(?:decided|agreed|resolved)\s?:{_OBJECT}"
    rf"|{_START}(?:it{_APOSTROPHE}?s|it\sis|it\swas|it\shas\sbeen)\s{_ADVERB}{{0,2}}(?:decided|agreed)\s?(?:that|to|:|,){_OBJECT}",
    re.IGNORECASE,
)
# What makes a sentence something else than a decision that was taken: open, hoped for, conditional, told of others.
_OPEN: Final = re.compile(
    rf"\?|\b(?:maybe|perhaps|probably|possibly|might|could|should|would|guess|think|thought|hope(?:fully)?|wish|suppose|assuming|imagine"
    rf"|if|unless|whether|until|as\ssoon\sas|in\scase|provided\sthat|hypothetically|not\ssure|consider(?:ing)?|lean(?:ing)?|likely"
    rf"|not\syet|almost|nearly|supposed|never|nobody|someday|eventually|joking|jk|lol|haha+|or\ssomething|agreed\sto\sdisagree"
    rf"|(?:decided|agreed)\sto\s(?:decide|think|talk|wait\sand\ssee|sleep))\b|n{_APOSTROPHE}t\s(?:decided|agreed|chosen|settled|picked)\b",
    re.IGNORECASE,
)
_REPORTED: Final = re.compile(
    r"\b(?:said|says|told|tells|heard|reads?(?!\s(?:access|only|permissions?|replicas?)\b)|asked|wrote|writes|claim(?:s|ed)?|according"
    r"|apparently|rumou?rs?|remember\swhen)\b",
    re.IGNORECASE,
)
# Stories of the past, and plans of a private life: "last year we decided to …", "we picked a movie".
_STORY: Final = re.compile(
    r"\b(?:ago|last\s(?:year|month|summer|winter|spring|fall|autumn|night|weekend|time|christmas)|years?\sback|back\s(?:then|when|in)"
    r"|when\s(?:we|i|he|she|they)\b|used\sto|once|originally|at\sfirst|in\s(?:19|20)\d\d|growing\sup|so\sfar)\b",
    re.IGNORECASE,
)
_PRIVATE: Final = re.compile(
    r"\b(?:my|our)\s(?:\w+\s)?(?:wife|husband|girlfriend|boyfriend|partner|fianc[eé]e?|mom|mum|mother|dad|father|parents?|family|kids?"
    r"|children|sons?|daughters?|sisters?|brothers?|dogs?|cats?|pets?|puppy|friends?|neighbou?rs?|home|house|honeymoon|wedding)\b"
    r"|\b(?:the\skids|bowling|karaoke|after\swork)\b"
    r"|\b(?:an?|the|another)\s(?:\w+\s)?(?:cat|dog|puppy|flat|apartment|movie|film|cake|pizza|salad|card)"
    r"(?=\s*(?:$|[.,;!])|\s(?:and|at|for|in|near|on|was|were|with)\b)",
    re.IGNORECASE,
)
_TEACHING: Final = re.compile(
    rf"^\W{{0,3}}(?:first(?:ly)?|next|now|then|here|step\s\d+)\b.{{0,20}}\bwe(?:{_APOSTROPHE}ll|\swill)\b",
    re.IGNORECASE,
)

_NAMED: Final = re.compile(r"\b(?:decided|decision|agreed|agreement|consensus)\b", re.IGNORECASE)  # it calls itself one
# It stands behind a label, in whatever language.
_LABELLED: Final = re.compile(
    rf"{_START}(?:(?:final|team|the|our|die|unsere|endg\u00fcltige|la|notre|nuestra|nostra)\s|[\u6700\u7d42\u7ec8]{{2}}){{0,2}}"
    rf"{DECISION_LABEL}(?:\s(?:finale?|definitiva))?\s?[:\uff1a]\s?[^\W_][^?\uff1f]*+$",
    re.IGNORECASE,
)
# A name within a sentence: it has a capital or a digit, or it is an unknown word where a name stands. Whose it is tells
# nothing, and that there is one does: "we're going with Mailgun".
_SURE_NAME: Final = re.compile(r"(?<=[\w,;:'\"] )(?!(?:I|We)\b)[A-Z][\w'-]*+|\b(?=[^\W\d]*\d)(?=\d*[^\W\d])\w+")
_MAYBE_NAME: Final = re.compile(
    r"(?<=\s)(?P<before>(?:use|with|on|to|is|drop|keep|replace|try|against)\s)(?P<word>[^\W_][\w.-]*)"
    r"(?=\W*$|\s(?:for|as|because|until|from|in|after|by|and|instead|over)\b)",
    re.IGNORECASE,
)
_BEGINNING: Final = re.compile(rf"^(?:{_LEAD}|[^\w@]){{1,6}}", re.IGNORECASE)
_ADDRESSEE: Final = re.compile(r"@[\w.-]+")  # whom it addresses is not what it is about
_ANY_NAME: Final = "\u00a7\u00a7"
_FILE: Final = "decisions.txt"
_DECIDED: Final = "decided"
# How much more a statement must be like examples of decisions than like those of what only sounds so; where it calls
# itself one, how much less it may be.
MIN_DECIDED_MARGIN: Final = 0.2


def is_group_decision(text: str) -> bool:
    """Whether a statement (one sentence, at most a few hundred characters) says what a group has decided.

    What is labelled as a decision is one ("Decision: ...", "Entscheidung: ..."). Of other statements, in English alone,
    the subject is "we" or the team, or it calls itself a decision; and it is more like examples of decisions than like
    examples of what only sounds so ("we picked apples all weekend", "we decided to have breakfast first"). Neither is a
    question, a condition, a hope, hearsay, a story of the past, or the plan of one person or family.
    """
    words = " ".join(text.split())
    labelled = _LABELLED.search(words) is not None
    if not labelled and _DECISION.search(words) is None:
        return False
    if any(pattern.search(words) for pattern in (_OPEN, _REPORTED, _STORY, _PRIVATE, _TEACHING)):
        return False
    return labelled or _margin(words) > (-MIN_DECIDED_MARGIN if _NAMED.search(words) else MIN_DECIDED_MARGIN)


def _margin(words: str) -> float:
    judged = examples(_FILE, said=_without_names)
    known = judged.words.values()

    def name_or_word(found: re.Match[str]) -> str:
        parts = words_and_signs(found["word"])
        return found[0] if all(any(part in each for each in known) for part in parts) else found["before"] + _ANY_NAME

    said = _BEGINNING.sub("", words)  # a greeting or an addressee tells nothing
    return judged.margins(_MAYBE_NAME.sub(name_or_word, _without_names(said))).get(_DECIDED, 0.0)


def _without_names(sentence: str) -> str:
    return _SURE_NAME.sub(_ANY_NAME, _ADDRESSEE.sub(" ", sentence))
