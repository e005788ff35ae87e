"""What a person sets for themselves. It is read with the facts of each request, and kept nowhere else."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

from composer.memory.reminding import follow_zone
from composer.model import PersonalSettings
from composer.people.credentials.principal import KeyPermission, Principal
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess, owned_by_bearer


def own_settings(principal: Principal, access: EntryAccess) -> PersonalSettings:
    """What the person has set. Raises Refused without the permission, and for a tool."""
    principal.require(KeyPermission.MANAGE)
    owned_by_bearer(access)
    return access.settings


async def change_own_settings(
    tx: Transaction, access: EntryAccess, changed: Mapping[str, Any], now: datetime, zone: tzinfo
) -> PersonalSettings:
    """Set some fields of the person's settings, and return all of them. `access` was gathered in this
    transaction, which is alone, so that two changes do not undo each other. Reminders that repeat come at the hours of
    the new time zone; `zone` is the tenant's. Raises Refused for a tool."""
    owned_by_bearer(access)
    before = access.settings
    after = replace(before, **changed)
    if after == before:
        return before
    names = [name for name in changed if getattr(before, name) != getattr(after, name)]
    await tx.people.set_own(access.user, after, names, now)
    if after.timezone != before.timezone:
        for user in access.users:
            await follow_zone(tx, access.tenant_id, user, now, zone)
    return replace(after, changed_at=now)
