"""Read and change the settings of recall that a tenant's admins may change. A change is recorded in the audit log."""

from datetime import datetime
from typing import Final

from composer.layers.retrieval_settings import STORED_PREFIX, find_setting, parse_value, with_overrides
from composer.layers.semantic import Retrieval
from composer.repositories.database import Transaction

AS_CONFIGURED: Final = "default"


async def chosen_retrieval(tx: Transaction, configured: Retrieval) -> Retrieval:
    """How recall is done now: as configured, but for what admins have changed."""
    return with_overrides(configured, await tx.settings.all())


async def change_retrieval(tx: Transaction, name: str, value: str, now: datetime) -> None:
    """Set one setting, or with AS_CONFIGURED let the configured value apply again. Raises BadInput with a sentence that
    says which names and values there are."""
    key = STORED_PREFIX + find_setting(name).name
    if value.lower() == AS_CONFIGURED:
        await tx.settings.reset(key)
    else:
        await tx.settings.set(key, parse_value(name, value), now)
