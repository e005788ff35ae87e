"""Delete a project: what people wrote for it goes back to them, its conversations leave it, and nothing of it stays."""

import uuid
from datetime import datetime
from pathlib import Path

from composer.errors import Conflict
from composer.memory.exported import authors_of
from composer.memory.forget import Receipt
from composer.model import project_namespace
from composer.people.erasing import erase
from composer.people.projects.projects import judge_over_api
from composer.repositories.database import Transaction
from composer.repositories.projects import ProjectItem
from composer.rights.table import Act
from composer.visibility import EntryAccess, ProjectFacts


async def delete_over_api(
    tx: Transaction, access: EntryAccess, home: Path, id: uuid.UUID, now: datetime, *, key: bytes, confirmed: bool
) -> Receipt:
    """`delete` as one of its admins. Raises besides Conflict with what would happen where it is not `confirmed`, and as
    `judge_over_api`."""
    project = (await judge_over_api(tx, access, Act.DELETE_PROJECT, id)).project
    assert project is not None
    if not confirmed:
        raise Conflict(f"{_consequences(project)} To confirm, send it with confirm=true.")
    tx.audit.act_for(access.user)
    return await delete(tx, project, access.user, home, now, key=key)


async def delete(
    tx: Transaction, project: ProjectFacts, by: uuid.UUID, home: Path, now: datetime, *, key: bytes
) -> Receipt:
    """Delete a project for whoever may, which was judged, in a transaction that is alone.

    Its rooms, DMs and sessions leave it. Memories that were written for it are filed under their owners' own entries;
    its facts and decisions, and what waits for approval, are erased. `home` and `key` are as for `erase`; the caller
    gives the receipt to `app.forgotten` after the commit. Raises Conflict for an isolated project that memories are
    filed in: nothing of it may leave it; and Unavailable.
    """
    await _empty(tx, project)
    items = await tx.projects.items(project.id, now)
    if project.isolated and any(item.kind == "memory" and item.current for item in items):
        raise Conflict(
            f"{project.slug} is isolated, so the memories that are filed in it may not leave it: whose they are forget "
            f"them first, or an admin of the workspace erases the project (/nexus erase project {project.slug})."
        )
    erased = [(item.kind, item.id) for item in items if not _goes_back(project, item)]
    receipt = Receipt()
    if erased:
        people = await authors_of(tx, [], erased)
        receipt = await erase(tx, home, [], erased, now, None, key=key, exports_of=people)
    await tx.entries.return_to_owners(project_namespace(project.id), by, now)
    await tx.projects.delete(project.id, by)
    return receipt


def _consequences(project: ProjectFacts) -> str:
    name = project.slug
    opened = f" {name} is isolated: what is said in them is then used as anywhere else." if project.isolated else ""
    return (
        f"This deletes {name} for everybody in it. Its rooms, DMs and sessions leave it, and recall nothing of each "
        f"other from then on.{opened} Memories that were written for it go back to whoever wrote them, and its facts "
        "and decisions are forgotten for good."
    )


async def _empty(tx: Transaction, project: ProjectFacts) -> None:
    """Take all conversations out of a project."""
    conversations = await tx.projects.conversations(project.id)
    await tx.conversations.lock(conversations)
    for conversation in conversations:
        await tx.conversations.assign_project(conversation, None, False)


def _goes_back(project: ProjectFacts, item: ProjectItem) -> bool:
    return item.kind == "memory" and item.user_id is not None and not project.isolated
