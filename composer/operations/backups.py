"""The age of the newest backup."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

BACKUP_JOB: Final = "backup"
BACKUP_PERIOD: Final = timedelta(days=1)  # of the backup job


def newest_backup(home: Path, successes: Mapping[str, datetime]) -> datetime | None:
    """When the newest backup was made; None without one.

    The files in the data folder count. Where there is no such folder, another machine makes the backups: then the last
    success of the job counts (`successes`, by job).
    """
    folder = home / "backups"
    if not folder.is_dir():
        return successes.get(BACKUP_JOB)
    times = [path.stat().st_mtime for path in folder.glob("*.backup")]
    return datetime.fromtimestamp(max(times), UTC) if times else None
