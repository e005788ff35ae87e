"""Settings: the environment over `secrets.env` over `nexus.toml` over defaults. The only module that reads them.

pydantic validates them. pydantic-settings is not used: a wrong value is answered by a sentence that names the setting
and where it stands.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

import platformdirs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from composer.errors import Misconfigured
from composer.secrets_file import read_secrets
from composer.server_urls import ServerUrl, check_database_url, check_http_url, check_redis_url

LOCAL_EMBEDDER = "minilm"
PREFIX = "NEXUS_"
MIN_USAGE_DAYS = 31  # a budget of a month counts all of its days
FILE_NAME = "nexus.toml"
SECRETS_NAME = "secrets.env"
PLATFORMS = ("console", "discord", "slack")  # console: the terminal and scripts
ROOT_HOME = Path("/var/lib/nexus")  # Root's home directory is private, and the embedded servers run as another user.
PERSONA = (
    "You are {name}, a member of this team who remembers what was said. Answer the question that was asked, briefly "
    "and plainly, from what you recall, and say where you recall it from. When you do not know, say so."
)


def _check_slug(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", text):
        raise ValueError("a slug is 1 to 32 characters of a-z, 0-9, - and _, and begins with a letter or a digit")
    return text


def _check_zone(name: str) -> str:
    if name not in available_timezones():
        raise ValueError("a time zone is named like Europe/Berlin, or UTC")
    return name


def _check_server_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", text):
        raise ValueError("the name of a server is 1 to 32 characters of a-z, 0-9 and -")
    return text


def _check_header_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", text) or text.lower() in ("host", "content-length"):
        raise ValueError(
            "the name of a header is made of letters, digits and -, and is neither Host nor Content-Length"
        )
    return text


def _check_header_value(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if not text.isascii() or not text.isprintable() or text != text.strip() or not text:
        raise ValueError("it holds a character that no header has, or nothing: copy it again")
    return secret


def _check_room(text: str) -> str:
    platform, _, rest = text.partition(":")
    workspace, _, room = rest.partition("/")
    how = (
        "a room is named with its platform and workspace, by its id there: slack:T0123ABCD/C0456EFGH; a room of the "
        "terminal by its name: console:sample/general"
    )
    if not platform or not workspace or not room:
        raise ValueError(how)
    if platform not in PLATFORMS:
        raise ValueError(f"there is no platform {platform}, only {', '.join(PLATFORMS)}: {how}")
    return text


Slug = Annotated[str, AfterValidator(_check_slug)]
ServerName = Annotated[str, AfterValidator(_check_server_name)]
HeaderName = Annotated[str, AfterValidator(_check_header_name)]
HeaderValue = Annotated[SecretStr, AfterValidator(_check_header_value)]
RoomName = Annotated[str, AfterValidator(_check_room)]
HttpUrl = Annotated[ServerUrl, AfterValidator(check_http_url)]
Zone = Annotated[str, AfterValidator(_check_zone)]
DatabaseUrl = Annotated[ServerUrl, AfterValidator(check_database_url)]
RedisUrl = Annotated[ServerUrl, AfterValidator(check_redis_url)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
MIN_SECRET_CHARS = 4  # a shorter one is a word of ordinary texts, and is not masked in them


MAX_DAYS = 36_500  # a hundred years: longer times reach before the calendar begins


class _Table(BaseModel):
    """A table of settings. It is frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class AgentSettings(_Table):
    """One bot persona. `window` and `reply_tokens` are in tokens; `model` is NEXUS_MODEL unless set, `summary_model`
    NEXUS_SUMMARY_MODEL, and without that the model itself. `fallback_models` are asked in turn when the model fails.

    `images`: the model accepts images, so it gets those that are attached to a question. `reasoning_effort` and
    `summary_effort` are passed to models that reason before they answer. `tools`: a model that can call functions may
    search and write memory while it answers, and is given at most `tool_tokens` tokens of results in one answer.
    """

    slug: Slug = "nexus"
    name: str = Field(default="Nexus", min_length=1)
    persona: str = ""
    model: str | None = None
    window: int = Field(default=128_000, ge=1_000, le=100_000_000)
    system_role: bool = True
    reply_tokens: int = Field(default=1_024, ge=1, le=1_000_000)
    images: bool = False
    summary_model: str | None = None
    fallback_models: tuple[str, ...] = ()
    reasoning_effort: Effort | None = None
    summary_effort: Effort | None = None
    tools: bool = True
    tool_tokens: int = Field(default=2_000, ge=100, le=1_000_000)


