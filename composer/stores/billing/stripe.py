"""Stripe: its pages for customers, their subscriptions, and the signature of its events.

Five requests, by the HTTP client that is here anyway: Stripe's own package has 31 MB, and takes 23 MB of memory and
0.12 s of a processor to import.
"""

import hashlib
import hmac
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import structlog
from pydantic import AfterValidator, BaseModel, Field, SecretStr, ValidationError

from composer.errors import Misconfigured, NexusError, Unavailable
from composer.model import derived_id
from composer.ports.billing import Subscription
from composer.settings import BillingSettings
from composer.settings.server_urls import LOCAL_HOSTS

if TYPE_CHECKING:
    import httpx2

logger = structlog.get_logger()

STRIPE_API: Final = "https://api.stripe.com"
API_VERSION: Final = "2026-10-28.endive"  # by which its answers and events are read
STRIPE_SECONDS: Final = 15.0  # for one answer
TOLERANCE_SECONDS: Final = 300  # that an event may be old, or our clock may differ
MAX_STAMP_DIGITS: Final = 12
MAX_ERROR_CHARS: Final = 300  # of what Stripe says of an error, in the log
ENDED_STATES: Final = frozenset({"canceled", "incomplete_expired"})  # states of a subscription that never comes back
TENANT: Final = "nexus_tenant"  # of the metadata of what is made there
BILLING_NOT_SET_RIGHT: Final = "Billing is not set up right: tell whoever runs Nexus."
T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class StripeCustomer:
    """A customer that is not deleted. `tenant`: the id of the tenant for which Nexus made it, "" if it did not."""

    id: str
    tenant: str
    subscriptions: tuple[Subscription, ...]


@dataclass(frozen=True, slots=True)
class StripeEvent:
    """What an event is about: a customer, and the tenant that its metadata name ("": none)."""

    type: str
    customer: str
    tenant: str


class _PriceId(BaseModel):
    id: str


class _Item(BaseModel):
    id: str
    price: _PriceId
    current_period_end: datetime


class _Items(BaseModel):
    data: list[_Item] = Field(min_length=1)


class _Subscription(BaseModel):
    id: str
    status: str
    created: datetime
    items: _Items
    cancel_at: datetime | None = None
    cancel_at_period_end: bool = False


class _Subscriptions(BaseModel):
    data: list[_Subscription] = []


class _Customer(BaseModel):
    id: str
    deleted: bool = False
    metadata: dict[str, str] = {}
    subscriptions: _Subscriptions = _Subscriptions()


def _check_page(url: str) -> str:
    parts = urlsplit(url)
    if not parts.hostname or (
        parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in LOCAL_HOSTS)
    ):
        raise ValueError("a page to pay on begins with https")
    return url


class _Session(BaseModel):
    url: Annotated[str, AfterValidator(_check_page)]


class _Price(BaseModel):
    active: bool
    livemode: bool
    recurring: dict[str, Any] | None = None


class _Subject(BaseModel):
    id: str | None = None
    object: str = ""
    customer: str | None = None
    metadata: dict[str, str] | None = None


class _Data(BaseModel):
    object: _Subject


class _SignedEvent(BaseModel):
    type: str
    data: _Data


class _Missing(Exception):
    """There is no such thing at Stripe: 404, or a parameter that names none."""


