"""The short messages around what was recalled: "yes, on Tuesday" tells something only beside "do we ship this week?".

A short message shares few words and little meaning with any question, so a search does not find it. Where what is asked
was talked about for a while, the messages around a hit are as often about it as the hit itself, and take less room.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from composer.layers.ranking import asks_agent, sources_of, without_duplicates
from composer.layers.semantic import Retrieval, SearchQuery, Shown
from composer.model import Item
from composer.ports.clock import EARLIEST
from composer.repositories.recall import Recall
from composer.visibility import Readable

FIRST: Final = 10  # items that the short messages come behind
HITS: Final = 6  # messages whose surroundings are read, the best ones
EACH_SIDE: Final = 6  # messages before and after each of them that are looked at
MAX_SHORT_BYTES: Final = 80  # in UTF-8
SAME_TALK: Final = timedelta(hours=1)


async def read(
    recall: Recall,
    readable: Readable,
    query: SearchQuery,
    items: Sequence[Item],
    shown: Shown,
    retrieval: Retrieval,
    now: datetime,
) -> list[Item]:
    """The items, best first, and behind the first of them the short messages of the same talk, those around the best
    first, of the time that is asked for, without what the prompt shows already or agents were asked. They count beside
    the limit of items; where that is no more than FIRST, or the newest items are wanted, there are none. Each is
    checked again in code.
    """
    if retrieval.top_k <= FIRST or retrieval.strategy == "recent":
        return list(items)
    first = items[:FIRST]
    hits = [item for item in first if item.kind == "episode" and item.score is not None][:HITS]
    if not hits:
        return list(items)
    since = now - timedelta(days=retrieval.retention_days) if retrieval.retention_days else EARLIEST
    around = [uuid.UUID(hit.id) for hit in hits]
    near = await recall.around(readable, around, EACH_SIDE, since, now, MAX_SHORT_BYTES, SAME_TALK)
    known = {(message.namespace, message.external_id) for message in shown.messages}
    known.update(source for item in first for source in sources_of(item))
    agents = (*query.agents, *query.all_agents)
    periods = query.times.periods(query.text, now)
    found: list[Item] = []
    for hit in hits:
        for item in near.get(uuid.UUID(hit.id), ()):
            new = known.isdisjoint(sources_of(item)) and not asks_agent(item, agents)
            in_time = not periods or any(start <= item.at < end for start, end in periods)
            if new and in_time and readable.admits(item):
                known.update(sources_of(item))
                found.append(item)
    if not found:
        return list(items)
    near_ids = {item.id for item in found}
    distinct = without_duplicates([*first, *found], query.text, agents)
    short = [item for item in distinct if item.id in near_ids]
    ids = {item.id for item in short}
    return [*first, *short, *(item for item in items[FIRST:] if item.id not in ids)]
