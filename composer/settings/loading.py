"""Loading settings: the environment over `secrets.env` over `nexus.toml` over defaults. Nothing else reads them.

pydantic validates them. pydantic-settings is not used: a wrong value is answered by a sentence that names the setting
and where it stands.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import ValidationError

from composer.errors import Misconfigured
from composer.settings.agents import PERSONA, AgentSettings
from composer.settings.gateway import gateway_key_variable
from composer.settings.installation import ENVIRONMENT_FIELDS, Settings
from composer.settings.load_warnings import warnings_of
from composer.settings.refusals import (
    check_billing,
    check_gateway,
    check_keys,
    check_keys_of_credentials,
    check_openid,
    check_plans,
    check_unique,
    error_sentence,
)
from composer.settings.secrets_file import read_secrets
from composer.settings.tool_servers import token_variable
from composer.settings.values import VARIABLE_PREFIX

FILE_NAME = "nexus.toml"
SECRETS_NAME = "secrets.env"
ROOT_HOME = Path("/var/lib/nexus")  # Root's home directory is private, and the embedded servers run as another user.


def from_environment() -> Settings:
    """The settings of this process. Raises as `load_settings`."""
    return load_settings(os.environ, Path.cwd())


def load_settings(environ: Mapping[str, str], cwd: Path, *, stored_secrets: bool = True) -> Settings:
    """Load the settings from the variables in `environ`, from `secrets.env` in the data folder unless `stored_secrets`
    is false, and from `nexus.toml`.

    The latter is `$NEXUS_CONFIG`, else `<cwd>/nexus.toml`, else `<home>/nexus.toml`; an empty variable counts as unset.
    Raises Misconfigured, with one sentence that names the file or variable, the key, and what would be right.
    """
    variables = _variables(environ)
    home = _resolve_path(variables["NEXUS_HOME"], environ, cwd) if "NEXUS_HOME" in variables else _default_home()
    config = _config_file(variables, environ, home, cwd)
    if stored_secrets:
        variables = _variables(read_secrets(home / SECRETS_NAME)) | variables
    table = read_table(config) if config else {}
    check_keys(table, config)
    values = table | {
        name: variables[VARIABLE_PREFIX + name.upper()]
        for name in ENVIRONMENT_FIELDS
        if VARIABLE_PREFIX + name.upper() in variables
    }
    for name in ("log", "log_format"):
        if isinstance(values.get(name), str):
            values[name] = values[name].lower()
    _inherit_retrieval(values)
    _add_tokens(values, variables)
    _add_gateway_keys(values, variables)
    try:
        settings = Settings.model_validate(values | {"home": home, "config": config})
    except ValidationError as error:
        raise Misconfigured(error_sentence(error, variables, config)) from error
    check_unique(settings, config)
    check_plans(settings, config)
    check_billing(settings, config)
    check_keys_of_credentials(settings, config)
    check_openid(settings, config)
    check_gateway(settings, config)
    return settings.model_copy(
        update={
            "agents": tuple(_with_defaults(agent, settings) for agent in settings.agents),
            "warnings": warnings_of(settings, variables),
        }
    )


def settings_files(environ: Mapping[str, str], cwd: Path) -> tuple[Path, Path]:
    """The data folder that `environ` names, and the `nexus.toml` that is read, or would be if it were there."""
    variables = _variables(environ)
    home = _resolve_path(variables["NEXUS_HOME"], environ, cwd) if "NEXUS_HOME" in variables else _default_home()
    return home, _config_file(variables, environ, home, cwd) or home / FILE_NAME


def environment() -> dict[str, str]:
    """The environment of this process."""
    return dict(os.environ)


def read_table(path: Path) -> dict[str, Any]:
    """The content of a nexus.toml. Raises Misconfigured."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{path} is not UTF-8 text, as TOML must be.") from error
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(f"{path} is not valid TOML: {error}.") from error


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that are Nexus's own. An empty one counts as unset."""
    return {key: value.strip() for key, value in environ.items() if key.startswith(VARIABLE_PREFIX) and value.strip()}


def _default_home() -> Path:
    """The platform's data folder for this user; on Linux `$XDG_DATA_HOME/nexus`, else `~/.local/share/nexus`."""
    return ROOT_HOME if os.geteuid() == 0 else platformdirs.user_data_path("nexus", appauthor=False)


def _resolve_path(text: str, environ: Mapping[str, str], cwd: Path) -> Path:
    if text == "~" or text.startswith("~/"):
        text = (environ.get("HOME") or str(Path.home())) + text[1:]
    return cwd / text


def _config_file(variables: Mapping[str, str], environ: Mapping[str, str], home: Path, cwd: Path) -> Path | None:
    if "NEXUS_CONFIG" in variables:
        return _resolve_path(variables["NEXUS_CONFIG"], environ, cwd)
    return next((path for path in (cwd / FILE_NAME, home / FILE_NAME) if os.path.isfile(path)), None)


def _inherit_retrieval(values: dict[str, Any]) -> None:
    """Merge each tenant's retrieval settings over the common ones. What is not a table is left to validation."""
    common, tenants = values.get("retrieval", {}), values.get("tenants", {})
    if not isinstance(common, dict) or not isinstance(tenants, dict):
        return
    inherited = {}
    for slug, tenant in tenants.items():
        own = tenant.get("retrieval", {}) if isinstance(tenant, dict) else None
        inherited[slug] = tenant | {"retrieval": common | own} if isinstance(own, dict) else tenant
    values["tenants"] = inherited


def _add_tokens(values: dict[str, Any], variables: Mapping[str, str]) -> None:
    """Add the tokens of MCP servers that the variables hold. What is not a table is left to validation."""
    servers = values.get("mcp")
    if isinstance(servers, dict):
        values["mcp"] = {
            name: table | {"token": variables[token_variable(name)]}
            if isinstance(table, dict) and token_variable(name) in variables
            else table
            for name, table in servers.items()
        }


def _add_gateway_keys(values: dict[str, Any], variables: Mapping[str, str]) -> None:
    """Add the keys of tenants' own upstreams that the variables hold. What is not a table is left to validation."""
    tenants = values.get("tenants")
    if not isinstance(tenants, dict):
        return
    for slug, tenant in tenants.items():
        variable = gateway_key_variable(str(slug))
        gateway = tenant.get("gateway", {}) if isinstance(tenant, dict) else None
        if variable in variables and isinstance(gateway, dict):
            tenants[slug] = tenant | {"gateway": gateway | {"api_key": variables[variable]}}


def _with_defaults(agent: AgentSettings, settings: Settings) -> AgentSettings:
    update = {
        "persona": agent.persona or PERSONA.format(name=agent.name),
        "model": agent.model or settings.model,
        "summary_model": agent.summary_model or settings.summary_model,
    }
    return agent.model_copy(update=update)
