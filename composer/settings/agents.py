"""The settings of agents, `[[agents]]` in nexus.toml."""

from pydantic import Field

from composer.settings.values import Effort, Slug, Table

PERSONA = (
    "You are {name}, a member of this team who remembers what was said. Answer the question that was asked, briefly "
    "and plainly, from what you recall, and say where you recall it from. When you do not know, say so."
)


class AgentSettings(Table):
    """One bot persona. `window` and `reply_tokens` are in tokens; `model` is NEXUS_MODEL unless set, `summary_model`
    NEXUS_SUMMARY_MODEL, and without that the model itself. `fallback_models` are asked in turn when the model fails.

    `images`: the model accepts images, so it gets those that are attached to a question. `reasoning_effort` and
    `summary_effort` are passed to models that reason before they answer. `tools`: a model that can call functions may
    search and write memory while it answers, and is given at most `tool_tokens` tokens of results in one answer.
    """

    slug: Slug = "nexus"
    name: str = Field(default="Nexus", min_length=1)
    persona: str = ""
    model: str | None = None
    window: int = Field(default=128_000, ge=1_000, le=100_000_000)
    system_role: bool = True
    reply_tokens: int = Field(default=1_024, ge=1, le=1_000_000)
    images: bool = False
    summary_model: str | None = None
    fallback_models: tuple[str, ...] = ()
    reasoning_effort: Effort | None = None
    summary_effort: Effort | None = None
    tools: bool = True
    tool_tokens: int = Field(default=2_000, ge=100, le=1_000_000)
