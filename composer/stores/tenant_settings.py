"""A tenant's own settings in Postgres."""

from datetime import datetime

from composer.stores.statements import Statements


class PostgresSettings:
    """composer.ports.TenantSettings."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def all(self) -> dict[str, str]:
        """Every setting that was changed, as JSON text by its key."""
        return {row["key"]: row["value"] for row in await self._sql.fetch("settings_all")}

    async def put(self, key: str, value: str, now: datetime) -> None:
        """Set one, to JSON text."""
        await self._sql.execute("setting_put", key, value, now)

    async def reset(self, key: str) -> None:
        """Let what is configured hold again."""
        await self._sql.execute("setting_delete", key)
