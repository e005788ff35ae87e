"""The settings of what is recalled, `[retrieval]` in nexus.toml."""

from typing import Literal

from pydantic import Field

from composer.settings.values import Table


class RetrievalSettings(Table):
    """How RECALL is filled: the search strategy, and at most `top_k` items and `recall_tokens` tokens. SUMMARIES has at
    most `summary_tokens`."""

    strategy: Literal["hybrid", "semantic", "recent"] = "hybrid"
    top_k: int = Field(default=12, ge=0, le=1_000)
    recall_tokens: int = Field(default=2_000, ge=0, le=1_000_000)
    summary_tokens: int = Field(default=1_500, ge=0, le=1_000_000)