class RetrievalSettings(_Table):
    """How RECALL is filled: the search strategy, and at most `top_k` items and `recall_tokens` tokens. SUMMARIES has at
    most `summary_tokens`."""

    strategy: Literal["hybrid", "semantic", "recent"] = "hybrid"
    top_k: int = Field(default=12, ge=0, le=1_000)
    recall_tokens: int = Field(default=2_000, ge=0, le=1_000_000)
    summary_tokens: int = Field(default=1_500, ge=0, le=1_000_000)


class PriceSettings(_Table):
    """What a model costs, in `currency` per million tokens. `cached_input` is `input` unless set."""

    input: Decimal = Field(ge=0, le=1_000_000)
    cached_input: Decimal | None = Field(default=None, ge=0, le=1_000_000)
    output: Decimal = Field(ge=0, le=1_000_000)


class BudgetSettings(_Table):
    """How much each tenant may use in each day or month of its time zone: in tokens, in money, or in both.

    It is for one `tenant`, one `agent` (its slug) and one `kind` of work, where these are set.
    """

    per: Literal["day", "month"]
    tokens: int | None = Field(default=None, ge=0, le=10**15)
    money: Decimal | None = Field(default=None, ge=0, le=10**12)
    tenant: str | None = None
    agent: str | None = None
    kind: Literal["answers", "extraction", "summaries", "embeddings", "transcription"] | None = None

    @model_validator(mode="after")
    def _check_limit(self) -> "BudgetSettings":
        if self.tokens is None and self.money is None:
            raise ValueError("a budget needs a limit: set tokens, money, or both")
        return self


class TenantSettings(_Table):
    """One organisation: its workspaces (`slack:T123`, or `T123` on any platform), and where its retrieval differs from
    `[retrieval]`.

    Its days begin at midnight in `timezone` (default: the common one). Messages older than `keep_days` are erased for
    good; `retention_days`, a retrieval setting, only hides them from recall. Stored prompts are emptied after
    `prompt_days`, rows of the audit log are deleted after `audit_days`, and what models used is forgotten after
    `usage_days` (defaults: the common ones). What those in
    `quarantine` write waits for approval.
    """

    workspaces: tuple[str, ...] = ()
    retrieval: RetrievalSettings = RetrievalSettings()
    timezone: Zone | None = None
    keep_days: int | None = Field(default=None, ge=1, le=MAX_DAYS)
    prompt_days: int | None = Field(default=None, ge=1, le=MAX_DAYS)
    audit_days: int | None = Field(default=None, ge=1, le=MAX_DAYS)
    usage_days: int | None = Field(default=None, ge=MIN_USAGE_DAYS, le=MAX_DAYS)
    quarantine: tuple[Literal["guest", "tool"], ...] = ("guest", "tool")


class McpSettings(_Table):
    """A server whose tools agents may use, by the Model Context Protocol: at a `url` (streamable HTTP), or a `command`
    with `args` and `env` that is started and spoken to by its standard streams. `token` is sent as a bearer token.

    `timeout` is for connecting and for one call, in seconds. Only its tools named in `tools` are offered, to the
    `agents` of these slugs (default: all), in the rooms of the `tenants` of these slugs and in these `rooms`
    (`slack:T123/C456`). With `private` also where not everybody in the organisation reads: in DMs, sessions, private
    rooms and isolated projects. With `guests` also to guests, and in rooms that are shared with other organisations.
    """

    url: HttpUrl | None = None
    command: str | None = Field(default=None, min_length=1)
    args: tuple[str, ...] = ()
    env: dict[str, SecretStr] = Field(default_factory=dict)
    token: HeaderValue | None = None
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)
    timeout: float = Field(default=10.0, gt=0, le=600)
    tools: tuple[Annotated[str, Field(min_length=1, max_length=128)], ...] = ()
    agents: tuple[Slug, ...] = ()
    tenants: tuple[str, ...] = ()
    rooms: tuple[RoomName, ...] = ()
    private: bool = False
    guests: bool = False

    @model_validator(mode="after")
    def _check_address(self) -> "McpSettings":
        if (self.url is None) == (self.command is None):
            raise ValueError("a server needs an address: set url or command, and only one of them")
        wrong = ("args", "env") if self.command is None else ("token", "headers")
        for key in wrong:
            if key in self.model_fields_set:
                raise ValueError(f"{key} goes with {'command' if self.command is None else 'url'}: remove it")
        return self

    @property
    def secrets(self) -> set[str]:
        """What must not be shown of it: its address and its token, and other values that are long enough for a key."""
        others = (each.get_secret_value() for each in (*self.headers.values(), *self.env.values()))
        hidden = {text for text in others if len(text) >= MIN_KEY_CHARS}
        hidden |= {self.token.get_secret_value()} if self.token is not None else set()
        return hidden | (set() if self.url is None else {str.__str__(self.url)})

    def offered_tools(self, name: str) -> dict[str, str]:
        """Its allowed tools, in the order of the file, by the names by which a model calls them; `name` is its own. No
        server's name has _, so tools of two servers never have the same name."""
        called = {tool: f"{name}__{re.sub(r'[^a-zA-Z0-9_-]', '_', tool)}"[:MAX_FUNCTION_NAME] for tool in self.tools}
        return {called[tool]: tool for tool in self.tools}


