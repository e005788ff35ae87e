"""Prices, budgets and the breaker: what calls cost, when there is no room for one, and which models are skipped."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from composer.model import Usage
from composer.ports.models import WorkKind
from composer.repositories.usage import Amount, Spent
from composer.usage.budgets import Budget, BudgetPeriod, first_exceeded, states
from composer.usage.circuit_breaker import FAILURES_THAT_OPEN, PAUSE, CircuitBreaker
from composer.usage.prices import Price, Prices
from tests.support.harness import ManualClock

ANSWER, EXTRACTION, SUMMARY = WorkKind.ANSWER, WorkKind.EXTRACTION, WorkKind.SUMMARY
PRICES = Prices({"small": Price(Decimal("0.40"), Decimal("0.10"), Decimal("1.60"))}, "EUR")
SPENT = [
    Spent(True, ANSWER, "nexus", Amount(100, Decimal("0.1"))),
    Spent(False, ANSWER, "nexus", Amount(1_000, Decimal("1"))),
    Spent(True, EXTRACTION, "scribe", Amount(10, Decimal("0.01")), refused=2),
]


def test_cached_tokens_cost_their_own_price_and_are_not_counted_twice() -> None:
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=500_000, cached_tokens=250_000)
    assert PRICES.cost("small", usage) == Decimal("0.30") + Decimal("0.025") + Decimal("0.80")


@pytest.mark.parametrize("name", ["large", "provider/small", "Small", " small", "small-2026-11-20", "small\n", ""])
def test_another_name_than_the_one_with_a_price_has_none(name: str) -> None:
    assert (PRICES.of(name), PRICES.cost(name, Usage(10, 10))) == (None, None)


def test_models_with_a_price_are_named_as_far_as_a_sentence_goes() -> None:
    assert Prices({}).named() == "no model has a price"
    assert PRICES.named() == "models with a price: small"
    many = Prices({f"m{number:02}": PRICES.by_model["small"] for number in range(20)})
    assert many.named().endswith("m10, m11 and 8 more")


@pytest.mark.parametrize(
    ("amount", "words"),
    [("0", "0.00 EUR"), ("1234.5", "1,234.50 EUR"), ("0.25", "0.25 EUR"), ("0.00123", "0.0012 EUR")],
)
def test_a_small_amount_shows_its_first_two_digits(amount: str, words: str) -> None:
    assert PRICES.format(Decimal(amount)) == words


@pytest.mark.parametrize(
    ("budget", "kind", "agent", "fits"),
    [
        (Budget(BudgetPeriod.DAY, tokens=150), ANSWER, "nexus", 40),  # of all work: 110 today
        (Budget(BudgetPeriod.DAY, tokens=150, kind=ANSWER), ANSWER, "nexus", 50),
        (Budget(BudgetPeriod.DAY, tokens=150, kind=EXTRACTION), EXTRACTION, "nexus", 140),
        (Budget(BudgetPeriod.DAY, tokens=150, agent="scribe"), ANSWER, "scribe", 140),
        (Budget(BudgetPeriod.DAY, tokens=150, kind=ANSWER, agent="scribe"), ANSWER, "scribe", 150),
        (Budget(BudgetPeriod.MONTH, tokens=1_200), ANSWER, "nexus", 90),
    ],
)
def test_a_budget_counts_its_kind_its_agent_and_its_period(
    budget: Budget, kind: WorkKind, agent: str, fits: int
) -> None:
    assert first_exceeded([budget], SPENT, kind, agent, Amount(fits)) is None
    assert first_exceeded([budget], SPENT, kind, agent, Amount(fits + 1)) == budget


def test_a_budget_of_other_work_refuses_nothing() -> None:
    used_up = [Budget(BudgetPeriod.DAY, tokens=0, kind=SUMMARY), Budget(BudgetPeriod.DAY, tokens=0, agent="scribe")]
    assert first_exceeded(used_up, SPENT, ANSWER, "nexus", Amount(10)) is None
    assert first_exceeded([Budget(BudgetPeriod.DAY, tokens=0)], SPENT, WorkKind.PROBE, "nexus", Amount(10)) is None


def test_a_budget_in_money_counts_money() -> None:
    budget = Budget(BudgetPeriod.MONTH, money=Decimal("1.20"))
    assert first_exceeded([budget], SPENT, ANSWER, "nexus", Amount(10**9, Decimal("0.09"))) is None
    assert first_exceeded([budget], SPENT, ANSWER, "nexus", Amount(0, Decimal("0.10"))) == budget


def test_the_state_of_a_budget_says_how_much_is_used_and_what_was_refused() -> None:
    (state,) = states([Budget(BudgetPeriod.DAY, tokens=150, kind=EXTRACTION)], SPENT)
    assert state.describe(PRICES) == (
        "extraction: 150 tokens a day: 10 tokens used; 2 calls refused, which were extracted by patterns"
    )
    one = replace(state, refused=1)
    assert one.describe(PRICES).endswith("; 1 call refused, which was extracted by patterns")


def test_periods_begin_at_midnight_and_on_the_first() -> None:
    today = date(2026, 12, 31)
    assert (BudgetPeriod.DAY.start(today), BudgetPeriod.DAY.end(today)) == (today, date(2027, 1, 1))
    assert (BudgetPeriod.MONTH.start(today), BudgetPeriod.MONTH.end(today)) == (date(2026, 12, 1), date(2027, 1, 1))
    assert BudgetPeriod.MONTH.end(date(2026, 1, 31)) == date(2026, 2, 1)


def test_a_model_that_keeps_failing_is_skipped_for_a_while_and_again_at_once_when_it_still_fails() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker(clock)
    for _ in range(FAILURES_THAT_OPEN - 1):
        breaker.record_failure("m")
    assert not breaker.is_open("m")
    breaker.record_failure("m")
    assert breaker.is_open("m")
    assert not breaker.is_open("other")
    clock.tick(PAUSE.total_seconds())
    assert not breaker.is_open("m")
    breaker.record_failure("m")
    assert breaker.is_open("m")
    clock.tick(PAUSE.total_seconds())
    breaker.record_success("m")
    breaker.record_failure("m")
    assert not breaker.is_open("m")
