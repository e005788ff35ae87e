"""Which customer of the billing provider a tenant is, and what that has paid for."""

from dataclasses import dataclass
from datetime import datetime

from composer.ports.database import Statements


@dataclass(frozen=True, slots=True)
class BillingCustomer:
    """A tenant's customer, by its id at the provider, and its subscription as it was when the provider was asked last
    (composer.operations.billing.Paid). `version` counts how often that was."""

    customer: str
    status: str
    plan: str | None
    until: datetime | None
    ends: bool
    version: int


class BillingCustomers:
    """The customer of one tenant."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def get(self) -> BillingCustomer | None:
        """The customer; None while there is none."""
        return await self._sql.fetch_one_as(BillingCustomer, "billing_customer_get")

    async def put(self, customer: str, replaced: str) -> None:
        """Store a customer in place of another one ("": of none). One that was stored meanwhile stays."""
        await self._sql.execute("billing_customer_put", customer=customer, replaced=replaced)

    async def note(self, version: int, status: str, plan: str | None, until: datetime | None, *, ends: bool) -> bool:
        """Store what the provider said after this version was read; False where something newer is stored."""
        values = {"status": status, "plan": plan, "until": until, "ends": ends}
        return await self._sql.fetch_value("billing_customer_note", version=version, **values) is not None
