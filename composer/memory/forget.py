"""Forgetting and editing: erase what a person or a platform deletes or edits, from every layer.

Lineage says what was made from it. Memories, facts, landmarks and summaries made from erased text are deleted, and
made again from what remains; stored prompts that contained it are emptied; answers made from it are retracted. A
receipt counts what was erased.
"""

import uuid
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from composer.model import Attachment, Message
from composer.repositories.audit import Act
from composer.repositories.database import Transaction
from composer.repositories.recall import episode_id_of
from composer.text.terms import terms

RETRACTED: Final = "[retracted: this answer used something that was forgotten later]"
_DELETED_KINDS: Final = ("memory", "fact", "landmark", "summary", "compaction")  # turns and answers are emptied instead

ItemRef = tuple[str, uuid.UUID]  # kind and id


@dataclass(frozen=True, slots=True)
class Receipt:
    """How many items of each kind were erased, and the conversations whose view changed."""

    counts: dict[str, int] = field(default_factory=dict)
    conversations: frozenset[uuid.UUID] = frozenset()

    def __str__(self) -> str:
        """One line for a person."""
        names = {"memory": "memories", "summary": "summaries", "reply": "answers (retracted)"}
        parts = [
            f"{count} {names.get(kind, kind + 's') if count != 1 or kind == 'reply' else kind}"
            for kind, count in sorted(self.counts.items())
            if count
        ]
        return (
            "Forgotten for good: " + ", ".join(parts) + "."
            if parts
            else "Nothing was erased: there was nothing to forget."
        )


async def forget(
    tx: Transaction,
    messages: Sequence[uuid.UUID],
    items: Sequence[ItemRef],
    now: datetime,
    conversation: uuid.UUID | None = None,
    *,
    retract_posts: bool = True,
) -> Receipt:
    """Erase messages and other items, and everything that was made from them.

    `conversation` is where the request was made. With `retract_posts`, retracted answers are also changed where they
    were posted. The receipt counts only answers and prompts of that conversation and of those of the messages: it must
    not reveal how often others asked elsewhere.
    """
    await tx.summaries.lock()  # a summary that is being written is either stored before, and erased, or not stored
    texts = await tx.erasure.texts(messages)
    erased_texts = [part for _, text, attached in texts for part in (text, *attached)]
    counted_in = {conversation, *(place for place, _, _ in texts)}
    item_ids = [id for _, id in items]
    episodes = [episode_id_of(message) for message in messages]
    recalled = await tx.erasure.derived_items([*episodes, *item_ids], through_answers=False)
    derived = await tx.erasure.derived_items([*messages, *episodes, *item_ids], through_answers=True)
    erased_terms = {term for text in erased_texts for term in terms(text)}
    retracted = await _retract(tx, recalled, derived, messages, erased_terms, posts=retract_posts)
    emptied = await tx.erasure.clear_prompts(_ids(derived, "turn"), messages)
    requested = {
        *item_ids,
        *await tx.memories.find_merged(item_ids),
    }  # these memories must not come back in any wording
    await tx.memories.reindex_sources([id for id in _ids(derived, "memory") if id not in requested], messages)
    counts, conversations = await tx.erasure.erase(messages, _by_kind([*items, *derived]), now)
    counts.pop("compaction", None)  # their number would reveal how many messages followed
    conversations |= set(retracted)
    if conversations:
        await tx.conversations.bump_versions(sorted(conversations))
    counts |= {"prompt": _count_in(counted_in, emptied), "reply": _count_in(counted_in, retracted)}
    if any(counts.values()):
        await tx.audit.record(Act.ERASED, conversation=conversation, details=counts)
    return Receipt(counts, frozenset(conversations))


async def edit(
    tx: Transaction,
    message: Message,
    text: str,
    mentions: Sequence[uuid.UUID],
    attached: Sequence[Attachment],
    now: datetime,
) -> Receipt:
    """Replace a message's text and attachments. What was made from the old text is erased, and made again from the
    new one. Answers that used an image which is no longer attached are retracted."""
    id, episode = message.id, episode_id_of(message.id)
    await tx.summaries.lock()
    before = await tx.erasure.texts([id])
    derived = await tx.erasure.derived_items([id, episode], through_answers=True)
    image_removed = any(a.is_image and a not in attached for a in message.attachments)
    recalled = await tx.erasure.derived_items([episode], through_answers=False) if image_removed else []
    remaining = {term for part in (text, *(f"{a.name} {a.text}" for a in attached)) for term in terms(part)}
    erased_terms = {term for _, old, files in before for part in (old, *files) for term in terms(part)} - remaining
    retracted = await _retract(tx, recalled, derived, [], erased_terms)
    emptied = await tx.erasure.clear_prompts(_ids(derived, "turn"), [id])
    await tx.memories.reindex_sources(_ids(derived, "memory"), [id])
    counts, _ = await tx.erasure.erase([], _by_kind(derived), now)
    counts.pop("compaction", None)
    await tx.recall.remove([episode])
    await tx.messages.edit(id, text, mentions, attached, now)
    own = {conversation for conversation, _, _ in before}
    conversations = own | set(retracted)
    await tx.conversations.bump_versions(sorted(conversations))
    counts |= {"prompt": _count_in(own, emptied), "reply": _count_in(own, retracted)}
    return Receipt(counts, frozenset(conversations))


async def _retract(
    tx: Transaction,
    recalled: Sequence[ItemRef],
    derived: Sequence[ItemRef],
    questions: Sequence[uuid.UUID],
    erased_terms: set[str],
    *,
    posts: bool = True,
) -> list[uuid.UUID]:
    """Retract the answers made from erased text, and return the conversation of each.

    These are the answers to erased messages (`questions`), those whose prompt recalled erased text (a turn in
    `recalled`), and of those that merely had it in view (a turn in `derived`), the ones that repeat a word of it.
    """
    recalling_turns, erased = set(_ids(recalled, "turn")), set(questions)
    retracted = [
        reply
        for reply in await tx.erasure.find_replies(_ids(derived, "turn"), questions)
        if reply.question_id in erased
        or reply.turn_id in recalling_turns
        or erased_terms.intersection(terms(reply.text))
    ]
    if posts and (retracted or questions):
        await tx.deliveries.queue_retractions([reply.id for reply in retracted], questions)
    await tx.erasure.replace_replies([reply.id for reply in retracted], RETRACTED)
    return [reply.conversation_id for reply in retracted]


def _count_in(counted: Collection[uuid.UUID | None], conversations: Sequence[uuid.UUID]) -> int:
    return sum(conversation in counted for conversation in conversations)


def _ids(items: Sequence[ItemRef], kind: str) -> list[uuid.UUID]:
    return [id for item_kind, id in items if item_kind == kind]


def _by_kind(items: Sequence[ItemRef]) -> dict[str, list[uuid.UUID]]:
    """The ids of the items that are deleted as a whole, by kind."""
    kinds: defaultdict[str, list[uuid.UUID]] = defaultdict(list)
    for kind, id in dict.fromkeys(items):
        if kind in _DELETED_KINDS:
            kinds[kind].append(id)
    return dict(kinds)
