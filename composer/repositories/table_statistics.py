"""The planner's statistics: taken anew when the tables have grown, since plans that are kept depend on them."""

from typing import Final

from composer.repositories.database import Database

FIRST_LOOK: Final = 64  # rows written, after which the tables are looked at; then after twice as many, and so on
RAREST_LOOK: Final = 4_096


class TableStatistics:
    """Keeps the planner's statistics up to date while this process writes. Looking costs about a millisecond."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._written = 0
        self._next_look = FIRST_LOOK

    async def rows_written(self, count: int) -> list[str]:
        """Take note that so many rows were written; now and then, analyse the tables that have grown to twice their
        size. Returns the names of those. Raises Unavailable."""
        self._written += count
        if self._written < self._next_look:
            return []
        self._written, self._next_look = 0, min(2 * self._next_look, RAREST_LOOK)
        return await self.refresh()

    async def refresh(self) -> list[str]:
        """Analyse the tables that have grown to twice their size, or were never analysed. Raises Unavailable."""
        analysed: list[str] = []
        async with self._database.installation() as sql:
            while (table := await sql.fetch_value("table_analyze_grown", passed=analysed)) is not None:
                analysed.append(table)
        return analysed
