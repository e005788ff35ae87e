"""Writes over the API that named an idempotency key: each takes effect once in a day."""

import hashlib
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.errors import BadInput
from composer.ports.database import Statements

REQUEST_RETENTION: Final = timedelta(days=1)  # a repeat that comes later is a new write
OTHER_REQUEST: Final = "That idempotency key was used for another request: use a new key for each new request."


@dataclass(frozen=True, slots=True)
class NamedRequest:
    """A write that may be repeated: by whom (`credential`: the id of a key or a web session, and its user), under which
    idempotency `key`, and the whole `request`: method, path and body."""

    credential: str
    user: uuid.UUID
    key: str
    request: bytes

    @property
    def key_digest(self) -> bytes:
        """What is stored of the key."""
        return hashlib.sha256(self.key.encode("utf-8", "surrogatepass")).digest()

    @property
    def digest(self) -> bytes:
        """What is stored of the request."""
        return hashlib.sha256(self.request).digest()


@dataclass(frozen=True, slots=True)
class Begun:
    """A write, when it was made first (`at`), and the id of what it made then; None: it is to be made now."""

    at: datetime
    made: uuid.UUID | None = None


class ApiRequests:
    """Recorded writes. They hold ids and digests alone: what a repeat is answered with is read anew."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def begin(self, request: NamedRequest, now: datetime) -> Begun:
        """Record a write in the transaction that makes it, unless it took effect within the last day. One that another
        transaction is making is waited for. Raises BadInput where the key was used for another request."""
        named = {"credential": request.credential, "key_digest": request.key_digest}
        if await self._sql.fetch_value(
            "api_request_begin",
            **named,
            digest=request.digest,
            user_id=request.user,
            now=now,
            before=now - REQUEST_RETENTION,
        ):
            return Begun(now)
        row = await self._sql.fetch_one("api_request_get", **named)
        if row is None or row["digest"] != request.digest:
            raise BadInput(OTHER_REQUEST)
        return Begun(row["created_at"], row["made"])

    async def note_made(self, request: NamedRequest, made: uuid.UUID) -> None:
        """Record what a write made."""
        await self._sql.execute(
            "api_request_made", credential=request.credential, key_digest=request.key_digest, made=made
        )
