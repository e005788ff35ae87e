"""What was asked for under an idempotency key, over the API or as a command in a chat: each takes effect once."""

import hashlib
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

from composer.errors import BadInput
from composer.ports.database import Statements

API_RETENTION: Final = timedelta(days=1)  # a repeat that comes later is a new write
COMMAND_RETENTION: Final = timedelta(days=30)  # platforms deliver again within hours; history is read for a day
COMMAND_CALLER: Final = "command"  # of all commands in chats, whose keys say who gave them
OTHER_REQUEST: Final = "That idempotency key was used for another request: use a new key for each new request."


class RequestState(Enum):
    """What became of a request, as one of the processes that may carry it out sees it."""

    WAITS = auto()  # it may be carried out
    DONE = auto()  # its changes are made
    TAKEN = auto()  # another process has taken it over


@dataclass(frozen=True, slots=True)
class NamedRequest:
    """A request that may be repeated: by whom (`caller`: the id of a key or a web session, or COMMAND_CALLER), under
    which idempotency `key`, and the whole `content`: method, path and body. With the `user` it is forgotten (None: with
    time alone). It is known for so long (`lasts`)."""

    caller: str
    user: uuid.UUID | None
    key: str
    content: bytes
    lasts: timedelta = API_RETENTION

    @property
    def key_digest(self) -> bytes:
        """What is stored of the key."""
        return hashlib.sha256(self.key.encode("utf-8", "surrogatepass")).digest()

    @property
    def digest(self) -> bytes:
        """What is stored of the content."""
        return hashlib.sha256(self.content).digest()


@dataclass(frozen=True, slots=True)
class Begun:
    """A request, when it was made first (`at`), and the id of what it made then; None: nothing yet. `is_new`: this is
    the first time."""

    at: datetime
    made: uuid.UUID | None = None
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class UnansweredCommand:
    """A command whose process ended before it was answered. `call` is JSON text; `done`: its changes are made."""

    call: str
    done: bool


class Requests:
    """Recorded requests. They hold ids and digests alone: what a repeat is answered with is read anew. Of a command its
    call is kept until it is answered."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def begin(
        self, request: NamedRequest, now: datetime, *, process: int | None = None, call: str | None = None
    ) -> Begun:
        """Record a request, unless it is known: a write in the transaction that makes it, and one that another
        transaction is making is waited for; a command before it runs, with its `call`, which is JSON text, and the
        number of the process that runs it. Raises BadInput where the key was used for another request."""
        if await self._sql.fetch_value(
            "request_begin",
            **_name(request),
            digest=request.digest,
            user_id=request.user,
            now=now,
            expires_at=now + request.lasts,
            process=process,
            call=call,
        ):
            return Begun(now, is_new=True)
        row = await self._sql.fetch_one("request_get", **_name(request), process=process)
        if row is None or row["digest"] != request.digest:
            raise BadInput(OTHER_REQUEST)
        return Begun(row["created_at"], row["made"])

    async def hold(self, request: NamedRequest, process: int) -> RequestState:
        """What became of a request that this process carries out; WAITS also for one that is not recorded. Nobody else
        changes it until this transaction ends."""
        row = await self._sql.fetch_one("request_get", **_name(request), process=process)
        if row is None:
            return RequestState.WAITS
        if row["taken"]:
            return RequestState.TAKEN
        return RequestState.WAITS if row["made"] is None else RequestState.DONE

    async def note_made(self, request: NamedRequest, made: uuid.UUID) -> None:
        """Record what a request made, in the transaction that makes it."""
        await self._sql.execute("request_made", **_name(request), made=made)

    async def mark_answered(self, request: NamedRequest, process: int) -> None:
        """Delete the call of a command that was answered, unless another process has taken it over."""
        await self._sql.execute("request_answered", **_name(request), process=process)

    async def take_over(self, at: str, process: int) -> list[UnansweredCommand]:
        """Take over the unanswered commands of processes that have ended, oldest first: those whose call says `at`."""
        rows = await self._sql.fetch("requests_take_over", at=at, process=process)
        rows = sorted(rows, key=lambda row: (row["created_at"], row["key_digest"]))
        return [UnansweredCommand(row["call"], row["made"] is not None) for row in rows]


def _name(request: NamedRequest) -> dict[str, object]:
    return {"caller": request.caller, "key_digest": request.key_digest}
