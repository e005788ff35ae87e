"""Figures of a whole tenant, for its admins: who its people are, and how much there is. Never what anything says."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final

from composer.ports.database import Statements
from composer.repositories.people import NAMELESS

FIGURES: Final = (
    "people",
    "admins",
    "keys_of_people",
    "keys_of_tools",
    "web_sessions",
    "teams",
    "projects",
    "rooms",
    "dms_and_sessions",
    "messages",
    "answers_good",
    "answers_bad",
    "memories",
    "in_trash",
    "facts",
    "pending",
)


@dataclass(frozen=True, slots=True)
class TenantPerson:
    """A user, with figures of what is theirs: valid keys, entries, and operations over the API since a month. `person`:
    the same for all users that are one person; None where nothing is linked."""

    id: uuid.UUID
    name: str
    admin: bool
    opted_out: bool
    disabled: bool
    person: uuid.UUID | None
    created_at: datetime
    platforms: tuple[str, ...]
    keys: int
    entries: int
    operations: int
    last_used_at: datetime | None


class TenantPlaceKind(StrEnum):
    """What people are members of."""

    PROJECT = "project"
    TEAM = "team"


@dataclass(frozen=True, slots=True)
class TenantPlace:
    """A project or a team, with how many people and rooms are in it, and one user and the name of each person who is
    its admin. `name`: None where it is not told."""

    kind: TenantPlaceKind
    id: uuid.UUID
    name: str | None
    isolated: bool
    created_at: datetime
    members: int
    rooms: int
    admin_ids: tuple[uuid.UUID, ...]
    admin_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TenantDay:
    """What happened in a tenant on a day, of which `day` is the place among those asked for. `failures`: answers that
    failed, beside `answers`. `half_seconds`, `most_seconds`: what half of the answers, and 95 of 100, took at most from
    the question on (None: there were none). `messages` of people, and memories that were `learnt` from them."""

    day: int
    answers: int
    failures: int
    half_seconds: float | None
    most_seconds: float | None
    messages: int
    learnt: int


@dataclass(frozen=True, slots=True)
class TenantWaiting:
    """Questions that are not answered yet, and when the oldest of them came."""

    questions: int
    since: datetime | None


class TenantFigures:
    """Counts over a whole tenant. Whoever asks must be an admin of it."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def people(
        self,
        month: date,
        now: datetime,
        limit: int,
        after: tuple[datetime, uuid.UUID] | None,
        *,
        most: int | None = None,
    ) -> list[TenantPerson]:
        """Some of the tenant's people who are named, in the order in which they became known, `after` one of them. Of
        the entries of each at most so many (`most`, None: all) are counted."""
        return await self._sql.fetch_as(
            TenantPerson,
            "tenant_people",
            month=month,
            now=now,
            limit=limit,
            most=most,
            after=None if after is None else after[0],
            after_id=None if after is None else after[1],
            nameless=NAMELESS,
        )

    async def counts(self, now: datetime, names: Collection[str] = FIGURES) -> Mapping[str, int]:
        """How much there is of what, by these names of FIGURES: no other is counted."""
        rows = await self._sql.fetch("tenant_figures", now=now, nameless=NAMELESS, names=list(names))
        return {row["name"]: row["count"] for row in rows}

    async def days(self, starts: Sequence[datetime]) -> list[TenantDay]:
        """What happened on each day, of which `starts` has when each begins, and when the last one ends."""
        return await self._sql.fetch_as(
            TenantDay, "tenant_days", starts=list(starts), since=starts[0], until=starts[-1]
        )

    async def waiting(self) -> TenantWaiting:
        """The questions that wait for their answers."""
        (found,) = await self._sql.fetch_as(TenantWaiting, "tenant_waiting")
        return found

    async def places(
        self,
        teams: Collection[uuid.UUID],
        limit: int,
        after: tuple[datetime, uuid.UUID] | None = None,
        *,
        kind: TenantPlaceKind | None = None,
        words: str | None = None,
        orphaned: bool = False,
        id: uuid.UUID | None = None,
    ) -> list[TenantPlace]:
        """Some projects and teams of the tenant, the newest first, `after` one of them. Of teams that have an admin the
        names of these alone (`teams`) are told. `words`, in lower case, are searched for in names that are told and in
        those of admins; `orphaned`: those that have no admin, or only some whose names were erased; `id`: that one."""
        return await self._sql.fetch_as(
            TenantPlace,
            "tenant_places",
            teams=list(teams),
            limit=limit,
            after=None if after is None else after[0],
            after_id=None if after is None else after[1],
            kind=kind,
            words=words,
            orphaned=orphaned,
            place_id=id,
            nameless=NAMELESS,
        )
