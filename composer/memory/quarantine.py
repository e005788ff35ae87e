"""Quarantine: what the untrusted write, or cause to be extracted, waits until somebody approves it; and what may not be
its author's own, by where it stands in a message, until they do.

A waiting item is in a table of its own. It is neither recalled nor shown to the extractor, and it changes no count, no
score, no merging and no deduplication: for everybody but who may approve it, it does not exist.
"""

from collections.abc import Collection, Sequence
from typing import Final

from composer.memory.rules import is_worth_storing
from composer.model import Trust
from composer.repositories.database import Transaction
from composer.repositories.memories import NewMemory
from composer.repositories.quarantine import PendingItem, QuarantineState
from composer.text.masking import mask

UNTRUSTED: Final = frozenset({Trust.GUEST, Trust.TOOL})  # whose writes wait, unless nexus.toml says otherwise


async def admitted(tx: Transaction, memories: Sequence[NewMemory], quarantined: Collection[Trust]) -> list[NewMemory]:
    """Those of the extracted memories that may be stored now. The others are put in quarantine, unless they were
    rejected."""
    states = await tx.quarantine.states([memory.id for memory in memories])
    held = [each for each in memories if (each.trust in quarantined or each.waits) and each.id not in states]
    if held:
        known = await tx.memories.find_known_ids([memory.id for memory in held])
        held = [memory for memory in held if memory.id not in known]
        worth = [memory for memory in held if is_worth_storing(memory.kind, memory.text)]
        await tx.quarantine.add([pending_memory(memory) for memory in worth])
    waiting = {memory.id for memory in held}
    return [
        memory
        for memory in memories
        if memory.id not in waiting and states.get(memory.id, QuarantineState.APPROVED) is QuarantineState.APPROVED
    ]


def pending_memory(memory: NewMemory) -> PendingItem:
    """A memory as it waits for approval."""
    return PendingItem(
        kind="memory",
        item_id=memory.id,
        tag=memory.tag,
        trust=memory.trust,
        detail=memory.kind,
        text=mask(memory.text),
        author=memory.author,
        origin=memory.origin,
        at=memory.at,
        sources=memory.sources,
        shown=memory.shown,
    )
