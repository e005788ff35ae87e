"""The connections of the web port: how many are open, whose they are, and which ones make room for others.

Whoever has most of those that wait (for a request, for its body, or for a client that does not read its answer) gives
some back. What is being answered is never cut for somebody else.
"""

import resource
from collections import Counter, defaultdict
from collections.abc import Container
from typing import Final, Protocol

from bot.web.limits import network_of

MAX_CONNECTIONS: Final = 2_000  # of all clients
MAX_FILES: Final = 65_536  # what the process may open at most: some libraries look at each that it might have
RESERVED_FILES: Final = 256  # for the database, the platforms, model servers and files
ADDRESS_PART: Final = 4  # one address has at most a fourth of all connections
ENDED_PART: Final = 8  # of those that wait, whoever has most gives back an eighth: not each newcomer looks at all


class Connection(Protocol):
    """A connection. `host` is the address of its other end."""

    host: str

    @property
    def asks(self) -> str:
        """The address of who asks: `host`, or that for which a trusted proxy passes on the present request."""

    @property
    def waits(self) -> bool:
        """Whether nothing is being answered, or nobody reads the answer."""

    def abort(self) -> None:
        """End it now."""


class Connections:
    """What is open, the oldest first. `add` each before it is served and `remove` it once it is closed."""

    def __init__(self, most: int, proxies: Container[str]) -> None:
        """`most` of all clients; `proxies` are the addresses whose connections are those of many clients."""
        self._most, self._of_one, self._proxies = most, max(1, most // ADDRESS_PART), proxies
        self._open: dict[Connection, str] = {}
        self._counts = Counter[str]()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> bool:
        """Count a connection, if need be in place of others that wait: of its own address where that has its share,
        else of whoever has most. Returns False where there is no place."""
        address = network_of(connection.host)
        if connection.host not in self._proxies and self._counts[address] >= self._of_one:
            self._end([each for each, of in self._open.items() if of == address and each.waits])
            if self._counts[address] >= self._of_one:
                return False
        if len(self) >= self._most:
            self.make_room()
            if len(self) >= self._most:
                return False
        self._open[connection] = address
        self._counts[address] += 1
        return True

    def remove(self, connection: Connection) -> None:
        """Count a connection no longer."""
        address = self._open.pop(connection, None)
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def make_room(self) -> None:
        """End the oldest waiting connections of whoever has most of those."""
        waiting = defaultdict[str, list[Connection]](list)
        for each, address in self._open.items():
            if each.waits:
                waiting[address if each.asks == each.host else network_of(each.asks)].append(each)
        self._end(max(waiting.values(), key=len, default=[]))

    def _end(self, waiting: list[Connection]) -> None:
        for each in waiting[: max(1, len(waiting) // ENDED_PART)]:
            self.remove(each)
            each.abort()


def connections_for(proxies: Container[str]) -> Connections:
    """As many connections as this process may have files, once it may have as many as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return Connections(max(1, min(MAX_CONNECTIONS, files - min(RESERVED_FILES, files // 2))), proxies)
