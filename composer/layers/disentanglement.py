"""Find the earlier messages of a busy room that belong to the same discussion as a question. Pure.

Each message is linked to a few earlier ones: the one it replies to, the last messages of those it names, its author's
own last message, an agent's question, messages that share a rare word, and, weakly, the message just before it. The
relatedness of a message to the question is the strongest chain of links between them (a product of strengths),
reduced with distance. No embedding is involved: links follow from who speaks to whom, and the same messages always give
the same choice.

What nobody says is only guessed from who speaks next: such links hold within an hour, as a discussion does. And a chain
that is as weak as a guess makes no message related, so a question that continues nothing gets none.

The strengths are hand-set, rounded estimates of how often such a link holds; `make bench-quality` measures them.
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import timedelta
from itertools import chain
from typing import Final

from composer.model import Message
from composer.text.caches import OwnedCache
from composer.text.digests import text_hash
from composer.text.terms import STOP_WORDS

# Strengths of links, from 0 to 1.
REPLY: Final = 0.95  # an agent's answer and its question; a platform's reply and what it replies to
PAIR: Final = 0.9  # a person's last message to the same other person
NAMED: Final = (0.85, 0.6)  # the last, and the last but one, message of the named person to the author or to nobody
TO_AUTHOR: Final = 0.85  # a message that names nobody, and the last one that named its author
OWN_SHARE: Final = 0.7  # a person's own last message, where neither names anybody
OWN_NAMING: Final = 0.6  # the same where one of the two does
RARE_WORD: Final = 0.4  # a word in two messages only; less with each further one
PREVIOUS: Final = 0.12  # the message just before
UNADDRESSED: Final = 0.15  # the last message of another person to nobody, for one to nobody

NEAR: Final = timedelta(hours=1)  # between two messages that nothing links but who speaks next
MIN_CHAIN: Final = 0.08  # of links to the question, without decay; a weaker one makes no message related

MAX_RARE_MESSAGES: Final = 6  # a word in more messages links none
MAX_UNADDRESSED_DISTANCE: Final = 4  # messages
MAX_NAMED_LOOKBACK: Final = 6  # messages of the named person

RELATEDNESS_DECAY: Final = (
    80.0  # messages over which relatedness falls to 1/e (about a third), besides the links' decay
)
MAX_VIEW_MESSAGES: Final = 200  # that can be compared

MIN_PEOPLE: Final = 6  # in the last messages of a busy room
ONE_DISCUSSION_SHARE: Final = 0.9  # of the messages in one discussion: then the room is not busy, whoever is in it
MIN_DISCUSSION_LINK: Final = 0.5  # links of this strength or more join two messages into one discussion
MAX_REPLY_CHARS: Final = 400  # of a message that are searched for words

_WORD = re.compile(r"@?\w[\w.\-\[\]|`^{}\\]*")
_MIN_RELATEDNESS: Final = 1e-6


def _decay(messages: float) -> list[float]:
    """What remains of a link, by its distance in messages: it falls to 1/e over `messages`."""
    return [math.exp(-distance / messages) for distance in range(MAX_VIEW_MESSAGES + 1)]


_OWN_DECAY: Final = _decay(40.0)  # a person's own messages
_NAME_DECAY: Final = _decay(80.0)  # names and words
_PAIR_DECAY: Final = _decay(150.0)  # messages between the same two people


# The same messages are compared turn after turn. The owner is the namespace that they are filed under.
_word_hashes: Final = OwnedCache[tuple[tuple[int, ...], tuple[int, ...]]](25_000)  # by text_hash()
_mixed_results: Final = OwnedCache[bool](500)  # needed every turn; new with every twentieth message


def _words(message: Message) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The hashes of a message's words in their order, each once, without stop words.

    First those of words that are not written with an `@`, then those of all words, without the `@`.
    """
    text = message.text[:MAX_REPLY_CHARS]
    owner, key = message.namespace, text_hash(text)
    known = _word_hashes.get(owner, key)
    if known is None:
        found = dict.fromkeys(word.rstrip(".-") for word in _WORD.findall(text.casefold()))
        words = [word for word in found if word not in STOP_WORDS]
        plain = tuple(hash(word) for word in words if word[0] != "@")
        bare = tuple(hash(word.lstrip("@")) for word in words)
        known = (plain, plain if bare == plain else bare)
        _word_hashes.put(owner, known, key)
    return known


