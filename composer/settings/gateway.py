"""The settings of the OpenAI-compatible gateway: `[gateway]` in nexus.toml, and `[tenants.NAME.gateway]`."""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, SecretStr

from composer.model import MemoryRole
from composer.settings.server_urls import ServerUrl
from composer.settings.values import VARIABLE_PREFIX, HttpUrl, Table

DEFAULT_UPSTREAM: Final = ServerUrl("https://api.openai.com/v1")
ANY_MODEL: Final = "*"
ModelName = Annotated[str, Field(min_length=1, max_length=200)]


class GatewaySettings(Table):
    """What the gateway passes on. Only `models` may be asked for (`*`: all that the upstream has).

    `memory_role` is how memory is put in: behind the one `system` message, as `developer` messages, or in front of the
    first and the last `user` message, for models that refuse the system role; `memory_roles` say that by model. A
    stream that is silent for `timeout` seconds, or an answer that does not begin within them, is given up.
    """

    enabled: bool = True
    models: tuple[ModelName, ...] | None = None
    memory_role: MemoryRole | None = None
    memory_roles: dict[ModelName, MemoryRole] = Field(default_factory=dict)
    timeout: float = Field(default=600.0, gt=0, le=86_400)


class TenantGatewaySettings(Table):
    """Where the gateway of one tenant differs. With an upstream of its own (`base_url`) it has its own key."""

    enabled: bool | None = None
    base_url: HttpUrl | None = None
    api_key: SecretStr | None = None
    models: tuple[ModelName, ...] | None = None
    memory_role: MemoryRole | None = None
    memory_roles: dict[ModelName, MemoryRole] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Upstream:
    """The server that a tenant's requests go to. `models` None: all that it has. `timeout` in seconds, of silence."""

    url: ServerUrl
    key: str
    models: frozenset[str] | None
    memory_role: MemoryRole | None
    memory_roles: tuple[tuple[str, MemoryRole], ...]
    timeout: float

    def allows(self, model: str) -> bool:
        """Whether a model may be asked for."""
        return self.models is None or model in self.models

    def role_for(self, model: str) -> MemoryRole | None:
        """How memory is put into a request to a model; None where that is not set."""
        return dict(self.memory_roles).get(model, self.memory_role)


def gateway_key_variable(tenant: str) -> str:
    """The variable that may hold the key of a tenant's own upstream."""
    return f"{VARIABLE_PREFIX}GATEWAY_{tenant.upper().replace('-', '_')}_API_KEY"


@dataclass(frozen=True, slots=True)
class CommonUpstream:
    """The server of those tenants that name none: its URL and key, and the models that may be asked for unless
    `[gateway]` lists others (None: any). `without_system` are models that refuse the system role."""

    url: ServerUrl
    key: str
    models: tuple[str, ...] | None
    without_system: tuple[str, ...] = ()


def upstream_of(common: CommonUpstream | None, gateway: GatewaySettings, own: TenantGatewaySettings) -> Upstream | None:
    """The upstream of a tenant; None where its gateway is off."""
    if not (gateway.enabled if own.enabled is None else own.enabled):
        return None
    if own.base_url is not None:
        url, key, usual = own.base_url, own.api_key, None
        text = "" if key is None else key.get_secret_value()
    elif common is not None:
        url, text, usual = common.url, common.key, common.models
    else:
        return None
    listed = own.models if own.models is not None else gateway.models if gateway.models is not None else usual
    models = None if listed is None or ANY_MODEL in listed else frozenset(listed)
    roles: dict[str, MemoryRole] = {} if common is None else dict.fromkeys(common.without_system, "user")
    roles |= gateway.memory_roles | own.memory_roles
    role = own.memory_role or gateway.memory_role
    return Upstream(url, text, models, role, tuple(sorted(roles.items())), gateway.timeout)
