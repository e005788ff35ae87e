"""Tenants: which one owns a workspace, which agents it has, and how it retrieves memories."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Final, Self

from composer.layers.semantic import Retrieval
from composer.model import Agent
from composer.repositories.database import Database
from composer.settings import AgentSettings, Settings
from composer.workspace import Workspace, agent_id, tenant_id

CONSOLE: Final = "console"


class TenantDirectory:
    """The tenants of nexus.toml, and one tenant for each workspace that it does not name.

    `stored` are the workspaces (tenant's slug, platform, name) of the database. The tenant of an unnamed workspace has
    a slug that no configured tenant can have (`slack:T123`). Terminal workspaces, and those stored before slugs
    contained the platform, have the plain name as their slug.
    """

    def __init__(self, settings: Settings, stored: Iterable[tuple[str, str, str]] = ()) -> None:
        self._settings = settings
        self._plain = {(platform, name) for slug, platform, name in stored if slug == name}
        self._plain_names = {name for _, name in self._plain}
        self._slugs = {tenant_id(slug): slug for slug in settings.tenants}
        self._agents: dict[uuid.UUID, tuple[Agent, ...]] = {}

    @classmethod
    async def load(cls, settings: Settings, database: Database) -> Self:
        """The directory over a database. Reads the workspaces of every tenant whose slug may be a plain name."""
        stored: list[tuple[str, str, str]] = []
        for tenant, slug in await database.tenants():
            if slug in settings.tenants or ":" in slug:
                continue
            async with database.transaction(tenant, snapshot=True) as tx:
                stored += [(slug, platform, name) for platform, name in await tx.people.workspaces()]
        return cls(settings, stored)

    def workspace(self, platform: str, name: str) -> Workspace:
        """A platform's workspace with its tenant: the one that nexus.toml names, else one of its own."""
        slug = self._settings.tenant_of(platform, name) or self._own_slug(platform, name)
        return Workspace(tenant_id(slug), slug, platform, name)

    def _own_slug(self, platform: str, name: str) -> str:
        if name not in self._settings.tenants and ":" not in name:
            if (platform, name) in self._plain:
                return name
            if platform == CONSOLE and name not in self._plain_names:
                return name
        return f"{platform}:{name}"

    def agents(self, tenant: uuid.UUID) -> tuple[Agent, ...]:
        """The configured agents, with their ids in a tenant."""
        if tenant not in self._agents:
            self._agents[tenant] = tuple(configured_agent(entry, tenant) for entry in self._settings.agents)
        return self._agents[tenant]

    def agents_by_id(self, tenant: uuid.UUID) -> Mapping[uuid.UUID, Agent]:
        """The same, by id."""
        return {agent.id: agent for agent in self.agents(tenant)}

    def retrieval(self, tenant: uuid.UUID) -> Retrieval:
        """How recall is done for a tenant, as configured."""
        chosen = self._settings.retrieval_of(self._slugs.get(tenant, ""))
        return Retrieval(chosen.strategy, chosen.top_k, chosen.recall_tokens)


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
    )
