"""How long a tenant keeps what, where its admins may change it: kept in the database over nexus.toml, as the settings
of recall are. How long the audit log is kept they may not change: it has what they did."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from composer.errors import BadInput, Conflict
from composer.layers.retrieval_settings import KEEP_DAYS, KEEP_DAYS_HELP, Setting
from composer.repositories.database import Transaction
from composer.settings import Settings
from composer.settings.values import MAX_RETENTION_DAYS, MIN_USAGE_DAYS

RETENTION_PREFIX: Final = "retention."  # of the keys in the database
FOR_EVER: Final = 0


@dataclass(frozen=True, slots=True)
class Retention:
    """For how many days messages (0: for ever), the prompts of answers, and what models used are kept."""

    keep_days: int = FOR_EVER
    prompt_days: int = 30
    usage_days: int = 400


RETENTION_SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(KEEP_DAYS, f"{KEEP_DAYS_HELP}; 0: for ever", FOR_EVER, MAX_RETENTION_DAYS),
        Setting(
            "prompt_days", "empties the prompts of answers that are older than this many days", 1, MAX_RETENTION_DAYS
        ),
        Setting(
            "usage_days",
            "deletes what models used, in days that are older than this many",
            MIN_USAGE_DAYS,
            MAX_RETENTION_DAYS,
        ),
    )
}


class ErasesMore(Conflict):
    """What is to be set erases more than before: `messages` that are stored now and older than `days` (None:
    no messages)."""

    def __init__(self, losses: str, messages: int | None, days: int) -> None:
        super().__init__(f"From the next night on that erases {losses}, for good. Nothing was changed: confirm it.")
        self.messages, self.days = messages, days


def configured_retention(settings: Settings, tenant: str) -> Retention:
    """How long the tenant of this slug keeps what, as configured."""
    kept = settings.keep_days_of(tenant)
    days = FOR_EVER if kept is None else kept
    return Retention(days, settings.prompt_days_of(tenant), settings.usage_days_of(tenant))


async def chosen_retention(tx: Transaction, configured: Retention) -> Retention:
    """How long what is kept now: as configured, but for what admins have changed."""
    stored = await tx.settings.all()
    chosen = {
        name: json.loads(stored[RETENTION_PREFIX + name])
        for name in RETENTION_SETTINGS
        if RETENTION_PREFIX + name in stored
    }
    return replace(configured, **chosen)


async def change_retention(
    tx: Transaction, wanted: Mapping[str, int | None], configured: Retention, now: datetime, *, confirmed: bool
) -> Retention:
    """Set how long what is kept; None lets the configured value apply again. Each change is recorded in the audit log.

    Raises BadInput for days that there are not, and, unless `confirmed`, ErasesMore with what the next run of the job
    would then erase besides.
    """
    before = await chosen_retention(tx, configured)
    after = replace(before, **{name: _days(name, days, configured) for name, days in wanted.items()})
    if not confirmed:
        await _require_no_losses(tx, before, after, now)
    for name, days in wanted.items():
        key = RETENTION_PREFIX + name
        if days is None:
            await tx.settings.reset(key)
        elif days != getattr(before, name):
            await tx.settings.set(key, json.dumps(days), now)
    return after


def _days(name: str, days: int | None, configured: Retention) -> int:
    if days is None:
        return int(getattr(configured, name))
    setting = RETENTION_SETTINGS[name]
    if not setting.minimum <= days <= setting.maximum:
        raise BadInput(f"{name} is a whole number from {setting.minimum:,} to {setting.maximum:,}.")
    return days


async def _require_no_losses(tx: Transaction, before: Retention, after: Retention, now: datetime) -> None:
    found, messages = list[str](), None
    if after.keep_days and (before.keep_days == FOR_EVER or after.keep_days < before.keep_days):
        messages = await tx.maintenance.count_messages_before(now - timedelta(days=after.keep_days))
        days = f"{after.keep_days:,} days ({messages:,} now)"
        found.append(f"messages that are older than {days} and what was made from them")
    if after.prompt_days < before.prompt_days:
        found.append(f"prompts that are older than {after.prompt_days:,} days")
    if after.usage_days < before.usage_days:
        found.append(f"what models used more than {after.usage_days:,} days ago")
    if found:
        raise ErasesMore(" and ".join(found), messages, after.keep_days)
