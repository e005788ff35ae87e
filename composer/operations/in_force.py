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


def settings_in_force(
    settings: Settings, directory: TenantDirectory, tenant: uuid.UUID, slug: str, embedder: str
) -> list[SettingInForce]:
    """The settings of a tenant that only whoever runs Nexus changes, in nexus.toml or the environment. `embedder` is
    the name of the one in use, which need not be set."""
    plan = settings.plan_of(slug)
    values = {
        "timezone": str(directory.zone(tenant)),
        "audit_days": settings.audit_days_of(slug),
        "plan": None if plan is None else plan[0],
        "extraction": configured_extraction(settings).value,
        "embedder": embedder,
        "transcription": settings.transcription_model,
        "gateway": "on" if settings.upstream_of(slug) is not None else "off",
        "openid": "on" if settings.openid is not None else "off",
        "oauth": "on" if settings.public_url is not None else "off",
    }
    return [SettingInForce(name, "" if value is None else str(value)) for name, value in values.items()]
