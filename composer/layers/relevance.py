"""Decide whether a question is worth a recall at all: small talk is not, nor what nothing that was said here is about.
A pure function of one scope's candidates and the question.
"""

import math
import re
from collections.abc import Collection, Sequence
from typing import Final

from composer.layers.ranking import TO_AGENT_ALONE, asking_share, authors_named, is_question, neighbour_ids
from composer.repositories.recall import Candidate, Found
from composer.text.dates.tongues import says_only_when
from composer.text.examples import SIGNS, Examples, examples
from composer.text.languages import stem
from composer.text.terms import STOP_WORDS, folded, tongue

# The best candidate's cosine plus half of the share of the question's rare words that it holds. The bound is the
# highest, in steps of 0.01, by which no set of answered questions loses another one (docs/quality.md).
MIN_FIT: Final = 0.48
TOLD_FIT: Final = 0.23  # the same for what is told without asking anything (MADial, docs/quality.md)
WORDS_SHARE: Final = 0.5  # of a candidate's fit, for the words; the rest is its cosine
# What one line of a passage of many says is less like a question than a short text that says it.
PASSAGE_FIT: Final = 0.1
MIN_PASSAGE_SHARE: Final = 0.4  # of the question's rare words, for that
# In place of the words for a text in another language than the question's: names alone can be in both. Only for
# what asks: greetings and thanks are like each other in all languages.
FOREIGN_FIT: Final = 0.19
_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f", "\u037e", ";")
SMALL_TALK_FIT: Final = 0.20  # more for what is like small talk but for words that may be what is searched for
MIN_KNOWN_SHARE: Final = 0.5  # of its words, which stand in examples of small talk
NAMED_FIT: Final = 0.20  # for a question that names somebody who speaks here: it is about what was said here
# More for what somebody said to an agent alone, as far as something is asked: most of what they ask there is about
# themselves, and what they told stands in a clause of what they wanted.
ALONE_FIT: Final = 0.08
LARGE_SCOPE: Final = 2.0  # decimal logarithm of the items from which the whole bound applies
SMALLEST_SCALE: Final = 0.5  # of the bound, in a scope of a few items
MIN_SHARE_OF_BEST: Final = 0.35  # of the best item's score; what is below is noise beside it

