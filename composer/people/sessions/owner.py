"""Whose sessions they are: a person, who asks over the API by a credential of their own."""

import uuid
from dataclasses import dataclass

from composer.errors import NotFound
from composer.model import EVERY_VENDOR, Workspace
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess


@dataclass(frozen=True, slots=True)
class SessionOwner:
    """A person who asks for themselves. `workspace` is that of the API in their tenant; `grants` are the permissions of
    their credential, which decide what of their projects it may reach."""

    workspace: Workspace
    user: uuid.UUID
    grants: frozenset[str]

    async def access(self, tx: Transaction) -> EntryAccess:
        """What they may reach, as of now. Raises NotFound for a user who does not exist."""
        access = await tx.people.entry_access(self.workspace.tenant_id, self.user, EVERY_VENDOR, self.grants)
        if access is None:
            raise NotFound("There is no such person.")
        return access
