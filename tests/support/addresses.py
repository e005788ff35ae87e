"""Records which names this process looks up and which internet addresses it connects to, by Python's own hooks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_watchers: list[set[str]] = []


@contextmanager
def reached() -> Iterator[set[str]]:
    """The hosts, by name or number, that are looked up or connected to meanwhile."""
    hosts: set[str] = set()
    if not _installed:
        sys.addaudithook(_note)  # for the rest of the process: hooks can't be removed
        _installed.append(True)
    _watchers.append(hosts)
    try:
        yield hosts
    finally:
        _watchers.remove(hosts)


_installed: list[bool] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    host = None
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    if host is not None:
        for hosts in _watchers:
            hosts.add(host.decode() if isinstance(host, bytes) else str(host))
