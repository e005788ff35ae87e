"""Undoes an import, for the command line and for the page."""

import secrets
import uuid
from collections.abc import Callable

from composer.app import App
from composer.ingest.imports import FoundRun, UndoResult, undo_import
from composer.memory.forget import RECEIPT_KEY_BYTES


def _ignore(_: object) -> None:
    """Drop a report that nobody wants."""


async def undo_run(
    app: App, run: FoundRun, progress: Callable[[int], None] = _ignore, by: uuid.UUID | None = None
) -> UndoResult | None:
    """Erase what an import brought; `progress` receives how many messages are erased; `by` is the admin who does it.
    None for one that is undone or brought nothing."""
    if run.undone_at is not None or not run.brought:
        return None
    done = UndoResult()
    workspaces = {tenant: app.directory.workspace(part.platform, part.workspace) for tenant, part in run.parts}
    new_key = lambda: secrets.token_bytes(RECEIPT_KEY_BYTES)  # noqa: E731
    async for tenant, receipt, so_far in undo_import(app.database, run, new_key, app.clock.now(), by):
        await app.forgotten(workspaces[tenant].tenant_id, receipt)
        done = so_far
        progress(done.messages)
    return done
