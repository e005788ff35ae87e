"""Which earlier messages of a busy room belong to the talk that a question continues. Pure.

Each message is tied to a few earlier ones: the one it replies to, those it answers by name, by its speaker's last
words, by what an agent answered, by a rare word, and, weakly, by standing next to them. How near a message is to the
question is the strongest chain of ties between them (a product), less with distance. There is no embedding in it: ties
follow from who speaks to whom, and the same messages always give the same choice.

The weights are hand-set, rounded guesses of how often such a tie holds; `make bench-quality` measures them.
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Final

from cachetools import LRUCache

from composer.model import Message
from composer.text.digests import text_digest
from composer.text.terms import STOP_WORDS

ANSWERED: Final = 0.95  # an agent's answer and its question, and whoever answers a message by the platform's own means
PAIR: Final = 0.9  # the last thing that one person said to the same other
ADDRESSED: Final = (0.85, 0.6)  # the last, and the last but one, thing that the addressed one said to them or to nobody
TO_ME: Final = 0.85  # who speaks to nobody by name, and who spoke to them last
SAME: Final = 0.7  # a person's last words, where neither names anybody
SAME_MIXED: Final = 0.6  # where one of the two does
RARE: Final = 0.4  # a word that stands in two messages only; less with each further one
MOST_RARE: Final = 6  # messages; a word in more of them ties nothing
BESIDE: Final = 0.12  # the message just before
CHAT: Final = 0.15  # the last message to nobody, by another, to nobody either
NEAR_CHAT: Final = 4  # messages back

FADES: Final = 80.0  # messages over which nearness falls to a third, beside what the ties lose
MOST: Final = 200  # messages that can be looked at

CROWD: Final = 6  # people in the last messages of a busy room, at least
ONE_TALK: Final = 0.9  # share of the messages that makes them one talk, however many people there are
TIED: Final = 0.5  # ties from this strength on make one talk
LOOKED_AT: Final = 400  # characters of a message

_WORD = re.compile(r"@?\w[\w.\-\[\]|`^{}\\]*")
_LEAST: Final = 1e-6


def _falling(third: float) -> list[float]:
    """By how many messages lie between, what is left of a tie that falls to a third over `third` messages."""
    return [math.exp(-distance / third) for distance in range(MOST + 1)]


_SOON: Final = _falling(40.0)  # one person's own words
_FAR: Final = _falling(80.0)  # names and words
_FURTHER: Final = _falling(150.0)  # what passes between the same two


# The same messages are looked at turn after turn. Neither cache holds text: a message may be forgotten meanwhile.
_word_hashes: LRUCache[bytes, tuple[tuple[int, ...], tuple[int, ...]]] = LRUCache(25_000)  # by digest of the text
_mixed_results: LRUCache[Hashable, bool] = LRUCache(500)  # asked every turn, and new with every twentieth message


def _words(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The hashes of a text's words, each once and in their order, without stop words: of those without an @ in front,
    and of all, without the @."""
    key = text_digest(text)
    known = _word_hashes.get(key)
    if known is None:
        found = dict.fromkeys(word.rstrip(".-") for word in _WORD.findall(text.casefold()))
        words = [word for word in found if word not in STOP_WORDS]
        plain = tuple(hash(word) for word in words if word[0] != "@")
        bare = tuple(hash(word.lstrip("@")) for word in words)
        known = _word_hashes[key] = (plain, plain if bare == plain else bare)
    return known


def nearness(messages: Sequence[Message], asked: Message) -> list[float]:
    """How much each of some messages (oldest first, at most MOST) belongs to the talk of `asked`: from 0 to 1."""
    ties, last = _ties([*messages, asked]), len(messages)
    best = [0.0] * last + [1.0]
    waiting = [(-1.0, last)]
    while waiting:
        found, here = heapq.heappop(waiting)
        if -found < best[here]:
            continue
        for there, missing in ties[here].items():
            strength = -found * (1 - missing)
            if strength > best[there] and strength > _LEAST:
                best[there] = strength
                heapq.heappush(waiting, (-strength, there))
    return [max(best[n], _LEAST) * math.exp((n - last) / FADES) for n in range(last)]


def nearest(messages: Sequence[Message], asked: Message, among: int, most: int) -> list[tuple[Message, float]]:
    """Of the first `among` messages the `most` that belong to the talk of `asked`, oldest first, with their nearness.

    All the messages say what the talk is; the later of two equally near ones is taken.
    """
    near = nearness(messages, asked)
    order = sorted(range(among), key=lambda n: (near[n], n), reverse=True)
    return [(messages[n], near[n]) for n in sorted(order[:most])]


