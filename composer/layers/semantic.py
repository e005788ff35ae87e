"""The semantic layer: the episodes, memories and summaries that match a question, by meaning and by words."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from composer.layers.ranking import rank, sources_of, without_duplicates
from composer.model import Item, Message
from composer.ports.clock import EARLIEST
from composer.ports.models import Vectors
from composer.repositories.recall import Recall, episode_id_of
from composer.visibility import Readable

MAX_CANDIDATES: Final = 60  # by meaning, and as many by words; ranking chooses from them


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How recall works for a tenant. `strategy` is hybrid, semantic or recent; `recall_tokens` limits RECALL.

    What is older than `retention_days` is not recalled (0: no limit).
    """

    strategy: str = "hybrid"
    top_k: int = 12
    recall_tokens: int = 2000
    retention_days: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """What to search for. `vector` is None when the embedder does not answer: then words alone count."""

    text: str
    vector: Vectors | None
    terms: Sequence[str]


async def read(
    recall: Recall, readable: Readable, query: Query, shown: Sequence[Message], retrieval: Retrieval, now: datetime
) -> list[Item]:
    """The best `top_k` items, best first, without what the prompt shows already. Each is checked again in code."""
    excluded = [episode_id(message) for message in shown]
    terms = [] if retrieval.strategy == "semantic" else query.terms
    since = now - timedelta(days=retrieval.retention_days) if retrieval.retention_days else EARLIEST
    found = await recall.search(readable, query.vector, terms, MAX_CANDIDATES, excluded, now, since)
    allowed = [candidate for candidate in found if readable.admits(candidate.item)]
    seen = {(message.namespace, message.external_id) for message in shown}
    ranked = without_duplicates(rank(allowed, query.text, now, retrieval.strategy))
    new = (item for item in ranked if not item.messages or not seen.issuperset(sources_of(item)))
    return list(islice(new, retrieval.top_k))  # lazily: no more items are compared than are needed


def episode_id(message: Message) -> uuid.UUID:
    """The id of a message's episode: the message as it is indexed for recall."""
    return episode_id_of(message.id)
