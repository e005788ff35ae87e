"""What model calls cost, from the prices in the settings. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from composer.model import Usage

MAX_NAMED: Final = 12  # models, in one sentence
PER: Final = 1_000_000  # tokens, that a price is for


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs per million tokens. `cached_input` is for what the provider had cached of a prompt."""

    input: Decimal
    cached_input: Decimal
    output: Decimal

    def of(self, usage: Usage) -> Decimal:
        """What a call cost. The cached tokens are among those of the prompt; hidden reasoning is among those of the
        completion."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        fresh = usage.prompt_tokens - cached
        return (fresh * self.input + cached * self.cached_input + usage.completion_tokens * self.output) / PER


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of models by name, in `currency`."""

    by_model: Mapping[str, Price]
    currency: str = "USD"

    def of(self, model: str) -> Price | None:
        """The price that is set for exactly this name; None without one. A server may take another spelling, or a name
        with a date or a provider, for another model."""
        return self.by_model.get(model)

    def named(self) -> str:
        """The models that have a price, for people: "models with a price: gpt-4o, gpt-4.1 and 3 more"."""
        names, more = sorted(self.by_model)[:MAX_NAMED], len(self.by_model) - MAX_NAMED
        shown = ", ".join(names) + (f" and {more} more" if more > 0 else "")
        return f"models with a price: {shown}" if shown else "no model has a price"

    def cost(self, model: str, usage: Usage) -> Decimal | None:
        """What a call cost; None when the model's price is not set."""
        price = self.of(model)
        return None if price is None else price.of(usage)

    def format(self, amount: Decimal) -> str:
        """An amount for people: two digits, or as many as show the first two that are not zero."""
        digits = 2 if amount == 0 or amount >= Decimal("0.1") else 1 - amount.adjusted()
        return f"{amount:,.{digits}f} {self.currency}"
