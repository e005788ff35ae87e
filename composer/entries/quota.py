"""How many entries a tenant may have, by its plan."""

from composer.repositories.database import Transaction
from composer.repositories.operations import ENTRIES
from composer.usage.plans import UNLIMITED, Plan, QuotaState


async def entry_quota(tx: Transaction, plan: Plan | None, *, adds: bool = True) -> QuotaState:
    """The quota for entries: how many the tenant has and may have. Where that is limited and this transaction `adds`
    some, no other one adds any until it ends."""
    if plan is None or plan.entries is None:
        return UNLIMITED
    if adds:
        await tx.serialize()
    return QuotaState(ENTRIES, await tx.operations.entries(), plan.entries, None)