_PHRASES: Final = re.compile(
    r"\b(?:talk|speak|chat)(?: to| with)?(?: you| ya)? (?:later|soon|tomorrow)\b"
    r"|\b(?:see|catch) (?:you|ya|u)(?: all)?(?: (?:later|soon|around|tomorrow|next week|on \w+day))?\b"
    r"|\bwhat'?s (?:up|new)\b|\bhow(?:'s| is| are) (?:it|you|things|everyone|everybody)(?: (?:going|doing))?\b"
    r"|\b(?:good|great|nice) (?:morning|afternoon|evening|night|day|job|work|one)\b|\bwell done\b"
    r"|\bno (?:problem|worries|way)\b"
    r"|\b(?:have|had) a (?:nice|good|great) \w+\b|\bhappy (?:birthday|new year|holidays|\w+day)\b"
    r"|\bare you (?:there|ok)\b|\bwho are you\b"
    r"|\byou(?:'re| are) (?:the best|welcome|great|awesome|right)\b|\bthat(?:'s| is) (?:all|it)\b"
)
_SMALL_TALK: Final = """
hi hello hey hiya howdy yo greetings hola bonjour salut hallo moin servus ciao ola namaste morning afternoon evening
night bye goodbye cheers cya farewell thanks thank thx danke merci gracias grazie obrigado please pls welcome
sorry oops ok okay k kk yes yeah yep yup no nope nah sure right alright indeed exactly agreed fine cool nice great
good awesome amazing perfect excellent wonderful fantastic lovely super neat sweet wow whoa yay hooray haha hahaha
hehe lol lmao rofl xd hmm hm uh um ah oh eh huh well anyway congrats congratulations bravo kudos love best lot lots
much really guys folks everyone everybody all mate there ping pong
"""
SMALL_TALK: Final = frozenset(_SMALL_TALK.split())
_QUESTION_WORDS: Final = frozenset({"who", "whom", "whose", "what", "where", "when", "why", "how", "which"})
_WORD: Final = re.compile(r"[^\W_]+")
# Words of a question that only asks what there was at a time: "what happened last week?", "catch me up on Monday".
_OF_ANY_TIME: Final = """
happen happened happening discuss discussed discussing discussion discussions say said talk talked talking chat
conversation conversations decide decided decision decisions news new go going went missed miss catch up summary
summarize summarise recap update updates topic topics thing things anything everything something people anyone
everyone room channel tell show me give short today yesterday day week month year last past this ago since during
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december one two three four five six seven days weeks months early late mid st nd rd th
years hour hours weekend quarter quarters night tonight morning afternoon evening spring summer autumn fall winter few
couple several past previous beginning start middle end eight nine ten eleven twelve q1 q2 q3 q4 happens
"""
OF_ANY_TIME: Final = frozenset(_OF_ANY_TIME.split())
_GENERIC: Final = """
anyone someone everyone anybody somebody everybody anything something everything thing things know known tell told show
find found look remember mention mentioned please again ever still actually really
"""
GENERIC: Final = frozenset(map(stem, _GENERIC.split()))  # stems that say nothing of what a question is about
_SMALL_TALK_FILE: Final = "small_talk.txt"
_QUESTIONS_FILE: Final = "plain_questions.txt"
_SMALL: Final = "small"
MIN_SMALL_TALK_MARGIN: Final = 1.5  # of being like small talk over being like anything that is asked
MAX_UNASKING_CHARS: Final = 32
MAX_SMALL_TALK_SIGNS: Final = 12  # of a text in Chinese, Japanese or Korean
_LOGOGRAPHIC: Final = re.compile(f"[{SIGNS}]")
# Verbs of what asks for something, or brings along all that it is about.
_REQUESTS: Final = frozenset(
    [
        *("tell", "show", "find", "list", "give", "explain", "describe", "search", "look", "summarise", "summarize"),
        *("translate", "convert", "calculate", "compute", "define"),
    ]
)
MAX_REQUEST_WORDS: Final = 3  # of a text that asks for something, one of which is such a verb: "please tell me \u2026"
MAX_RELEVANT_CHARS: Final = 2_000  # of a question; small talk is shorter


def is_small_talk(question: str, names: Collection[str]) -> bool:
    """Whether a question asks nothing: a greeting, thanks, laughter, assent, marks and emoji. `names` are the agent's.

    "hi", "good morning Nexus!", "that's great, thanks".
    """
    if len(question) > MAX_RELEVANT_CHARS:
        return False
    words = _words(_PHRASES.sub(" ", folded(question).replace("\u2019", "'")))
    own = {word for name in names for word in _words(folded(name))}
    if not _QUESTION_WORDS.isdisjoint(words):
        return False
    return all(word in SMALL_TALK or word in STOP_WORDS or word in own for word in words)


def asks_nothing(question: str, names: Collection[str]) -> bool:
    """Whether a text is small talk by its words, or by what it shares with examples in many languages ("you made my
    day", "haha danke"): short, without a number or a word that is in none of them, since that may be what is searched
    for ("vault key"). One word alone must be an example itself. `names` are the agent's.
    """
    if is_small_talk(question, names):
        return True
    text = _unaddressed(question, names)
    if _is_short(text) and (kind := _small_talk().kind_of_example(text)) is not None:
        return kind == _SMALL
    return _is_like_small_talk(text, 1.0)


def _unaddressed(question: str, names: Collection[str]) -> str:
    own = {name.casefold() for name in names}
    return " ".join(word for word in question[:MAX_RELEVANT_CHARS].split() if word.casefold().strip("@,!.:") not in own)


def _is_short(text: str) -> bool:
    """Whether a text is short enough for small talk, and has no number."""
    most = MAX_SMALL_TALK_SIGNS if _LOGOGRAPHIC.search(text) else MAX_UNASKING_CHARS
    return 0 < len(text) <= most and not any(letter.isdigit() for letter in text)


def _is_like_small_talk(text: str, least: float) -> bool:
    """Whether a text is short, more like small talk than like what is asked, and has at least this part of its words
    from examples of small talk."""
    known = _small_talk()
    return (
        _is_short(text)
        and known.known_share(_SMALL, text) >= least
        and known.margins(text).get(_SMALL, 0.0) > MIN_SMALL_TALK_MARGIN
    )


def _small_talk() -> Examples:
    return examples(_SMALL_TALK_FILE, _QUESTIONS_FILE)


