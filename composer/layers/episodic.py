"""The episodic layer: the latest summaries of this conversation's run, so many of each tier, and the compaction of its
view; read together with what else a turn knows before it recalls anything."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from composer.model import Conversation, Message
from composer.repositories.recall import Background, Recall
from composer.visibility import Readable

# Older ones and those of other runs are found by their meaning, in the semantic layer.
LATEST: Final[Mapping[str, int]] = {"week": 4, "day": 7, "session": 2, "thread": 2}


async def read(
    recall: Recall,
    own: Readable,
    conversation: Conversation,
    agent: uuid.UUID,
    before: Message,
    people: Sequence[uuid.UUID],
) -> Background:
    """As it was before a message; each checked again. `own` reads the conversation's own run and nothing else."""
    found = await recall.background(own, conversation, agent, before, LATEST, people)
    standing = found.compaction if found.compaction is not None and own.admits(found.compaction) else None
    return replace(found, compaction=standing, summaries=[item for item in found.summaries if own.admits(item)])
