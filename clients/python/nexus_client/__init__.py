"""A client for the API of Nexus: `Nexus` and `AsyncNexus`, with the same methods. It needs httpx2 alone."""

from nexus_client.aio import AsyncNexus
from nexus_client.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NexusError,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from nexus_client.sync import Nexus

__all__ = [
    "AsyncNexus",
    "Conflict",
    "Forbidden",
    "Invalid",
    "Nexus",
    "NexusError",
    "NotFound",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
]
