"""The settings of one organisation, `[tenants.NAME]` in nexus.toml."""

from typing import Literal

from pydantic import Field

from composer.settings.gateway import TenantGatewaySettings
from composer.settings.retrieval import RetrievalSettings
from composer.settings.values import MAX_RETENTION_DAYS, MIN_USAGE_DAYS, Table, Zone


class TenantSettings(Table):
    """One organisation: its workspaces (`slack:T123`, or `T123` on any platform), and where its retrieval differs from
    `[retrieval]`.

    Its days begin at midnight in `timezone` (default: the common one). Messages older than `keep_days` are erased for
    good; `retention_days`, a retrieval setting, only hides them from recall. Stored prompts are emptied after
    `prompt_days`, rows of the audit log are deleted after `audit_days`, and what models used is forgotten after
    `usage_days` (defaults: the common ones). `plan` is the one of `plans` that says what it may use. What those in
    `quarantine` write waits for approval. `gateway` is where its gateway differs from `[gateway]`.
    `webhooks` says whether its people may have any (default: the common one).
    """

    workspaces: tuple[str, ...] = ()
    retrieval: RetrievalSettings = RetrievalSettings()
    timezone: Zone | None = None
    keep_days: int | None = Field(default=None, ge=1, le=MAX_RETENTION_DAYS)
    prompt_days: int | None = Field(default=None, ge=1, le=MAX_RETENTION_DAYS)
    audit_days: int | None = Field(default=None, ge=1, le=MAX_RETENTION_DAYS)
    usage_days: int | None = Field(default=None, ge=MIN_USAGE_DAYS, le=MAX_RETENTION_DAYS)
    plan: str | None = None
    gateway: TenantGatewaySettings = TenantGatewaySettings()
    quarantine: tuple[Literal["guest", "tool"], ...] = ("guest", "tool")
    webhooks: bool | None = None
