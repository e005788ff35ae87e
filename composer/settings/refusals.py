"""Settings that are refused: each is one sentence that names the file or variable, the key, and what would be right."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from composer.errors import Misconfigured
from composer.settings.agents import AgentSettings
from composer.settings.billing import ADD_BILLING, BILLING_SECRETS, BillingSettings
from composer.settings.costs import BudgetSettings, PlanSettings, PriceSettings
from composer.settings.gateway import GatewaySettings, TenantGatewaySettings, gateway_key_variable
from composer.settings.installation import ENVIRONMENT_FIELDS, FILE_ONLY_FIELDS, Settings, variable_or_key
from composer.settings.retrieval import RetrievalSettings
from composer.settings.tenants import TenantSettings
from composer.settings.tool_servers import McpSettings, token_variable
from composer.settings.values import VARIABLE_PREFIX

_NO_WHOLE_NUMBER: Final = frozenset({"int_parsing", "int_parsing_size", "int_type", "int_from_float"})
_NO_NUMBER: Final = frozenset({"float_parsing", "float_type", "finite_number"})
_OUT_OF_BOUNDS: Final = frozenset({"greater_than", "greater_than_equal", "less_than_equal"})


def check_keys(table: Mapping[str, Any], config: Path | None) -> None:
    """Refuse keys of a nexus.toml that there are not. Raises Misconfigured."""
    for key in table:
        if key in ("home", "config"):
            raise Misconfigured(
                f"In {config}, `{key}` cannot be set: set {VARIABLE_PREFIX}{key.upper()} in the environment."
            )
        if key == "warnings" or key not in Settings.model_fields:
            raise Misconfigured(_unknown_key_sentence(config, key, (*ENVIRONMENT_FIELDS[2:], *FILE_ONLY_FIELDS)))


def check_unique(settings: Settings, config: Path | None) -> None:
    """Refuse names that are given twice, and a list of no agents. Raises Misconfigured."""
    if not settings.agents:
        raise Misconfigured(f"In {config}, `agents` is empty: name one, or leave it out.")
    for slug in _duplicates(agent.slug for agent in settings.agents):
        raise Misconfigured(f"In {config}, two `agents` have the slug {slug!r}: give each its own.")
    for workspace in _duplicates(name for tenant in settings.tenants.values() for name in tenant.workspaces):
        raise Misconfigured(
            f"In {config}, the workspace {workspace!r} is listed under two `tenants`: remove it from one."
        )
    for name, server in settings.mcp.items():
        if len(server.offered_tools(name)) < len(set(server.tools)):
            raise Misconfigured(
                f"In {config}, `mcp.{name}.tools` has two names that a model can't tell apart: list one of them."
            )


def check_plans(settings: Settings, config: Path | None) -> None:
    """Refuse plans that there are not. Raises Misconfigured."""
    named = {variable_or_key("plan", config): settings.plan}
    named |= {f"In {config}, `tenants.{slug}.plan`": tenant.plan for slug, tenant in settings.tenants.items()}
    for where, name in named.items():
        if name is not None and name not in settings.plans:
            known = ", ".join(settings.plans) or "none yet"
            raise Misconfigured(
                f"{where} names the plan {name!r}, which there is not: add [plans.{name}] to nexus.toml, or name "
                f"one of those there are ({known})."
            )


def check_billing(settings: Settings, config: Path | None) -> None:
    """Refuse billing of which something is missing, and one price for two plans. Raises Misconfigured."""
    missing = [VARIABLE_PREFIX + name.upper() for name in BILLING_SECRETS if getattr(settings, name) is None]
    sold = [name for name, plan in settings.plans.items() if plan.price]
    if settings.billing is None and sold:
        raise Misconfigured(f"In {config}, `plans.{sold[0]}.price` is set, but billing is off: {ADD_BILLING}")
    if settings.billing is None:
        return
    if missing:
        raise Misconfigured(f"In {config}, [billing] is set, but not {', '.join(missing)}: set both.")
    if not sold:
        raise Misconfigured(
            f"In {config}, [billing] is set, but no plan has a price: add `price` to one of [plans], such as "
            'price = "price_1Abc".'
        )
    for price in _duplicates(price for plan in settings.plans.values() for price in plan.price):
        raise Misconfigured(f"In {config}, the price {price!r} stands under two `plans`: remove it from one.")
    if settings.public_url is None:
        raise Misconfigured(
            f"In {config}, [billing] is set, but not NEXUS_PUBLIC_URL, to which the provider leads people back: set "
            "it, such as https://nexus.example.com."
        )


def check_keys_of_credentials(settings: Settings, config: Path | None) -> None:
    """Refuse keys that open nobody's memory, and one key for two tools. Raises Misconfigured."""
    keys = [key.get_secret_value() for key in (settings.owner_key, *settings.tool_keys.values()) if key is not None]
    if keys and settings.owner is None:
        name = variable_or_key("tool_keys" if settings.owner_key is None else "owner_key", config)
        raise Misconfigured(
            f"{name} is set, but not whose memory it opens: set NEXUS_OWNER, such as slack:T0123ABCD/U0456EFGH."
        )
    keys += [key.get_secret_value() for key in settings.gateway_keys.values()]
    if len(set(keys)) < len(keys):
        raise Misconfigured(
            "Two of NEXUS_OWNER_KEY, NEXUS_TOOL_KEYS and NEXUS_GATEWAY_KEYS are the same: give each tool a key of its "
            "own."
        )


