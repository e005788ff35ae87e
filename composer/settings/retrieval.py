"""The settings of what is recalled, `[retrieval]` in nexus.toml."""

from typing import Literal

from pydantic import Field

from composer.settings.values import Table


class RetrievalSettings(Table):
    """How RECALL is filled: the search strategy, at most `top_k` items and `recall_tokens` tokens, which is at most a
    quarter of the prompt. SUMMARIES has at most `summary_tokens`."""

    strategy: Literal["hybrid", "semantic", "recent"] = "hybrid"
    top_k: int = Field(default=20, ge=0, le=1_000)
    recall_tokens: int = Field(default=4_000, ge=0, le=1_000_000)
    summary_tokens: int = Field(default=1_500, ge=0, le=1_000_000)
