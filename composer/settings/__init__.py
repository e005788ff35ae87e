"""Settings, each in the file of its noun. What others use is imported from here.

- `installation`: `Settings`, with all that is set once for an installation.
- `agents`, `retrieval`, `tenants`, `costs`, `billing`, `tool_servers`, `gateway`: the tables of nexus.toml.
  `credentials`: keys to a memory. `openid`: the provider whose accounts sign people in. `values`: what they are made
  of.
- `loading` reads the environment, `secrets.env` and nexus.toml. What it says of them: `refusals`, `load_warnings`.
- `libraries`: the variables that libraries read when they are imported.
"""

from composer.settings.agents import AgentSettings
from composer.settings.billing import BillingSettings
from composer.settings.costs import BudgetSettings, PlanSettings, PriceSettings
from composer.settings.credentials import (
    DEFAULT_WORKSPACE,
    VENDOR_RULE,
    is_vendor,
    owner_place,
)
from composer.settings.gateway import GatewaySettings, TenantGatewaySettings, Upstream
from composer.settings.installation import (
    FILE_ONLY_FIELDS,
    KNOWN_VARIABLES,
    LOCAL_EMBEDDERS,
    MIN_SECRET_CHARS,
    Settings,
)
from composer.settings.libraries import configure_mem0, configure_onnxruntime
from composer.settings.load_warnings import no_model_api_sentence
from composer.settings.loading import (
    SECRETS_NAME,
    environment,
    from_environment,
    load_settings,
    read_table,
    settings_files,
)
from composer.settings.openid import CALLBACK, OpenIdSettings
from composer.settings.retrieval import RetrievalSettings
from composer.settings.tenants import TenantSettings
from composer.settings.tool_servers import McpSettings
from composer.settings.values import VARIABLE_PREFIX

__all__ = [
    "CALLBACK",
    "DEFAULT_WORKSPACE",
    "FILE_ONLY_FIELDS",
    "KNOWN_VARIABLES",
    "LOCAL_EMBEDDERS",
    "MIN_SECRET_CHARS",
    "SECRETS_NAME",
    "VARIABLE_PREFIX",
    "VENDOR_RULE",
    "AgentSettings",
    "BillingSettings",
    "BudgetSettings",
    "GatewaySettings",
    "McpSettings",
    "OpenIdSettings",
    "PlanSettings",
    "PriceSettings",
    "RetrievalSettings",
    "Settings",
    "TenantGatewaySettings",
    "TenantSettings",
    "Upstream",
    "configure_mem0",
    "configure_onnxruntime",
    "environment",
    "from_environment",
    "is_vendor",
    "load_settings",
    "no_model_api_sentence",
    "owner_place",
    "read_table",
    "settings_files",
]
