"""What libraries make anew for each app or client, made once for a process: it is the same each time, and keeps nothing
of a test."""

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
