"""How a tool is connected: where this Nexus is reached, and what is pasted into which tool. The page Tools fills in the
key that it has just made, the API what stands for one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bot.web.oauth.metadata import resource_of
from composer.settings import Settings

ANY_KEY: Final = "nx_…"


@dataclass(frozen=True, slots=True)
class ToolAddresses:
    """Where people and tools reach Nexus. `oauth`: a tool may sign in instead of having a key. `gateway`: where what
    speaks the OpenAI API asks models with memory; None where there is no gateway. `models`: those that may be asked
    there, by name; None: all that its server has."""

    web: str
    mcp: str
    gateway: str | None
    oauth: bool
    models: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Guide:
    """What is pasted into a tool, or a kind of tools: a command, a part of a file, or a request."""

    tool: str
    text: str


def addresses_for(settings: Settings, tenant: str) -> ToolAddresses:
    """The addresses for the people of a tenant (its slug)."""
    web, upstream = settings.web_address, settings.upstream_of(tenant)
    models = None if upstream is None or upstream.models is None else sorted(upstream.models)
    gateway = None if upstream is None else f"{web}/v1"
    return ToolAddresses(web, resource_of(web), gateway, settings.public_url is not None, models)


def guides(at: ToolAddresses, key: str = ANY_KEY) -> Sequence[Guide]:
    """What to paste, with a key in it."""
    bearer = f"Authorization: Bearer {key}"
    found = [
        Guide("claude-code", f'claude mcp add --transport http nexus {at.mcp} --header "{bearer}"'),
        Guide("gemini-cli", f'gemini mcp add --scope user --transport http --header "{bearer}" nexus {at.mcp}'),
        Guide(
            "codex",
            f'export NEXUS_KEY={key}\n# in ~/.codex/config.toml:\n[mcp_servers.nexus]\nurl = "{at.mcp}"\n'
            'bearer_token_env_var = "NEXUS_KEY"',
        ),
        Guide("mcp", _SERVERS % (at.mcp, key)),
    ]
    if at.gateway is not None:
        found.append(Guide("openai", f"export OPENAI_BASE_URL={at.gateway}\nexport OPENAI_API_KEY={key}"))
    return [*found, Guide("rest", _REQUEST % (at.web, key))]


_SERVERS: Final = """{
  "mcpServers": {
    "nexus": {
      "type": "http",
      "url": "%s",
      "headers": {"Authorization": "Bearer %s"}
    }
  }
}"""
_REQUEST: Final = """curl %s/v1/query \\
  -H "Authorization: Bearer %s" \\
  -H "Content-Type: application/json" \\
  -d '{"question": "What do I prefer?"}'"""
