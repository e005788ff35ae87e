"""`Settings`: everything that can be set, and what is asked of it."""

from pathlib import Path
from typing import Final, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, SecretStr

from composer.settings.agents import AgentSettings
from composer.settings.billing import BillingSettings, StripeKey, WebhookSecret
from composer.settings.costs import BudgetSettings, PlanSettings, PriceSettings
from composer.settings.credentials import OwnerName, SettingsKey, ToolKeys
from composer.settings.gateway import (
    ANY_MODEL,
    DEFAULT_UPSTREAM,
    CommonUpstream,
    GatewaySettings,
    TenantGatewaySettings,
    Upstream,
    upstream_of,
)
from composer.settings.openid import CALLBACK, ClaimName, ClientSecret, EmailDomains, Issuer, OpenIdSettings
from composer.settings.retrieval import RetrievalSettings
from composer.settings.server_urls import ServerUrl
from composer.settings.tenants import TenantSettings
from composer.settings.tool_servers import McpSettings
from composer.settings.values import (
    MAX_RETENTION_DAYS,
    MIN_USAGE_DAYS,
    VARIABLE_PREFIX,
    DatabaseUrl,
    Effort,
    HostNames,
    HttpUrl,
    Origins,
    Proxies,
    PublicUrl,
    RedisUrl,
    ServerName,
    Slug,
    Table,
    Zone,
)

LOCAL_EMBEDDERS = ("minilm", "e5", "multilingual")  # that run in this process
MIN_SECRET_CHARS = 4  # a shorter one is a word of ordinary texts, and is not masked in them

_PLAIN_TENANT: Final = TenantSettings()  # one that nexus.toml does not name


