"""What people have set for themselves."""

import uuid
from collections.abc import Sequence
from datetime import datetime

from composer.model import DEFAULT_SETTINGS, PersonalSettings
from composer.ports.database import Row, Statements
from composer.repositories.audit import Audit, AuditAct


class OwnSettings:
    """The settings of one tenant's people. They are read with the facts that access is judged by (`entry_access`), so
    that what somebody has changed holds for the next request, in every process."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def put(self, user: uuid.UUID, settings: PersonalSettings, changed: Sequence[str], now: datetime) -> None:
        """Set everything that a person, by one of their users, has set. `changed` names the fields that are new."""
        await self._sql.execute(
            "personal_settings_put",
            user_id=user,
            recall=settings.recall,
            strategy=settings.strategy,
            budget=settings.budget,
            trash_days=settings.trash_days,
            keep_days=settings.keep_days,
            timezone=settings.timezone,
            now=now,
        )
        details = dict.fromkeys(changed, True)
        await self._audit.record(AuditAct.OWN_SETTINGS, actor=user, users=[user], details=details)


def settings_from_row(row: Row) -> PersonalSettings:
    """What a row says; all as it is by default where its fields are NULL."""
    if row["recall"] is None:
        return DEFAULT_SETTINGS
    return PersonalSettings(
        row["recall"],
        row["strategy"],
        row["budget"],
        row["trash_days"],
        row["keep_days"],
        row["timezone"],
        row["changed_at"],
    )