MAX_FUNCTION_NAME = 64  # characters, as APIs allow
MIN_KEY_CHARS = 16  # a shorter value of a header or a variable may be a word of ordinary texts


class Settings(_Table):
    """Everything that can be set. Each field down to `log_format` is `NEXUS_<FIELD>` in the environment.

    Without `database_url` or `redis_url` Nexus runs its own servers in `home`; without `model` it is offline. The
    service logs in by `database_url`; migrations, backups and restores by `owner_database_url`, where that is another.
    `model_timeout` is in seconds; `backups` is the number of daily backups to retain. `extraction` is how memories are
    extracted from messages; auto is mem0 with a model, else pattern. `extraction_model` and `summary_model` do this
    work in place of the answering model; `extraction_batch` is how many tokens of messages one call reads.
    `transcription_model` writes down voice notes, at its own API or, without one, at the chat model's. `prices` are by
    model, in `currency`. `config` is the file that was read, if any; `warnings` are sentences to show.
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
    embedder: str = LOCAL_EMBEDDER
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
    web_host: str = "127.0.0.1"
    web_port: int = Field(default=8080, ge=0, le=65_535)
    timezone: Zone = "UTC"
    backups: int = Field(default=7, ge=0, le=10_000)
    prompt_days: int = Field(default=30, ge=1, le=MAX_DAYS)
    audit_days: int = Field(default=400, ge=1, le=MAX_DAYS)
    usage_days: int = Field(default=400, ge=MIN_USAGE_DAYS, le=MAX_DAYS)
    log: Literal["debug", "info", "warning", "error"] = "warning"
    log_format: Literal["text", "json"] = "text"
    agents: tuple[AgentSettings, ...] = (AgentSettings(),)
    tenants: dict[Slug, TenantSettings] = Field(default_factory=dict)
    retrieval: RetrievalSettings = RetrievalSettings()
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    budgets: tuple[BudgetSettings, ...] = ()
    mcp: dict[ServerName, McpSettings] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()

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
        found = [_variable_or_key(key, self.config) for key, named in common.items() if named == model]
        for agent in self.agents:
            keys = [
                *(["model"] if agent.model == model != self.model else []),  # else it is the common one
                *(["summary_model"] if agent.summary_model == model != self.summary_model else []),
                *(["fallback_models"] if model in agent.fallback_models else []),
            ]
            found += [f"{key} of the agent {agent.slug} in nexus.toml" for key in keys]
        return " and ".join(found) or _variable_or_key("model", self.config)

    @property
    def metered_models(self) -> tuple[str, ...]:
        """The models whose use is recorded: the chat models, the embedding model where an API has it, and the one that
        transcribes."""
        others = [*([] if self.embedder == LOCAL_EMBEDDER else [self.embedder]), self.transcription_model]
        return (*self.named_models, *(name for name in others if name))

    def is_priced(self, model: str) -> bool:
        """Whether the price of a model is set, by its name with or without a provider's prefix."""
        return model in self.prices or model.rsplit("/", 1)[-1] in self.prices

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
        for server in self.mcp.values():
            found |= server.secrets
        return frozenset(text for text in found if len(text) >= MIN_SECRET_CHARS)

    def retrieval_of(self, tenant: str) -> RetrievalSettings:
        """The retrieval settings of the tenant of this slug."""
        found = self.tenants.get(tenant)
        return self.retrieval if found is None else found.retrieval

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

    def quarantine_of(self, tenant: str) -> tuple[str, ...]:
        """Whose writes wait for approval in the tenant of this slug."""
        found = self.tenants.get(tenant, TenantSettings())
        return found.quarantine

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


def _variable_or_key(key: str, config: Path | None) -> str:
    """Where a setting is set: its variable or, if a file was read, its key there."""
    variable = PREFIX + key.upper()
    return variable if config is None else f"{variable} ({key} in nexus.toml)"


