"""Whether a chat platform is connected, as the web port is told by whoever serves the platform."""

from collections.abc import Awaitable, Callable

Connected = Callable[[], Awaitable[bool]]  # of one platform
