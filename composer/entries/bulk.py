"""Do the same to many entries of one's own: into the trash and out of it, shared with a team and with none."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from composer import visibility
from composer.entries import entries
from composer.errors import BadInput, NexusError, Unavailable
from composer.model import entries_namespace, team_namespace
from composer.repositories.database import Transaction
from composer.usage.plans import Plan
from composer.visibility import EntryAccess

MAX_BULK: Final = 100
NOT_SO: Final = "It was refused, or has been changed since."
NO_TEAM: Final = "Say with which team the entries are to be shared."


class BulkAct(StrEnum):
    """What is done to each."""

    TRASH = "trash"
    RESTORE = "restore"
    SHARE = "share"
    UNSHARE = "unshare"


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What became of one: `refused` says why nothing did (empty: it was done)."""

    id: uuid.UUID
    refused: str = ""


async def act_on_many(
    tx: Transaction,
    access: EntryAccess,
    ids: Sequence[uuid.UUID],
    act: BulkAct,
    now: datetime,
    *,
    team: uuid.UUID | None = None,
    plan: Plan | None = None,
) -> list[BulkResult]:
    """Do the same to some entries, each once, in their order; where one is refused (composer/entries/entries.py), the
    others are done. `team` is for SHARE, `plan` for RESTORE. Raises BadInput for more than MAX_BULK, and without a
    team to share with."""
    if len(ids) > MAX_BULK:
        raise BadInput(f"At most {MAX_BULK} entries at once: there are {len(ids)}.")
    if act is BulkAct.SHARE and team is None:
        raise BadInput(NO_TEAM)
    found = []
    for id in dict.fromkeys(ids):
        try:
            match act:
                case BulkAct.TRASH:
                    await entries.trash(tx, access, id, now)
                case BulkAct.RESTORE:
                    await entries.restore(tx, access, id, now, plan=plan)
                case BulkAct.SHARE | BulkAct.UNSHARE:
                    await entries.share(tx, access, id, team if act is BulkAct.SHARE else None, now)
        except Unavailable:
            raise
        except NexusError as error:
            found.append(BulkResult(id, str(error)))
        else:
            found.append(BulkResult(id))
    return found


async def are_done(
    tx: Transaction, access: EntryAccess, ids: Sequence[uuid.UUID], act: BulkAct, now: datetime, team: uuid.UUID | None
) -> list[BulkResult]:
    """Of a request that repeats another: whether each entry is now as that wanted it."""
    readable = visibility.readable_entries(access)
    of_team = None if team is None else team_namespace(team)
    found = []
    for id in dict.fromkeys(ids):
        entry = await tx.entries.get(readable, id, now, access.users)
        match act:
            case BulkAct.TRASH | BulkAct.RESTORE:
                is_done = entry is not None and (entry.trashed_at is not None) == (act is BulkAct.TRASH)
            case BulkAct.SHARE:
                is_done = entry is not None and entry.namespace == of_team
            case BulkAct.UNSHARE:
                is_done = entry is not None and entry.namespace in map(entries_namespace, access.users)
        found.append(BulkResult(id, "" if is_done else NOT_SO))
    return found
