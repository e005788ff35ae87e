"""What an erasure reaches: everything that was made from the erased texts, and the answers that are made of them.

The search follows lineage from the erased rows to what was made of them, and to the prompts that contained any of that.
An answer to such a prompt is retracted if it is made of erased text (composer/turn/used.py found that when the answer
was stored), or repeats a rare word that nothing else in its prompt has. What a retracted answer says is erased too, so
the search goes on from it, until nothing new is found.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from composer.repositories.database import Transaction
from composer.repositories.erasure import StoredReply, StoredText
from composer.repositories.recall import episode_id_of
from composer.text.offline import without_program
from composer.text.rarity import is_rare
from composer.text.repetition import words_of
from composer.text.work import in_thread

ItemRef = tuple[str, uuid.UUID]  # kind and id

SPECIFIC_KINDS: Final = frozenset({"memory", "fact", "landmark"})  # what is made of one is made of its messages
AGGREGATE_SHARE: Final = 0.1  # of a summary: with less erased, an answer that is made of it has to repeat a word, too
SUMMARY_KINDS: Final = frozenset({"summary", "compaction"})


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """What is erased: `messages`, or the old text of one message that is edited, and other `items`.

    `words` are those that are lost, `names` those of them that are people's names. `questions` are the messages whose
    answers go with them. `recalled`: answers that are made of the erased text go, whatever their words; `derived`: also
    those that are made of what was made from it. `kept` are items made from it that stay. `remaining` are words that
    are still there, in the new text of an edited message. `answers`: whether any are retracted.
    """

    messages: Sequence[uuid.UUID]
    items: Sequence[ItemRef]
    words: frozenset[str]
    questions: Sequence[uuid.UUID] = ()
    recalled: bool = True
    derived: bool = True
    kept: Collection[uuid.UUID] = ()
    remaining: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    answers: bool = True


@dataclass(slots=True)
class Affected:
    """What an erasure reaches: the items to delete, the turns whose prompts contained any of it, and the answers to
    retract."""

    items: list[ItemRef] = field(default_factory=list)
    turns: list[uuid.UUID] = field(default_factory=list)
    replies: list[StoredReply] = field(default_factory=list)


async def find_affected(tx: Transaction, request: ErasureRequest) -> Affected:
    """Follow an erasure to its end."""
    return await _Search(tx, request).run()


class _Search:
    """One search. `_gone` are the erased rows, and all that was found to be made from them."""

    def __init__(self, tx: Transaction, request: ErasureRequest) -> None:
        self._tx, self._request = tx, request
        self._found = Affected()
        self._turns: set[uuid.UUID] = set()  # those of `_found`
        self._words = request.words
        self._episodes = {episode_id_of(message) for message in request.messages}
        self._gone: set[uuid.UUID] = {*request.messages, *self._episodes, *(id for _, id in request.items)}
        self._whole = frozenset(self._gone)  # erased as a whole: their share is 1
        self._recalled = set(self._gone)  # what is made of one of these goes, whatever its words
        self._sources: dict[uuid.UUID, list[uuid.UUID]] = {}
        self._shown: set[tuple[uuid.UUID, uuid.UUID]] = set()  # (item, source) that a model named no source
        self._texts: dict[uuid.UUID, frozenset[str]] = {}
        self._remaining: dict[uuid.UUID, frozenset[str]] = {}
        self._replies: dict[uuid.UUID, StoredReply] = {}
        self._reply_words: dict[uuid.UUID, frozenset[str]] = {}
        self._used: dict[uuid.UUID, set[uuid.UUID]] = {}  # what each reply is made of
        self._rewritten: set[uuid.UUID] = set()  # summaries that are not stored any more, but in prompts

    async def run(self) -> Affected:
        """Go on until an iteration finds nothing new."""
        self._add_replies(await self._tx.erasure.find_replies([], self._request.questions))
        frontier = list(self._gone)
        while True:
            await self._follow(frontier)
            if not self._request.answers:
                return self._found
            retracted = await in_thread(self._judge)
            if not retracted:
                return self._found
            self._found.replies += retracted
            frontier = [reply.id for reply in retracted]
            self._gone.update(frontier)
            self._recalled.update(frontier)

    async def _follow(self, frontier: Sequence[uuid.UUID]) -> None:
        """Add what was made from these rows, and the turns whose prompts had any of it."""
        made = [each for each in await self._tx.erasure.derived_items(frontier) if each[1] not in self._request.kept]
        turns = [id for kind, id in made if kind == "turn" and id not in self._turns]
        items = [(kind, id) for kind, id in made if kind not in ("turn", "answer") and id not in self._gone]
        self._found.turns += turns
        self._turns.update(turns)
        await self._load([id for _, id in items])
        staying = await self._staying_landmarks([id for kind, id in items if kind == "landmark"])
        items = [(kind, id) for kind, id in items if id not in staying]
        self._found.items += items
        self._gone.update(id for _, id in items)
        self._add_replies(await self._tx.erasure.find_replies(turns, []))
        answered = {reply.turn_id for reply in self._replies.values()}
        await self._load([*(id for _, id in items), *answered])
        await self._load_used()
        self._rewritten |= {id for kind, id in items if kind in SUMMARY_KINDS and not self._texts[id]}
        shown = {turn for turn in answered if not self._rewritten.isdisjoint(self._sources[turn])}
        summaries = await self._tx.erasure.summaries_shown(sorted(shown))
        await in_thread(self._add_words_of, items, summaries)

    async def _staying_landmarks(self, landmarks: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Landmarks that a person confirmed or retired, and that stay since they repeat nothing that is lost: what they
        were made from was edited a little, is said elsewhere too, or was merely in the same batch of an extractor."""
        settled = set(landmarks).intersection(await self._tx.landmarks.find_confirmed()) if landmarks else set()
        self._remaining.clear()
        stays: dict[uuid.UUID, bool] = {}

        def judge(id: uuid.UUID) -> bool:
            if id not in stays:
                stays[id] = False
                gone = self._gone.intersection(self._sources[id])
                left = [s for s in self._sources[id] if s not in gone and (s not in landmarks or judge(s))]
                said = [source for source in left if (id, source) not in self._shown]
                beside = bool(gone) and all((id, source) in self._shown for source in gone)
                explained = [self._remaining_words(id)] if beside else [self._texts[source] for source in said]
                lost = self._words - frozenset().union(*explained)
                reason = bool(said) or beside or not self._request.recalled
                stays[id] = id in settled and reason and lost.isdisjoint(self._texts[id])
            return stays[id]

        return {id for id in settled if judge(id)}

    def _add_replies(self, replies: Iterable[StoredReply]) -> None:
        self._replies |= {reply.id: reply for reply in replies if reply.id not in self._gone}

    async def _load_used(self) -> None:
        """Load what the answers are made of."""
        new = sorted(self._replies.keys() - self._used.keys())
        self._used |= {reply: set() for reply in new}
        for reply, _, source in await self._tx.erasure.sources_of(new):
            self._used[reply].add(source)

    async def _load(self, items: Iterable[uuid.UUID]) -> None:
        """Load the lineage of items, through derived ones down to what remains, and the texts of all of these."""
        waiting = {id for id in items if id not in self._sources}
        while waiting:
            self._sources |= {id: [] for id in waiting}
            for item, kind, source in await self._tx.erasure.sources_of(sorted(waiting)):
                self._sources[item].append(source)
                if kind == "shown":
                    self._shown.add((item, source))
            waiting = {
                source
                for item in waiting
                for source in self._sources[item]
                if source in self._gone and source not in self._sources
            }
        wanted = {id for id, sources in self._sources.items() for id in (id, *sources)} - self._texts.keys()
        texts = await self._tx.erasure.texts(sorted(wanted))
        self._texts |= dict.fromkeys(wanted, frozenset())
        self._texts |= await in_thread(_words_by_id, texts)

    def _add_words_of(self, items: Sequence[ItemRef], summaries: Sequence[tuple[uuid.UUID, str]]) -> None:
        """Add the words of derived items that nothing else explains, and note which of them prompts drew on.

        `summaries` are (turn, text), where a prompt holds a summary that was written anew since.
        """
        self._remaining.clear()
        for turn, text in summaries:
            self._add_words(words_of(text), turn)
        for kind, id in items:
            self._add_words(self._texts[id], id)
            aggregate = kind in SUMMARY_KINDS and self._share(id) >= AGGREGATE_SHARE
            if self._request.derived and (kind in SPECIFIC_KINDS or aggregate):
                self._recalled.add(id)

    def _add_words(self, words: frozenset[str], item: uuid.UUID) -> None:
        lost = words - self._remaining_words(item) - self._request.remaining
        self._words |= {word for word in lost if is_rare(word)}

    def _judge(self) -> list[StoredReply]:
        """The answers that have to be retracted now."""
        self._remaining.clear()
        retracted = [r for r in self._replies.values() if r.id not in self._gone and self._is_affected(r)]
        for reply in retracted:
            self._add_words(self._words_to_lose(reply), reply.turn_id)
        return retracted

    def _words_to_lose(self, reply: StoredReply) -> frozenset[str]:
        """The words of an answer, without what the program says in each; of a digest without its heading, whose days
        are nobody's words."""
        _, _, body = reply.text.partition("\n")
        is_post = reply.id == reply.question_id
        return words_of(body if is_post and body else without_program(reply.text))

    def _is_affected(self, reply: StoredReply) -> bool:
        if reply.question_id in self._request.questions:
            return True
        sources = self._sources.get(reply.turn_id, [])
        is_post = reply.id == reply.question_id  # no prompt holds what a summary said that was rewritten after it
        if self._request.derived and is_post and not self._rewritten.isdisjoint(sources):
            return True
        made_of = set(sources) if is_post else self._used[reply.id] | self._written(reply)
        if self._request.recalled and not self._recalled.isdisjoint(made_of):
            return True
        repeated = (self._words - self._remaining_words(reply.turn_id)) & self._words_of_reply(reply)
        if any(word in self._request.names or is_rare(word) for word in repeated):
            return True
        return not repeated.isdisjoint(self._request.words) and not self._gone.isdisjoint({*made_of, reply.question_id})

    def _written(self, reply: StoredReply) -> set[uuid.UUID]:
        """What was written by a tool while the answer was made, and is gone: the answer may quote it."""
        gone = self._gone.intersection(self._sources.get(reply.turn_id, ()))
        return {id for id in gone if reply.question_id in self._sources.get(id, ())}

    def _words_of_reply(self, reply: StoredReply) -> frozenset[str]:
        if reply.id not in self._reply_words:
            self._reply_words[reply.id] = words_of(reply.text)
        return self._reply_words[reply.id]

    def _remaining_words(self, item: uuid.UUID) -> frozenset[str]:
        """The words of what an item or a prompt was made from, and that is not erased."""
        if item not in self._remaining:
            self._remaining[item] = frozenset()  # lineage has no cycles but those of merged memories
            sources = self._sources.get(item, [])
            self._remaining[item] = frozenset().union(
                *(self._remaining_words(s) if s in self._gone else self._texts.get(s, frozenset()) for s in sources)
            )
        return self._remaining[item]

    def _share(self, item: uuid.UUID, depth: int = 0) -> float:
        """How much of a summary was made from what is erased as a whole, from 0 to 1."""
        if item in self._whole:
            return 1.0
        sources = self._sources.get(item, []) if item in self._gone and depth < len(SUMMARY_KINDS) + 1 else []
        return sum(self._share(source, depth + 1) for source in sources) / len(sources) if sources else 0.0


def _words_by_id(texts: Sequence[StoredText]) -> Mapping[uuid.UUID, frozenset[str]]:
    return {each.id: words_of(each.author, *each.parts) for each in texts}
