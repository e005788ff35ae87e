"""Write and read entries in tests, as people and as their tools."""

import itertools
import uuid
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

from composer.entries import entries, listing
from composer.entries.access import access_for_writing
from composer.entries.draft import SentEntry
from composer.entries.entries import Writer, WriteResult
from composer.model import EVERY_VENDOR, Trust
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry, EntryFilter
from composer.visibility import EntryAccess, Grants
from tests.support.api import person
from tests.support.harness import AppHarness

OF_PERSON: Final = frozenset(
    {
        Grants.READ_ENTRIES,
        Grants.WRITE_ENTRIES,
        Grants.READ_TEAMS,
        Grants.WRITE_TEAMS,
        Grants.READ_PROJECTS,
        Grants.WRITE_PROJECTS,
    }
)
OF_TOOL: Final = frozenset({Grants.READ_ENTRIES, Grants.WRITE_ENTRIES, Grants.READ_TEAMS, Grants.READ_PROJECTS})
_events = itertools.count(1)


@dataclass
class Hub:
    """The entries of a harness's tenant. Users are named as in the harness; `vendor` None is the person themselves.
    `quarantined`: whose writes wait for approval, by default nobody's."""

    harness: AppHarness
    quarantined: Collection[Trust] = ()

    async def user(self, name: str) -> uuid.UUID:
        """The id of a user, who is made known if need be."""
        at = self.harness.workspace()
        async with self.harness.app.database.transaction(at.tenant_id) as tx:
            found = await tx.people.find_user(at.platform, at.name, name)
        return (found or await person(self.harness, name)).id

    @asynccontextmanager
    async def request(
        self,
        name: str,
        vendor: str | None = None,
        project: uuid.UUID | None = None,
        grants: frozenset[str] | None = None,
    ) -> AsyncIterator[tuple[Transaction, EntryAccess]]:
        """A transaction, and the facts of a request in it."""
        user, tenant = await self.user(name), self.harness.workspace().tenant_id
        granted = grants if grants is not None else OF_PERSON if vendor is None else OF_TOOL
        async with self.harness.app.database.transaction(tenant, "alone") as tx:
            who = vendor or EVERY_VENDOR
            yield tx, await access_for_writing(tx, tenant, user, who, granted, project)

    async def write(
        self,
        name: str,
        content: str,
        vendor: str | None = None,
        *,
        project: uuid.UUID | None = None,
        grants: frozenset[str] | None = None,
        event: str | None = None,
        **draft: Any,
    ) -> WriteResult:
        """Write an entry, and index everything."""
        now = self.harness.clock.tick()
        async with self.request(name, vendor, project, grants) as (tx, access):
            by = Writer(name, quarantined=self.quarantined)
            sent = cast(SentEntry, {"content": content, **draft})
            written = await entries.write(tx, access, sent, by, event or f"e{next(_events)}", now)
        await self.harness.app.indexer.catch_up(self.harness.workspace().tenant_id)
        return written

    async def change(self, name: str, id: uuid.UUID, version: int | None = None, **values: Any) -> Entry:
        """Change an entry of a person's own."""
        now = self.harness.clock.tick()
        async with self.request(name) as (tx, access):
            changed = await entries.change(tx, access, id, cast(SentEntry, values), now, version)
        await self.harness.app.forgotten(self.harness.workspace().tenant_id, changed.receipt)
        await self.harness.app.indexer.catch_up(self.harness.workspace().tenant_id)
        return changed.entry

    async def trash(self, name: str, id: uuid.UUID) -> Entry:
        """Put an entry into the trash."""
        async with self.request(name) as (tx, access):
            return await entries.trash(tx, access, id, self.harness.clock.tick())

    async def restore(self, name: str, id: uuid.UUID) -> Entry:
        """Take an entry out of the trash."""
        async with self.request(name) as (tx, access):
            found = await entries.restore(tx, access, id, self.harness.clock.tick())
        await self.harness.app.indexer.catch_up(self.harness.workspace().tenant_id)
        return found

    async def share(self, name: str, id: uuid.UUID, team: uuid.UUID | None) -> Entry:
        """Share an entry with a team, or with none."""
        async with self.request(name) as (tx, access):
            return await entries.share(tx, access, id, team, self.harness.clock.tick())

    async def get(self, name: str, id: uuid.UUID, vendor: str | None = None) -> Entry:
        """One entry."""
        async with self.request(name, vendor) as (tx, access):
            return await listing.get(tx, access, id, self.harness.clock.now())

    async def find(
        self, name: str, vendor: str | None = None, *, project: uuid.UUID | None = None, **wanted: Any
    ) -> Sequence[Entry]:
        """The entries that fit some filters, newest first; `page` has what belongs to the page."""
        page = wanted.pop("page", {})
        async with self.request(name, vendor, project) as (tx, access):
            found = await listing.page(tx, access, EntryFilter(**wanted), self.harness.clock.now(), **page)
        return found.entries

    async def titles(self, name: str, vendor: str | None = None, **wanted: Any) -> list[str]:
        """The titles of the entries that fit."""
        return [entry.title for entry in await self.find(name, vendor, **wanted)]