SHORT_PROMPT_TOKENS = 300  # about what the rules (215), a short persona, CONTEXT and a short question have
FILE_ONLY_FIELDS = ("agents", "tenants", "retrieval", "prices", "budgets", "mcp")
ENVIRONMENT_FIELDS = tuple(name for name in Settings.model_fields if name not in (*FILE_ONLY_FIELDS, "warnings"))
KNOWN_VARIABLES = tuple(PREFIX + name.upper() for name in ENVIRONMENT_FIELDS)


def token_variable(server: str) -> str:
    """The variable that may hold the token of an MCP server."""
    return f"{PREFIX}MCP_{server.upper().replace('-', '_')}_TOKEN"


def configure_mem0(home: Path) -> None:
    """Set the variables that Mem0 reads when it is imported: telemetry off, its files in the data folder."""
    folder = home / "mem0"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ.update(MEM0_TELEMETRY="false", MEM0_DIR=str(folder))


def configure_onnxruntime() -> None:
    """Set the variable that onnxruntime reads when it is imported: it reports nothing and writes no device id."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"


def from_environment() -> Settings:
    """The settings of this process. Raises as `load_settings`."""
    return load_settings(os.environ, Path.cwd())


def load_settings(environ: Mapping[str, str], cwd: Path) -> Settings:
    """Load the settings from the variables in `environ`, from `secrets.env` in the data folder and from `nexus.toml`.

    The latter is `$NEXUS_CONFIG`, else `<cwd>/nexus.toml`, else `<home>/nexus.toml`; an empty variable counts as unset.
    Raises Misconfigured, with one sentence that names the file or variable, the key, and what would be right.
    """
    variables = _variables(environ)
    home = _resolve_path(variables["NEXUS_HOME"], environ, cwd) if "NEXUS_HOME" in variables else _default_home()
    config = _config_file(variables, environ, home, cwd)
    variables = _variables(read_secrets(home / SECRETS_NAME)) | variables
    table = read_table(config) if config else {}
    _check_keys(table, config)
    values = table | {
        name: variables[PREFIX + name.upper()] for name in ENVIRONMENT_FIELDS if PREFIX + name.upper() in variables
    }
    for name in ("log", "log_format"):
        if isinstance(values.get(name), str):
            values[name] = values[name].lower()
    _inherit_retrieval(values)
    _add_tokens(values, variables)
    try:
        settings = Settings.model_validate(values | {"home": home, "config": config})
    except ValidationError as error:
        raise Misconfigured(_error_sentence(error, variables, config)) from error
    _check_unique(settings, config)
    return settings.model_copy(
        update={
            "agents": tuple(_with_defaults(agent, settings) for agent in settings.agents),
            "warnings": (
                *_unknown_variables(variables, settings),
                *_model_warnings(settings),
                *_budget_warnings(settings),
                *_server_warnings(settings),
            ),
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


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that are Nexus's own. An empty one counts as unset."""
    return {key: value.strip() for key, value in environ.items() if key.startswith(PREFIX) and value.strip()}


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


def _check_keys(table: Mapping[str, Any], config: Path | None) -> None:
    for key in table:
        if key in ("home", "config"):
            raise Misconfigured(f"In {config}, `{key}` cannot be set: set {PREFIX}{key.upper()} in the environment.")
        if key == "warnings" or key not in Settings.model_fields:
            raise Misconfigured(_unknown_key_sentence(config, key, (*ENVIRONMENT_FIELDS[2:], *FILE_ONLY_FIELDS)))


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


def _with_defaults(agent: AgentSettings, settings: Settings) -> AgentSettings:
    update = {
        "persona": agent.persona or PERSONA.format(name=agent.name),
        "model": agent.model or settings.model,
        "summary_model": agent.summary_model or settings.summary_model,
    }
    return agent.model_copy(update=update)


def _check_unique(settings: Settings, config: Path | None) -> None:
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


def _duplicates(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]


def _unknown_variables(variables: Mapping[str, str], settings: Settings) -> list[str]:
    known = (*KNOWN_VARIABLES, *map(token_variable, settings.mcp))
    unknown = [key for key in sorted(variables) if key not in known]
    return [f"{key} is not a setting of Nexus{_nearest_hint(key, known) or '.'}" for key in unknown]


def _model_warnings(settings: Settings) -> list[str]:
    if settings.has_model_api:
        if any(agent.model is None for agent in settings.agents) and settings.model is None:
            return ["A model API is set but no model is named, so answers are made offline: set NEXUS_MODEL."]
        return []
    return [no_model_api_sentence(model) for model in settings.named_models][:1]


