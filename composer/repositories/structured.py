"""Facts and landmarks together, as a prompt shows them."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.ports.database import Statements
from composer.repositories.facts import Fact, fact_from_row
from composer.repositories.landmarks import MAX_PROPOSED, PROPOSAL_LIFETIME, Landmark, landmark_from_row
from composer.repositories.readable import readable_parameters
from composer.visibility import Readable

# The columns of the statements, in their order: a row within a list has no names for them.
_FACT_COLUMNS: Final = (
    *("id", "namespace", "visibility", "user_id", "key", "value", "author", "valid_from", "valid_to", "subject"),
)
_LANDMARK_COLUMNS: Final = (
    *("id", "namespace", "visibility", "user_id", "text", "author", "decided_at", "state", "settled_by", "replaces"),
    *("lapsed", "messages"),
)


@dataclass(frozen=True, slots=True)
class StructuredRows:
    """Facts by key, landmarks oldest first, and names by user id."""

    facts: Sequence[Fact]
    landmarks: Sequence[Landmark]
    names: Mapping[uuid.UUID, str]


class Structured:
    """Stored facts and landmarks."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def read(self, readable: Readable, at: datetime, people: Sequence[uuid.UUID]) -> StructuredRows:
        """The facts valid at a time and the landmarks decided by then, with the names of `people`."""
        row = await self._sql.fetch_one(
            "structured_readable",
            **readable_parameters(readable.without_pool()),
            at=at,
            key=None,
            retired=False,
            max_proposed=MAX_PROPOSED,
            lifetime=PROPOSAL_LIFETIME,
            ids=list(people),
        )
        if row is None:
            return StructuredRows((), (), {})
        return StructuredRows(
            [fact_from_row(dict(zip(_FACT_COLUMNS, fact, strict=True))) for fact in row["facts"]],
            [landmark_from_row(dict(zip(_LANDMARK_COLUMNS, landmark, strict=True))) for landmark in row["landmarks"]],
            dict(row["names"]),
        )
