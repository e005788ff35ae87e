"""Forgetting: what a person takes back, or a platform deletes or edits, goes from every layer, for good.

Lineage says what it flowed into. Memories, facts, landmarks and summaries made from it go (what makes
them, makes them again from what is left); stored prompts that held it are emptied; an agent's answer
that was made from it is withdrawn. A receipt says what went.
"""

import uuid
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from composer.model import Attachment, Message
from composer.repositories.database import Transaction
from composer.repositories.recall import episode_id_of
from composer.text.terms import terms

RETRACTED: Final = "[withdrawn: this answer drew on something that was forgotten since]"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What went, by kind, and which conversations show less than before."""

    counts: dict[str, int] = field(default_factory=dict)
    conversations: frozenset[uuid.UUID] = frozenset()

    def __str__(self) -> str:
        """One line for a person."""
        names = {"memory": "memories", "summary": "summaries", "reply": "answers (withdrawn)"}
        parts = [
            f"{count} {names.get(kind, kind + 's') if count != 1 or kind == 'reply' else kind}"
            for kind, count in sorted(self.counts.items())
            if count
        ]
        return "Forgotten for good: " + ", ".join(parts) + "." if parts else "There was nothing to forget."


async def forget(
    tx: Transaction,
    messages: Sequence[uuid.UUID],
    items: Sequence[tuple[str, uuid.UUID]],
    now: datetime,
    here: uuid.UUID | None = None,
    *,
    shown: bool = True,
) -> Receipt:
    """Erase messages and other items ((kind, id)), and all that flowed from them.

    `shown`: answers that are withdrawn are taken back where they were posted, too.
    The receipt counts answers and prompts of the conversation where this is asked (`here`) and of those where the
    messages stood: what others asked elsewhere is theirs, and how often they did is not to be told from a number.
    """
    await tx.summaries.lock()  # what is being summarised now is stored before, and goes too, or is not stored
    texts = await tx.erasure.texts(messages)
    spoken = [words for _, text, attached in texts for words in (text, *attached)]
    places = {here, *(conversation for conversation, _, _ in texts)}
    own_items = [id for _, id in items]
    episodes = [episode_id_of(message) for message in messages]
    chosen = await tx.erasure.derived_items([*episodes, *own_items], through_answers=False)
    flowed = await tx.erasure.derived_items([*messages, *episodes, *own_items], through_answers=True)
    told = {word for text in spoken for word in terms(text)}
    withdrawn = await _withdraw(tx, chosen, flowed, messages, told, shown=shown)
    emptied = await tx.erasure.clear_prompts(_ids(flowed, "turn"), messages)
    asked_for = {*own_items, *await tx.memories.find_merged(own_items)}  # such a memory is not made again, in no words
    await tx.memories.reindex_sources([id for id in _ids(flowed, "memory") if id not in asked_for], messages)
    counts, conversations = await tx.erasure.erase(messages, _by_kind([*items, *flowed]), now)
    counts.pop("compaction", None)  # of views: how much talk there was since is not the asker's to know
    conversations |= set(withdrawn)
    if conversations:
        await tx.conversations.bump_versions(sorted(conversations))
    counts |= {"prompt": _within(places, emptied), "reply": _within(places, withdrawn)}
    return Receipt(counts, frozenset(conversations))


async def edit(
    tx: Transaction,
    message: Message,
    text: str,
    mentions: Sequence[uuid.UUID],
    attached: Sequence[Attachment],
    now: datetime,
) -> Receipt:
    """Replace a message's text and what is attached to it; what was made from the old words goes, and is made again
    from the new. Answers for which an image was looked at that is not attached any more go too."""
    id, episode = message.id, episode_id_of(message.id)
    await tx.summaries.lock()
    before = await tx.erasure.texts([id])
    flowed = await tx.erasure.derived_items([id, episode], through_answers=True)
    unseen = any(a.is_image and a not in attached for a in message.attachments)
    looked_at = await tx.erasure.derived_items([episode], through_answers=False) if unseen else []
    left = {word for words in (text, *(f"{a.name} {a.text}" for a in attached)) for word in terms(words)}
    lost = {word for _, old, files in before for words in (old, *files) for word in terms(words)} - left
    withdrawn = await _withdraw(tx, looked_at, flowed, [], lost)
    emptied = await tx.erasure.clear_prompts(_ids(flowed, "turn"), [id])
    await tx.memories.reindex_sources(_ids(flowed, "memory"), [id])
    counts, _ = await tx.erasure.erase([], _by_kind(flowed), now)
    counts.pop("compaction", None)
    await tx.recall.remove([episode])
    await tx.messages.edit(id, text, mentions, attached, now)
    places = {conversation for conversation, _, _ in before}
    conversations = places | set(withdrawn)
    await tx.conversations.bump_versions(sorted(conversations))
    counts |= {"prompt": _within(places, emptied), "reply": _within(places, withdrawn)}
    return Receipt(counts, frozenset(conversations))


async def _withdraw(
    tx: Transaction,
    chosen: Sequence[tuple[str, uuid.UUID]],
    flowed: Sequence[tuple[str, uuid.UUID]],
    asked: Sequence[uuid.UUID],
    told: set[str],
    *,
    shown: bool = True,
) -> list[uuid.UUID]:
    """Withdraw the answers that were made from what goes: those to the erased messages themselves, those
    for which it had been recalled, and, of those that merely had it in view, the ones that repeat a word of it.

    Returns the conversation of each.
    """
    recalled, erased = set(_ids(chosen, "turn")), set(asked)
    gone = [
        reply
        for reply in await tx.erasure.find_replies(_ids(flowed, "turn"), asked)
        if reply.question_id in erased or reply.turn_id in recalled or told.intersection(terms(reply.text))
    ]
    if gone and shown:
        await tx.deliveries.queue_retractions([reply.id for reply in gone])
    await tx.erasure.replace_replies([reply.id for reply in gone], RETRACTED)
    return [reply.conversation_id for reply in gone]


def _within(places: Collection[uuid.UUID | None], found: Sequence[uuid.UUID]) -> int:
    return sum(conversation in places for conversation in found)


def _ids(flowed: Sequence[tuple[str, uuid.UUID]], kind: str) -> list[uuid.UUID]:
    return [id for found, id in flowed if found == kind]


def _by_kind(flowed: Sequence[tuple[str, uuid.UUID]]) -> dict[str, list[uuid.UUID]]:
    """What is deleted as a whole; turns and answers are emptied instead."""
    kinds: defaultdict[str, list[uuid.UUID]] = defaultdict(list)
    for kind, id in dict.fromkeys(flowed):
        if kind in ("memory", "fact", "landmark", "summary", "compaction"):
            kinds[kind].append(id)
    return dict(kinds)
