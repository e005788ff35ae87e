"""Gather the facts by which a request about entries is judged, in the transaction that it reads or writes in."""

import uuid

from composer import visibility
from composer.errors import NotFound
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess


async def access_for_reading(
    tx: Transaction,
    tenant_id: uuid.UUID,
    user: uuid.UUID,
    vendor: str,
    grants: frozenset[str],
    project: uuid.UUID | None = None,
) -> EntryAccess:
    """Gather the facts for a request that only reads. `vendor`, `grants` and `project` are as in EntryAccess. Raises
    NotFound for a user who does not exist, and Refused for a tool whose person has switched recall off."""
    access = await access_for_writing(tx, tenant_id, user, vendor, grants, project)
    if not access.is_person:
        visibility.require_recall(access)
    return access


async def access_for_writing(
    tx: Transaction,
    tenant_id: uuid.UUID,
    user: uuid.UUID,
    vendor: str,
    grants: frozenset[str],
    project: uuid.UUID | None = None,
) -> EntryAccess:
    """The same for a request that writes. A tool may write while recall is off; it finds nothing then."""
    access = await tx.people.entry_access(tenant_id, user, vendor, grants, project)
    if access is None:
        raise NotFound("There is no such user.")
    return access
