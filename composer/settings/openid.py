"""The OpenID provider whose accounts sign people in."""

import re
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

from composer.settings.server_urls import LOCAL_HOSTS

MIN_OIDC_SECRET_CHARS = 16  # a browser is given what is signed with it, so it must not be guessed
CALLBACK = "/login/openid/done"  # where the provider leads a browser back to
_LABEL = re.compile(r"[a-z0-9-]{1,63}", re.ASCII)  # of a domain
_CLAIM = re.compile(r"[A-Za-z0-9_.:/-]{1,100}", re.ASCII)


@dataclass(frozen=True, slots=True)
class OpenIdSettings:
    """A provider, and who may sign in by it: people of one tenant, and with `email_domains` only those whose verified
    e-mail address is in one of them. `name_claim` holds what an account is called in lists."""

    issuer: str
    client_id: str
    client_secret: SecretStr
    tenant: str
    name_claim: str
    email_domains: tuple[str, ...]
    redirect_uri: str

    @property
    def host(self) -> str:
        """The provider's name, for people."""
        return urlsplit(self.issuer).netloc


def _check_issuer(text: str) -> str:
    """The issuer exactly as it is: it is compared with what the provider calls itself, its last slash too."""
    example = "it must be the provider's address without a login, a query or a fragment, like https://login.example.com"
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(example) from error
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(example)
    if parts.scheme == "http" and host not in LOCAL_HOSTS:
        raise ValueError("sign-ins travel over it, so it must begin with https, except for http://localhost")
    return text


def _check_secret(secret: SecretStr) -> SecretStr:
    if len(secret.get_secret_value()) < MIN_OIDC_SECRET_CHARS:
        raise ValueError(f"it has at least {MIN_OIDC_SECRET_CHARS} characters: have the provider make a longer one")
    return secret


def _check_claim(text: str) -> str:
    if not _CLAIM.fullmatch(text):
        raise ValueError("a claim is named like preferred_username or email")
    return text


def _split_domains(value: object) -> object:
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value


def _check_domains(domains: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(domain.lower() for domain in domains)
    if not all("." in domain and all(map(_LABEL.fullmatch, domain.split("."))) for domain in found):
        raise ValueError("it lists domains with commas between, like example.com,example.org")
    return found


Issuer = Annotated[str, AfterValidator(_check_issuer)]
ClientSecret = Annotated[SecretStr, AfterValidator(_check_secret)]
ClaimName = Annotated[str, AfterValidator(_check_claim)]
EmailDomains = Annotated[tuple[str, ...], BeforeValidator(_split_domains), AfterValidator(_check_domains)]
