"""The episodic layer: the latest summaries of this conversation's run, so many of each tier."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from composer.model import Item
from composer.ports import Recall
from composer.visibility import Readable

# Older ones and those of other runs are found by their meaning, in the semantic layer.
LATEST: Final[Mapping[str, int]] = {"week": 4, "day": 7, "session": 2, "thread": 2}


async def read(recall: Recall, own: Readable, at: datetime) -> list[Item]:
    """Summaries as of a time, oldest first. `own` reads the conversation's own run and nothing else."""
    return [item for item in await recall.summaries(own, LATEST, at) if own.admits(item)]