def check_gateway(settings: Settings, config: Path | None) -> None:
    """Refuse keys of the gateway without a tenant or an upstream, and one without its server. Raises Misconfigured."""
    name = variable_or_key("gateway_keys", config)
    if settings.gateway_keys and settings.gateway_tenant is None:
        raise Misconfigured(
            f"{name} is set, but not whose budgets and models its keys use: set NEXUS_GATEWAY_TENANT to the name of a "
            "tenant, such as default."
        )
    if settings.gateway_keys and settings.upstream_of(settings.gateway_tenant or "") is None:
        raise Misconfigured(f"{name} is set, but the gateway is off: set NEXUS_GATEWAY_BASE_URL.")
    for slug, tenant in settings.tenants.items():
        if tenant.gateway.api_key is not None and tenant.gateway.base_url is None:
            raise Misconfigured(
                f"tenants.{slug}.gateway has api_key, but no base_url: name the server that the key is for, or remove "
                "it."
            )


def check_openid(settings: Settings, config: Path | None) -> None:
    """Refuse an OpenID provider of which something is missing. Raises Misconfigured."""
    needed = ("oidc_issuer", "oidc_client_id", "oidc_client_secret", "oidc_tenant")
    given = [name for name in needed if getattr(settings, name) is not None]
    missing = [VARIABLE_PREFIX + name.upper() for name in needed if name not in given]
    if given and missing:
        raise Misconfigured(f"{variable_or_key(given[0], config)} is set, but not {', '.join(missing)}: set all four.")
    if given and settings.public_url is None:
        raise Misconfigured(
            f"{variable_or_key(given[0], config)} is set, but not NEXUS_PUBLIC_URL, to which the provider leads people "
            "back: set it, such as https://nexus.example.com."
        )


def _duplicates(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]


def error_sentence(error: ValidationError, variables: Mapping[str, str], config: Path | None) -> str:
    """The first error as one sentence. The value is left out: it may be a secret."""
    first = error.errors(include_url=False, include_input=False)[0]
    location, reason = first["loc"], first["msg"].removeprefix("Value error, ")
    reason = reason[:1].lower() + reason[1:]
    if first["type"] in _NO_WHOLE_NUMBER | _NO_NUMBER | _OUT_OF_BOUNDS:
        reason = _number(location) or ("it must be a whole number" if first["type"] in _NO_WHOLE_NUMBER else reason)
    elif first["type"] == "too_short" and location[-1] in Settings.model_fields:
        reason = f"it must have {first['ctx']['min_length']} characters or more"
    variable = VARIABLE_PREFIX + str(location[0]).upper()
    if location[0] == "mcp" and location[-1] == "token":
        variable = token_variable(str(location[1]))
    if location[0] == "tenants" and location[-2:] == ("gateway", "api_key"):
        variable = gateway_key_variable(str(location[1]))
    if variable in variables:
        return f"{variable} is wrong: {reason}."
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")
    if first["type"] == "extra_forbidden":
        tables: dict[str, type[BaseModel]] = {
            "agents": AgentSettings,
            "retrieval": RetrievalSettings,
            "prices": PriceSettings,
            "budgets": BudgetSettings,
            "plans": PlanSettings,
            "billing": BillingSettings,
            "mcp": McpSettings,
            "gateway": GatewaySettings,
        }
        of_tenants: dict[str, type[BaseModel]] = {"retrieval": RetrievalSettings, "gateway": TenantGatewaySettings}
        tables["tenants"] = of_tenants.get(str(location[-2]), TenantSettings)
        return _unknown_key_sentence(config, key, tables.get(str(location[0]), Settings).model_fields)
    return f"In {config}, `{key.removesuffix('.[key]')}` is wrong: {reason}."


def _number(location: tuple[int | str, ...]) -> str:
    """Which numbers a field takes, if it has no table above it; else nothing."""
    field = Settings.model_fields.get(str(location[0])) if len(location) == 1 else None
    if field is None:
        return ""
    names = ("ge", "gt", "le")
    bounds = {name: getattr(limit, name) for limit in field.metadata for name in names if hasattr(limit, name)}
    if field.annotation is int:
        return f"it must be a whole number from {bounds['ge']} to {bounds['le']}"
    return f"it must be a number above {bounds['gt']}, at most {bounds['le']}"


def _unknown_key_sentence(config: Path | None, key: str, known: Iterable[str]) -> str:
    hint = nearest_hint(key.rpartition(".")[2], known)
    return f"In {config}, `{key}` is not a key that Nexus knows{hint}" + ("" if hint else ".")


def nearest_hint(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """The end of a sentence about an unknown name: the nearest known one, or nothing when none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=likeness)
    return f"; did you mean {near[0]}?" if near else ""
