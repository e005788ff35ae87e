"""Servers outside of Nexus whose tools a model may use."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

Sending = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as its server describes it, not cleaned. `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a call gave, not cleaned: its text, and whether the server says that the call failed."""

    text: str
    failed: bool = False


class ToolServer(Protocol):
    """A server with tools. It is connected to on first use."""

    async def tools(self) -> Sequence[ServerTool]:
        """All of its tools as they are now. Raises Unavailable and Misconfigured."""
        ...

    async def call(self, name: str, arguments: Mapping[str, object], sending: Sending) -> ToolAnswer:
        """Call a tool, by its name at the server. The arguments leave inside `sending`: it is entered once the server
        is connected, and left as soon as they are on their way; what it raises is passed on, and nothing is sent.
        Raises Unavailable and Misconfigured."""
        ...
