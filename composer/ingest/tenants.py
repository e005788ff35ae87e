"""Tenants: which one owns a workspace, which agents it has, and how it retrieves memories."""

import asyncio
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Final, Self

from composer.errors import Unavailable
from composer.ingest.chosen_settings import PLAN, PLAN_NAME, QUARANTINE, Limits, QuarantinedWriters, agent_over
from composer.layers.semantic import Retrieval
from composer.model import CONSOLE, Agent, Trust, Workspace, agent_id, tenant_id
from composer.ports.models import WorkKind
from composer.repositories.database import Database
from composer.repositories.setting_overrides import SETTINGS_CHANGED
from composer.settings import AgentSettings, BudgetSettings, PlanSettings, Settings
from composer.usage.budgets import Budget, BudgetPeriod
from composer.usage.plans import Plan
from composer.usage.prices import Price, Prices

REREAD_SECONDS: Final = 1.0  # between tries while the database is away
OWN_PLAN: Final = "own"  # of limits that admins have set where nexus.toml names no plan


def configured_prices(settings: Settings) -> Prices:
    """The prices of models, as configured."""
    return Prices(
        {
            model: Price(each.input, each.input if each.cached_input is None else each.cached_input, each.output)
            for model, each in settings.prices.items()
        },
        settings.currency,
    )