def asks_only_for_a_time(question: str, names: Collection[str]) -> bool:
    """Whether a question that names a time asks for all that was said then: "what happened on 11 December 2008?"."""
    own = {word for name in names for word in _words(folded(name))}
    words = _words(folded(question[:MAX_RELEVANT_CHARS]))
    if all(word in OF_ANY_TIME or word in STOP_WORDS or word in own or word[0].isdecimal() for word in words):
        return True
    return says_only_when(question, own)


def fits(found: Found, question: str, names: Collection[str]) -> bool:
    """Whether something that was found is about the question. `names` are the agent's.

    A word that nobody ever said here weighs most, so a question about something else holds a small share of its words
    in common with anything. In a small scope less is enough: there is little that could be like it by chance.
    What asks nothing is not about small talk: "thanks a bunch" is like "thanks a lot", and neither is about anything.
    """
    candidates = found.candidates
    if not candidates:
        return False
    rarities = [0.0 if term in GENERIC else rarity for term, rarity in found.rarities.items()]
    before, after = neighbour_ids(candidates)
    matched = {candidate.item.id: candidate.matched for candidate in candidates}
    content = " ".join(word for word in _words(question.casefold()) if word not in STOP_WORDS)
    authors = authors_named((candidate.item.author for candidate in candidates), content)
    scale = min(max(math.log10(1 + found.items) / LARGE_SCOPE, SMALLEST_SCALE), 1.0)
    asks = question.rstrip().endswith(_QUESTION_MARKS) or is_question(question)
    asked_in = tongue(question[:MAX_RELEVANT_CHARS])
    least = TOLD_FIT if _tells(question) else MIN_FIT
    bound = least * scale - (NAMED_FIT if authors.difference(names) else 0.0)
    bound += SMALL_TALK_FIT if _is_like_small_talk(_unaddressed(question, names), MIN_KNOWN_SHARE) else 0.0

    def fit(candidate: Candidate) -> float:
        """Its words count together with those of its neighbours: an answer seldom repeats the words of its question.
        They decide where it has no vector, as just after it was written."""
        around = (before.get(candidate.item.id, ""), after.get(candidate.item.id, ""))
        matched_words = candidate.matched | matched.get(around[0], 0) | matched.get(around[1], 0)
        share = _share(matched_words, rarities)
        of_passage = candidate.item.passage and _share(candidate.matched, rarities) >= MIN_PASSAGE_SHARE
        meaning = candidate.meaning if candidate.meaning is None or not of_passage else candidate.meaning + PASSAGE_FIT
        if meaning is None:
            return share
        fitting, foreign = meaning + WORDS_SHARE * share, meaning + FOREIGN_FIT
        if asks and candidate.item.namespace.startswith(TO_AGENT_ALONE):
            fitting, foreign = fitting + ALONE_FIT, foreign + ALONE_FIT
        decides = asks and fitting < bound <= foreign
        return foreign if decides and tongue(candidate.item.text) != asked_in else fitting

    likeliest_first = sorted(candidates, key=lambda each: -1.0 if each.meaning is None else each.meaning, reverse=True)
    people = {candidate.item.author for candidate in candidates if candidate.item.author}
    return any(
        fit(candidate) >= bound and (asks or not asks_nothing(candidate.item.text, people))
        for candidate in likeliest_first
    )


def _tells(text: str) -> bool:
    """Whether a text asks nothing, is longer than small talk and no long paste. What is known about it helps whoever
    answers, and nobody waits for an answer that is not there."""
    most = MAX_SMALL_TALK_SIGNS if _LOGOGRAPHIC.search(text) else MAX_UNASKING_CHARS
    begins = _words(folded(text[:MAX_UNASKING_CHARS]))[:MAX_REQUEST_WORDS]
    return most < len(text) <= MAX_RELEVANT_CHARS and asking_share(text) == 0 and _REQUESTS.isdisjoint(begins)


def _share(matched: int, rarities: Sequence[float]) -> float:
    """The share of the terms' weight that some of them have: 0 to 1."""
    total = sum(rarities)
    return sum(rarity for n, rarity in enumerate(rarities) if matched >> n & 1) / total if total > 0 else 0.0


def _words(text: str) -> list[str]:
    return _WORD.findall(text)
