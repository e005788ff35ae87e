"""Whoever leaves a workspace loses what opened their memory, and with it what others shared with them."""

from composer.model import Workspace
from composer.people.credentials.issuing import delete_credentials
from composer.repositories.database import Database


async def holders(database: Database, workspace: Workspace) -> tuple[str, ...]:
    """The ids on its platform of everybody known in a workspace who has something that `end_access` would end."""
    async with database.transaction(workspace.tenant_id, "read") as tx:
        return await tx.people.holders(workspace.platform, workspace.name)


async def end_access(database: Database, workspace: Workspace, external_id: str) -> int:
    """End every key, web session, login, login link and code that links accounts of somebody who has left a workspace,
    by their id on its platform, and of the users linked with them; returns how many there were. Whoever runs Nexus
    makes new ones for people who are still in another workspace of theirs."""
    async with database.transaction(workspace.tenant_id, "alone") as tx:
        found = await tx.people.find_user_ids(workspace.platform, workspace.name, [external_id])
        if not found:
            return 0
        [user] = found.values()
        linked = (await tx.people.linked_users([user])).get(user, ())
        return sum((await delete_credentials(tx, [user, *linked])).values())
