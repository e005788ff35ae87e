"""The ledger of model calls, added up by day: what was used by whom, where, for what and of which model."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from composer.model import ConversationKind
from composer.ports.database import Row, Statements
from composer.ports.models import WorkKind
from composer.repositories.people import NAMELESS
from composer.visibility import Owned, may_enter_room

NO_ONE_ID: Final = uuid.UUID(int=0)  # stands for no conversation, no agent and nobody in the ledger
INSTALLATION: Final = uuid.UUID(int=0)  # the tenant of what is done for no tenant: the probes of nexus doctor

# How often the people of a call were erased from the ledger. None: they may not be named, since one of them has opted
# out or had everything erased.
ErasureCount = int | None
NOT_ERASED: Final[ErasureCount] = 0


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens, of prompts and completions together, and what they cost as far as their price is known."""

    tokens: int = 0
    money: Decimal = Decimal(0)

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.money + other.money)


@dataclass(frozen=True, slots=True)
class LedgerKey:
    """What the ledger adds up by. Ids are None where there is none."""

    day: date
    kind: WorkKind
    agent_id: uuid.UUID | None
    conversation_id: uuid.UUID | None
    user_id: uuid.UUID | None
    model: str


@dataclass(frozen=True, slots=True)
class Figures:
    """What calls used. `refused` ones were never sent, because of a budget; of `estimated` ones we counted the tokens,
    since the API reported none; `unpriced_tokens` are of models without a price, and not in `cost`."""

    calls: int = 0
    failures: int = 0
    refused: int = 0
    estimated: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    unpriced_tokens: int = 0
    cost: Decimal = Decimal(0)

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(*(getattr(self, name) + getattr(other, name) for name in _FIGURES))


_FIGURES: Final = tuple(Figures.__slots__)


@dataclass(frozen=True, slots=True)
class Spent:
    """What one agent (its slug; "" for none) has used for one kind of work: today, or earlier in the month."""

    today: bool
    kind: WorkKind
    agent: str
    amount: Amount
    refused: int = 0


class Dimension(StrEnum):
    """What usage is shown by."""

    DAY = "day"
    AGENT = "agent"
    ROOM = "room"
    PERSON = "person"
    KIND = "kind"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The figures of one day, agent, room, person, kind or model. `key` is its id or name; "" and the id of zeros stand
    for none. `name` is that of a person, or of a room that the viewer may know of; `place` is a room's kind."""

    key: str
    name: str | None
    place: ConversationKind | None
    figures: Figures


@dataclass(frozen=True, slots=True)
class MonthOfModels:
    """The figures of one kind of work in a month (its first day)."""

    month: date
    kind: WorkKind
    figures: Figures


class UsageLedger:
    """Adds calls to the ledger and adds them up. It holds names of people and rooms only by their ids."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def erasure_count(self, user: uuid.UUID | None, conversation: uuid.UUID | None) -> ErasureCount:
        """The erasure count of the people of a call that begins now: who asks, and whose DM or session it is in."""
        found: ErasureCount = await self._sql.fetch_value(
            "usage_erasure_count", user_id=user, conversation_id=conversation, blank=NAMELESS
        )
        return found

    async def add(self, key: LedgerKey, figures: Figures, begun: ErasureCount) -> None:
        """Add calls. `begun` is the erasure count of their people when the first call began. People who have opted out,
        or were erased from the ledger since then, are not named; neither is their DM or session."""
        await self._sql.execute(
            "usage_add",
            day=key.day,
            kind=key.kind.value,
            agent_id=key.agent_id or NO_ONE_ID,
            conversation_id=key.conversation_id or NO_ONE_ID,
            user_id=key.user_id,
            model=key.model,
            begun=begun,
            blank=NAMELESS,
            nobody=NO_ONE_ID,
            **{name: getattr(figures, name) for name in _FIGURES},
        )

    async def spent(self, today: date, running_at: datetime | None = None) -> list[Spent]:
        """What was used today, and earlier in this month; with `running_at` also what calls that run then may use, as
        today's."""
        rows = await self._sql.fetch("usage_spent", today=today, since=today.replace(day=1), running_at=running_at)
        return [
            Spent(row["today"], WorkKind(row["kind"]), row["agent"], Amount(row["tokens"], row["cost"]), row["refused"])
            for row in rows
        ]

    async def reserve(self, id: uuid.UUID, wanted: Spent, now: datetime, expires_at: datetime) -> None:
        """Count an amount as used until it is released, or expires. What has expired is deleted."""
        await self._sql.execute(
            "usage_reserve",
            id=id,
            kind=wanted.kind.value,
            agent=wanted.agent,
            tokens=wanted.amount.tokens,
            cost=wanted.amount.money,
            now=now,
            expires_at=expires_at,
        )

    async def release(self, id: uuid.UUID) -> None:
        """End a reservation, if there is one."""
        await self._sql.execute("usage_release", id=id)

    async def of_everyone(
        self, by: Dimension, since: date, until: date, joined: Collection[uuid.UUID]
    ) -> list[UsageRow]:
        """The figures of everyone. Of private rooms those are named that the viewer is in now (`joined`)."""
        return await self._report(by, since, until, None, joined)

    async def of_owner(
        self, by: Dimension, since: date, until: date, owned: Owned, joined: Collection[uuid.UUID]
    ) -> list[UsageRow]:
        """A person's own figures: of the answers to them, and of what else is recorded in their name. Of private rooms
        those are named that they are in now (`joined`)."""
        return await self._report(by, since, until, list(owned.users), joined)

    async def _report(
        self, by: Dimension, since: date, until: date, users: list[uuid.UUID] | None, joined: Collection[uuid.UUID]
    ) -> list[UsageRow]:
        rows = await self._sql.fetch(
            "usage_report", by=by.value, since=since, until=until, user_ids=users, joined_ids=list(joined)
        )
        return [_row(row) for row in rows]

    async def cut(self, before: date, month: date) -> int:
        """Delete the figures of the days before one, of calls and (by months) of operations, and the notices of quotas
        of the months before `month`; returns how many figures went."""
        return int(await self._sql.fetch_value("figures_cut", before=before, month=month))

    async def blank(self, users: Sequence[uuid.UUID], since: date | None = None, until: date | None = None) -> None:
        """Take people, with their DMs and sessions, out of the ledger, on these days; the figures remain. Calls that
        are running will not name them either."""
        await self._sql.execute("usage_note_erasure", user_ids=list(users))
        await self._sql.execute("usage_blank", user_ids=list(users), since=since, until=until)

    async def by_month(self, since: date, owned: Owned | None) -> list[MonthOfModels]:
        """The figures of each month since one, by kind of work, the latest first: of everyone, or a person's own."""
        users = None if owned is None else list(owned.users)
        rows = await self._sql.fetch(
            "usage_report", by="month", since=since, until=date.max, user_ids=users, joined_ids=[]
        )
        found = [(date.fromisoformat(row["key"]), row["name"], row) for row in rows]
        return [
            MonthOfModels(month, WorkKind(kind), Figures(*(row[name] for name in _FIGURES)))
            for month, kind, row in sorted(found, key=lambda each: (-each[0].toordinal(), each[1]))
        ]


def _row(row: Row) -> UsageRow:
    place = None if row["place"] is None else ConversationKind(row["place"])
    known = place is not ConversationKind.ROOM or may_enter_room(private=row["private"], joined=row["joined"])
    figures = Figures(*(row[name] for name in _FIGURES))
    return UsageRow(row["key"], row["name"] if known else None, place, figures)
