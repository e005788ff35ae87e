"""Billing by a provider: `[billing]` in nexus.toml, and what else it takes."""

from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

from composer.settings.server_urls import LOCAL_HOSTS, ServerUrl
from composer.settings.values import HttpUrl, Table

BILLING_SECRETS: Final = ("stripe_secret_key", "stripe_webhook_secret")
ADD_BILLING: Final = 'add [billing] with provider = "stripe" to nexus.toml.'


def _check_url(url: ServerUrl) -> ServerUrl:
    parts = urlsplit(str.__str__(url))
    if parts.scheme != "https" and parts.hostname not in LOCAL_HOSTS:
        raise ValueError("a secret key travels over it, so it must begin with https, except for http://localhost")
    return url


def _check_secret_key(secret: SecretStr) -> SecretStr:
    if not secret.get_secret_value().startswith(("sk_", "rk_")):
        raise ValueError("it must be a secret or a restricted key, which begins with sk_ or rk_")
    return secret


def _check_webhook_secret(secret: SecretStr) -> SecretStr:
    if not secret.get_secret_value().startswith("whsec_"):
        raise ValueError("it must be the signing secret of the webhook's endpoint, which begins with whsec_")
    return secret


def _check_price(text: str) -> str:
    if not text.startswith("price_"):
        raise ValueError("it must be the id of a price, which begins with price_ (that of a product has prod_)")
    return text


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


StripeKey = Annotated[SecretStr, AfterValidator(_check_secret_key)]
WebhookSecret = Annotated[SecretStr, AfterValidator(_check_webhook_secret)]
PriceIds = Annotated[tuple[Annotated[str, AfterValidator(_check_price)], ...], BeforeValidator(_as_list)]


class BillingSettings(Table):
    """The provider that charges tenants for the plans that have a price. `url` is the address of its API, if that is
    not Stripe's own."""

    provider: Literal["stripe"]
    url: Annotated[HttpUrl, AfterValidator(_check_url)] | None = None
