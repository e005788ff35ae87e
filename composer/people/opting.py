"""Whether what a person says is stored from now on, as they decide for themselves by a command or on a page."""

import uuid
from datetime import datetime

from composer.repositories.database import Transaction
from composer.visibility import EntryAccess, Owned, owned_by_bearer


async def opt_out(tx: Transaction, user: uuid.UUID, owned: Owned) -> None:
    """Store nothing more of a person, with all accounts that they are, and end their reminders. What was stored before
    stays. The transaction is alone; who acts in it is set by the caller."""
    await tx.people.set_opted_out(user, True)
    await tx.reminders.end([reminder.id for reminder in await tx.reminders.open(owned)])


async def opt_in(tx: Transaction, user: uuid.UUID, now: datetime) -> None:
    """Store what they say again, and nothing that they said meanwhile. The transaction is as for `opt_out`."""
    if await tx.people.has_opted_out([user]):
        await tx.conversations.skip(now)
    await tx.people.set_opted_out(user, False)


async def set_opted_out(tx: Transaction, access: EntryAccess, now: datetime, *, out: bool) -> None:
    """The same for whoever asks over the web. Raises Refused for a tool."""
    owned = owned_by_bearer(access)
    tx.audit.act_for(access.user)
    await (opt_out(tx, access.user, owned) if out else opt_in(tx, access.user, now))
