"""`/v1/billing`: the plan that a workspace has and what it has paid for, for its admins; and what the provider says."""

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from bot.web.call import Calling
from bot.web.dependencies import Nexus
from bot.web.principal import Admin
from bot.web.problems import RequestRefused, documented, problem
from bot.web.router import Router
from bot.web.routes.admin_operations import MAX_PLAN_CHARS
from bot.web.shapes.entries import RequestBody
from bot.web.state import WebState
from composer.operations.billing import Billing, BillingState

STRIPE_EVENTS_PATH: Final = "/billing/stripe"
BILLING_OFF: Final = "Plans are not sold here: whoever runs Nexus sets them."
_ERRORS: Final[dict[int | str, dict[str, Any]]] = documented(401, 403, 429)
_CHANGE_ERRORS: Final[dict[int | str, dict[str, Any]]] = documented(401, 403, 404, 409, 422, 429, 503)

router = Router("/v1/billing", tags=["billing"])
events = APIRouter()


class BillingResponse(BaseModel):
    """What the workspace has. `plan`: its name, null where it has none. `changeable`: it is bought here, and `plans`
    are those that can be. `status` is that of the subscription, in the provider's words (`active`, `past_due`: a
    payment failed and is tried again), `none` without one, and null where plans are not sold. `until`: until when it is
    paid; `ends`: it is not renewed then."""

    plan: str | None
    status: str | None
    until: datetime | None
    ends: bool
    changeable: bool
    plans: list[str]


class CheckoutRequest(RequestBody):
    """Which plan to buy: one of `plans`."""

    plan: Annotated[str, Field(min_length=1, max_length=MAX_PLAN_CHARS)]


class ProviderPage(BaseModel):
    """The address of a page of the provider, for the browser of whoever asked. It is valid for minutes, and opens what
    it is about to whoever has it."""

    url: str


@router.get("", summary="Show the plan", response_model=BillingResponse, responses=_ERRORS)
async def show_billing(_: Admin, nexus: Nexus, call: Calling) -> BillingResponse:
    """The plan, and what has been paid for it, as the provider said last. For admins of the workspace."""
    tenant = call.principal.tenant_id
    if nexus.billing is None:
        found = BillingState(call.app.directory.plan_name(tenant))
    else:
        async with call.reading() as (tx, _access):
            found = await nexus.billing.state(tx, tenant)
    return BillingResponse(
        plan=found.plan,
        status=found.status,
        until=found.until,
        ends=found.ends,
        changeable=bool(found.plans),
        plans=list(found.plans),
    )


@router.post("/checkout", summary="Buy a plan", response_model=ProviderPage, responses=_CHANGE_ERRORS)
async def buy_plan(_: Admin, nexus: Nexus, call: Calling, sent: CheckoutRequest) -> ProviderPage:
    """The page on which a plan is bought, or taken in place of the one that there is. The plan changes once it is paid.
    404 where plans are not sold, 409 where the workspace has that one."""
    who = call.principal
    return ProviderPage(url=await billing_of(nexus).checkout(who.tenant_id, who.tenant, sent.plan))


@router.post("/portal", summary="Manage billing", response_model=ProviderPage, responses=_CHANGE_ERRORS)
async def manage_billing(_: Admin, nexus: Nexus, call: Calling) -> ProviderPage:
    """The page on which one pays otherwise, cancels, and finds invoices. 404 where plans are not sold, 409 where
    nothing was bought yet."""
    return ProviderPage(url=await billing_of(nexus).portal(call.principal.tenant_id))


@events.post(STRIPE_EVENTS_PATH, include_in_schema=False)
async def receive_stripe_event(request: Request, nexus: Nexus) -> Response:
    """Take an event that Stripe signed. It looks at the status alone, and sends again what is not answered with 200."""
    assert nexus.billing is not None
    body, now = await request.body(), nexus.app.clock.now()
    try:
        event = nexus.billing.event(body, request.headers.get("stripe-signature", ""), now)
    except ValueError:
        return problem(400)
    if event is None:
        return problem(401, "This is not signed by the provider, or too long ago.")
    await nexus.billing.follow(event, now)
    return Response(status_code=200)


def billing_of(nexus: WebState) -> Billing:
    """The billing. Raises RequestRefused where it is off."""
    if nexus.billing is None:
        raise RequestRefused(404, BILLING_OFF)
    return nexus.billing
