"""Extraction of statements from a message by pattern: preferences, decisions, habits, action items and facts. Pure.

This is the extractor where no model is configured. It sees only what a person wrote: no recalled text, no prompt, no
answer of an agent.
"""

import re
from dataclasses import dataclass
from typing import Final

from composer.memory.decisions import is_group_decision
from composer.memory.rules import is_worth_storing
from composer.text.own_words import MAX_PARAGRAPH_CHARS, by_place, own_words, without_quotations
from composer.text.terms import sentences

MAX_PATTERN_STATEMENT_CHARS: Final = MAX_PARAGRAPH_CHARS  # no line is cut
MAX_PATTERN_SENTENCE_CHARS: Final = (
    1_000  # of a longer sentence the beginning is searched: some patterns look far ahead
)
MAX_PATTERN_STATEMENTS: Final = 40  # of one message
MAX_LEARNT_LINE_CHARS: Final = 300  # of a line that is learnt at once: a longer one waits for its author

_APOSTROPHE = r"['\u2018\u2019\u201b\u02bc\u02b9\u2032`\u00b4\uff07]"  # as keyboards and phones type them
# The start of a main clause. The clauses in "what I love", "a job I enjoy" and "the place I picked" are not.
_CLAUSE_START = (
    r"(?:^|[^\w\s]\s*|@[\w.-]+\s+"
    r"|\b(?:and|but|so|because|since|cause|though|although|while|as|then|also|yes|yeah|yep|no|nah|ok|okay|oh|well|hmm|hey|hi|btw"
    r"|honestly|actually|personally|generally|normally|basically|definitely|really|nowadays|today|yesterday|finally|guess|think"
    r"|believe|mean|admit|know|remember|note|fyi)\s+(?:that\s+)?"
    r"|^(?:in|at|on|for|by|with|after|before|these)\s[^,;:]{0,40}?\s)"
)
_WE = rf"{_CLAUSE_START}(?:i|we)"
_I_AM = rf"{_CLAUSE_START}(?:i{_APOSTROPHE}?m|i\s+am|we{_APOSTROPHE}re|we\s+are)"
_I_WILL = rf"{_CLAUSE_START}(?:i{_APOSTROPHE}ll|i\s+will|we{_APOSTROPHE}ll|we\s+will|let{_APOSTROPHE}?s)"
_INTENSIFIERS = r"(?:(?:really|much|strongly|always|definitely|absolutely|just|still|also|personally|simply|do)\s+)*"
# An object that is named: "I love it" and "I like your idea" refer to an earlier message.
_NAMED_OBJECT = (
    r"\s+(?!(?:\w+ing\s+)?(?:it|that|this|these|those|them|you|your|him|her|his|their|how|what|where)\b)"
    r"(?!the\s+(?:idea|thought|way)\b)\w"
)
_NO_PAST_VERB = (
    r"(?!\s+(?:really\s+|even\s+|ever\s+)?(?:\w{2,}ed|knew|thought|had|got|saw|heard|said|been|seen|did|was|were|meant|set|found"
    r"|felt|took|went|made|gave|came|want)\b)"
)
_DAY = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may\s+\d|june|july|august|september|october"
    r"|november|december|today|tonight|tomorrow|noon|midnight|eod|eow|(?:end\s+of\s+)?(?:the\s+|next\s+|this\s+)?(?:day|week|month|year)"
    r"|\d{1,2}(?::\d\d|\s*[ap]m|th|st|nd|rd|\.)|\d{4}-\d\d)"
)
_DEADLINE = rf"\b(?:by|before|until|till|no\s+later\s+than)\s+(?:the\s+|next\s+|this\s+)?{_DAY}"
_OWNED_THING = (
    r"(?:name|birthday|e-?mail(?:\s+address)?|phone(?:\s+number)?|address|time\s*zone|job|role|job\s+title|team|manager|boss|wife|husband"
    r"|partner|fianc[eé]e?|son|daughter|sister|brother|mother|father|mom|dad|dog|cat|office|school|university|company|employer|doctor"
    r"|landlord|salary|deadline|launch|launch\s+date|budget|release|pronouns|hometown|native\s+language|diet|shoe\s+size)"
)
_OCCUPATION = (
    r"(?:nurse|doctor|student|teacher|engineer|developer|programmer|designer|writer|lawyer|chef|artist|musician|accountant|scientist"
    r"|researcher|manager|consultant|freelancer|journalist|photographer|counselor|therapist|mechanic|plumber|electrician|carpenter"
    r"|sysadmin|administrator|librarian|professor|pilot|farmer|veterinarian|vet|dentist|translator|editor|architect|analyst)"
)
_PATTERNS: Final = {
    "preference": re.compile(
        rf"{_WE}\s+{_INTENSIFIERS}(?:prefer|like|love|enjoy|hate|dislike){_NAMED_OBJECT}"
        rf"|{_WE}\s+would\s+(?:(?:much|really|strongly)\s+)*(?:prefer|rather)\b|{_WE}{_APOSTROPHE}d\s+(?:much\s+)?(?:rather|prefer)\b"
        r"|\b(?:my|our)\s+(?:\w+\s+)?(?:favou?rite|preferred)\b[^.!?]{0,80}\b(?:is|are)\b"
        rf"|{_I_AM}\s+(?:allergic\s+to|(?:a\s+)?(?:vegan|vegetarian)|(?:very\s+|quite\s+)?fond\s+of|a\s+(?:big\s+|huge\s+)?fan\s+of)\b(?!\s+(?:it|that|this|these|those|them|you|him|her)\b)"
        rf"|{_WE}\s+(?:can{_APOSTROPHE}?t|cannot)\s+stand{_NAMED_OBJECT}",
        re.IGNORECASE,
    ),
    "decision": re.compile(
        rf"{_WE}(?:{_APOSTROPHE}ve|\s+have)?\s+(?:(?:just|now|finally|all|both|already|also)\s+)*"
        rf"(?:decided\b(?!\s+(?:it|yet)\b)|(?:chose|chosen|picked)(?!\s+up\b){_NAMED_OBJECT}|agreed\s+(?:to|on|that|upon)\b|settled\s+(?:on|for|that)\b"
        r"|opted\s+(?:for|to|out|in)\b|(?:went|gone)\s+(?:with|for)\b(?!\s+(?:a|an|the)\s+(?:\w+\s+)?(?:walk|run|ride|swim|hike|drive)\b))"
        rf"|{_I_WILL}\s+(?:use|go\s+with|adopt|switch\s+to|move\s+to|ship|stick\s+(?:with|to))\b"
        rf"|{_I_AM}\s+going\s+(?:to\s+(?:use|adopt|switch|move|ship)|with)\b"
        rf"|(?:^|[^\w\s]\s*)(?:the\s+|our\s+)?decision\s*(?::|is\b|was\b)|(?:^|[^\w\s]\s*)decided\s*:|\bit{_APOSTROPHE}?s\s+decided\b",
        re.IGNORECASE,
    ),
    "habit": re.compile(
        rf"{_WE}\s+(?:usually|always|never|normally|typically|often|tend\s+to)\b{_NO_PAST_VERB}"
        r"|\bevery\s+(?:morning|evening|day|night|week|month|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\s*,?\s+(?:i|we)\b"
        rf"|{_WE}(?:\s+do(?:es)?\s*n{_APOSTROPHE}?t|\s+do\s+not)\s+(?!have|know|see|get)\w+\b[^.!?;]{{0,80}}\bany\s?more\b|{_WE}\s+no\s+longer\s+\w",
        re.IGNORECASE,
    ),
    "action item": re.compile(
        r"(?:^|[^\w\s]\s*)(?:to-?do|action\s+items?|task)\s*(?::|-|\u2013|\u2014)\s*\w"
        rf"|(?:{_I_WILL}|{_WE}\s+(?:need|have|must|got|ought|plan|promised?)(?:\s+to)?|{_I_AM}\s+(?:going|supposed|due)\s+to)\s+\w[^.!?;]{{0,160}}{_DEADLINE}"
        rf"|(?:^|[^\w\s]\s*|@[\w.-]+\s+)please\s+\w[^.!?;]{{0,160}}{_DEADLINE}"
        rf"|(?:^|[^\w\s]\s*)@?\w+\s+(?:will|is\s+going\s+to|needs\s+to|has\s+to|must)\s+\w[^.!?;]{{0,160}}{_DEADLINE}",
        re.IGNORECASE,
    ),
    "fact": re.compile(
        rf"{_CLAUSE_START}(?:my|our)\s+(?:\w+\s+)?{_OWNED_THING}\s*(?:is|are|{_APOSTROPHE}s|was|will\s+be|moved|=|:)\s+(?!(?:not\s+)?(?:working|broken|gone|down|dead|ok|okay|fine|great|good|well|that|when|why|how|what|it|to)\b)\w"
        rf"|{_WE}\s+(?:(?:just|now|currently|still|also|recently|both)\s+)*(?:live|lived|grew\s+up|was\s+born|were\s+born)\s+(?:in|on|near|at|with)\s+(?!(?:it|this|that|them)\b)\w"
        rf"|{_WE}\s+(?:(?:just|now|currently|still|also|recently|both)\s+)*(?:work|worked)\s+(?:at|for|as)\s+(?!(?:it|this|that|them|me|us|you|now|all|some|most|least|root|it|well)\b)\w"
        rf"|{_WE}\s+(?:(?:just|recently|have|had)\s+)*(?:moved|relocated)\s+(?:to|from|into)\s+(?!(?:it|this|that|the\s+next)\b)\w"
        rf"|{_WE}(?:{_APOSTROPHE}ve|\s+have)?\s+(?:have|got|has|adopted)?\s*(?:an?|one|two|three|four|\d)\s+(?:\w+\s+)?(?:dogs?|cats?|kids?|children|child|sons?|daughters?|brothers?|sisters?|puppy|kitten|siblings?)\b"
        rf"|{_I_AM}\s+(?:(?:currently|now|also)\s+)?(?:an?\s+(?:\w+\s+)?{_OCCUPATION}\b|(?:originally\s+)?from\s+(?-i:[A-Z])\w|married\b|divorced\b|retired\b|pregnant\b|engaged\b|left-handed\b|colou?r-?blind\b)",
        re.IGNORECASE,
    ),
}
# Every match of a kind's pattern has one of these, in lower case. Most sentences have none, and looking for them takes
# a tenth of the pattern's time.
_BEGINNINGS: Final = {
    kind: tuple(beginnings.split("|"))
    for kind, beginnings in {
        "preference": "prefer|like|love|enjoy|hate|rather|favo|allergic|vegan|vegetarian|fond of|fan of|stand",
        "decision": "decided|decision|chose|picked|agreed|settled|opted|went|gone|use|go with|going with|adopt|switch"
        "|move|ship|stick",
        "habit": "usually|always|never|normally|typically|often|tend to|every|any more|anymore|no longer",
        "action item": "todo|to-do|action item|task|by |before |until |till |later than ",
        "fact": "my |our |live|grew up|born|work|moved|relocated|dog|cat|kid|child|son|daughter|brother|sister|puppy"
        "|kitten|sibling|i am|i'm|i`m|im |we are|we're|we`re",
    }.items()
}
_ZERO_WIDTH: Final = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")  # characters that would split a word
_AFTER_QUESTION: Final = " ?!\"'\u201d\u2019)]"  # what may follow the question mark at the end of a question
_HYPOTHETICAL = re.compile(
    r"^\W*(?:if|unless|suppose|imagine|assuming|what\s+if|had|should|would|let\s+us\s+say)\b", re.IGNORECASE
)
_REPORTED = re.compile(
    r"\b(?!(?:i|we)\b)\w+\s+(?:said|says|told|tells|asked|wrote|writes|claims?|claimed|thinks?|thought)\b|\baccording\s+to\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    rf"(?:\bnot|n{_APOSTROPHE}?t|\bnever)\s+(?:really\s+)?(?:think|say|said|know|believe|claim|mean|sure|that\s+(?:i|we))\b|\bi\s+wish\b",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(
    rf"\b(?:not\s+(?:yet\s+)?(?:decided|agreed|settled|chosen)|(?:have|has)n{_APOSTROPHE}?t|did\s*n{_APOSTROPHE}?t|maybe|perhaps|probably|might)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`\n]*`")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a person about themselves or their team. `kind` is a key of the patterns. `waits`: it stands below
    the first line, or behind a colon."""

    kind: str
    text: str
    waits: bool = False


def extract(text: str) -> list[Statement]:
    """The statements of one message that are worth remembering, in their order: each line that holds one, whole, since
    what stands beside it may be its condition, or take it back.

    Skips questions, hypotheticals, reported speech, quotations and code, and decisions that are negated or still open.
    """
    own = own_words(_ZERO_WIDTH.sub("", text))
    first = _on_one_line(_plain(by_place(own)[0]))
    found: dict[str, Statement] = {}
    for line in map(_on_one_line, _plain(own).splitlines()):
        if line.casefold() in found or (kind := _kind_of_line(line)) is None:
            continue
        waits = line != first or len(line) > MAX_LEARNT_LINE_CHARS
        found[line.casefold()] = Statement(kind, line[:MAX_PATTERN_STATEMENT_CHARS], waits)
        if len(found) == MAX_PATTERN_STATEMENTS:
            break
    return list(found.values())


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _kind_of_line(line: str) -> str | None:
    """The kind of the first statement in a line, or of a decision that it holds."""
    kinds = [kind for each in sentences(line) if (kind := _kind_of_sentence(each))]
    return "decision" if "decision" in kinds else next(iter(kinds), None)


def _kind_of_sentence(sentence: str) -> str | None:
    """The kind of statement that a sentence is, if it is worth remembering."""
    words = sentence[:MAX_PATTERN_SENTENCE_CHARS]
    if is_question(sentence) or (kind := _kind(words)) is None:
        return None
    if any(pattern.search(words) for pattern in (_HYPOTHETICAL, _REPORTED, _NEGATED)):
        return None
    return kind if is_worth_storing(kind, words) else None


def _plain(own: str) -> str:
    return without_quotations(_CODE.sub(" ", own))


def is_question(sentence: str) -> bool:
    """Whether a sentence on one line ends with a question mark, or with one and closing marks."""
    return "?" in sentence[len(sentence.rstrip(_AFTER_QUESTION)) :]


def _kind(words: str) -> str | None:
    if is_group_decision(words):
        return "decision"
    for kind, pattern in _PATTERNS.items():
        if _may_match(kind, words) and pattern.search(words) and not (kind == "decision" and _UNDECIDED.search(words)):
            return kind
    return None


def _may_match(kind: str, words: str) -> bool:
    """Whether a sentence has to be searched for the pattern of a kind. Some letters beyond ASCII, such as the long s,
    count as cases of letters within it."""
    lowered = words.lower()
    return not words.isascii() or any(beginning in lowered for beginning in _BEGINNINGS[kind])
