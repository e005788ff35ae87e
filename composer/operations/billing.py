"""Charging tenants by a provider: its pages for their admins, and the plan that follows what they have paid for.

What has been paid is asked of the provider whenever it says that something changed, and once a day. So it does not
matter in which order its events come, how often, or whether one is lost.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from composer.errors import BadInput, Conflict, Misconfigured, Unavailable
from composer.ingest.chosen_settings import PLAN_NAME
from composer.ingest.tenants import TenantDirectory
from composer.operations.changing_settings import OF_PLAN, changeable
from composer.ports.billing import Subscription
from composer.repositories.billing import BillingCustomer
from composer.repositories.database import Database, Transaction
from composer.settings import Settings
from composer.stores.billing.stripe import Stripe, StripeEvent, event_of, is_signed

logger = structlog.get_logger()

BILLING: Final = "billing"  # who changes the plan, in the audit log
BILLING_PAGE: Final = "/usage"  # where the provider leads people back to
MOST_ATTEMPTS: Final = 5  # where others write what they were told meanwhile
NOT_FOR_SALE: Final = "There is no plan '{plan}' to buy: choose one of {known}."
HAS_IT: Final = "This workspace has that plan already."
NO_CUSTOMER: Final = "Nothing was bought here yet: choose a plan first."
# The states of a subscription that gives its plan. past_due: a payment failed, and the provider still tries again.
GIVING: Final = frozenset({"active", "trialing", "past_due"})
TO_BE_PAID: Final = frozenset({"unpaid", "paused"})  # it goes on once its customer pays at the provider
NONE: Final = "none"  # no subscription


@dataclass(frozen=True, slots=True)
class Paid:
    """What a tenant has paid for: the state of its subscription (a word of the provider, or `none`), and the plan that
    it gives."""

    status: str = NONE
    plan: str | None = None
    until: datetime | None = None
    ends: bool = False


@dataclass(frozen=True, slots=True)
class BillingState:
    """What a tenant has: the plan of nexus.toml, and where billing is on the state of its subscription (`none`, or the
    provider's word), until when it is paid and whether it ends then, and which plans can be bought. `is_customer`:
    there is something to manage at the provider."""

    plan: str | None
    status: str | None = None
    until: datetime | None = None
    ends: bool = False
    plans: tuple[str, ...] = ()
    is_customer: bool = False


class Billing:
    """Billing by the provider of nexus.toml."""

    def __init__(self, settings: Settings, directory: TenantDirectory, database: Database, stripe: Stripe) -> None:
        self._settings, self._directory, self._database, self._stripe = settings, directory, database, stripe
        self._sold = sold(settings)
        self._plans = {price: name for name, plan in settings.plans.items() for price in plan.price}

    async def state(self, tx: Transaction, tenant: uuid.UUID) -> BillingState:
        """What a tenant has."""
        found, plan = await tx.billing.get(), self._directory.plan_name(tenant)
        if found is None:
            return BillingState(plan, NONE, plans=tuple(self._sold))
        return BillingState(plan, found.status, found.until, found.ends, tuple(self._sold), is_customer=True)

    async def checkout(self, tenant: uuid.UUID, slug: str, plan: str) -> str:
        """The address of the provider's page on which a plan is bought, or taken in place of the one that there is.
        Raises BadInput, Conflict where the tenant has it, Unavailable and Misconfigured."""
        price = self._sold.get(plan)
        if price is None:
            raise BadInput(NOT_FOR_SALE.format(plan=plan, known=", ".join(self._sold)))
        stored = await self._customer(tenant)
        found = None if stored is None else await self._stripe.customer(stored.customer)
        if found is None:
            replaced = "" if stored is None else stored.customer
            return await self._stripe.checkout(await self._made(tenant, slug, replaced), tenant, price)
        held = current(found.subscriptions, self._plans)
        if held is not None and held.status in TO_BE_PAID:
            return await self._stripe.portal(found.id)
        if held is None or held.status not in GIVING:
            return await self._stripe.checkout(found.id, tenant, price)
        if self._plans.get(held.price) == plan:
            raise Conflict(HAS_IT)
        try:
            return await self._stripe.change(found.id, held, price)
        except Misconfigured:  # also where it is to end first: the page for everything says so
            logger.warning("billing.change_refused", tenant=str(tenant), plan=plan)
            return await self._stripe.portal(found.id)

    async def portal(self, tenant: uuid.UUID) -> str:
        """The address of the provider's page on which a tenant pays otherwise, cancels, and finds invoices. Raises
        Conflict where it has bought nothing yet, Unavailable and Misconfigured."""
        stored = await self._customer(tenant)
        if stored is None:
            raise Conflict(NO_CUSTOMER)
        return await self._stripe.portal(stored.customer)

    def event(self, body: bytes, signature: str, now: datetime) -> StripeEvent | None:
        """What the provider says has changed; None where it is not the provider who says so, or not now. Raises
        ValueError for what is no event."""
        secret = self._settings.stripe_webhook_secret
        signed = secret is not None and is_signed(body, signature, secret, now)
        return event_of(body) if signed else None

    async def follow(self, event: StripeEvent, now: datetime) -> None:
        """Let the plan of the tenant that an event is about follow what it has paid for. What is about nobody here is
        logged. Raises Unavailable and Misconfigured."""
        if not event.customer:
            return
        named = event.tenant
        if not named:
            found = await self._stripe.customer(event.customer)
            named = "" if found is None else found.tenant
        try:
            tenant = uuid.UUID(named)
        except ValueError:
            tenant = None
        if tenant is None or not await self.refresh(tenant, now):
            logger.warning("billing.customer_unknown", event_type=event.type, customer=event.customer)

    async def refresh(self, tenant: uuid.UUID, now: datetime) -> bool:
        """Ask the provider what a tenant has paid for, and let its plan follow that. False where it is no
        customer. Raises Unavailable and Misconfigured."""
        for _ in range(MOST_ATTEMPTS):
            stored = await self._customer(tenant)
            if stored is None:
                return False
            found = await self._stripe.customer(stored.customer)
            held = () if found is None else found.subscriptions
            given = paid(held, self._plans, stored.plan)
            counting = current(held, self._plans)
            if counting is not None and counting.price not in self._plans:
                logger.warning("billing.price_unknown", tenant=str(tenant), price=counting.price)
            async with self._database.transaction(tenant) as tx:
                if await tx.billing.note(stored.version, given.status, given.plan, given.until, ends=given.ends):
                    if given.plan != stored.plan:
                        await self._set_plan(tx, tenant, given.plan, now)
                    return True
        raise Unavailable("What this workspace has paid for changes all the time: try again later.")

    async def _set_plan(self, tx: Transaction, tenant: uuid.UUID, plan: str | None, now: datetime) -> None:
        """As an admin sets it; None: as configured."""
        of = changeable(self._settings, self._directory, tenant, self._directory.slug(tenant) or "")
        tx.audit.act_as(BILLING)
        await of.change(tx, OF_PLAN, {PLAN_NAME: plan}, now, operator=True, lasting=True)
        logger.info("billing.plan_set", tenant=str(tenant), plan=plan)

    async def _customer(self, tenant: uuid.UUID) -> BillingCustomer | None:
        async with self._database.transaction(tenant, "read") as tx:
            return await tx.billing.get()

    async def _made(self, tenant: uuid.UUID, slug: str, replaced: str) -> str:
        """A customer for a tenant that has none, or whose customer is gone. Of two that are made at once, one stays."""
        made = await self._stripe.make_customer(tenant, slug, replaced)
        async with self._database.transaction(tenant) as tx:
            await tx.billing.put(made, replaced)
            stored = await tx.billing.get()
        return made if stored is None else stored.customer


def configured_billing(settings: Settings, directory: TenantDirectory, database: Database) -> Billing | None:
    """The billing of a running Nexus; None where it is off."""
    stripe = configured_stripe(settings)
    return None if stripe is None else Billing(settings, directory, database, stripe)


def sold(settings: Settings) -> dict[str, str]:
    """The plans that can be bought, each with its price."""
    return {name: plan.price[0] for name, plan in settings.plans.items() if plan.price}


def configured_stripe(settings: Settings) -> Stripe | None:
    """Stripe's API as configured; None where billing is off."""
    if settings.billing is None or settings.stripe_secret_key is None:
        return None
    return Stripe(settings.billing, settings.stripe_secret_key, f"{settings.web_address}{BILLING_PAGE}")


def current(subscriptions: Sequence[Subscription], plans: Mapping[str, str]) -> Subscription | None:
    """The one that counts: of those that give a plan, else of all, the newest. `plans`: by their prices."""
    return max(subscriptions, key=lambda each: (each.status in GIVING, each.price in plans, each.created), default=None)


def paid(subscriptions: Sequence[Subscription], plans: Mapping[str, str], before: str | None) -> Paid:
    """What subscriptions give. One with a price that no plan has any more gives the plan that it gave `before`."""
    found = current(subscriptions, plans)
    if found is None:
        return Paid()
    plan = plans.get(found.price, before) if found.status in GIVING else None
    return Paid(found.status, plan, found.until, found.ends)
