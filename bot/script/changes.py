"""Apply script events to stored messages and rooms: edits, deletions, joins and leaves."""

from collections.abc import Sequence
from datetime import datetime

from bot.script.events import MoveEvent
from bot.script.places import external, mentions
from composer.app import App
from composer.errors import BadInput, NotFound
from composer.ingest.changes import change_stored
from composer.ingest.imports import begin_import
from composer.ingest.rooms import record_membership
from composer.ingest.validation import clean_mentions
from composer.model import CONSOLE, Workspace, user_id
from composer.repositories.imports import ImportRun


async def change_message(app: App, workspace: Workspace, id: str, text: str | None) -> None:
    """Replace a message's text, or erase the message (`text` None), in every layer.

    Raises NotFound when no message has this id, BadInput when messages of several conversations have it.
    """
    now = app.clock.now()
    async with app.database.transaction(workspace.tenant_id, "alone") as tx:
        found = await tx.messages.find_by_external_id(workspace.platform, workspace.name, id)
        if not found:
            raise NotFound(f"There is no message '{id}' here.")
        if len(found) > 1:
            raise BadInput(
                f"{len(found)} messages have the id '{id}' in different conversations; use a different id for "
                "each message"
            )
        named = clean_mentions(mentions(text or ""))
        known = await tx.people.find_user_ids(workspace.platform, workspace.name, named)
        people = [known.get(name) or user_id(workspace, name) for name in named]
        stored = await tx.messages.get(found[0][0])
        assert stored is not None
        agents = app.directory.agents(workspace.tenant_id)
        receipt = await change_stored(tx, agents, stored, text, people, stored.attachments, now)
    if receipt is not None:
        await app.forgotten(workspace.tenant_id, receipt)


async def apply_memberships(
    app: App, moves: Sequence[tuple[MoveEvent, datetime]], run: ImportRun | None = None
) -> None:
    """Let people join rooms of one workspace, which are made if they are new, or leave them, each at a time, in their
    order and all or none; `run`: of an import that tells of it. Raises NotFound when somebody leaves an unknown room.
    """
    workspace = app.directory.workspace(CONSOLE, moves[0][0].workspace)
    agents = app.directory.agents(workspace.tenant_id)
    async with app.database.transaction(workspace.tenant_id) as tx:
        if run is not None:
            await begin_import(tx, workspace, agents, run, app.clock.now())
        for event, at in moves:
            await record_membership(
                tx,
                workspace,
                agents,
                event.room_id(),
                external(event.user),
                event.user,
                joined=event.type == "join",
                private=event.private is True,
                now=at,
            )
