"""How long a tenant keeps what, where its admins may change it: kept in the database over nexus.toml, as the settings
of recall are. How long the audit log is kept they may not change: it has what they did."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from composer.errors import Conflict
from composer.layers.retrieval_settings import KEEP_DAYS, KEEP_DAYS_HELP
from composer.layers.tenant_settings import Setting, change, chosen, group
from composer.repositories.database import Transaction
from composer.settings import Settings
from composer.settings.values import MAX_RETENTION_DAYS, MIN_USAGE_DAYS

FOR_EVER: Final = 0


@dataclass(frozen=True, slots=True)
class Retention:
    """For how many days messages (0: for ever), the prompts of answers, and what models used are kept."""

    keep_days: int = FOR_EVER
    prompt_days: int = 30
    usage_days: int = 400


RETENTION: Final = group(
    "retention.",
    (
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
    ),
)


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


async def change_retention(
    tx: Transaction, wanted: Mapping[str, Any], configured: Retention, now: datetime, *, confirmed: bool
) -> None:
    """Set how long what is kept, as `change` does.

    Raises BadInput for days that there are not, and, unless `confirmed`, ErasesMore with what the next run of the job
    would then erase besides.
    """
    before = await chosen(tx, RETENTION, configured)
    days: dict[str, Any] = {
        name: getattr(configured, name) if value is None else RETENTION.find(name).read(value)
        for name, value in wanted.items()
    }
    if not confirmed:
        await _require_no_losses(tx, before, replace(before, **days), now)
    await change(tx, RETENTION, wanted, configured, now)


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
