"""When what a command may replace was last changed: the later of two acts wins, also where the earlier one was
interrupted and is done late."""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from composer.errors import Refused
from composer.model import derived_id
from composer.ports.clock import Clock
from composer.ports.database import Statements

CHANGE_RETENTION: Final = timedelta(days=1)  # an interrupted command is given up long before
OVERTAKEN: Final = "it was changed meanwhile"
LOOSENS: Final = "it lets more be stored, read or posted"


class TooLate(Refused):
    """An interrupted act may not be done late. The text says why, as the end of a sentence."""


class Changes:
    """The changes of one transaction. A repository that replaces a value notes it here, in the same transaction."""

    def __init__(self, statements: Statements, clock: Clock | None) -> None:
        self._sql = statements
        self._clock = clock
        self._asked_at: datetime | None = None
        self._late = False

    def ask_at(self, asked_at: datetime, *, late: bool) -> None:
        """State when what this transaction changes was asked for: by default now. `late`: it was interrupted then."""
        self._asked_at, self._late = asked_at, late

    async def require_unchanged(self, subject: Sequence[object], otherwise: str) -> None:
        """Return if this transaction is not late, or no change of a subject was asked for since. Raises TooLate, with
        what `otherwise` says."""
        if self._late and await self._sql.fetch_value(
            "changes_asked_since", subjects=_ids([subject]), asked_at=self._asked_at
        ):
            raise TooLate(otherwise)

    async def note(self, *subjects: Sequence[object], loosens: bool = False, even_late: bool = False) -> None:
        """Record a change of each subject, which is named by its parts. `loosens`: more is stored, read or posted after
        it than before. `even_late`: it is done in any case.

        Raises TooLate in a transaction that is late, if another change was asked for since, and for one that loosens:
        who may not have meant it any more is to give it again.
        """
        asked_at = self._asked_at or (None if self._clock is None else self._clock.now())
        if asked_at is None:
            raise RuntimeError("this database was opened without a clock, so no change can be recorded")
        overtaken = await self._sql.fetch_value(
            "changes_note",
            subjects=_ids(subjects),
            asked_at=asked_at,
        )
        late = self._late and not even_late
        if late and overtaken:
            raise TooLate(OVERTAKEN)
        if late and loosens:
            raise TooLate(LOOSENS)


def _ids(subjects: Sequence[Sequence[object]]) -> list[uuid.UUID]:
    return list({derived_id("change", *map(str, parts)) for parts in subjects})
