"""Runs of imports: begin one, list them, and undo one by the path that erases."""

import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from composer.errors import NotFound
from composer.memory.exported import authors_of, withdraw_exports
from composer.memory.forget import Receipt, forget, record
from composer.model import Agent, Workspace
from composer.repositories.audit import AuditAct
from composer.repositories.database import Database, Transaction
from composer.repositories.imports import ImportRun, StoredImport
from composer.rights.relations import TenantFacts
from composer.rights.table import Act, judge
from composer.text.notices import SHORT_ID_CHARS

UNDO_BATCH: Final = 500  # messages that one transaction erases


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run with all of its parts: one for each tenant and workspace that it went into."""

    id: uuid.UUID
    parts: tuple[tuple[uuid.UUID, StoredImport], ...]

    @property
    def messages(self) -> int:
        """How many of its messages are still stored."""
        return sum(part.messages for _, part in self.parts)

    @property
    def indexed(self) -> int:
        """How many of these can be recalled."""
        return sum(part.indexed for _, part in self.parts)

    @property
    def rooms(self) -> int:
        """In how many rooms they are."""
        return sum(part.rooms for _, part in self.parts)

    @property
    def brought(self) -> bool:
        """Whether anything of it is stored, or was when it was undone: an import of what was known brings nothing."""
        return self.undone_at is not None or any(part.brought for _, part in self.parts)

    @property
    def undone_at(self) -> datetime | None:
        """When it was undone as a whole; None while something of it may be left."""
        times = [part.undone_at for _, part in self.parts if part.undone_at is not None]
        return max(times) if len(times) == len(self.parts) else None


@dataclass(slots=True)
class UndoResult:
    """What undoing a run erased so far. `rooms` and `people` are those that nothing else used; `receipts` can be
    checked with nexus doctor --erased."""

    messages: int = 0
    answers: int = 0
    rooms: int = 0
    people: int = 0
    receipts: tuple[str, ...] = ()


def short_id(id: uuid.UUID) -> str:
    """The id of a run as people type it."""
    return id.hex[:SHORT_ID_CHARS]


async def begin_import(
    tx: Transaction, workspace: Workspace, agents: Sequence[Agent], run: ImportRun, now: datetime
) -> None:
    """Let what this transaction stores belong to a run of an import. Raises Refused once whoever uploaded it may not
    import any more."""
    if run.uploaded_by is not None:
        judge([Act.IMPORT_HISTORY], TenantFacts(await tx.people.is_admin(run.uploaded_by)))
    await tx.people.ensure_tenant(workspace.tenant, workspace.platform, workspace.name, agents, now)
    await tx.imports.begin(run, workspace.platform, workspace.name, now)


async def end_import(database: Database, run: ImportRun, now: datetime) -> None:
    """Record that a run has read everything."""
    for tenant, _ in await database.tenants():
        async with database.transaction(tenant) as tx:
            await tx.imports.end(run.id, now)


async def list_imports(database: Database) -> list[FoundRun]:
    """All runs, newest first, also those that brought nothing."""
    parts: dict[uuid.UUID, list[tuple[uuid.UUID, StoredImport]]] = {}
    for tenant, _ in await database.tenants():
        async with database.transaction(tenant, "read") as tx:
            for part in await tx.imports.list():
                parts.setdefault(part.id, []).append((tenant, part))
    runs = [FoundRun(id, tuple(each)) for id, each in parts.items()]
    return sorted(runs, key=lambda run: (run.parts[0][1].begun_at, run.id), reverse=True)


async def find_import(database: Database, beginning: str) -> FoundRun:
    """The run whose id begins so. Raises NotFound where there is none, or more than one."""
    wanted = beginning.replace("-", "").lower()
    found = [run for run in await list_imports(database) if wanted and run.id.hex.startswith(wanted)]
    if not found:
        raise NotFound(f"There is no import '{beginning}': nexus import --list shows them all.")
    if len(found) > 1:
        raise NotFound(f"Several imports begin with '{beginning}': type more of the id.")
    return found[0]


async def undo_import(
    database: Database, run: FoundRun, new_key: Callable[[], bytes], now: datetime, by: uuid.UUID | None = None
) -> AsyncIterator[tuple[uuid.UUID, Receipt, UndoResult]]:
    """Erase what a run brought and what was made of it, in batches; each is erased for good when it is yielded, with
    its tenant and receipt. `new_key` makes the random key of a receipt. One that was interrupted goes on when it is
    undone again. `by`: the admin who undoes it.

    Messages that were stored before the run, and what platforms delivered, stay. Rooms, members and people that the run
    made go where nothing else uses them. The messages may be imported again.
    """
    done = UndoResult()
    for tenant in dict.fromkeys(tenant for tenant, _ in run.parts):
        erased: list[uuid.UUID] = []
        more = True
        while more:
            async with database.transaction(tenant, "alone") as tx:
                if by is not None:
                    tx.audit.act_for(by)
                messages = list(await tx.imports.messages(run.id, UNDO_BATCH))
                more = len(messages) == UNDO_BATCH
                people = await authors_of(tx, messages)
                receipt = await forget(tx, messages, [], now, again=True) if messages else Receipt()
                receipt = await withdraw_exports(tx, people, receipt)
                erased += messages
                done.messages += len(messages)
                done.answers += receipt.counts.get("reply", 0)
                if not more:
                    receipt = await _finish(tx, run.id, erased, receipt, done, new_key(), now)
            yield tenant, receipt, done


async def _finish(
    tx: Transaction,
    run: uuid.UUID,
    erased: Sequence[uuid.UUID],
    last: Receipt,
    done: UndoResult,
    key: bytes,
    now: datetime,
) -> Receipt:
    """Delete what is empty now, and record what was done."""
    rooms, people = await tx.imports.delete_unused(run)
    done.rooms, done.people = done.rooms + rooms, done.people + people
    await tx.imports.mark_undone(run, now)
    counts = {"messages": len(erased), "rooms": rooms, "people": people}
    await tx.audit.record(AuditAct.IMPORT_UNDONE, details={"import": short_id(run), **counts})
    whole = replace(last, counts={"message": len(erased)}, erased=frozenset(erased))
    stored = await record(tx, whole, key, now)
    done.receipts += (stored.id,) if stored.id else ()
    return stored
