"""The episodic layer: the latest summaries of a conversation, some of each tier, and the compaction of its view; read
in one round trip with everything else that a turn needs before it searches."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from composer.model import Conversation, Message
from composer.repositories.recall import Background, Recall
from composer.visibility import Readable

# By tier. The semantic layer finds older summaries, and those of other namespaces, by meaning.
MAX_SUMMARIES: Final[Mapping[str, int]] = {"week": 4, "day": 7, "session": 2, "thread": 2}


async def read(
    recall: Recall,
    own: Readable,
    conversation: Conversation,
    agent: uuid.UUID,
    before: Message,
    people: Sequence[uuid.UUID],
) -> Background:
    """The background of a conversation as it was before a message; summaries and compaction are checked again.

    `own` reads the conversation's own namespace and nothing else.
    """
    found = await recall.background(own, conversation, agent, before, MAX_SUMMARIES, people)
    compaction = found.compaction if found.compaction is not None and own.admits(found.compaction) else None
    return replace(found, compaction=compaction, summaries=[item for item in found.summaries if own.admits(item)])
