"""Billing in the settings: what it takes, and what is refused by one sentence."""

from pathlib import Path

import pytest

from composer.errors import Misconfigured
from composer.ingest.chosen_settings import of_plan
from composer.settings import Settings, load_settings

TABLES = """
[plans.team]
price = ["price_new", "price_old"]
[plans.firm]
price = "price_firm"
[billing]
provider = "stripe"
"""
WHOLE = {
    "stripe_secret_key": "rk_test_1",
    "stripe_webhook_secret": "whsec_1",
    "public_url": "https://nexus.example.com",
}


def loaded(tmp_path: Path, tables: str = TABLES, **variables: str) -> Settings:
    (tmp_path / "nexus.toml").write_text(tables)
    return load_settings({f"NEXUS_{name.upper()}": value for name, value in variables.items()}, tmp_path)


def test_a_plan_has_one_price_or_several(tmp_path: Path) -> None:
    found = loaded(tmp_path, **WHOLE)
    assert [plan.price for plan in found.plans.values()] == [("price_new", "price_old"), ("price_firm",)]
    assert found.warnings == ()
    assert "rk_test_1" not in repr(found)
    assert {"rk_test_1", "whsec_1"} <= found.secrets


@pytest.mark.parametrize(
    ("tables", "missing", "reason"),
    [
        (TABLES, "stripe_secret_key", r"\[billing\] is set, but not NEXUS_STRIPE_SECRET_KEY: set both"),
        (TABLES, "stripe_webhook_secret", r"\[billing\] is set, but not NEXUS_STRIPE_WEBHOOK_SECRET: set both"),
        (TABLES, "public_url", r"\[billing\] is set, but not NEXUS_PUBLIC_URL"),
        ('[billing]\nprovider = "stripe"', "", r"\[billing\] is set, but no plan has a price"),
        ('[plans.team]\nprice = "price_1"', "", r"`plans.team.price` is set, but billing is off: add \[billing\]"),
        (TABLES.replace("price_firm", "price_old"), "", "the price 'price_old' stands under two `plans`"),
        (
            TABLES.replace("price_old", "prod_old"),
            "",
            r"`plans.team.price\[1\]` is wrong: it must be the id of a price",
        ),
        (TABLES.replace('"stripe"', '"other"'), "", "`billing.provider` is wrong"),
        (TABLES + "key = 'x'", "", "`billing.key` is not a key that Nexus knows"),
        (TABLES + "url = 'http://pay.example.com'", "", "`billing.url` is wrong: a secret key travels over it"),
    ],
)
def test_half_of_it_is_refused(tmp_path: Path, tables: str, missing: str, reason: str) -> None:
    with pytest.raises(Misconfigured, match=reason):
        loaded(tmp_path, tables, **{name: value for name, value in WHOLE.items() if name != missing})


@pytest.mark.parametrize(
    ("name", "value"),
    [("stripe_secret_key", "pk_test_1"), ("stripe_webhook_secret", "sk_test_1")],
)
def test_a_secret_of_another_kind_is_refused_and_not_quoted(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(Misconfigured, match=f"^NEXUS_{name.upper()} is wrong: it must be") as caught:
        loaded(tmp_path, **WHOLE | {name: value})
    assert value not in str(caught.value)


def test_secrets_without_the_table_are_warned_of(tmp_path: Path) -> None:
    [warning] = loaded(tmp_path, "", **WHOLE).warnings
    assert warning.startswith("A key of Stripe is set, but billing is off: add [billing]")


def test_of_plans_whose_names_differ_by_case_the_one_that_is_written_so_is_meant() -> None:
    name = of_plan(["Team", "team"]).find("name")
    assert [name.read(each) for each in ("team", "Team", "TEAM")] == ["team", "Team", "Team"]
