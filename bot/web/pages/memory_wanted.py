"""What of the list of `/memory` is wanted, as the address of a page says it."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import Depends, Query

from composer.people.own_memory import SHELVES, TRASH
from composer.repositories.ordering import Order
from composer.repositories.own_data import WAITING, OwnFilter

MEMORY: Final = "/memory"
TABLE: Final = "table"
MAX_WORDS: Final = 8
_ORDERS: Final = {str(each): each for each in Order}


@dataclass(frozen=True, slots=True)
class WantedMemory:
    """What of the list is wanted. What is empty fits all."""

    q: str = ""
    shelf: str = ""
    tool: str = ""
    tag: str = ""
    place: str = ""
    project: str = ""
    by: str = ""
    since: str = ""
    until: str = ""
    sort: str = ""
    view: str = ""
    cursor: str | None = None

    @property
    def is_table(self) -> bool:
        """Whether the list is a table, in which many can be chosen."""
        return self.view == TABLE

    @property
    def narrowed(self) -> int:
        """By how many of what is chosen beside the shelf and the words the list is narrowed down."""
        return sum(map(bool, (self.tool, self.tag, self.place, self.project, self.by, self.since, self.until)))

    @property
    def is_all(self) -> bool:
        """Whether nothing narrows the list down."""
        return not (self.q or self.shelf or self.narrowed)

    @property
    def order(self) -> Order:
        """In which order the list is."""
        return _ORDERS.get(self.sort, Order.NEWEST)

    def filter(self, zone: tzinfo) -> OwnFilter:
        """For the use case. Days are those of a zone; the last one is included."""
        until = _midnight(self.until, zone, days=1)
        return OwnFilter(
            shelf=self.shelf if self.shelf in (*SHELVES, WAITING) else None,
            origins=(self.tool,) if self.tool else None,
            authors=(self.by,) if self.by else None,
            tags=(self.tag,) if self.tag else (),
            words=tuple(self.q.split()[:MAX_WORDS]),
            since=_midnight(self.since, zone),
            until=until,
            trashed=self.shelf == TRASH,
            order=self.order,
        )

    def address(self, path: str = MEMORY, **changed: str | None) -> str:
        """The address of the same list with something changed; without it, of this one."""
        names = ("q", "shelf", "tool", "tag", "place", "project", "by", "since", "until", "sort", "view")
        values = {name: getattr(self, name) for name in names} | changed
        query = urlencode({name: value for name, value in values.items() if value})
        return f"{path}?{query}" if query else path


def _midnight(day: str, zone: tzinfo, *, days: int = 0) -> datetime | None:
    """The beginning of a day (`2026-11-28`), or of one some days later; None for what is none."""
    try:
        return datetime.combine(date.fromisoformat(day) + timedelta(days=days), time(), zone)
    except (ValueError, OverflowError):
        return None


_Short = Annotated[str, Query(max_length=200)]


async def _wanted(
    q: _Short = "",
    shelf: _Short = "",
    tool: _Short = "",
    tag: _Short = "",
    place: _Short = "",
    project: _Short = "",
    by: _Short = "",
    since: _Short = "",
    until: _Short = "",
    sort: _Short = "",
    view: _Short = "",
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> WantedMemory:
    known = shelf if shelf in (*SHELVES, TRASH, WAITING) else ""
    return WantedMemory(q.strip(), known, tool, tag, place, project, by, since, until, sort, view, cursor)


Wanting = Annotated[WantedMemory, Depends(_wanted)]
