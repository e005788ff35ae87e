"""What libraries make anew for each app or client, made once for a process: it is the same each time, and keeps nothing
of a test."""

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any, Final

import httpcore2
import pytest

CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # the variables by which an environment names its own


@contextmanager
def shared_certificates() -> Iterator[None]:
    """Let all HTTP clients share what they trust: reading the certificates takes 20 ms, and an app makes a client for
    each server that it talks to."""
    read: Callable[..., ssl.SSLContext] = httpcore2.default_ssl_context
    made: dict[tuple[object, ...], ssl.SSLContext] = {}

    def shared(**options: Any) -> ssl.SSLContext:
        key = (*options.items(), *map(os.environ.get, CERTIFICATES))
        if key not in made:
            made[key] = read(**options)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", shared)
        yield


@contextmanager
def shared_tools() -> Iterator[None]:
    """Let all MCP servers share what the SDK reads from the signatures of tools, which takes 20 ms for those of Nexus.
    Only methods are shared: each server has its own object of them. Loads the SDK."""
    from mcp.server.mcpserver.tools.base import Tool  # noqa: PLC0415 - it takes a second

    read = Tool.from_function
    made: dict[tuple[object, ...], Tool] = {}

    def shared(fn: Callable[..., Any], **options: Any) -> Tool:
        if not isinstance(fn, MethodType):
            return read(fn, **options)
        key = (fn.__func__, *((name, repr(value)) for name, value in options.items()))
        if key not in made:
            made[key] = read(fn, **options)
        return made[key].model_copy(update={"fn": fn})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tool, "from_function", shared)
        yield