def relatedness(messages: Sequence[Message], question: Message) -> list[float]:
    """How closely each message (oldest first, at most MAX_MESSAGES) is related to a question, from 0 to 1."""
    return _decayed(_chains(messages, question))


def _decayed(chains: Sequence[float]) -> list[float]:
    """What the distance to the question leaves of each message's chain, oldest first."""
    return [strength * math.exp((n - len(chains)) / RELATEDNESS_DECAY) for n, strength in enumerate(chains)]


def _chains(messages: Sequence[Message], question: Message) -> list[float]:
    """The strongest chain of links between each message and the question, from 0 to 1, whatever their distance."""
    links, last = _links([*messages, question]), len(messages)
    best = [0.0] * last + [1.0]
    queue = [(-1.0, last)]
    while queue:
        negated, n = heapq.heappop(queue)
        if -negated < best[n]:
            continue
        for other, missing in links[n].items():
            strength = -negated * (1 - missing)
            if strength > best[other] and strength > _MIN_RELATEDNESS:
                best[other] = strength
                heapq.heappush(queue, (-strength, other))
    return [max(best[n], _MIN_RELATEDNESS) for n in range(last)]


def related_messages(
    messages: Sequence[Message], question: Message, candidates: int, limit: int
) -> list[tuple[Message, float]]:
    """Of the first `candidates` messages the `limit` most related to a question, oldest first, with their relatedness.

    All messages count as links between them. Of two equally related messages the later one is chosen. Fewer are
    returned where no more have a chain of MIN_CHAIN.
    """
    chains = _chains(messages, question)
    related = _decayed(chains)
    linked = (n for n in range(candidates) if chains[n] >= MIN_CHAIN)
    order = sorted(linked, key=lambda n: (related[n], n), reverse=True)
    return [(messages[n], related[n]) for n in sorted(order[:limit])]


def is_busy(messages: Sequence[Message]) -> bool:
    """Whether several discussions of many people are mixed in the messages."""
    people = {_sender(message) for message in messages if not message.by_agent}
    if len(people) < MIN_PEOPLE:
        return False
    # Everything that links depend on; texts and names as hashes.
    key = tuple(
        (m.agent_id or m.user_id, hash(m.author), hash(m.text), m.mentions, m.external_id, m.reply_to, m.at)
        for m in messages
    )
    owner = messages[-1].namespace
    known = _mixed_results.get(owner, key)
    if known is None:
        known = _mixed(messages)
        _mixed_results.put(owner, known, key)
    return known


def _mixed(messages: Sequence[Message]) -> bool:
    """Whether the largest discussion holds less than ONE_DISCUSSION_SHARE of the messages."""
    discussion = list(range(len(messages)))  # the number of each message's discussion
    for n, links in enumerate(_links(messages)):  # a link goes both ways, so each is seen from its later end
        for other, missing in links.items():
            if other < n and 1 - missing >= MIN_DISCUSSION_LINK and discussion[other] != discussion[n]:
                old, new = discussion[n], discussion[other]
                discussion = [new if number == old else number for number in discussion]
    return max(Counter(discussion).values()) < ONE_DISCUSSION_SHARE * len(messages)


def _sender(message: Message) -> Hashable:
    return message.agent_id or message.user_id or message.author


def _links(messages: Sequence[Message]) -> list[dict[int, float]]:
    """For each message the messages that it is linked to, in both directions, each with the probability that none of
    the links between the two holds."""
    words, bare = zip(*map(_words, messages), strict=True)
    finder = _LinkFinder(messages, words)
    for n in range(len(messages)):
        finder.add(n, words[n], bare[n])
    return finder.links