class Settings(Table):
    """Everything that can be set. Each field down to `log_format` is `NEXUS_<FIELD>` in the environment.

    Without `database_url` or `redis_url` Nexus runs its own servers in `home`; without `model` it is offline. The
    service logs in by `database_url`; migrations, backups and restores by `owner_database_url`, where that is another.
    Without `embedder` the stored vectors say which one is used, and a new database takes the default.
    `model_timeout` is in seconds; `backups` is the number of daily backups to retain. `extraction` is how memories are
    extracted from messages; auto is mem0 with a model, else pattern. `extraction_model` and `summary_model` do this
    work in place of the answering model; `extraction_batch` is how many tokens of messages one call reads.
    `transcription_model` writes down voice notes, at its own API or, without one, at the chat model's. `prices` are by
    model, in `currency`. `owner` is whose memory `owner_key` opens to them, and `tool_keys`, by name, to their AI
    tools. `gateway_base_url` and `gateway_api_key` are the server that the gateway passes requests on to, without them
    that of the chat model; `gateway_keys`, by name, pass through it for `gateway_tenant` and open nobody's memory.
    `key` is the one that `nexus mcp` acts with. `oidc_…` is the OpenID provider whose accounts sign in people of
    `oidc_tenant`. `public_url` is where people reach the web port, without a slash at its end, and `web_proxies` are
    those that may say who asks; pages of `web_origins` may ask it from a browser; `requests_per_minute` is how much
    each person, or each address without a key, may ask of it. With `webhooks` people have programs of theirs told of
    changes: at public addresses, and at the hosts of `webhook_hosts`.
    `follow_up_minutes` is for how long an answer in a thread may be followed up without a mention.
    `plan` is the one of `plans` that tenants have which name none; `billing` charges for those with a price. `config`
    is the file that was read, if any; `warnings` are sentences to show.
    """

    home: Path
    config: Path | None = None
    database_url: DatabaseUrl | None = None
    owner_database_url: DatabaseUrl | None = None
    redis_url: RedisUrl | None = None
    openai_base_url: ServerUrl | None = None
    openai_api_key: SecretStr | None = None
    model: str | None = None
    model_timeout: float = Field(default=120.0, gt=0, le=86_400)
    concurrent_answers: int = Field(default=32, ge=1, le=1_000)
    embedder: str | None = None
    extraction: Literal["auto", "mem0", "pattern", "off"] = "auto"
    extraction_model: str | None = None
    extraction_batch: int = Field(default=2_000, ge=200, le=100_000)
    extraction_effort: Effort | None = None
    summary_model: str | None = None
    transcription_model: str | None = None
    transcription_base_url: ServerUrl | None = None
    transcription_api_key: SecretStr | None = None
    currency: str = Field(default="USD", min_length=1, max_length=8)
    discord_token: SecretStr | None = None
    slack_bot_token: SecretStr | None = None
    slack_app_token: SecretStr | None = None
    slack_signing_secret: SecretStr | None = None
    audit_key: SecretStr | None = Field(default=None, min_length=32)
    owner: OwnerName | None = None
    owner_key: SettingsKey | None = None
    key: SecretStr | None = None
    stripe_secret_key: StripeKey | None = None
    stripe_webhook_secret: WebhookSecret | None = None
    tool_keys: ToolKeys = Field(default_factory=dict)
    gateway_base_url: HttpUrl | None = None
    gateway_api_key: SecretStr | None = None
    gateway_keys: ToolKeys = Field(default_factory=dict)
    gateway_tenant: str | None = None
    oidc_issuer: Issuer | None = None
    oidc_client_id: str | None = Field(default=None, max_length=500)
    oidc_client_secret: ClientSecret | None = None
    oidc_tenant: str | None = None
    oidc_name_claim: ClaimName = "preferred_username"
    oidc_email_domains: EmailDomains | None = None
    web_host: str = "127.0.0.1"
    web_port: int = Field(default=8080, ge=0, le=65_535)
    public_url: PublicUrl | None = None
    web_proxies: Proxies | None = None
    web_origins: Origins | None = None
    webhooks: bool = True
    webhook_hosts: HostNames | None = None
    requests_per_minute: int = Field(default=100, ge=1, le=1_000_000)
    admin_requests_per_minute: int = Field(default=10, ge=1, le=1_000_000)
    timezone: Zone = "UTC"
    follow_up_minutes: int = Field(default=60, ge=0, le=10_080)
    plan: str | None = None
    backups: int = Field(default=7, ge=0, le=10_000)
    prompt_days: int = Field(default=30, ge=1, le=MAX_RETENTION_DAYS)
    audit_days: int = Field(default=400, ge=1, le=MAX_RETENTION_DAYS)
    usage_days: int = Field(default=400, ge=MIN_USAGE_DAYS, le=MAX_RETENTION_DAYS)
    log: Literal["debug", "info", "warning", "error"] = "warning"
    log_format: Literal["text", "json"] = "text"
    agents: tuple[AgentSettings, ...] = (AgentSettings(),)
    tenants: dict[Slug, TenantSettings] = Field(default_factory=dict)
    retrieval: RetrievalSettings = RetrievalSettings()
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    budgets: tuple[BudgetSettings, ...] = ()
    plans: dict[str, PlanSettings] = Field(default_factory=dict)
    billing: BillingSettings | None = None
    mcp: dict[ServerName, McpSettings] = Field(default_factory=dict)
    gateway: GatewaySettings = GatewaySettings()
    warnings: tuple[str, ...] = ()

    @property
    def trusted_proxies(self) -> list[str]:
        """The addresses and networks whose word is taken for who asks: those of this machine unless set."""
        return ["127.0.0.1", "::1"] if self.web_proxies is None else self.web_proxies.split(",")

    @property
    def allowed_origins(self) -> list[str]:
        """The origins whose pages may ask the web port from a browser, with a key."""
        return [] if self.web_origins is None else self.web_origins.split(",")

    @property
    def named_webhook_hosts(self) -> list[str]:
        """The hosts that webhooks may be at though they are not of the public internet, and without https."""
        return [] if self.webhook_hosts is None else self.webhook_hosts.split(",")

    @property
    def web_address(self) -> str:
        """Where people reach the web port, without a slash at its end: for links."""
        return self.public_url or f"http://localhost:{self.web_port}"

    @property
    def openid(self) -> OpenIdSettings | None:
        """The OpenID provider; None unless all that it takes is set, which loading has checked."""
        issuer, id, secret, tenant = self.oidc_issuer, self.oidc_client_id, self.oidc_client_secret, self.oidc_tenant
        if issuer is None or id is None or secret is None or tenant is None or self.public_url is None:
            return None
        domains, redirect_uri = self.oidc_email_domains or (), f"{self.public_url}{CALLBACK}"
        return OpenIdSettings(issuer, id, secret, tenant, self.oidc_name_claim, domains, redirect_uri)

    @property
    def has_model_api(self) -> bool:
        """Whether there is a server to ask for answers; else every agent is offline, whatever its model."""
        return self.openai_base_url is not None or self.openai_api_key is not None

    @property
    def named_models(self) -> tuple[str, ...]:
        """The chat models that are named anywhere, each once."""
        of_agents = (
            name for agent in self.agents for name in (agent.model, agent.summary_model, *agent.fallback_models)
        )
        named = (self.model, *of_agents, self.extraction_model, self.summary_model)
        return tuple(dict.fromkeys(name for name in named if name))

    def settings_that_name(self, model: str) -> str:
        """The settings that name a chat model, for people: "NEXUS_MODEL", or "fallback_models of the agent nexus in
        nexus.toml"."""
        common = {"model": self.model, "extraction_model": self.extraction_model, "summary_model": self.summary_model}
        found = [variable_or_key(key, self.config) for key, named in common.items() if named == model]
        for agent in self.agents:
            keys = [
                *(["model"] if agent.model == model != self.model else []),  # else it is the common one
                *(["summary_model"] if agent.summary_model == model != self.summary_model else []),
                *(["fallback_models"] if model in agent.fallback_models else []),
            ]
            found += [f"{key} of the agent {agent.slug} in nexus.toml" for key in keys]
        return " and ".join(found) or variable_or_key("model", self.config)

    @property
    def embeds_here(self) -> bool:
        """Whether the embedder runs in this process: a packaged one, or that of a folder. Else it is at the API."""
        return self.embedder is None or self.embedder in LOCAL_EMBEDDERS or self.embedder.startswith(("/", "~/"))

    @property
    def metered_models(self) -> tuple[str, ...]:
        """The models whose use is recorded: the chat models, the embedding model where an API has it, and the one that
        transcribes."""
        others = [None if self.embeds_here else self.embedder, self.transcription_model]
        return (*self.named_models, *(name for name in others if name))

    @property
    def known_models(self) -> frozenset[str]:
        """The models that are named anywhere. Other names may be what anybody has written."""
        found = {*self.metered_models, *self.prices, *(self.gateway.models or ()), *self.gateway.memory_roles}
        for tenant in self.tenants.values():
            found |= {*(tenant.gateway.models or ()), *tenant.gateway.memory_roles}
        return frozenset(found - {ANY_MODEL})

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be shown anywhere: every token, key and password, and the URLs that have one."""
        found: set[str] = set()
        for name in Settings.model_fields:
            match getattr(self, name):
                case SecretStr() as secret:
                    found.add(secret.get_secret_value())
                case ServerUrl() as url:
                    found |= url.secrets()
        found |= {key.get_secret_value() for key in (*self.tool_keys.values(), *self.gateway_keys.values())}
        for tenant in self.tenants.values():
            found |= set() if tenant.gateway.api_key is None else {tenant.gateway.api_key.get_secret_value()}
        for server in self.mcp.values():
            found |= server.secrets
        return frozenset(text for text in found if len(text) >= MIN_SECRET_CHARS)

    def retrieval_of(self, tenant: str) -> RetrievalSettings:
        """The retrieval settings of the tenant of this slug."""
        found = self.tenants.get(tenant)
        return self.retrieval if found is None else found.retrieval

    def upstream_of(self, tenant: str) -> Upstream | None:
        """The server that the gateway passes requests of the tenant of this slug on to; None where it is off."""
        found = self.tenants.get(tenant)
        return upstream_of(
            self._common_upstream, self.gateway, TenantGatewaySettings() if found is None else found.gateway
        )

    @property
    def _common_upstream(self) -> CommonUpstream | None:
        refusing = tuple(agent.model for agent in self.agents if agent.model and not agent.system_role)
        if self.gateway_base_url is not None:
            key = self.gateway_api_key
            return CommonUpstream(self.gateway_base_url, "" if key is None else key.get_secret_value(), None, refusing)
        if not self.has_model_api:
            return None
        key = self.openai_api_key if self.gateway_api_key is None else self.gateway_api_key
        embedders = () if self.embeds_here or self.embedder is None else (self.embedder,)
        return CommonUpstream(
            self.openai_base_url or DEFAULT_UPSTREAM,
            "" if key is None else key.get_secret_value(),
            (*self.named_models, *embedders),
            refusing,
        )

    def zone_of(self, tenant: str) -> ZoneInfo:
        """The time zone of the tenant of this slug."""
        found = self.tenants.get(tenant)
        return ZoneInfo((found.timezone if found else None) or self.timezone)

    def keep_days_of(self, tenant: str) -> int | None:
        """How many days the tenant of this slug retains messages; None for ever."""
        found = self.tenants.get(tenant)
        return None if found is None else found.keep_days

    def prompt_days_of(self, tenant: str) -> int:
        """How many days the tenant of this slug retains the prompts of answers."""
        found = self.tenants.get(tenant)
        return (found.prompt_days if found else None) or self.prompt_days

    def audit_days_of(self, tenant: str) -> int:
        """How many days the tenant of this slug retains rows of the audit log."""
        found = self.tenants.get(tenant)
        return (found.audit_days if found else None) or self.audit_days

    def usage_days_of(self, tenant: str) -> int:
        """How many days the tenant of this slug retains what models used."""
        found = self.tenants.get(tenant)
        return (found.usage_days if found else None) or self.usage_days

    def plan_of(self, tenant: str) -> tuple[str, PlanSettings] | None:
        """The plan of the tenant of this slug, with its name; None where it has none."""
        found = self.tenants.get(tenant)
        name = (found.plan if found else None) or self.plan
        return None if name is None else (name, self.plans[name])

    def webhooks_of(self, tenant: str) -> bool:
        """Whether people of the tenant of this slug may have webhooks."""
        found = self.tenants.get(tenant, _PLAIN_TENANT).webhooks
        return self.webhooks if found is None else found

    def quarantine_of(self, tenant: str) -> tuple[str, ...]:
        """Whose writes wait for approval in the tenant of this slug."""
        return self.tenants.get(tenant, _PLAIN_TENANT).quarantine

    def tenant_of(self, platform: str, workspace: str) -> str | None:
        """The slug of the tenant that lists this workspace, as `platform:workspace` or by its plain name, or None.

        A tenant without the key `workspaces` has the workspace of its own name, unless another tenant lists that one.
        """
        listed = {name: slug for slug, tenant in self.tenants.items() for name in tenant.workspaces}
        named_like = self.tenants.get(workspace)
        slug = listed.get(f"{platform}:{workspace}")
        if slug is None and ":" not in workspace:  # else the name could pass for another platform's
            slug = listed.get(workspace)
        if slug is None and named_like is not None and "workspaces" not in named_like.model_fields_set:
            slug = workspace
        return slug

    def listed_workspaces(self, platform: str) -> list[str]:
        """The names of the workspaces that tenants list and that may be this platform's, in the order of the file."""
        names: list[str] = []
        for tenant in self.tenants.values():
            for listed in tenant.workspaces:
                prefix, separator, name = listed.partition(":")
                if not separator or prefix == platform:
                    names.append(name or prefix)
        return names


def variable_or_key(key: str, config: Path | None) -> str:
    """Where a setting is set: its variable or, if a file was read, its key there."""
    variable = VARIABLE_PREFIX + key.upper()
    return variable if config is None else f"{variable} ({key} in nexus.toml)"


FILE_ONLY_FIELDS = ("agents", "tenants", "retrieval", "prices", "budgets", "plans", "billing", "mcp", "gateway")
ENVIRONMENT_FIELDS = tuple(name for name in Settings.model_fields if name not in (*FILE_ONLY_FIELDS, "warnings"))
KNOWN_VARIABLES = tuple(VARIABLE_PREFIX + name.upper() for name in ENVIRONMENT_FIELDS)
