"""Memories from plain talk, by pattern: preferences, decisions, habits, action items and facts, as their speaker said
them. Pure.

It is the extractor where no model is configured. It sees what a person wrote and nothing else: no
recalled text, no prompt, no answer of the agent.
"""

import re
from dataclasses import dataclass
from typing import Final

from composer.memory.rules import is_worth_storing
from composer.text.terms import sentences

LONGEST_TEXT: Final = 64 * 1024  # characters; of a longer text the end is looked at, where the conclusion stands
LONGEST_STATEMENT: Final = 500

_AP = r"['\u2018\u2019\u201b\u02bc\u02b9\u2032`\u00b4\uff07]"  # apostrophes as keyboards and phones make them
# Where a clause of the speaker's own begins. "what I love", "a job I enjoy" and "the place I picked" are none.
_BEGINS = (
    r"(?:^|[^\w\s]\s*|@[\w.-]+\s+"
    r"|\b(?:and|but|so|because|since|cause|though|although|while|as|then|also|yes|yeah|yep|no|nah|ok|okay|oh|well|hmm|hey|hi|btw"
    r"|honestly|actually|personally|generally|normally|basically|definitely|really|nowadays|today|yesterday|finally|guess|think"
    r"|believe|mean|admit|know|remember|note|fyi)\s+(?:that\s+)?"
    r"|^(?:in|at|on|for|by|with|after|before|these)\s[^,;:]{0,40}?\s)"
)
_WE = rf"{_BEGINS}(?:i|we)"
_I_AM = rf"{_BEGINS}(?:i{_AP}?m|i\s+am|we{_AP}re|we\s+are)"
_I_WILL = rf"{_BEGINS}(?:i{_AP}ll|i\s+will|we{_AP}ll|we\s+will|let{_AP}?s)"
_VERY = r"(?:(?:really|much|strongly|always|definitely|absolutely|just|still|also|personally|simply|do)\s+)*"
# What is liked must be named: "I love it" and "I like your idea" answer something, and say nothing by themselves.
_NAMED = (
    r"\s+(?!(?:\w+ing\s+)?(?:it|that|this|these|those|them|you|your|him|her|his|their|how|what|where)\b)"
    r"(?!the\s+(?:idea|thought|way)\b)\w"
)
_PAST = (
    r"(?!\s+(?:really\s+|even\s+|ever\s+)?(?:\w{2,}ed|knew|thought|had|got|saw|heard|said|been|seen|did|was|were|meant|set|found"
    r"|felt|took|went|made|gave|came|want)\b)"
)
_DAY = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may\s+\d|june|july|august|september|october"
    r"|november|december|today|tonight|tomorrow|noon|midnight|eod|eow|(?:end\s+of\s+)?(?:the\s+|next\s+|this\s+)?(?:day|week|month|year)"
    r"|\d{1,2}(?::\d\d|\s*[ap]m|th|st|nd|rd|\.)|\d{4}-\d\d)"
)
_DUE = rf"\b(?:by|before|until|till|no\s+later\s+than)\s+(?:the\s+|next\s+|this\s+)?{_DAY}"
_OWN = (
    r"(?:name|birthday|e-?mail(?:\s+address)?|phone(?:\s+number)?|address|time\s*zone|job|role|job\s+title|team|manager|boss|wife|husband"
    r"|partner|fianc[eé]e?|son|daughter|sister|brother|mother|father|mom|dad|dog|cat|office|school|university|company|employer|doctor"
    r"|landlord|salary|deadline|launch|launch\s+date|budget|release|pronouns|hometown|native\s+language|diet|shoe\s+size)"
)
_WORK = (
    r"(?:nurse|doctor|student|teacher|engineer|developer|programmer|designer|writer|lawyer|chef|artist|musician|accountant|scientist"
    r"|researcher|manager|consultant|freelancer|journalist|photographer|counselor|therapist|mechanic|plumber|electrician|carpenter"
    r"|sysadmin|administrator|librarian|professor|pilot|farmer|veterinarian|vet|dentist|translator|editor|architect|analyst)"
)
_PATTERNS: Final = {
    "preference": re.compile(
        rf"{_WE}\s+{_VERY}(?:prefer|like|love|enjoy|hate|dislike){_NAMED}"
        rf"|{_WE}\s+would\s+(?:(?:much|really|strongly)\s+)*(?:prefer|rather)\b|{_WE}{_AP}d\s+(?:much\s+)?(?:rather|prefer)\b"
        r"|\b(?:my|our)\s+(?:\w+\s+)?(?:favou?rite|preferred)\b[^.!?]{0,80}\b(?:is|are)\b"
        rf"|{_I_AM}\s+(?:allergic\s+to|(?:a\s+)?(?:vegan|vegetarian)|(?:very\s+|quite\s+)?fond\s+of|a\s+(?:big\s+|huge\s+)?fan\s+of)\b(?!\s+(?:it|that|this|these|those|them|you|him|her)\b)"
        rf"|{_WE}\s+(?:can{_AP}?t|cannot)\s+stand{_NAMED}",
        re.IGNORECASE,
    ),
    "decision": re.compile(
        rf"{_WE}(?:{_AP}ve|\s+have)?\s+(?:(?:just|now|finally|all|both|already|also)\s+)*"
        rf"(?:decided\b(?!\s+(?:it|yet)\b)|(?:chose|chosen|picked)(?!\s+up\b){_NAMED}|agreed\s+(?:to|on|that|upon)\b|settled\s+(?:on|for|that)\b"
        r"|opted\s+(?:for|to|out|in)\b|(?:went|gone)\s+(?:with|for)\b(?!\s+(?:a|an|the)\s+(?:\w+\s+)?(?:walk|run|ride|swim|hike|drive)\b))"
        rf"|{_I_WILL}\s+(?:use|go\s+with|adopt|switch\s+to|move\s+to|ship|stick\s+(?:with|to))\b"
        rf"|{_I_AM}\s+going\s+(?:to\s+(?:use|adopt|switch|move|ship)|with)\b"
        rf"|(?:^|[^\w\s]\s*)(?:the\s+|our\s+)?decision\s*(?::|is\b|was\b)|(?:^|[^\w\s]\s*)decided\s*:|\bit{_AP}?s\s+decided\b",
        re.IGNORECASE,
    ),
    "habit": re.compile(
        rf"{_WE}\s+(?:usually|always|never|normally|typically|often|tend\s+to)\b{_PAST}"
        r"|\bevery\s+(?:morning|evening|day|night|week|month|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\s*,?\s+(?:i|we)\b"
        rf"|{_WE}(?:\s+do(?:es)?\s*n{_AP}?t|\s+do\s+not)\s+(?!have|know|see|get)\w+\b[^.!?;]{{0,80}}\bany\s?more\b|{_WE}\s+no\s+longer\s+\w",
        re.IGNORECASE,
    ),
    "action item": re.compile(
        r"(?:^|[^\w\s]\s*)(?:to-?do|action\s+items?|task)\s*(?::|-|\u2013|\u2014)\s*\w"
        rf"|(?:{_I_WILL}|{_WE}\s+(?:need|have|must|got|ought|plan|promised?)(?:\s+to)?|{_I_AM}\s+(?:going|supposed|due)\s+to)\s+\w[^.!?;]{{0,160}}{_DUE}"
        rf"|(?:^|[^\w\s]\s*|@[\w.-]+\s+)please\s+\w[^.!?;]{{0,160}}{_DUE}"
        rf"|(?:^|[^\w\s]\s*)@?\w+\s+(?:will|is\s+going\s+to|needs\s+to|has\s+to|must)\s+\w[^.!?;]{{0,160}}{_DUE}",
        re.IGNORECASE,
    ),
    "fact": re.compile(
        rf"{_BEGINS}(?:my|our)\s+(?:\w+\s+)?{_OWN}\s*(?:is|are|{_AP}s|was|will\s+be|moved|=|:)\s+(?!(?:not\s+)?(?:working|broken|gone|down|dead|ok|okay|fine|great|good|well|that|when|why|how|what|it|to)\b)\w"
        rf"|{_WE}\s+(?:(?:just|now|currently|still|also|recently|both)\s+)*(?:live|lived|grew\s+up|was\s+born|were\s+born)\s+(?:in|on|near|at|with)\s+(?!(?:it|this|that|them)\b)\w"
        rf"|{_WE}\s+(?:(?:just|now|currently|still|also|recently|both)\s+)*(?:work|worked)\s+(?:at|for|as)\s+(?!(?:it|this|that|them|me|us|you|now|all|some|most|least|root|it|well)\b)\w"
        rf"|{_WE}\s+(?:(?:just|recently|have|had)\s+)*(?:moved|relocated)\s+(?:to|from|into)\s+(?!(?:it|this|that|the\s+next)\b)\w"
        rf"|{_WE}(?:{_AP}ve|\s+have)?\s+(?:have|got|has|adopted)?\s*(?:an?|one|two|three|four|\d)\s+(?:\w+\s+)?(?:dogs?|cats?|kids?|children|child|sons?|daughters?|brothers?|sisters?|puppy|kitten|siblings?)\b"
        rf"|{_I_AM}\s+(?:(?:currently|now|also)\s+)?(?:an?\s+(?:\w+\s+)?{_WORK}\b|(?:originally\s+)?from\s+(?-i:[A-Z])\w|married\b|divorced\b|retired\b|pregnant\b|engaged\b|left-handed\b|colou?r-?blind\b)",
        re.IGNORECASE,
    ),
}
_UNSEEN: Final = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")  # marks without width, which would part a word
_QUESTION = re.compile(r"\?[?!\s\"'\u201d\u2019)\]]*$")
_HYPOTHETICAL = re.compile(
    r"^\W*(?:if|unless|suppose|imagine|assuming|what\s+if|had|should|would|let\s+us\s+say)\b", re.IGNORECASE
)
_REPORTED = re.compile(
    r"\b(?!(?:i|we)\b)\w+\s+(?:said|says|told|tells|asked|wrote|writes|claims?|claimed|thinks?|thought)\b|\baccording\s+to\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    rf"(?:\bnot|n{_AP}?t|\bnever)\s+(?:really\s+)?(?:think|say|said|know|believe|claim|mean|sure|that\s+(?:i|we))\b|\bi\s+wish\b",
    re.IGNORECASE,
)
_UNSETTLED = re.compile(
    rf"\b(?:not\s+(?:yet\s+)?(?:decided|agreed|settled|chosen)|(?:have|has)n{_AP}?t|did\s*n{_AP}?t|maybe|perhaps|probably|might)\b",
    re.IGNORECASE,
)
_QUOTED_LINE = re.compile(r"^\s*>.*$", re.MULTILINE)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_IN_QUOTES = re.compile(
    r"[\"\u201c\u201e\u00ab][^\"\u201d\u201c\u00bb\n]{0,400}[\"\u201d\u201c\u00bb]"
    r"|(?<!\w)['\u2018](?:[^'\u2019\n]|(?<=\w)['\u2019](?=\w)){3,400}['\u2019](?!\w)"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """Something a person said of themselves or their team that is worth keeping. `kind` as in the patterns."""

    kind: str
    text: str


def extract(text: str) -> list[Statement]:
    """What is worth remembering of one message, in the order it was said, each sentence once.

    Questions, hypotheticals, what someone else is reported to have said, quotations and code don't count;
    neither do decisions that are denied or left open.
    """
    plain = _CODE.sub(" ", _UNSEEN.sub("", text))
    own_words = _IN_QUOTES.sub(" ", _QUOTED_LINE.sub(" ", plain[-LONGEST_TEXT:]))
    found: dict[str, Statement] = {}
    said = sentences(own_words)
    for sentence in said if len(plain) <= LONGEST_TEXT else said[1:]:  # the tail begins within a sentence
        words = " ".join(sentence.split())
        if any(pattern.search(words) for pattern in (_QUESTION, _HYPOTHETICAL, _REPORTED, _DENIED)):
            continue
        kind = _kind(words)
        if kind is not None and is_worth_storing(kind, words):
            found.setdefault(words.casefold(), Statement(kind, words[:LONGEST_STATEMENT]))
    return list(found.values())


def _kind(words: str) -> str | None:
    for kind, pattern in _PATTERNS.items():
        if pattern.search(words) and not (kind == "decision" and _UNSETTLED.search(words)):
            return kind
    return None
