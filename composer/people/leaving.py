"""Erase all that a person ever said or stored, as they ask for on a page."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from composer.errors import Conflict
from composer.memory import names as blanking
from composer.memory.forget import Receipt
from composer.memory.portions import erase_ahead
from composer.people.erasing import erase, exported_files
from composer.repositories.database import Transaction
from composer.repositories.erasure import Selection
from composer.visibility import EntryAccess, Owned, owned_by_bearer

MORE_SINCE: Final = "More was stored of you since that page was opened: look again at what goes."


@dataclass(frozen=True, slots=True)
class AllOfOne:
    """How much erasing all of a person erases: messages, other items, and exported files; and what their accounts are
    called that it covers."""

    messages: int
    items: int
    exports: int
    accounts: Sequence[str]

    @property
    def count(self) -> int:
        """Messages and other items."""
        return self.messages + self.items


async def count_all(tx: Transaction, owned: Owned, home: Path) -> AllOfOne:
    """What there is. `home` is where exports are written."""
    messages, items = await tx.erasure.select(Selection(owned.users))
    names = await tx.people.names(owned.users)
    return AllOfOne(len(messages), len(items), exported_files(home, owned.users), sorted(names.values()))


async def erase_all(
    read: Callable[[], AbstractAsyncContextManager[Transaction]],
    alone: Callable[[], AbstractAsyncContextManager[tuple[Transaction, EntryAccess]]],
    home: Path,
    now: datetime,
    *,
    key: bytes,
    confirmed: int,
) -> Receipt:
    """Erase it for good, in portions, with their names, all that opens their memory from outside, and their names in
    the figures of usage. `alone` begins transactions of the person's own, which are alone. `confirmed`: how many
    messages and items they were shown; what they said since goes too, but for much more they are asked again. The
    caller gives the receipt to `app.forgotten` after the commit. Raises Conflict, Unavailable, and Refused for a
    tool."""
    async with alone() as (tx, access):  # what was being stored is by now, and is found
        owned = owned_by_bearer(access)
        await tx.gateway_exchanges.drop(owned.users, now)  # nor is more learnt while it goes
        messages, items = await tx.erasure.select(Selection(owned.users))
        names = await blanking.names_of(tx, owned.users)
    if len(messages) + len(items) > confirmed:
        raise Conflict(MORE_SINCE)

    @asynccontextmanager
    async def portion() -> AsyncIterator[Transaction]:
        async with alone() as (tx, access):
            tx.audit.act_for(access.user)
            yield tx

    ahead = await erase_ahead(read, portion, messages, items, now, None, names=names, key=key)
    async with alone() as (tx, access):
        owned = owned_by_bearer(access)
        tx.audit.act_for(access.user)
        await tx.usage.blank(owned.users)
        messages, items = await tx.erasure.select(Selection(owned.users))
        return await erase(
            tx,
            home,
            messages,
            items,
            now,
            None,
            key=key,
            names_of=owned.users,
            exports_of=owned.users,
            ahead=ahead,
            names=names,
        )
