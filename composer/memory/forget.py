"""Forgetting and editing: erase what a person or a platform deletes or edits, from every layer.

Lineage says what was made from it (composer/memory/affected.py). Memories, facts, landmarks and summaries made from
erased text are deleted, and made again from what remains; stored prompts that contained it are emptied; answers that
are made of it or repeat it are retracted. A receipt counts what was erased.
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Final

from composer.memory.affected import Affected, ErasureRequest, ItemRef, find_affected
from composer.memory.correction import correct_spelling
from composer.model import Attachment, Message
from composer.repositories.audit import AuditAct
from composer.repositories.database import Transaction
from composer.repositories.erasure import receipt_digest
from composer.repositories.quarantine import PENDING_KIND
from composer.repositories.recall import episode_id_of
from composer.text.counts import counted
from composer.text.repetition import words_of
from composer.text.work import in_thread

RETRACTED: Final = "[retracted: this answer used something that was forgotten later]"
# Turns and answers are emptied instead.
_DELETED_KINDS: Final = ("memory", "fact", "landmark", "pending", "reminder", "summary", "compaction")
RECEIPT_ID_BYTES: Final = 6
RECEIPT_KEY_BYTES: Final = 32
REPLACED_SHARE: Final = 0.5  # of a message's words; an edit that takes out more counts as a deletion


@dataclass(frozen=True, slots=True)
class Receipt:
    """How many items of each kind were erased, and the conversations whose view changed.

    `erased` are the ids of what the request named, `owners` the people whose exported files go with it
    (composer/memory/exported.py). A receipt with an `id` is stored, and can be checked later.
    """

    counts: dict[str, int] = field(default_factory=dict)
    conversations: frozenset[uuid.UUID] = frozenset()
    erased: frozenset[uuid.UUID] = frozenset()
    id: str = ""
    owners: frozenset[uuid.UUID] = frozenset()

    def __str__(self) -> str:
        """One line for a person."""
        names = {"reply": "answer", PENDING_KIND: "pending item"}
        parts = [
            counted(count, names.get(kind, kind)) + (" (retracted)" if kind == "reply" else "")
            for kind, count in sorted(self.counts.items())
            if count
        ]
        receipt = f" Receipt: {self.id}." if self.id else ""
        return (
            f"Forgotten for good: {', '.join(parts)}.{receipt}"
            if parts
            else "Nothing was erased: there was nothing to forget."
        )

    def joined(self, other: "Receipt") -> "Receipt":
        """This receipt, with the changed conversations of another one."""
        return replace(self, conversations=self.conversations | other.conversations)

    def plus(self, other: "Receipt") -> "Receipt":
        """The receipt of two erasures, with the id of the first."""
        counts = Counter(self.counts)
        counts.update(other.counts)
        return Receipt(
            dict(counts),
            self.conversations | other.conversations,
            self.erased | other.erased,
            self.id,
            self.owners | other.owners,
        )


NOTHING: Final = Receipt()


async def record(tx: Transaction, receipt: Receipt, key: bytes, now: datetime, *, before: Receipt = NOTHING) -> Receipt:
    """Store a receipt without anything of what was erased: its counts, and digests of the ids under `key`, which is
    random and its own. `before`: what of it is stored already, since it was erased earlier.

    Returns it with its id; unchanged if nothing was erased.
    """
    if not receipt.erased:
        return receipt
    id = blake2b(key, digest_size=RECEIPT_ID_BYTES).hexdigest()
    digests = sorted(receipt_digest(key, erased) for erased in receipt.erased - before.erased)
    await tx.erasure.store_receipt(id, key, receipt.counts, digests, now)
    if not before.id:
        await tx.audit.record(AuditAct.ERASURE_RECEIPT, details={"receipt": id})
    return replace(receipt, id=id)


async def forget(
    tx: Transaction,
    messages: Sequence[uuid.UUID],
    items: Sequence[ItemRef],
    now: datetime,
    conversation: uuid.UUID | None = None,
    *,
    posts_stay: Collection[uuid.UUID] = (),
    by_age: bool = False,
    names: Collection[str] = (),
    kept: Collection[uuid.UUID] = (),
    again: bool = False,
    answers_stay: bool = False,
) -> Receipt:
    """Erase messages and other items, and everything that was made from them.

    `conversation` is where the request was made. Retracted answers are also changed where they were posted, but for
    those in the conversations `posts_stay`. `by_age`: nobody asked for it. Then nothing posted is changed, landmarks
    that a person confirmed outlive their source, and an answer is not retracted only because its prompt had something
    that was made from it. `names` are erased with the messages of their people: answers that had these in their
    prompts, and say the name, are retracted. `kept` are items made from the erased ones that stay. `again`:
    the messages are stored if they come once more; else never. `answers_stay`: no answer is retracted. The receipt
    counts only answers and prompts of that conversation and of those of the messages: it must not reveal how often
    others asked elsewhere.
    """
    tx.require_alone()  # what is being made of it is stored before, and found, or finds it gone
    reach = await find_reach(
        tx, messages, items, conversation, by_age=by_age, names=names, kept=kept, answers_stay=answers_stay
    )
    affected = reach.found
    if not by_age:
        await _queue_retractions(tx, affected, messages, posts_stay)
    await _replace_replies(tx, affected)
    emptied = await tx.erasure.clear_prompts(affected.turns, messages)
    await tx.memories.reindex_sources(reach.reread(affected), messages)
    counts, conversations = await tx.erasure.erase(messages, _by_kind([*items, *affected.items]), now, again=again)
    retracted = [reply.conversation_id for reply in affected.replies]
    await tx.conversations.bump_versions(sorted(conversations | set(retracted)))
    asked_in = {conversation} if conversation is not None else set()
    await tx.conversations.clear_unused_names(sorted(conversations | asked_in), RETRACTED)
    counts[PENDING_KIND] = reach.pending
    receipt = _receipt(counts, conversations | set(retracted), reach.counted_in, emptied, _newly_retracted(affected))
    if any(receipt.counts.values()):
        await tx.audit.record(AuditAct.ERASED, conversation=conversation, details=receipt.counts)
    item_ids, episodes = [id for _, id in items], [episode_id_of(message) for message in messages]
    return replace(receipt, erased=frozenset((*messages, *episodes, *item_ids)))


@dataclass(frozen=True, slots=True)
class Reach:
    """What `forget` erases and retracts besides what it was given. Its receipt counts answers and prompts of the
    conversations `counted_in`, and so many `pending` items. `unread` are memories of which nothing is read again: it
    would come back in another wording."""

    found: Affected
    counted_in: frozenset[uuid.UUID]
    pending: int
    unread: frozenset[uuid.UUID]

    def reread(self, part: Affected) -> list[uuid.UUID]:
        """The memories of a part of it whose other sources are read again."""
        return [id for id in _ids(part.items, "memory") if id not in self.unread]


async def find_reach(
    tx: Transaction,
    messages: Sequence[uuid.UUID],
    items: Sequence[ItemRef],
    conversation: uuid.UUID | None,
    *,
    by_age: bool = False,
    names: Collection[str] = (),
    kept: Collection[uuid.UUID] = (),
    answers_stay: bool = False,
) -> Reach:
    """Look for what `forget` would erase besides. Changes nothing."""
    item_ids = [id for _, id in items]
    texts = await tx.erasure.texts([*messages, *item_ids])
    request = ErasureRequest(
        messages=messages,
        items=items,
        words=await in_thread(words_of, *names, *(part for text in texts for part in text.parts)),
        questions=messages,
        derived=not by_age,
        kept=await tx.landmarks.find_confirmed() if by_age else kept,
        names=await in_thread(words_of, *names),
        answers=not answers_stay,
    )
    found = await find_affected(tx, request)
    # What waits in quarantine exists for nobody but its author and who may approve it: only what was named is counted.
    named = {id for kind, id in items if kind == PENDING_KIND}
    return Reach(
        found,
        frozenset(id for id in (conversation, *(text.conversation_id for text in texts)) if id is not None),
        sum(each.id in named and any(each.parts) for each in texts),
        frozenset((*item_ids, *await tx.memories.find_merged(item_ids))),
    )


async def erase_reached(
    tx: Transaction,
    reach: Reach,
    part: Affected,
    messages: Sequence[uuid.UUID],
    now: datetime,
    posts_stay: Collection[uuid.UUID] = (),
) -> Receipt:
    """Erase and retract a part of what `find_reach` has found. Nothing is made again from the `messages`, which are
    erased after it."""
    tx.require_alone()
    await _queue_retractions(tx, part, (), posts_stay)
    await _replace_replies(tx, part)
    emptied = await tx.erasure.clear_prompts(part.turns, ())
    await tx.memories.reindex_sources(reach.reread(part), messages)
    counts, _ = await tx.erasure.erase([], _by_kind(part.items), now)
    counts.pop(PENDING_KIND, None)
    retracted = {reply.conversation_id for reply in part.replies}
    await tx.conversations.bump_versions(sorted(retracted))
    return _receipt(counts, retracted, reach.counted_in, emptied, _newly_retracted(part))


async def edit(
    tx: Transaction,
    message: Message,
    text: str,
    mentions: Sequence[uuid.UUID],
    attached: Sequence[Attachment],
    now: datetime,
) -> Receipt:
    """Replace a message's text and attachments. What was made from the old text is erased, and made again from the
    new one.

    Answers that repeat what the message no longer says are retracted. Those that are made of it are retracted, in
    whatever words, when most of its words changed or an image was removed.
    """
    id, episode = message.id, episode_id_of(message.id)
    tx.require_alone()
    before = await tx.erasure.texts([id])
    old = await in_thread(words_of, *(part for each in before for part in each.parts))
    new = await in_thread(words_of, text, *(f"{a.name} {a.text}" for a in attached))
    image_removed = any(a.is_image and a not in attached for a in message.attachments)
    replaced = image_removed or len(old - new) > len(old) * REPLACED_SHARE
    kept = [] if replaced else await _keep_decided(tx, message, text, old - new)
    request = ErasureRequest([id], [], old - new, recalled=replaced, derived=replaced, kept=kept, remaining=new)
    affected = await find_affected(tx, request)
    counts, emptied = await _erase_derived(tx, affected, [id], now)
    await tx.recall.remove([episode])
    await tx.messages.edit(id, text, mentions, attached, now)
    own = {each.conversation_id for each in before if each.conversation_id is not None}
    retracted = [reply.conversation_id for reply in affected.replies]
    await tx.conversations.bump_versions(sorted(own | set(retracted)))
    receipt = _receipt(counts, own | set(retracted), own, emptied, _newly_retracted(affected))
    return replace(receipt, erased=frozenset((id, episode)) if replaced else frozenset())


async def reword(tx: Transaction, item: ItemRef, before: Sequence[str], after: Sequence[str], now: datetime) -> Receipt:
    """Erase what was made from the words that an item has no more: `before` and `after` are its texts. Call it before
    the item changes, in a transaction that is alone.

    Answers that repeat such words are retracted; those that are made of the item in whatever words, when most of
    it changed.
    """
    tx.require_alone()
    old, new = await in_thread(words_of, *before), await in_thread(words_of, *after)
    if not old - new:
        return Receipt()
    if not await tx.erasure.derived_items([item[1]]):
        return Receipt()  # nothing was made from it, and no prompt had it
    replaced = len(old - new) > len(old) * REPLACED_SHARE
    request = ErasureRequest([], [item], old - new, recalled=replaced, derived=replaced, remaining=new)
    affected = await find_affected(tx, request)
    counts, _ = await _erase_derived(tx, affected, [], now)
    retracted = {reply.conversation_id for reply in affected.replies}
    await tx.conversations.bump_versions(sorted(retracted))
    return _receipt(counts, retracted, (), [], [])


async def _erase_derived(
    tx: Transaction, affected: Affected, edited: Sequence[uuid.UUID], now: datetime
) -> tuple[dict[str, int], list[uuid.UUID]]:
    """Erase what was made from words that are gone, while the `edited` messages stay. Returns the counts, and the
    conversations of the prompts that were emptied."""
    await _queue_retractions(tx, affected)
    await _replace_replies(tx, affected)
    emptied = await tx.erasure.clear_prompts(affected.turns, edited)
    await tx.memories.reindex_sources(_ids(affected.items, "memory"), edited)
    counts, _ = await tx.erasure.erase([], _by_kind(affected.items), now)
    counts.pop(PENDING_KIND, None)
    return counts, emptied


async def _keep_decided(tx: Transaction, message: Message, text: str, lost: frozenset[str]) -> list[uuid.UUID]:
    """Prepare a small edit for what people have decided about: correct the spelling of settled landmarks, which then
    stand (composer/memory/affected.py). Returns the memories that stay where their owner has filed them: those that
    repeat none of the `lost` words."""
    for _, id, found in await tx.landmarks.find_settled([message.id]):
        if (spelt := correct_spelling(found, message.text, text)) != found:
            await tx.landmarks.correct(id, spelt)
    moved = await tx.memories.find_moved(message.id)
    return [id for id, found in moved.items() if lost.isdisjoint(await in_thread(words_of, found))]


async def _queue_retractions(
    tx: Transaction,
    affected: Affected,
    messages: Sequence[uuid.UUID] = (),
    posts_stay: Collection[uuid.UUID] = (),
) -> None:
    """Queue what was posted of affected answers, of the answers to `messages`, and of these themselves."""
    replies = [*(reply.id for reply in affected.replies), *messages]
    if replies:
        await tx.deliveries.queue_retractions(replies, messages, excluded_conversations=posts_stay)


async def _replace_replies(tx: Transaction, affected: Affected) -> None:
    await tx.erasure.replace_replies([reply.id for reply in affected.replies], RETRACTED)


def _newly_retracted(affected: Affected) -> list[uuid.UUID]:
    """The conversations of the answers that are retracted now. One that an earlier erasure retracted keeps its lineage,
    so it is found again by the next batch; it is not counted again."""
    return [reply.conversation_id for reply in affected.replies if reply.text != RETRACTED]


def _receipt(
    counts: dict[str, int],
    conversations: set[uuid.UUID],
    counted_in: Collection[uuid.UUID],
    emptied: Sequence[uuid.UUID],
    retracted: Sequence[uuid.UUID],
) -> Receipt:
    counts.pop("compaction", None)  # their number would reveal how many messages followed
    counts |= {"prompt": _count_in(counted_in, emptied), "reply": _count_in(counted_in, retracted)}
    return Receipt(counts, frozenset(conversations))


def _count_in(counted: Collection[uuid.UUID], conversations: Sequence[uuid.UUID]) -> int:
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