def _budget_warnings(settings: Settings) -> list[str]:
    slugs = {agent.slug for agent in settings.agents}
    found = [
        f"A budget is set for the agent {budget.agent}, which there is not: set one of {', '.join(sorted(slugs))}."
        for budget in settings.budgets
        if budget.agent is not None and budget.agent not in slugs
    ]
    unpriced = [name for name in settings.metered_models if not settings.is_priced(name)]
    if unpriced and any(budget.money is not None for budget in settings.budgets):
        tables = ", ".join(f'[prices."{name}"]' for name in unpriced)
        found.append(
            f"A budget is set in money, but no price for {', '.join(unpriced)}: what is used of "
            f"{'it' if len(unpriced) == 1 else 'them'} counts in no money. Set {tables} in nexus.toml."
        )
    return found + [
        _too_small_sentence(budget, settings) for budget in settings.budgets if _too_small(budget, settings)
    ]


def _server_warnings(settings: Settings) -> list[str]:
    slugs = {agent.slug for agent in settings.agents}
    known = ", ".join(sorted(slugs))
    return [
        f"The MCP server {name} is set for the agent {agent}, which there is not: set one of {known}."
        for name, server in settings.mcp.items()
        for agent in server.agents
        if agent not in slugs
    ]


def _answering(budget: BudgetSettings, settings: Settings) -> list[tuple[int, Decimal]]:
    """The tokens and the money that one longest answer to a short question may use, of each agent whose answers the
    budget counts. The money of a model without a price is 0."""
    found = []
    for agent in settings.agents if settings.has_model_api and budget.kind in (None, "answers") else ():
        model = agent.model or settings.model
        if model is None or budget.agent not in (None, agent.slug):
            continue
        price = settings.prices.get(model) or settings.prices.get(model.rsplit("/", 1)[-1])
        money = Decimal(0)
        if price is not None:
            money = (SHORT_PROMPT_TOKENS * price.input + agent.reply_tokens * price.output) / 1_000_000
        found.append((SHORT_PROMPT_TOKENS + agent.reply_tokens, money))
    return found


def _too_small(budget: BudgetSettings, settings: Settings) -> bool:
    """Whether no answer that the budget counts fits into it, even if nothing of it is used."""
    answers = _answering(budget, settings)
    return bool(answers) and all(
        (budget.tokens is not None and tokens > budget.tokens) or (budget.money is not None and money > budget.money)
        for tokens, money in answers
    )


def _too_small_sentence(budget: BudgetSettings, settings: Settings) -> str:
    tokens, money = min(_answering(budget, settings))
    limits = [f"{budget.tokens:,} tokens"] if budget.tokens is not None else []
    limits += [f"{budget.money.normalize():f} {settings.currency}"] if budget.money is not None else []
    needs = f"{tokens:,} tokens" + (f", {money.normalize():f} {settings.currency}" if budget.money is not None else "")
    return (
        f"No single answer fits into the budget of {' and '.join(limits)} a {budget.per}: even a short question may "
        f"use about {needs}, so each is refused. Raise the budget, or lower the agent's reply_tokens, in nexus.toml."
    )


def no_model_api_sentence(model: str) -> str:
    """What to do about a model without a server."""
    return (
        f"The model {model} is named but no model API is set, so answers are made offline: set NEXUS_OPENAI_BASE_URL "
        "or NEXUS_OPENAI_API_KEY."
    )


def _nearest_hint(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, or nothing when none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _unknown_key_sentence(config: Path | None, key: str, known: Iterable[str]) -> str:
    hint = _nearest_hint(key.rpartition(".")[2], known)
    return f"In {config}, `{key}` is not a key that Nexus knows{hint}" + ("" if hint else ".")


def _error_sentence(error: ValidationError, variables: Mapping[str, str], config: Path | None) -> str:
    """The first error as one sentence. The value is left out: it may be a secret."""
    first = error.errors(include_url=False, include_input=False)[0]
    location, reason = first["loc"], first["msg"].removeprefix("Value error, ")
    reason = reason[:1].lower() + reason[1:]
    variable = PREFIX + str(location[0]).upper()
    if location[0] == "mcp" and location[-1] == "token":
        variable = token_variable(str(location[1]))
    if variable in variables:
        return f"{variable} is wrong: {reason}."
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")
    if first["type"] == "extra_forbidden":
        tables: dict[str, type[BaseModel]] = {
            "agents": AgentSettings,
            "retrieval": RetrievalSettings,
            "prices": PriceSettings,
            "budgets": BudgetSettings,
            "mcp": McpSettings,
        }
        tables["tenants"] = RetrievalSettings if "retrieval" in location[:-1] else TenantSettings
        return _unknown_key_sentence(config, key, tables.get(str(location[0]), Settings).model_fields)
    return f"In {config}, `{key.removesuffix('.[key]')}` is wrong: {reason}."