class _LinkFinder:
    """Finds the links of messages that are added in their order. Words are hashes (`_words`)."""

    def __init__(self, messages: Sequence[Message], words: Sequence[Sequence[int]]) -> None:
        self.links: list[dict[int, float]] = [{} for _ in messages]
        self._messages = messages
        self._numbers: dict[Hashable, int] = {}  # of senders
        self._senders = [self._numbers.setdefault(_sender(m), len(self._numbers)) for m in messages]
        self._by_agent = [message.by_agent for message in messages]
        self._names = {
            hash(m.author.casefold()): sender
            for m, sender, by_agent in zip(messages, self._senders, self._by_agent, strict=True)
            if not by_agent
        }
        self._counts = Counter(chain.from_iterable(words))
        authors = {hash(message.author.casefold()) for message in messages}
        self._rare = {
            word for word, count in self._counts.items() if 1 < count <= MAX_RARE_MESSAGES and word not in authors
        }
        self._positions = {message.external_id: n for n, message in enumerate(messages)}
        # Positions of earlier messages, by sender or word.
        self._sent: list[list[int]] = [[] for _ in self._numbers]
        self._last_naming: dict[int, int] = {}  # the last message that named a person
        self._last_between: dict[tuple[int, int], int] = {}  # (author, named)
        self._last_with: dict[int, int] = {}  # the last message with a rare word
        self._named: list[dict[int, None]] = []  # whom each message names, in order

    def add(self, n: int, words: Sequence[int], bare: Sequence[int]) -> None:
        """Link the message at position `n` to earlier ones."""
        named = self._named_in(n, bare)
        self._named.append(named)
        if n and self._near(n, n - 1):
            self._link(n, n - 1, PREVIOUS)
        message = self._messages[n]
        replied = self._positions.get(_question_id(message) if self._by_agent[n] else message.reply_to or "")
        if replied is not None and replied < n:
            self._link(n, replied, REPLY)
        if self._by_agent[n]:
            return
        self._link_named(n, named)
        self._link_own(n, named)
        if not named:
            self._link_unaddressed(n)
        self._link_rare_words(n, words)
        self._sent[self._senders[n]].append(n)
        for person in named:
            self._last_naming[person] = n

    def _named_in(self, n: int, bare: Sequence[int]) -> dict[int, None]:
        """The senders that a message names or mentions, without its own."""
        names = self._names
        named = {} if names.keys().isdisjoint(bare) else {names[word]: None for word in bare if word in names}
        named.update({self._numbers[user]: None for user in self._messages[n].mentions if user in self._numbers})
        named.pop(self._senders[n], None)
        return named

    def _near(self, n: int, before: int) -> bool:
        return self._messages[n].at - self._messages[before].at <= NEAR

    def _link(self, n: int, other: int, strength: float) -> None:
        known = self.links[n].get(other)
        missing = 1 - strength if known is None else (1 - strength) * known
        self.links[n][other] = self.links[other][n] = missing

    def _link_named(self, n: int, named: dict[int, None]) -> None:
        author = self._senders[n]
        for person in named:
            if (author, person) in self._last_between:
                before = self._last_between[author, person]
                self._link(n, before, PAIR * _PAIR_DECAY[n - before])
            latest = reversed(self._sent[person][-MAX_NAMED_LOOKBACK:])
            answered = (k for k in latest if not self._named[k] or author in self._named[k])
            for strength, k in zip(NAMED, answered, strict=False):
                self._link(n, k, strength * _NAME_DECAY[n - k])
            self._last_between[author, person] = n

    def _link_own(self, n: int, named: dict[int, None]) -> None:
        own = self._sent[self._senders[n]]
        if not own:
            return
        before = own[-1]
        if self._near(n, before) and not (named and self._named[before]):
            strength = OWN_NAMING if named or self._named[before] else OWN_SHARE
            self._link(n, before, strength * _OWN_DECAY[n - before])

    def _link_unaddressed(self, n: int) -> None:
        author = self._senders[n]
        if author in self._last_naming:
            before = self._last_naming[author]
            if self._near(n, before):
                self._link(n, before, TO_AUTHOR * _OWN_DECAY[n - before])
        for k in range(n - 1, max(-1, n - 1 - MAX_UNADDRESSED_DISTANCE), -1):
            if not self._near(n, k):
                break
            if not self._named[k] and self._senders[k] != author and not self._by_agent[k]:
                self._link(n, k, UNADDRESSED)
                break

    def _link_rare_words(self, n: int, words: Sequence[int]) -> None:
        for word in () if self._rare.isdisjoint(words) else words:
            if word in self._rare:
                if word in self._last_with:
                    before = self._last_with[word]
                    self._link(n, before, RARE_WORD * 2 / self._counts[word] * _NAME_DECAY[n - before])
                self._last_with[word] = n


def _question_id(message: Message) -> str:
    """The platform's id of the question that an agent's answer answers, from the answer's own id, which
    composer/turn/answers.py derives from it (REPLY_PREFIX)."""
    return message.external_id.removeprefix("reply:").rpartition(":")[0]
