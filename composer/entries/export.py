"""A person's own entries, page by page, for the document that they take with them."""

import uuid
from collections.abc import Sequence
from typing import Final

from composer import visibility
from composer.entries.listing import own_scope
from composer.repositories.audit import AuditAct
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry
from composer.visibility import EntryAccess

PAGE: Final = 50  # entries that are read at once: at most 5 MB


async def begin_export(tx: Transaction, access: EntryAccess) -> list[uuid.UUID]:
    """The ids of all entries that the person owns and may read now, newest first, those in the trash and expired
    ones too; of an isolated project only where `access` names it. The export is recorded. Raises Refused for a tool."""
    found = await tx.entries.find_own_ids(own_scope(access), visibility.owned_by_bearer(access))
    await tx.audit.record(AuditAct.EXPORTED, actor=access.user, users=access.users, details={"entries": len(found)})
    return found


async def read_page(tx: Transaction, access: EntryAccess, ids: Sequence[uuid.UUID]) -> list[Entry]:
    """Those of some entries that are still there and may still be read, whole, in their order."""
    owned = visibility.owned_by_bearer(access)
    found = {entry.id: entry for entry in await tx.entries.find_own(own_scope(access), owned, ids, ())}
    return [found[id] for id in ids if id in found]
