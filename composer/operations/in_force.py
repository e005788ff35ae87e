"""The settings that are in force for a tenant, for its admins to see: no key, no secret, no address of a server."""

import uuid
from dataclasses import dataclass

from composer.ingest.tenants import TenantDirectory
from composer.settings import Settings
from composer.stores.models.configured import configured_extraction


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """A setting as it is: its name, and its value as it would be written ("" for none)."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class AgentInForce:
    """An agent as it is configured. `context` is its model's window, in tokens."""

    slug: str
    name: str
    model: str
    fallbacks: tuple[str, ...]
    context: int
    tools: bool


def agents_in_force(directory: TenantDirectory, tenant: uuid.UUID) -> list[AgentInForce]:
    """The agents of a tenant."""
    return [
        AgentInForce(each.slug, each.name, each.model, tuple(each.fallback_models), each.window, each.tools)
        for each in directory.agents(tenant)
    ]


def settings_in_force(
    settings: Settings, directory: TenantDirectory, tenant: uuid.UUID, slug: str
) -> list[SettingInForce]:
    """The settings of a tenant that only whoever runs Nexus changes, in nexus.toml or the environment."""
    plan = directory.plan(tenant)
    values = {
        "timezone": str(directory.zone(tenant)),
        "keep_days": settings.keep_days_of(slug),
        "audit_days": settings.audit_days_of(slug),
        "usage_days": settings.usage_days_of(slug),
        "prompt_days": settings.prompt_days_of(slug),
        "quarantine": ", ".join(sorted(directory.quarantine(tenant))),
        "plan": None if plan is None else plan.name,
        "extraction": configured_extraction(settings).value,
        "embedder": settings.embedder,
        "transcription": settings.transcription_model,
        "gateway": "on" if settings.upstream_of(slug) is not None else "off",
        "openid": "on" if settings.openid is not None else "off",
        "oauth": "on" if settings.public_url is not None else "off",
    }
    return [SettingInForce(name, "" if value is None else str(value)) for name, value in values.items()]
