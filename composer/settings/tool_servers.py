"""The settings of the servers whose tools agents may use, `[mcp.NAME]` in nexus.toml."""

import re
from typing import Annotated

from pydantic import Field, SecretStr, model_validator

from composer.settings.values import VARIABLE_PREFIX, HeaderName, HeaderValue, HttpUrl, RoomName, Slug, Table

MAX_FUNCTION_NAME = 64  # characters, as APIs allow
MIN_SERVER_KEY_CHARS = 16  # a shorter value of a header or a variable may be a word of ordinary texts


class McpSettings(Table):
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
        hidden = {text for text in others if len(text) >= MIN_SERVER_KEY_CHARS}
        hidden |= {self.token.get_secret_value()} if self.token is not None else set()
        return hidden | (set() if self.url is None else {str.__str__(self.url)})

    def offered_tools(self, name: str) -> dict[str, str]:
        """Its allowed tools, in the order of the file, by the names by which a model calls them; `name` is its own. No
        server's name has _, so tools of two servers never have the same name."""
        called = {tool: f"{name}__{re.sub(r'[^a-zA-Z0-9_-]', '_', tool)}"[:MAX_FUNCTION_NAME] for tool in self.tools}
        return {called[tool]: tool for tool in self.tools}


def token_variable(server: str) -> str:
    """The variable that may hold the token of an MCP server."""
    return f"{VARIABLE_PREFIX}MCP_{server.upper().replace('-', '_')}_TOKEN"
