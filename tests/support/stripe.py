"""A small Stripe over real HTTP: customers, subscriptions, prices, pages to pay on, and events that it signs.

It checks what Stripe checks: the secret key, that there is what a request names, and that a request with an idempotency
key is done once. People's part is played by tests: `subscribe`, `change`, `cancel`.
"""

import hashlib
import hmac
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qsl

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from composer.settings import BillingSettings, PlanSettings
from composer.settings.server_urls import ServerUrl
from composer.stores.billing.stripe import API_VERSION
from tests.support.web import served_at

SECRET_KEY: Final = "sk_test_of_the_tests"
WEBHOOK_SECRET: Final = "whsec_of_the_tests"
MONTH: Final = 30 * 86_400
PLANS: Final = {"team": PlanSettings(price=("price_team", "price_team_old"))}
Thing = dict[str, Any]


def charged_by(stripe: "FakeStripe", plans: Mapping[str, PlanSettings] = PLANS) -> dict[str, Any]:
    """The settings of an installation that sells plans there, and that the admins of acme look after."""
    return {
        "plans": dict(plans),
        "owner": "acme/root",
        "billing": BillingSettings(provider="stripe", url=ServerUrl(stripe.url)),
        "stripe_secret_key": SecretStr(SECRET_KEY),
        "stripe_webhook_secret": SecretStr(WEBHOOK_SECRET),
    }


async def _at_once() -> None:
    """Answer without waiting for anything."""


@dataclass
class FakeStripe:
    """Stripe that is served at `url`. `now`: Unix seconds. `asked`: each request, as its method, its path and what it
    held. `status`: answers every request so, if set. `pages` is where people pay; `changes_plans`: the portal is set to
    offer that. `before_customer` is awaited before a customer is shown,
    after what is shown was looked up."""

    now: int
    url: str = ""
    customers: dict[str, Thing] = field(default_factory=dict)
    subscriptions: dict[str, Thing] = field(default_factory=dict)
    prices: dict[str, Thing] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    status: int = 0
    pages: str = "https://{kind}.stripe.test"
    changes_plans: bool = True
    before_customer: Callable[[], Awaitable[None]] = _at_once
    _done: dict[str, Thing] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def app(self) -> Starlette:
        """The API as an app."""
        return Starlette(routes=[Route("/v1/{path:path}", self._answer, methods=["GET", "POST", "DELETE"])])

    def sell(self, *prices: str, **values: Any) -> None:
        """Have recurring prices."""
        for id in prices:
            self.prices[id] = {"id": id, "active": True, "livemode": False, "recurring": {"interval": "month"}} | values

    def subscribe(self, customer: str, price: str, *, status: str = "active", **values: Any) -> Thing:
        """Let a customer subscribe, as after a page to pay on."""
        number, self.now = next(self._numbers), self.now + 1
        item = {"id": f"si_{number}", "price": {"id": price}, "current_period_end": self.now + MONTH}
        made: Thing = {
            "id": f"sub_{number}",
            "object": "subscription",
            "customer": customer,
            "status": status,
            "created": self.now,
            "items": {"data": [item]},
            "cancel_at": None,
            "cancel_at_period_end": False,
            "metadata": {"nexus_tenant": self.customers[customer]["metadata"].get("nexus_tenant", "")},
        }
        self.subscriptions[made["id"]] = made | values
        return self.subscriptions[made["id"]]

    def event(self, about: Thing, type: str = "customer.subscription.updated") -> bytes:
        """An event about something, as it is now."""
        number = next(self._numbers)
        said = {"id": f"evt_{number}", "object": "event", "type": type, "created": self.now, "data": {"object": about}}
        return json.dumps(said).encode()

    async def _answer(self, request: Request) -> Response:
        path, form = f"/v1/{request.path_params['path']}", dict(parse_qsl((await request.body()).decode()))
        self.asked.append((request.method, path, form))
        if self.status:
            return JSONResponse({"error": {"message": "so the test wants it"}}, self.status)
        if request.headers.get("authorization") != f"Bearer {SECRET_KEY}":
            return JSONResponse({"error": {"message": "Invalid API Key provided: sk_test_****"}}, 401)
        if request.headers.get("stripe-version") != API_VERSION:
            return JSONResponse({"error": {"message": "another version"}}, 400)
        kind, _, id = path.removeprefix("/v1/").partition("/")
        match (request.method, kind, id):
            case ("POST", "customers", ""):
                return self._once(request.headers.get("idempotency-key", ""), form)
            case ("GET", "customers", _):
                return await self._customer(
                    id, [value for name, value in request.query_params.multi_items() if name.startswith("expand[")]
                )
            case ("GET", "prices", _) if id in self.prices:
                return JSONResponse(self.prices[id])
            case ("POST", "checkout" | "billing_portal", "sessions"):
                return self._page(kind, form)
        return _missing(path, 404)

    def _once(self, key: str, form: dict[str, str]) -> Response:
        if key not in self._done:
            id = f"cus_{next(self._numbers)}"
            metadata = {"nexus_tenant": form["metadata[nexus_tenant]"]}
            self.customers[id] = {"id": id, "object": "customer", "name": form["name"], "metadata": metadata}
            self._done[key] = self.customers[id]
        return JSONResponse(self._done[key])

    async def _customer(self, id: str, expand: list[str]) -> Response:
        if id not in self.customers:
            return _missing(id, 404)
        shown = dict(self.customers[id])
        if "subscriptions" in expand and "deleted" not in shown:
            held = [each for each in self.subscriptions.values() if each["customer"] == id]
            shown["subscriptions"] = {"data": [each for each in held if each["status"] != "canceled"]}
        body = json.dumps(shown)  # what is changed meanwhile is not shown
        await self.before_customer()
        return Response(body, media_type="application/json")

    def _page(self, kind: str, form: dict[str, str]) -> Response:
        price = form.get("line_items[0][price]") or form.get("flow_data[subscription_update_confirm][items][0][price]")
        held = form.get("flow_data[subscription_update_confirm][subscription]")
        for wanted, known in ((form["customer"], self.customers), (price, self.prices), (held, self.subscriptions)):
            if wanted is not None and (wanted not in known or known[wanted].get("deleted")):
                return _missing(wanted, 400)
        if held is not None and not self.changes_plans:
            return JSONResponse({"error": {"message": "The portal is not set to update subscriptions."}}, 400)
        return JSONResponse({"id": "page", "url": f"{self.pages.format(kind=kind)}/{next(self._numbers)}#as_there"})


def _missing(what: str, status: int) -> Response:
    error = {"code": "resource_missing", "message": f"No such thing: '{what}'", "type": "invalid_request_error"}
    return JSONResponse({"error": error}, status)


def signed(body: bytes, at: datetime, secret: str = WEBHOOK_SECRET, scheme: str = "v1") -> dict[str, str]:
    """The header of an event that was signed at a time."""
    stamp = int(at.timestamp())
    signature = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return {"Stripe-Signature": f"t={stamp},{scheme}={signature}", "Content-Type": "application/json; charset=utf-8"}


@asynccontextmanager
async def open_stripe(now: datetime) -> AsyncIterator[FakeStripe]:
    """Stripe on a free port of this machine, with a price for each of two plans."""
    stripe = FakeStripe(int(now.timestamp()))
    stripe.sell("price_team", "price_team_old", "price_firm")
    async with served_at(stripe.app()) as url:
        stripe.url = url
        yield stripe