class Stripe:
    """The API of one account. Each method raises Unavailable where it does not answer, and Misconfigured where it
    refuses what was asked; what it said of that is for who runs Nexus."""

    def __init__(self, settings: BillingSettings, key: SecretStr, home: str) -> None:
        """`home` is where customers are led back to: the address of a page of ours."""
        self._url = STRIPE_API if settings.url is None else str.__str__(settings.url).rstrip("/")
        self._key, self._home = key, home
        self._tls: Any = None  # made once: reading the certificates takes a tenth of a second

    async def make_customer(self, tenant: uuid.UUID, slug: str, replaced: str) -> str:
        """Make the customer that a tenant is, and return its id. `replaced`: the one before ("": none). Asked twice, it
        is made once."""
        values = {"name": slug, f"metadata[{TENANT}]": str(tenant)}
        once = str(derived_id("billing customer", self._home, str(tenant), replaced))
        return (await self._post("/v1/customers", values, _Customer, once)).id

    async def customer(self, id: str) -> StripeCustomer | None:
        """A customer with the subscriptions that have not ended; None if there is none any more."""
        try:
            found = await self._get(f"/v1/customers/{quote(id, safe='')}", _Customer, {"expand[]": "subscriptions"})
        except _Missing:
            return None
        if found.deleted:
            return None
        held = tuple(_subscription(each) for each in found.subscriptions.data if each.status not in ENDED_STATES)
        return StripeCustomer(found.id, found.metadata.get(TENANT, ""), held)

    async def checkout(self, customer: str, tenant: uuid.UUID, price: str) -> str:
        """The address of a page on which a customer subscribes."""
        values = {
            "mode": "subscription",
            "customer": customer,
            "client_reference_id": str(tenant),
            "line_items[0][price]": price,
            "line_items[0][quantity]": "1",
            f"subscription_data[metadata][{TENANT}]": str(tenant),
            "success_url": self._home,
            "cancel_url": self._home,
        }
        return (await self._post("/v1/checkout/sessions", values, _Session)).url

    async def change(self, customer: str, subscription: Subscription, price: str) -> str:
        """The address of a page on which a customer confirms another price of a subscription."""
        flow = "flow_data[subscription_update_confirm]"
        values = {
            "flow_data[type]": "subscription_update_confirm",
            f"{flow}[subscription]": subscription.id,
            f"{flow}[items][0][id]": subscription.item,
            f"{flow}[items][0][price]": price,
            f"{flow}[items][0][quantity]": "1",
            "flow_data[after_completion][type]": "redirect",
            "flow_data[after_completion][redirect][return_url]": self._home,
        }
        return await self.portal(customer, values)

    async def portal(self, customer: str, more: Mapping[str, str] | None = None) -> str:
        """The address of the page on which a customer pays otherwise, cancels, and finds invoices."""
        values = {"customer": customer, "return_url": self._home, **(more or {})}
        return (await self._post("/v1/billing_portal/sessions", values, _Session)).url

    async def check(self, prices: Mapping[str, str]) -> str:
        """Ask for every price, by the plan that it is of. Raises as every method."""
        live = False
        for plan, price in prices.items():
            try:
                found = await self._get(f"/v1/prices/{price}", _Price)
            except _Missing as error:
                raise Misconfigured(f"Stripe knows no {price}, the price of the plan {plan}.") from error
            if not found.active or found.recurring is None:
                raise Misconfigured(f"{price}, the price of the plan {plan}, is not active and recurring at Stripe.")
            live = found.livemode
        return f"Stripe answers, in {'live' if live else 'test'} mode, and sells {', '.join(prices)}"

    async def _get(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> T:
        return await self._ask("GET", path, kind, params=query)

    async def _post(self, path: str, values: Mapping[str, str], kind: type[T], once: str | None = None) -> T:
        headers = {} if once is None else {"Idempotency-Key": once}
        try:
            return await self._ask("POST", path, kind, data=values, headers=headers)
        except _Missing as error:
            raise Misconfigured(BILLING_NOT_SET_RIGHT, operator=f"Stripe refuses {path}: {error}") from error

    async def _ask(
        self, method: str, path: str, kind: type[T], headers: Mapping[str, str] | None = None, **values: Any
    ) -> T:
        import httpx2  # noqa: PLC0415 - half of a second, for those alone who have billing

        self._tls = self._tls or httpx2.create_ssl_context()
        own = {"Authorization": f"Bearer {self._key.get_secret_value()}", "Stripe-Version": API_VERSION}
        try:
            async with httpx2.AsyncClient(timeout=STRIPE_SECONDS, verify=self._tls) as http:
                answer = await http.request(method, self._url + path, headers=own | dict(headers or {}), **values)
        except httpx2.HTTPError as error:
            raise _unavailable(f"does not answer ({type(error).__name__})") from error
        if answer.status_code >= 400:
            raise _refusal(path, answer)
        try:
            return kind.model_validate_json(answer.content)
        except ValidationError as error:
            raise _unavailable(f"answers {path} with something else") from error


def is_signed(body: bytes, header: str, secret: SecretStr, now: datetime) -> bool:
    """Whether Stripe signed an event, at most five minutes ago. `header`: `Stripe-Signature`, with a time in seconds
    and a signature by each secret that is valid (t=…,v1=…,v1=…)."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    stamp = next((value for name, _, value in parts if name == "t"), "")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= MAX_STAMP_DIGITS):
        return False
    if abs(now.timestamp() - int(stamp)) > TOLERANCE_SECONDS:
        return False
    signed = hmac.new(secret.get_secret_value().encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    given = [value.encode() for name, _, value in parts if name == "v1"]
    return any(hmac.compare_digest(signed.encode(), each) for each in given)


def event_of(body: bytes) -> StripeEvent:
    """What a signed event is about; `customer` is "" where that is no customer. Raises ValueError."""
    event = _SignedEvent.model_validate_json(body)
    found = event.data.object
    customer = found.id if found.object == "customer" else found.customer
    return StripeEvent(event.type, customer or "", (found.metadata or {}).get(TENANT, ""))


def _subscription(found: _Subscription) -> Subscription:
    item, ends = found.items.data[0], found.cancel_at_period_end or found.cancel_at is not None
    until = min(item.current_period_end, found.cancel_at or item.current_period_end)
    return Subscription(
        found.id, item.id, item.price.id, found.status, found.created.astimezone(UTC), until.astimezone(UTC), ends
    )


def _refusal(path: str, answer: "httpx2.Response") -> Exception:
    try:
        error = answer.json()["error"]
        code, said = error.get("code"), str(error.get("message", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        code, said = None, ""
    logger.warning("billing.refused", path=path, status=answer.status_code, code=code, said=said[:MAX_ERROR_CHARS])
    if answer.status_code == 404 or code == "resource_missing":
        return _Missing(said)
    if answer.status_code in (409, 429) or answer.status_code >= 500:
        return _unavailable(f"answers {path} with {answer.status_code}: {said}")
    return Misconfigured(BILLING_NOT_SET_RIGHT, operator=f"Stripe refuses {path} ({answer.status_code}): {said}")


def _unavailable(said: str) -> NexusError:
    return Unavailable("The billing provider does not answer: try again later.", operator=f"Stripe {said}.")
