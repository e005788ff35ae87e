"""The OpenID provider in the settings: what it takes, and what is refused by one sentence."""

from pathlib import Path

import pytest

from composer.errors import Misconfigured
from composer.settings import Settings, load_settings

WHOLE = {
    "oidc_issuer": "https://login.example.com/realms/acme/",
    "oidc_client_id": "nexus",
    "oidc_client_secret": "s" * 16,
    "oidc_tenant": "acme",
    "public_url": "https://nexus.example.com/",
}


def loaded(tmp_path: Path, **variables: str) -> Settings:
    return load_settings({f"NEXUS_{name.upper()}": value for name, value in variables.items()}, tmp_path)


def test_a_provider_keeps_its_address_to_the_letter_and_leads_back_to_ours(tmp_path: Path) -> None:
    found = loaded(tmp_path, **WHOLE, oidc_email_domains="Example.com, example.org").openid
    assert found is not None
    assert (found.issuer, found.host) == ("https://login.example.com/realms/acme/", "login.example.com")
    assert found.redirect_uri == "https://nexus.example.com/login/openid/done"
    assert found.email_domains == ("example.com", "example.org")
    assert found.name_claim == "preferred_username"
    assert "s" * 16 not in repr(found)
    assert loaded(tmp_path).openid is None


@pytest.mark.parametrize("missing", [name for name in WHOLE if name.startswith("oidc")])
def test_a_provider_of_which_something_is_missing_is_refused(missing: str, tmp_path: Path) -> None:
    given = {name: value for name, value in WHOLE.items() if name != missing}
    with pytest.raises(Misconfigured, match=f"is set, but not NEXUS_{missing.upper()}: set all four"):
        loaded(tmp_path, **given)


def test_nothing_of_it_works_without_an_address_of_our_own(tmp_path: Path) -> None:
    given = {name: value for name, value in WHOLE.items() if name != "public_url"}
    with pytest.raises(Misconfigured, match=r"^NEXUS_OIDC_ISSUER is set, but not NEXUS_PUBLIC_URL, to which"):
        loaded(tmp_path, **given)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("oidc_issuer", "login.example.com", "it must be the provider's address"),
        ("oidc_issuer", "https://login.example.com?x=1", "it must be the provider's address"),
        ("oidc_issuer", "https://user:password@login.example.com", "it must be the provider's address"),
        ("oidc_issuer", "https://[::1", "it must be the provider's address"),
        ("oidc_issuer", "https://login.example.com:port", "it must be the provider's address"),
        ("oidc_issuer", "http://login.example.com", "sign-ins travel over it"),
        ("oidc_client_secret", "s" * 15, "it has at least 16 characters"),
        ("oidc_name_claim", "a claim", "a claim is named like"),
        ("oidc_email_domains", "@example.com", "it lists domains"),
        ("oidc_email_domains", "*", "it lists domains"),
    ],
)
def test_a_wrong_value_is_refused_and_not_shown(name: str, value: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured) as error:
        loaded(tmp_path, **WHOLE | {name: value})
    assert str(error.value).startswith(f"NEXUS_{name.upper()} is wrong: {reason}")
    assert "password" not in str(error.value)
