"""What admins may change of agents, of whose writing waits, and of the plan. Pure.

These are read where nothing waits for the database, so every process knows them (composer/ingest/tenants.py).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, get_args

from composer.layers.tenant_settings import Group, Setting, group
from composer.model import Agent, Trust
from composer.repositories.operations import Operation
from composer.settings.agents import PERSONA
from composer.settings.values import Effort
from composer.usage.plans import Plan

MAX_PERSONA_CHARS: Final = 4_000
MAX_MODEL_CHARS: Final = 200
MAX_FALLBACK_MODELS: Final = 5
MAX_AGENT_NAME_CHARS: Final = 60
_EFFORTS: Final = ("", *get_args(Effort))


@dataclass(frozen=True, slots=True)
class QuarantinedWriters:
    """Whose writing waits for approval where others read it: that of guests, of AI tools."""

    guest: bool
    tool: bool

    @property
    def held(self) -> frozenset[Trust]:
        """The same, as a set."""
        return frozenset(trust for trust in (Trust.GUEST, Trust.TOOL) if getattr(self, trust.value))


@dataclass(frozen=True, slots=True)
class Limits:
    """What a plan gives: entries at any time; in a month writes, reads, searches and chats over the API, and tokens of
    models. None: without a limit. `name`: the plan of nexus.toml that gives it ("": none of them)."""

    name: str = ""
    entries: int | None = None
    writes: int | None = None
    reads: int | None = None
    searches: int | None = None
    chats: int | None = None
    tokens: int | None = None

    def plan(self, name: str) -> Plan | None:
        """A plan of these limits; None where nothing is limited."""
        if all(getattr(self, each) is None for each in PLAN.settings):
            return None
        limits = {operation: getattr(self, operation.value, None) for operation in Operation}
        operations = {operation: most for operation, most in limits.items() if most is not None}
        return Plan(name, self.entries, self.tokens, operations)


QUARANTINE: Final = group(
    "quarantine.",
    (
        Setting("guest", "what guests write for others waits for approval", flag=True),
        Setting("tool", "what AI tools write for a project or a team waits for approval", flag=True),
    ),
)
PLAN: Final = group(
    "plan.",
    (
        Setting("entries", "at most so many entries at any time", maximum=10**12, optional=True, operator=True),
        *(
            Setting(name, f"at most so many {name} over the API in a month", 0, 10**15, optional=True, operator=True)
            for name in ("writes", "reads", "searches", "chats")
        ),
        Setting("tokens", "at most so many tokens of models in a month", 0, 10**15, optional=True, operator=True),
    ),
)
PLAN_NAME: Final = "name"
_OF_MODELS: Final = (
    Setting("model", "the model that answers", chars=MAX_MODEL_CHARS, required=True, operator=True),
    Setting("window", "the context window of the model, in tokens", 1_000, 100_000_000, operator=True),
    Setting("reply_tokens", "how long an answer may be, in tokens", 1, 1_000_000, operator=True),
    Setting("reasoning_effort", "how much the model reasons first", choices=_EFFORTS, operator=True),
    Setting(
        "fallback_models",
        "models that are asked in turn when that one fails",
        chars=MAX_MODEL_CHARS,
        most=MAX_FALLBACK_MODELS,
        operator=True,
    ),
    Setting("summary_model", "the model of its summaries", chars=MAX_MODEL_CHARS, operator=True),
    Setting("tools", "search and write memory while it answers", flag=True),
    Setting("tool_tokens", "tokens of what it finds so in one prompt", 100, 1_000_000, operator=True),
    Setting("images", "the model is given images", flag=True),
)
_AGENT_NAME: Final = Setting("name", "what people call it", chars=MAX_AGENT_NAME_CHARS, required=True)
_PERSONA: Final = Setting("persona", "what it is told of itself", chars=MAX_PERSONA_CHARS)


def of_plan(names: Iterable[str]) -> Group:
    """What may be changed of a plan: which of those of nexus.toml (`names`) it is, and every limit of it by itself."""
    known = tuple(names)
    named = (Setting(PLAN_NAME, "which plan it is", choices=("", *known), operator=True),) if known else ()
    return group(PLAN.prefix, (*named, *PLAN.settings.values()))


def of_agent(configured: Agent) -> Group:
    """What may be changed of an agent. Of one without a model, which quotes, nothing but its name and what it is told
    of itself."""
    return group(f"agents.{configured.slug}.", (_AGENT_NAME, _PERSONA, *(_OF_MODELS if configured.model else ())))


def agent_over(configured: Agent, stored: Mapping[str, str]) -> Agent:
    """An agent with what admins have changed. One that was told nothing of its own but its name is told the new one."""
    found = of_agent(configured).over(configured, stored)
    told = found.persona == PERSONA.format(name=configured.name)
    return replace(found, persona=PERSONA.format(name=found.name)) if told else found
