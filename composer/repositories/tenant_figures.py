"""Figures of a whole tenant, for its admins: who its people are, and how much there is. Never what anything says."""

import uuid
from collections.abc import Collection, Mapping
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
