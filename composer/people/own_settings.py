"""What a person sets for themselves over the API. It is read with the facts of each request, and kept nowhere else."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

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
    tx: Transaction, principal: Principal, access: EntryAccess, changed: Mapping[str, Any], now: datetime
) -> PersonalSettings:
    """Set some fields of the person's settings, and return all of them. `access` was gathered in this
    transaction, which is alone, so that two changes do not undo each other. Raises as `own_settings`."""
    before = own_settings(principal, access)
    after = replace(before, **changed)
    if after == before:
        return before
    names = [name for name in changed if getattr(before, name) != getattr(after, name)]
    await tx.own_settings.put(access.user, after, names, now)
    return replace(after, changed_at=now)
