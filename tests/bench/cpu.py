"""CPU time of this process and of the database's backends, which other load on the machine hardly changes."""

import os
import time
from pathlib import Path

import asyncpg


class Cpu:
    """Milliseconds of CPU time of this process and all backends of one database, without parallel workers; nan where
    the system does not report it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._files: list[Path] = []

    async def look(self) -> None:
        """Look up the current backends; call it once the connections are open."""
        connection = await asyncpg.connect(self._url)
        try:
            rows = await connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
        finally:
            await connection.close()
        self._files = [Path(f"/proc/{row['pid']}/schedstat") for row in rows]

    def now(self) -> float:
        """Return the milliseconds up to now."""
        if not os.path.exists("/proc/self/schedstat"):
            return float("nan")
        backends = sum(int(file.read_text().split()[0]) for file in self._files if file.exists())
        return (time.process_time_ns() + backends) / 1e6
