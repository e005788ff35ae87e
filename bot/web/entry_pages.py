"""Pages of entries: what a request wants listed, and its answer as bytes."""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import Query
from fastapi.responses import Response

from bot.web.call import ApiCall
from bot.web.json_answer import json_answer
from bot.web.problems import RequestRefused
from bot.web.shapes.entries import Kind, Names, entry_values, owners
from bot.web.shapes.values import Moment
from composer.entries import listing
from composer.entries.listing import Page
from composer.entries.namesakes import Labels
from composer.entries.tools import require_known
from composer.model import Item
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry, EntryFilter
from composer.repositories.operations import Operation
from composer.visibility import EntryAccess, may_see_teams, owned_by_bearer

MAX_ENTRY_PAGE: Final = 100
MAX_PAGE_NUMBER: Final = 1_000
MAX_KINDS: Final = 32
SORTED: Final = "By when they were created, updated, or last used in an answer to you; with `-` the latest first."
Text = Annotated[str, Query(min_length=1, max_length=200)]
Words = Annotated[list[Annotated[str, Query(min_length=1, max_length=64)]], Query(max_length=32)]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries to list, and where to begin: with a cursor, or with a page or an offset, which wins."""

    filter: EntryFilter
    team: uuid.UUID | None
    project: str | None
    limit: int
    cursor: str | None
    offset: int | None
    stats: bool

    @property
    def whole_project(self) -> bool:
        """Whether a project's entries alone are wanted."""
        return self.project is not None


async def wanted(
    kind: Annotated[list[Kind] | None, Query(description="Any of these kinds.", max_length=MAX_KINDS)] = None,
    tag: Annotated[Words | None, Query(description="All of these tags.")] = None,
    vendor: Annotated[Words | None, Query(description="Written by any of these; `api` is the person.")] = None,
    session: Text | None = None,
    q: Annotated[Text | None, Query(description="Words that stand in the title, the content or the key.")] = None,
    trashed: Annotated[bool, Query(description="In the trash, instead of the others.")] = False,
    expired: Annotated[bool, Query(description="That have expired, instead of the others.")] = False,
    team: Annotated[uuid.UUID | None, Query(description="Shared with this team.")] = None,
    project: Annotated[Text | None, Query(description="Written for this project: its id or name.")] = None,
    since: Annotated[Moment | None, Query(description="Written at this time or later.")] = None,
    before: Annotated[Moment | None, Query(description="Written before this time.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_ENTRY_PAGE)] = 20,
    cursor: Annotated[Text | None, Query(description="`next` of the page before.")] = None,
    page: Annotated[int | None, Query(ge=1, le=MAX_PAGE_NUMBER)] = None,
    offset: Annotated[int | None, Query(ge=0, le=100_000, description="Wins over `page`.")] = None,
    stats: Annotated[bool, Query(description="Count all that fit.")] = False,
) -> Wanted:
    """What the parameters of a list ask for. Raises RequestRefused with 400 where they contradict each other."""
    if cursor is not None and (page is not None or offset is not None):
        raise RequestRefused(400, "A list begins at a cursor, or at a page or an offset: leave one of them out.")
    if team is not None and project is not None:
        raise RequestRefused(400, "An entry is shared with a team or written for a project: leave one of them out.")
    start = offset if offset is not None else None if page is None else (page - 1) * limit
    found = EntryFilter(
        kinds=tuple(kind or ()),
        origins=tuple(vendor or ()),
        tags=tuple(tag or ()),
        session=session,
        words=q or "",
        since=since,
        until=before,
        trashed=trashed,
        expired=expired,
    )
    return Wanted(found, team, project, limit, cursor, start, stats)


async def entries_page(
    call: ApiCall, tx: Transaction, access: EntryAccess, asked: Wanted, *, snippets: bool
) -> Response:
    """The answer to a list: EntryList, or EntrySnippetList."""
    now = call.now
    found = await listing.page(
        tx,
        access,
        asked.filter,
        now,
        team=asked.team,
        only_project=asked.whole_project,
        limit=asked.limit,
        cursor=asked.cursor,
        offset=asked.offset,
        whole=not snippets,
    )
    await require_known(tx, access, {*asked.filter.origins} - {entry.origin for entry in found.entries}, now)
    call.note_read(entry.id for entry in found.entries)
    body = await page_values(tx, access, found, snippets=snippets)
    if asked.stats:
        counts = await listing.counts(tx, access, asked.filter, now, team=asked.team, only_project=asked.whole_project)
        body["stats"] = {
            "total": sum(each.count for each in counts),
            "by_kind": {each.kind: each.count for each in counts},
            "tokens": sum(each.tokens for each in counts),
            "hit_rate": await _hit_rate(tx, access, now),
        }
    return json_answer(body)


async def _hit_rate(tx: Transaction, access: EntryAccess, now: datetime) -> float | None:
    """The share of the person's searches that found something; see EntryStats."""
    if not access.is_person:
        return None
    last_month = (now.date().replace(day=1) - timedelta(days=1)).replace(day=1)
    done = Counter[Operation]()
    for each in await tx.operations.of_owner(last_month, owned_by_bearer(access)):
        done[each.operation] += each.count
    return round(done[Operation.HITS] / done[Operation.SEARCHES], 4) if done[Operation.SEARCHES] else None


async def page_values(tx: Transaction, access: EntryAccess, found: Page, *, snippets: bool) -> dict[str, Any]:
    """A page as EntryList or EntrySnippetList shows it."""
    names = await names_for(tx, access, found.entries)
    items = [entry_values(entry, names, snippet=snippets) for entry in found.entries]
    return {"items": items, "next": found.cursor}


async def names_for(tx: Transaction, access: EntryAccess, entries: Sequence[Entry | Item]) -> Names:
    """What the owners, teams and projects of entries, facts and landmarks are called."""
    others = [user for user in owners(entries) if user != access.user]
    people = {access.user: access.name} | (await tx.people.names(others) if others else {})
    of_teams = may_see_teams(access) and any(entry.namespace.startswith("team:") for entry in entries)
    teams = {team.id: team.name for team in await tx.teams.find_for(access.users)} if of_teams else {}
    labels = Labels(access, ((name, user) for user, name in people.items()))
    return Names(access, {user: labels(name, user) for user, name in people.items()}, teams)
