"""What admins of a tenant may change of its settings, over nexus.toml: every group of them, by one way."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from composer.errors import NotFound, Refused
from composer.ingest.chosen_settings import QUARANTINE, of_agent, of_plan
from composer.ingest.retention_settings import RETENTION, change_retention, configured_retention
from composer.ingest.tenants import TenantDirectory
from composer.layers.retrieval_settings import RETRIEVAL
from composer.layers.tenant_settings import Group, Setting, change
from composer.repositories.database import Transaction
from composer.settings import Settings

OF_RETRIEVAL: Final = "retrieval"
OF_RETENTION: Final = "retention"
OF_QUARANTINE: Final = "quarantine"
OF_PLAN: Final = "plan"
NOT_YOURS: Final = "Whoever looks after this Nexus changes that, since it costs them."
NO_GROUP: Final = "There is no such setting."


@dataclass(frozen=True, slots=True)
class SettingLine:
    """A setting, the value that holds, and the configured one."""

    setting: Setting
    value: Any
    configured: Any

    @property
    def is_changed(self) -> bool:
        """Whether admins have changed it."""
        return bool(self.value != self.configured)


@dataclass(frozen=True, slots=True)
class ChangeableSettings:
    """The groups of a tenant, each with its configured values, by name. `agents` are the slugs of its agents, whose
    groups have the names `agents.SLUG`."""

    groups: Mapping[str, tuple[Group, Any]]
    agents: tuple[str, ...]

    def lines(self, name: str, stored: Mapping[str, str]) -> list[SettingLine]:
        """What holds of a group. `stored`: what admins have changed, as JSON texts by their keys."""
        found, configured = self.groups[name]
        values = found.over(configured, stored)
        return [
            SettingLine(each, getattr(values, each.name), getattr(configured, each.name))
            for each in found.settings.values()
        ]

    async def change(
        self,
        tx: Transaction,
        name: str,
        wanted: Mapping[str, Any],
        now: datetime,
        *,
        operator: bool,
        confirmed: bool = False,
        lasting: bool = False,
    ) -> None:
        """Set some of a group, by the names of the settings (None: as configured). `operator`: whoever asks looks after
        the installation. `lasting`: what nexus.toml says already is to stay so if that changes.

        Raises NotFound, BadInput with a sentence that says which values there are, Refused for what costs the
        operator, and as `change_retention`.
        """
        if name not in self.groups:
            raise NotFound(NO_GROUP)
        found, configured = self.groups[name]
        if not operator and any(found.find(each).operator for each in wanted):
            raise Refused(NOT_YOURS)
        if name == OF_RETENTION:
            await change_retention(tx, wanted, configured, now, confirmed=confirmed)
        else:
            await change(tx, found, wanted, configured, now, lasting=lasting)


def changeable(settings: Settings, directory: TenantDirectory, tenant: uuid.UUID, slug: str) -> ChangeableSettings:
    """What may be changed of a tenant's settings."""
    agents = directory.configured_agents(tenant)
    groups: dict[str, tuple[Group, Any]] = {
        OF_RETRIEVAL: (RETRIEVAL, directory.retrieval(tenant)),
        OF_RETENTION: (RETENTION, configured_retention(settings, slug)),
        OF_QUARANTINE: (QUARANTINE, directory.configured_quarantine(tenant)),
        OF_PLAN: (of_plan(settings.plans), directory.configured_limits(tenant)),
    }
    groups |= {f"agents.{each.slug}": (of_agent(each), each) for each in agents}
    return ChangeableSettings(groups, tuple(each.slug for each in agents))
