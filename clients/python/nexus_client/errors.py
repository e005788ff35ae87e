"""What can go wrong: one family, with the status and the server's own sentence."""

from collections.abc import Mapping
from typing import Final


class NexusError(Exception):
    """A request that Nexus refused, or could not answer. `status`: 0 where there was no answer at all."""

    def __init__(self, status: int, detail: str, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.retry_after = status, detail, retry_after


class Unauthorized(NexusError):
    """The key is wrong, expired or revoked."""


class Forbidden(NexusError):
    """The key may not do that."""


class NotFound(NexusError):
    """It does not exist, or may not be read: the same answer."""


class Conflict(NexusError):
    """It contradicts what is there by now: read it again (409, 410, 412)."""


class Invalid(NexusError):
    """The request is wrong (400, 413, 415, 422)."""


class TooManyRequests(NexusError):
    """Wait `retry_after` seconds."""


class Unavailable(NexusError):
    """Nexus, or a server that it needs, does not answer now."""


_KINDS: Final[Mapping[int, type[NexusError]]] = {
    0: Unavailable,
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Conflict,
    412: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def error_of(status: int, detail: str, retry_after: float | None = None) -> NexusError:
    """The error for a status."""
    return _KINDS.get(status, NexusError)(status, detail, retry_after)