def busy(messages: Sequence[Message]) -> bool:
    """Whether several talks of many people are mixed in some messages."""
    people = {_who(message) for message in messages if not message.by_agent}
    if len(people) < CROWD:
        return False
    # All that ties depend on; texts and names by their hashes.
    key = tuple(
        (m.agent_id or m.user_id, hash(m.author), hash(m.text), m.mentions, m.external_id, m.reply_to) for m in messages
    )
    known = _mixed_results.get(key)
    if known is None:
        known = _mixed_results[key] = _mixed(messages)
    return known


def _mixed(messages: Sequence[Message]) -> bool:
    ties = _ties(messages)
    talk = list(range(len(messages)))
    for here, tied in enumerate(ties):  # a tie goes both ways, so each is seen from its later end
        for there, missing in tied.items():
            if there < here and 1 - missing >= TIED and talk[there] != talk[here]:
                old, new = talk[here], talk[there]
                talk = [new if name == old else name for name in talk]
    return max(Counter(talk).values()) < ONE_TALK * len(messages)


def _who(message: Message) -> Hashable:
    return message.agent_id or message.user_id or message.author


def _ties(messages: Sequence[Message]) -> list[dict[int, float]]:
    """For each message those that it is tied to, either way, with how likely it is that no tie of theirs holds."""
    ties: list[dict[int, float]] = [{} for _ in messages]
    numbers: dict[Hashable, int] = {}
    speakers = [numbers.setdefault(_who(message), len(numbers)) for message in messages]
    agents = [message.by_agent for message in messages]
    words, bare = zip(*(_words(message.text[:LOOKED_AT]) for message in messages), strict=True)
    named = {hash(m.author.casefold()): who for m, who, by in zip(messages, speakers, agents, strict=True) if not by}
    counts = Counter(chain.from_iterable(words))
    names = {hash(message.author.casefold()) for message in messages}
    rare = {word for word, count in counts.items() if 1 < count <= MOST_RARE and word not in names}
    places = {message.external_id: n for n, message in enumerate(messages)}
    said: list[list[int]] = [[] for _ in range(len(numbers))]
    told: dict[int, int] = {}
    passed: dict[tuple[int, int], int] = {}
    latest: dict[int, int] = {}
    addressed: list[dict[int, None]] = []

    def tie(here: int, there: int, strength: float) -> None:
        known = ties[here].get(there)
        ties[here][there] = ties[there][here] = 1 - strength if known is None else (1 - strength) * known

    for n, (message, who, own) in enumerate(zip(messages, speakers, words, strict=True)):
        to = {} if named.keys().isdisjoint(bare[n]) else {named[name]: None for name in bare[n] if name in named}
        to.update({numbers[user]: None for user in message.mentions if user in numbers})
        to.pop(who, None)
        addressed.append(to)
        if n:
            tie(n, n - 1, BESIDE)
        answered = places.get(_question_of(message) if agents[n] else message.reply_to or "")
        if answered is not None and answered < n:
            tie(n, answered, ANSWERED)
        if agents[n]:
            continue
        for other in to:
            if (who, other) in passed:
                before = passed[who, other]
                tie(n, before, PAIR * _FURTHER[n - before])
            to_them = (k for k in reversed(said[other][-6:]) if not addressed[k] or who in addressed[k])
            for strength, k in zip(ADDRESSED, to_them, strict=False):
                tie(n, k, strength * _FAR[n - k])
            passed[who, other] = n
        if said[who]:
            before = said[who][-1]
            if not (to and addressed[before]):
                tie(n, before, (SAME_MIXED if to or addressed[before] else SAME) * _SOON[n - before])
        if not to:
            if who in told:
                tie(n, told[who], TO_ME * _SOON[n - told[who]])
            for k in range(n - 1, max(-1, n - 1 - NEAR_CHAT), -1):
                if not addressed[k] and speakers[k] != who and not agents[k]:
                    tie(n, k, CHAT)
                    break
        for word in () if rare.isdisjoint(own) else own:
            if word in rare:
                if word in latest:
                    tie(n, latest[word], RARE * 2 / counts[word] * _FAR[n - latest[word]])
                latest[word] = n
        said[who].append(n)
        for other in to:
            told[other] = n
    return ties


def _question_of(message: Message) -> str:
    """The platform's id of what an agent's answer answers (composer/turn/respond.py makes an answer's id of it)."""
    return message.external_id.removeprefix("reply:").rpartition(":")[0]
