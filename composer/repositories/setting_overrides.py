"""Settings that a tenant's admins have changed."""

from datetime import datetime
from typing import Final

from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct

SETTINGS_CHANGED: Final = "settings "  # a notice to every process begins so, before the tenant's id (setting_set)


class SettingOverrides:
    """A tenant's own settings, over the configured ones. They hold nothing that people wrote."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def all(self) -> dict[str, str]:
        """Every changed setting, as JSON text by its key."""
        return {row["key"]: row["value"] for row in await self._sql.fetch("settings_all")}

    async def changed_since(self, since: datetime) -> bool:
        """Whether an admin changed a setting after a time."""
        return any(row["updated_at"] > since for row in await self._sql.fetch("settings_all"))

    async def set(self, key: str, value: str, now: datetime) -> None:
        """Set one to a value (JSON text)."""
        await self._sql.execute("setting_set", key=key, value=value, now=now)
        await self._audit.record(AuditAct.SETTING_SET, details={"key": key})

    async def reset(self, key: str) -> None:
        """Delete one, so that the configured value applies again."""
        await self._sql.execute("setting_set", key=key, value=None, now=None)
        await self._audit.record(AuditAct.SETTING_RESET, details={"key": key})
