"""Facts: typed values by scope and key, with their history."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from composer.model import Trust, Visibility
from composer.ports.database import Row, Statements
from composer.repositories.readable import readable_parameters
from composer.visibility import AccessTag, Readable


@dataclass(frozen=True, slots=True)
class Fact:
    """A typed value. `value` is JSON text; `valid_to` None means that it is current; `subject` is the name of the
    person that it is about ("" when it is about a place); `set_at` is when its author set it, where it holds from a
    later time on (None: it does not)."""

    id: uuid.UUID
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    key: str
    value: str
    author: str
    valid_from: datetime
    valid_to: datetime | None = None
    subject: str = ""
    trust: Trust = Trust.MEMBER
    set_at: datetime | None = None

    @property
    def vendors(self) -> tuple[str, ...]:
        """Facts are not restricted by vendor."""
        return ("*",)


class Facts:
    """Stored facts."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def find(self, readable: Readable, at: datetime, key: str | None = None) -> list[Fact]:
        """The facts that were valid at a time, of one key or of all."""
        rows = await self._sql.fetch("facts_readable", **readable_parameters(readable.without_pool()), key=key, at=at)
        return [fact_from_row(row) for row in rows]

    async def history(self, readable: Readable, key: str) -> list[Fact]:
        """Every value that a key has had, oldest first."""
        rows = await self._sql.fetch("facts_readable", **readable_parameters(readable.without_pool()), key=key, at=None)
        return [fact_from_row(row) for row in rows]

    async def is_set(self, tag: AccessTag, key: str) -> bool:
        """Whether a key has a value where something with this tag is filed."""
        row = await self._sql.fetch_one("fact_is_set", namespace=tag.namespace, visibility=str(tag.visibility), key=key)
        return row is not None

    async def add(self, id: uuid.UUID, tag: AccessTag, agent: uuid.UUID | None, fact: Fact, origin: str) -> None:
        """Store a value that is valid from `fact.valid_from` on. The previous value of its key ends then."""
        filed = {"namespace": tag.namespace, "visibility": str(tag.visibility), "key": fact.key}
        while True:
            closed = await self._sql.fetch_one("fact_close", id=id, **filed, now=fact.valid_from, moved=False)
            stored = await self._sql.fetch_value(
                "fact_insert",
                id=id,
                **filed,
                user_id=tag.user_id,
                agent_id=agent,
                value=fact.value,
                author=fact.author,
                origin=origin,
                trust=str(fact.trust),
                set_at=fact.set_at or fact.valid_from,
                valid_from=fact.valid_from if closed is None else max(fact.valid_from, closed["valid_to"]),
            )
            if stored:
                return  # else another transaction has set the key meanwhile: its value ends, too


def fact_from_row(row: Row) -> Fact:
    """A fact as `facts_readable` returns it."""
    return Fact(
        row["id"],
        row["namespace"],
        Visibility(row["visibility"]),
        row["user_id"],
        row["key"],
        row["value"],
        row["author"],
        row["valid_from"],
        row["valid_to"],
        row["subject"] or "",
    )
