"""The settings of what models cost and what tenants may use: `[prices]`, `[[budgets]]` and `[plans]` in nexus.toml."""

from decimal import Decimal
from typing import Literal

from pydantic import Field, model_validator

from composer.settings.billing import PriceIds
from composer.settings.values import Table


class PriceSettings(Table):
    """What a model costs, in `currency` per million tokens. `cached_input` is `input` unless set."""

    input: Decimal = Field(ge=0, le=1_000_000)
    cached_input: Decimal | None = Field(default=None, ge=0, le=1_000_000)
    output: Decimal = Field(ge=0, le=1_000_000)


class PlanSettings(Table):
    """How much a tenant of the plan may use: `entries` at any time; writes, reads, searches and chats over the API, and
    `tokens` of models, in each month of its time zone. What is left out is not limited. `price`: its prices at the
    billing provider, of which the first is what it is sold for; without one nobody can buy it."""

    entries: int | None = Field(default=None, ge=0, le=10**12)
    writes: int | None = Field(default=None, ge=0, le=10**15)
    reads: int | None = Field(default=None, ge=0, le=10**15)
    searches: int | None = Field(default=None, ge=0, le=10**15)
    chats: int | None = Field(default=None, ge=0, le=10**15)
    tokens: int | None = Field(default=None, ge=0, le=10**15)
    price: PriceIds = ()


class BudgetSettings(Table):
    """How much each tenant may use in each day or month of its time zone: in tokens, in money, or in both.

    It is for one `tenant`, one `agent` (its slug) and one `kind` of work, where these are set.
    """

    per: Literal["day", "month"]
    tokens: int | None = Field(default=None, ge=0, le=10**15)
    money: Decimal | None = Field(default=None, ge=0, le=10**12)
    tenant: str | None = None
    agent: str | None = None
    kind: Literal["answers", "extraction", "summaries", "embeddings", "transcription", "gateway"] | None = None

    @model_validator(mode="after")
    def _check_limit(self) -> "BudgetSettings":
        if self.tokens is None and self.money is None:
            raise ValueError("a budget needs a limit: set tokens, money, or both")
        return self
