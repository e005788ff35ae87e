"""The semantic layer: episodes, memories and summaries near to a question, by meaning and by words."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from composer.layers.ranking import distinct, rank, sources_of
from composer.model import Item, Message
from composer.ports.clock import EARLIEST
from composer.ports.models import Vectors
from composer.repositories.recall import Recall, episode_id_of
from composer.visibility import Readable

CANDIDATES: Final = 60  # by each way; ranking chooses among them


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How recall is done for a tenant. `strategy` is hybrid, semantic or recent; tokens bound the RECALL section; what
    is older than `retention_days` is not recalled (0: all is)."""

    strategy: str = "hybrid"
    top_k: int = 12
    recall_tokens: int = 2000
    retention_days: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """A question as it is searched for. `vector` is None when the embedder does not answer."""

    text: str
    vector: Vectors | None
    terms: Sequence[str]


async def read(
    recall: Recall, readable: Readable, query: Query, shown: Sequence[Message], retrieval: Retrieval, now: datetime
) -> list[Item]:
    """The best `top_k`, best first, without what the prompt shows already; each checked again."""
    leave_out = [episode_id(message) for message in shown]
    terms = [] if retrieval.strategy == "semantic" else query.terms
    since = now - timedelta(days=retrieval.retention_days) if retrieval.retention_days else EARLIEST
    found = await recall.search(readable, query.vector, terms, CANDIDATES, leave_out, now, since)
    allowed = [candidate for candidate in found if readable.admits(candidate.item)]
    seen = {(message.namespace, message.external_id) for message in shown}
    ranked = distinct(rank(allowed, query.text, now, retrieval.strategy))
    new = (item for item in ranked if not item.messages or not seen.issuperset(sources_of(item)))
    return list(islice(new, retrieval.top_k))  # no more are compared than are wanted


def episode_id(message: Message) -> uuid.UUID:
    """The id of the episode that a message is indexed as."""
    return episode_id_of(message.id)
