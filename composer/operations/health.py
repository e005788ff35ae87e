"""Whether all is well with a tenant, and with the process that serves it, for the tenant's admins: one line for each
thing, and for what is not well what to do. Lines hold figures, and names of ours: never names of rooms or people."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final

from composer.ingest.tenants import TenantDirectory
from composer.model import Agent
from composer.operations.backups import BACKUP_PERIOD, newest_backup
from composer.operations.doctor import UNREAD_FOR
from composer.operations.readiness import missing
from composer.ports.clock import Clock
from composer.repositories.database import Transaction
from composer.repositories.job_ledger import StoredRun
from composer.repositories.usage import Dimension
from composer.settings import Settings, owner_place
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.working_cache import RedisWorkingCache

UNSEALED_FOR: Final = timedelta(hours=1)  # rows are sealed every five minutes


@dataclass(frozen=True, slots=True)
class HealthLine:
    """One thing that Nexus needs. `ok` is None for what is worth knowing and harms nothing. `text` is a sentence of
    ours with `values` to fill in, so that pages can translate it, and `many` the same for a first value that is not
    one."""

    name: str
    ok: bool | None
    text: str
    values: Mapping[str, str | int] = field(default_factory=dict)
    many: str = ""

    @property
    def count(self) -> int:
        """By which `text` or `many` is chosen."""
        return int(next(iter(self.values.values()))) if self.many else 1

    @property
    def said(self) -> str:
        """The sentence in English."""
        text = self.text if self.count == 1 else self.many
        return text % self.values if self.values else text


class HealthChecks:
    """The checks of a running Nexus."""

    def __init__(
        self,
        settings: Settings,
        directory: TenantDirectory,
        database: PostgresDatabase,
        cache: RedisWorkingCache,
        clock: Clock,
    ) -> None:
        self._settings, self._directory = settings, directory
        self._database, self._cache, self._clock = database, cache, clock

    async def looks_after_installation(self, tenant: uuid.UUID) -> bool:
        """Whether the admins of a tenant may see what concerns all tenants of the installation, such as jobs and
        backups: those of the only tenant, unless that is who pays, and those of the tenant of NEXUS_OWNER."""
        if self._settings.billing is None and [each for each, _ in await self._database.tenants()] == [tenant]:
            return True
        if self._settings.owner is None:
            return False
        platform, name, _ = owner_place(self._settings.owner)
        return self._directory.workspace(platform, name).tenant_id == tenant

    async def of(
        self, tenant: uuid.UUID, connected: Mapping[str, bool], runs: Sequence[StoredRun] | None
    ) -> list[HealthLine]:
        """All lines, what is wrong first. `connected` says of each platform that is served whether it is connected;
        `runs` are the last ones of the jobs (None: this tenant's admins may not see them)."""
        now = self._clock.now()
        today = now.astimezone(self._directory.zone(tenant)).date()
        found = [_stores(await missing(self._database, self._cache)), *_platforms(connected)]
        found.append(_models(self._settings, self._directory.agents(tenant)))
        async with self._database.transaction(tenant, "read") as tx:
            found += [await _learning(tx), *await _calls(tx, today), *await _left_behind(tx, now)]
            found.append(await _audit(tx, now))
            if runs is not None:
                found.append(_processes(await tx.maintenance.processes()))
        if runs is not None:
            found.append(_backup(self._settings, runs, now))
            warnings = self._settings.warnings
            found += [HealthLine("settings", None, "%(what)s", {"what": warning}) for warning in warnings]
        return sorted(found, key=lambda line: line.ok is not False)


def _stores(missing_: Sequence[str]) -> HealthLine:
    if missing_:
        return HealthLine("stores", False, "Nexus can't serve as it should: %(what)s", {"what": " ".join(missing_)})
    return HealthLine("stores", True, "both answer")


def _processes(living: int) -> HealthLine:
    one, many = "%(living)s is running", "%(living)s are running"
    return HealthLine("processes", True, one, {"living": living}, many)


def _platforms(connected: Mapping[str, bool]) -> list[HealthLine]:
    return [
        HealthLine(name, True, "connected")
        if is_on
        else HealthLine(name, False, "not connected: Nexus tries again by itself, and its log says why")
        for name, is_on in connected.items()
    ]


def _models(settings: Settings, agents: Sequence[Agent]) -> HealthLine:
    named = list(dict.fromkeys(agent.model for agent in agents if agent.model))
    if not named or not settings.has_model_api:
        return HealthLine("models", None, "none is set: whoever runs Nexus connects one with nexus setup")
    return HealthLine("models", True, "%(what)s", {"what": ", ".join(named)})


async def _calls(tx: Transaction, today: date) -> list[HealthLine]:
    kinds = [each.figures for each in await tx.usage.of_everyone(Dimension.KIND, today, today, ())]
    failed, refused = sum(each.failures for each in kinds), sum(each.refused for each in kinds)
    found = []
    if failed:
        one = "%(failed)s of %(all)s has failed today: the log of Nexus says why"
        many = "%(failed)s of %(all)s have failed today: the log of Nexus says why"
        values = {"failed": failed, "all": sum(each.calls for each in kinds)}
        found.append(HealthLine("calls", None, one, values, many))
    if refused:
        sentence = "%(refused)s refused today, since a budget is used up: see Usage"
        found.append(HealthLine("budgets", False, sentence, {"refused": refused}))
    return found


async def _learning(tx: Transaction) -> HealthLine:
    backlog = await tx.maintenance.backlog()
    if backlog.parked:
        one = "%(parked)s conversation waits after several failures: mend the model, and start Nexus again"
        many = "%(parked)s conversations wait after several failures: mend the model, and start Nexus again"
        return HealthLine("learning", False, one, {"parked": backlog.parked}, many)
    waiting = backlog.unindexed + backlog.unembedded + backlog.unextracted
    if waiting:
        one, many = "%(waiting)s thing left to do", "%(waiting)s things left to do"
        return HealthLine("learning", True, one, {"waiting": waiting}, many)
    return HealthLine("learning", True, "up to date")


async def _left_behind(tx: Transaction, now: datetime) -> list[HealthLine]:
    """What could not be read, indexed or taken back; no line where there is nothing."""
    unread = len(await tx.conversations.unread(now - UNREAD_FOR))
    skipped = sum(each.count for each in await tx.recall.skipped())
    refused = sum(each.count for each in await tx.deliveries.refused_retractions())
    found = []
    if unread:
        one = "%(unread)s can't be read: let Nexus into it again"
        many = "%(unread)s can't be read: let Nexus into them again"
        found.append(HealthLine("channels", False, one, {"unread": unread}, many))
    if skipped:
        one = "%(skipped)s could not be indexed, and is found by its words at most"
        many = "%(skipped)s could not be indexed, and are found by their words at most"
        found.append(HealthLine("messages", None, one, {"skipped": skipped}, many))
    if refused:
        one = "%(refused)s is forgotten, but still shown where it was posted: let Nexus into that room again"
        many = "%(refused)s are forgotten, but still shown where posted: let Nexus into these rooms again"
        found.append(HealthLine("retractions", False, one, {"refused": refused}, many))
    return found


async def _audit(tx: Transaction, now: datetime) -> HealthLine:
    waiting, oldest = await tx.audit.count_waiting()
    if not waiting or oldest is None:
        return HealthLine("audit", True, "every row is sealed")
    if now - oldest > UNSEALED_FOR:
        one = "%(rows)s row is not sealed for more than an hour: run the job that seals it"
        many = "%(rows)s rows are not sealed for more than an hour: run the job that seals them"
        return HealthLine("audit", False, one, {"rows": waiting}, many)
    one, many = "%(rows)s row waits for its seal", "%(rows)s rows wait for their seal"
    return HealthLine("audit", True, one, {"rows": waiting}, many)


def _backup(settings: Settings, runs: Sequence[StoredRun], now: datetime) -> HealthLine:
    newest = newest_backup(settings.home, runs)
    if newest is None:
        if not settings.backups:
            return HealthLine("backup", None, "none is scheduled: NEXUS_BACKUPS is 0")
        return HealthLine("backup", None, "there is none yet: run it below, or wait for the morning")
    hours = max(0, int((now - newest).total_seconds() // 3_600))
    if settings.backups and now - newest > 2 * BACKUP_PERIOD:
        return HealthLine("backup", False, "the newest is %(days)s days old: run it below", {"days": hours // 24})
    if not hours:
        return HealthLine("backup", True, "less than an hour ago")
    if hours < 48:
        return HealthLine("backup", True, "%(hours)s h ago", {"hours": hours})
    return HealthLine("backup", True, "%(days)s days ago", {"days": hours // 24})
