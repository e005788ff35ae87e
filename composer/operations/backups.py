"""The age of the newest backup."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from composer.repositories.job_ledger import StoredRun

BACKUP_JOB: Final = "backup"
BACKUP_PERIOD: Final = timedelta(days=1)  # of the backup job


def newest_backup(home: Path, runs: Sequence[StoredRun]) -> datetime | None:
    """When the newest backup was made; None without one.

    The files in the data folder count. Where there is no such folder, another machine makes the backups: then the last
    success of the job counts (`runs`: the last one of each).
    """
    folder = home / "backups"
    if not folder.is_dir():
        return next((run.succeeded_at for run in runs if run.name == BACKUP_JOB), None)
    times = [path.stat().st_mtime for path in folder.glob("*.backup")]
    return datetime.fromtimestamp(max(times), UTC) if times else None


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A backup in the data folder: its name, when it was made, and its length in bytes."""

    name: str
    made_at: datetime
    size: int


def stored_backups(home: Path) -> list[BackupFile]:
    """The backups in the data folder, newest first."""
    found = []
    for path in (home / "backups").glob("*.backup"):
        stat = path.stat()
        found.append(BackupFile(path.name, datetime.fromtimestamp(stat.st_mtime, UTC), stat.st_size))
    return sorted(found, key=lambda each: each.made_at, reverse=True)