class TenantDirectory:
    """The tenants of nexus.toml, and one tenant for each workspace that it does not name.

    `stored` are the workspaces (tenant's slug, platform, name) of the database. The tenant of an unnamed workspace has
    a slug that no configured tenant can have (`slack:T123`). Terminal workspaces, and those stored before slugs
    contained the platform, have the plain name as their slug. A workspace never gets the slug under which another one
    is stored.
    """

    def __init__(self, settings: Settings, stored: Iterable[tuple[str, str, str]] = ()) -> None:
        self._settings = settings
        self._workspaces: dict[str, set[tuple[str, str]]] = {}  # by slug
        for slug, platform, name in stored:
            self._workspaces.setdefault(slug, set()).add((platform, name))
        self._slugs = {tenant_id(slug): slug for slug in (*settings.tenants, *self._workspaces)}
        self._chosen: dict[uuid.UUID, Mapping[str, str]] = {}
        self._agents: dict[uuid.UUID, tuple[Agent, ...]] = {}
        self._rereading: set[asyncio.Task[None]] = set()
        self._database: Database | None = None

    @classmethod
    async def load(cls, settings: Settings, database: Database) -> Self:
        """The directory over a database. Reads the workspaces of every tenant that is not configured."""
        stored: list[tuple[str, str, str]] = []
        chosen, slugs = dict[uuid.UUID, Mapping[str, str]](), dict(await database.tenants())
        for tenant, slug in slugs.items():
            async with database.transaction(tenant, "read") as tx:
                chosen[tenant] = await tx.settings.all()
                if slug not in settings.tenants:
                    stored += [(slug, platform, name) for platform, name in await tx.people.workspaces()]
        found = cls(settings, stored)
        found._database, found._chosen, found._slugs = database, chosen, found._slugs | slugs
        return found

    def take(self, tenant: uuid.UUID, chosen: Mapping[str, str]) -> None:
        """Let what a tenant's admins have chosen hold from now on. `chosen`: JSON texts by their keys."""
        self._chosen[tenant] = chosen
        self._agents.pop(tenant, None)

    def on_notice(self, notice: str) -> None:
        """A process says that a tenant's settings were changed (the statement setting_set)."""
        self._reread([uuid.UUID(notice.removeprefix(SETTINGS_CHANGED))])

    def on_lost(self) -> None:
        """Some notices may have been lost."""
        self._reread(list(self._chosen))

    def _reread(self, tenants: Sequence[uuid.UUID]) -> None:
        if self._database is not None:
            task = asyncio.create_task(self._read(self._database, tenants))
            self._rereading.add(task)
            task.add_done_callback(self._rereading.discard)

    async def _read(self, database: Database, tenants: Sequence[uuid.UUID]) -> None:
        for tenant in tenants:
            while True:
                try:
                    async with database.transaction(tenant, "read") as tx:
                        self.take(tenant, await tx.settings.all())
                    break
                except Unavailable:
                    await asyncio.sleep(REREAD_SECONDS)

    async def stop(self) -> None:
        """Read nothing any more."""
        for task in list(self._rereading):
            task.cancel()

    def workspace(self, platform: str, name: str) -> Workspace:
        """A platform's workspace with its tenant: the one that nexus.toml names, else one of its own."""
        slug = self._settings.tenant_of(platform, name) or self._own_slug(platform, name)
        tenant = tenant_id(slug)
        self._slugs[tenant] = slug
        return Workspace(tenant, slug, platform, name)

    def slug(self, tenant: uuid.UUID) -> str | None:
        """The slug of a tenant; None for one that another process has made since this one began."""
        return self._slugs.get(tenant)

    def _own_slug(self, platform: str, name: str) -> str:
        may_be_plain = platform == CONSOLE and ":" not in name and name not in self._workspaces
        if name not in self._settings.tenants and (may_be_plain or self._is_stored(name, platform, name)):
            return name
        slug = f"{platform}:{name}"
        while slug in self._workspaces and not self._is_stored(slug, platform, name):
            slug = f"{platform}:{slug}"
        return slug

    def _is_stored(self, slug: str, platform: str, name: str) -> bool:
        return (platform, name) in self._workspaces.get(slug, ())

    def agents(self, tenant: uuid.UUID) -> tuple[Agent, ...]:
        """The agents, with their ids in a tenant: as configured, but for what its admins have changed."""
        if tenant not in self._agents:
            chosen = self._chosen.get(tenant, {})
            self._agents[tenant] = tuple(agent_over(each, chosen) for each in self.configured_agents(tenant))
        return self._agents[tenant]

    def configured_agents(self, tenant: uuid.UUID) -> tuple[Agent, ...]:
        """The same, as configured."""
        return tuple(configured_agent(entry, tenant) for entry in self._settings.agents)

    def agents_by_id(self, tenant: uuid.UUID) -> Mapping[uuid.UUID, Agent]:
        """The same, by id."""
        return {agent.id: agent for agent in self.agents(tenant)}

    def retrieval(self, tenant: uuid.UUID) -> Retrieval:
        """How recall is done for a tenant, as configured."""
        chosen = self._settings.retrieval_of(self._slugs.get(tenant, ""))
        return Retrieval(chosen.strategy, chosen.top_k, chosen.recall_tokens, summary_tokens=chosen.summary_tokens)

    def zone(self, tenant: uuid.UUID) -> tzinfo:
        """The time zone in which a tenant's days begin, as configured."""
        return self._settings.zone_of(self._slugs.get(tenant, ""))

    def budgets(self, tenant: uuid.UUID) -> tuple[Budget, ...]:
        """How much models may use for a tenant, as configured: by its budgets, and by the tokens of its plan."""
        slug, plan = self._slugs.get(tenant), self.plan(tenant)
        found = tuple(configured_budget(each) for each in self._settings.budgets if each.tenant in (None, slug))
        of_plan = None if plan is None else plan.tokens
        return found if of_plan is None else (*found, Budget(BudgetPeriod.MONTH, of_plan))

    def plan(self, tenant: uuid.UUID) -> Plan | None:
        """The plan of a tenant; None where nothing is limited."""
        limits = PLAN.over(self.configured_limits(tenant), self._chosen.get(tenant, {}))
        return limits.plan(self.plan_name(tenant) or OWN_PLAN)

    def plan_name(self, tenant: uuid.UUID) -> str | None:
        """Which plan of nexus.toml a tenant has; None where it has none of them."""
        found = self._plan_settings(tenant)
        return None if found is None else found[0]

    def configured_limits(self, tenant: uuid.UUID) -> Limits:
        """What the plan of a tenant gives by nexus.toml, with the name of the plan that this gives it, whatever its
        admins have chosen."""
        found, configured = self._plan_settings(tenant), self._settings.plan_of(self._slugs.get(tenant, ""))
        limits = {} if found is None else found[1].model_dump(exclude={"price"})
        return Limits(**limits, name="" if configured is None else configured[0])

    def _plan_settings(self, tenant: uuid.UUID) -> tuple[str, PlanSettings] | None:
        """The plan that was chosen for a tenant, while nexus.toml has it; else the configured one."""
        chosen = self._chosen.get(tenant, {}).get(PLAN.prefix + PLAN_NAME)
        name = None if chosen is None else str(json.loads(chosen))
        if name == "":
            return None
        if name is not None and name in self._settings.plans:
            return name, self._settings.plans[name]
        return self._settings.plan_of(self._slugs.get(tenant, ""))

    def quarantine(self, tenant: uuid.UUID) -> frozenset[Trust]:
        """Whose writes wait for approval in a tenant."""
        return QUARANTINE.over(self.configured_quarantine(tenant), self._chosen.get(tenant, {})).held

    def has_webhooks(self, tenant: uuid.UUID) -> bool:
        """Whether people of a tenant may have webhooks, as configured."""
        return self._settings.webhooks_of(self._slugs.get(tenant, ""))

    def configured_quarantine(self, tenant: uuid.UUID) -> QuarantinedWriters:
        """The same, as configured."""
        held = self._settings.quarantine_of(self._slugs.get(tenant, ""))
        return QuarantinedWriters("guest" in held, "tool" in held)


def configured_budget(entry: BudgetSettings) -> Budget:
    """A budget of nexus.toml."""
    kind = WorkKind(entry.kind) if entry.kind else None
    return Budget(BudgetPeriod(entry.per), entry.tokens, entry.money, kind, entry.agent)


def configured_agent(entry: AgentSettings, tenant: uuid.UUID) -> Agent:
    """An agent of nexus.toml, with its id in a tenant."""
    return Agent(
        agent_id(tenant, entry.slug),
        entry.slug,
        entry.name,
        entry.persona,
        entry.model or "",
        entry.window,
        entry.system_role,
        entry.reply_tokens,
        entry.images and bool(entry.model),  # the offline model reads no images
        entry.summary_model or "",
        entry.fallback_models,
        entry.reasoning_effort or "",
        entry.summary_effort or "",
        entry.tools and bool(entry.model),
        entry.tool_tokens,
    )
