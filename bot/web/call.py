"""One request of a person or a tool: who asks, in which transaction their access is judged, and what repeats it."""

import secrets
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Header, Query, Request

from bot.web.credentials import CHALLENGE
from bot.web.dependencies import Nexus
from bot.web.metering import Metered, metered_of, whole_request
from bot.web.principal import Bearer
from bot.web.problems import RequestRefused, header
from composer.app import App
from composer.entries.access import access_for_reading, access_for_writing
from composer.entries.projects import named_project
from composer.errors import NotFound, Refused
from composer.memory.forget import RECEIPT_ID_BYTES, RECEIPT_KEY_BYTES, Receipt
from composer.model import derived_id
from composer.people.credentials.issuing import require_valid
from composer.people.credentials.principal import Principal
from composer.repositories.database import Transaction
from composer.repositories.operations import Operation
from composer.repositories.requests import NamedRequest
from composer.visibility import EntryAccess

T = TypeVar("T")

MAX_IDEMPOTENCY_CHARS: Final = 255
REPLAYED: Final = "Idempotency-Replayed"
# Of answers to writes that an idempotency key makes take effect once, for the document of the API.
ONCE: Final[dict[str, Any]] = {
    REPLAYED: header("true: an earlier request with the same Idempotency-Key made it.", required=False)
}
IS_REPLAYED: Final[dict[str, str]] = {REPLAYED: "true"}
GONE: Final = "What this request made was forgotten since."


@dataclass(frozen=True, slots=True)
class Event:
    """What identifies a write, so that repeating it makes the same thing, and when it was made first."""

    id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request to the API. `whole` is its method, address and body; `key` its idempotency key, if it named one;
    `metered` says what it counts as, if it counts."""

    app: App
    principal: Principal
    whole: bytes
    key: str | None
    metered: Metered | None = None
    erased: list[Receipt] = field(default_factory=list)  # of what this request erased

    @property
    def now(self) -> datetime:
        """The time."""
        return self.app.clock.now()

    def note_read(self, found: Iterable[uuid.UUID], tokens: int = 0) -> None:
        """Note what is handed out: its ids, and an estimate of its tokens. Of a tool its person is shown that."""
        if self.metered is not None:
            self.metered.read, self.metered.tokens = tuple(found), tokens

    @asynccontextmanager
    async def reading(self, project: str | None = None) -> AsyncIterator[tuple[Transaction, EntryAccess]]:
        """A transaction that reads as of one moment, and the facts that access is judged by. `project`: the id or the
        name of the one that the request is about."""
        who = self.principal
        async with self.app.database.transaction(who.tenant_id, "read") as tx:
            access = await access_for_reading(tx, who.tenant_id, who.user, who.reads_as, who.permissions)
            yield tx, _in_project(access, project)

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[tuple[Transaction, EntryAccess]]:
        """The same for what is read and noted in the audit log."""
        who = self.principal
        async with self.app.database.transaction(who.tenant_id) as tx:
            yield tx, await access_for_reading(tx, who.tenant_id, who.user, who.reads_as, who.permissions)

    @asynccontextmanager
    async def writing(
        self, project: str | None = None, *, alone: bool = False
    ) -> AsyncIterator[tuple[Transaction, EntryAccess]]:
        """The same for a write: who is in which team and project stays as it is until it is committed. `alone`: it
        changes that, erases, or replaces an entry. Raises QuotaUsedUp."""
        async with self._writing(project, alone=alone) as (tx, access):
            await self._require_quota(tx)
            yield tx, access
            await self._require_credential(tx)
            await self._count(tx)

    @asynccontextmanager
    async def _writing(self, project: str | None, *, alone: bool) -> AsyncIterator[tuple[Transaction, EntryAccess]]:
        who = self.principal
        async with self.app.database.transaction(who.tenant_id, "alone" if alone else "share") as tx:
            access = await access_for_writing(tx, who.tenant_id, who.user, who.reads_as, who.permissions)
            if alone:  # erasing all of a person goes before, and their key is gone, or finds what is set
                await self._require_valid(tx)
            yield tx, _in_project(access, project)
        for receipt in self.erased:
            await self.app.forgotten(who.tenant_id, receipt)
        self.app.indexer.due(who.tenant_id)

    async def once(
        self,
        make: Callable[[Transaction, EntryAccess, Event], Awaitable[tuple[uuid.UUID, T]]],
        again: Callable[[Transaction, EntryAccess, Event, uuid.UUID], Awaitable[T]],
        project: str | None = None,
        *,
        alone: bool = False,
    ) -> tuple[T, bool]:
        """What `make` made, and whether an earlier request with the same idempotency key made it; then `again` says
        what became of that. `make` returns the id of what it made, too. Raises RequestRefused with 410 where that was
        forgotten since."""
        async with self._writing(project, alone=alone) as (tx, access):
            named = self._named()
            if named is None:
                await self._require_quota(tx)
                result = (await make(tx, access, Event(uuid.uuid4().hex, self.now)))[1]
                await self._require_credential(tx)
                await self._count(tx)
                return result, False
            begun = await tx.requests.begin(named, self.now)
            event = Event(f"{self.principal.id} {self.key} {begun.at.isoformat()}", begun.at)
            if begun.made is not None:
                if self.metered is not None:
                    self.metered.is_counted = True
                try:
                    return await again(tx, access, event, begun.made), True
                except NotFound:
                    raise RequestRefused(410, GONE) from None
            await self._require_quota(tx)
            made, result = await make(tx, access, event)
            await tx.requests.note_made(named, made)
            await self._require_credential(tx)
            await self._count(tx)
            return result, False

    async def change(
        self,
        act: Callable[[Transaction, EntryAccess], Awaitable[T]],
        shown: Callable[[Transaction, EntryAccess], Awaitable[T]],
        project: str | None = None,
        *,
        alone: bool = False,
    ) -> tuple[T, bool]:
        """The same for a change of what is there: what `act` returns; of a request that repeats another, which changes
        nothing, what `shown` returns: what is there now."""

        async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, T]:
            return derived_id("change", event.id), await act(tx, access)

        async def again(tx: Transaction, access: EntryAccess, event: Event, id: uuid.UUID) -> T:
            return await shown(tx, access)

        return await self.once(make, again, project, alone=alone)

    async def act(
        self,
        act: Callable[[Transaction, EntryAccess], Awaitable[object]],
        project: str | None = None,
        *,
        alone: bool = False,
    ) -> None:
        """The same for a change that is answered without a body."""
        await self.change(act, _nothing, project, alone=alone)

    async def erase(
        self,
        erase: Callable[[Transaction, EntryAccess, bytes], Awaitable[Receipt]],
        project: str | None = None,
    ) -> tuple[Receipt, bool]:
        """The same for an erasure, which is given the random key of its receipt: a request that repeats another erases
        nothing, and is answered with the receipt of that."""

        async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, Receipt]:
            receipt = await erase(tx, access, secrets.token_bytes(RECEIPT_KEY_BYTES))
            self.erased.append(receipt)
            return uuid.UUID(hex=receipt.id.ljust(32, "0")), receipt

        async def again(tx: Transaction, access: EntryAccess, event: Event, made: uuid.UUID) -> Receipt:
            stored = await tx.erasure.receipt(made.hex[: 2 * RECEIPT_ID_BYTES])
            return Receipt() if stored is None else Receipt(dict(stored.counts), id=stored.id)

        return await self.once(make, again, project, alone=True)

    async def _require_quota(self, tx: Transaction, times: int = 1) -> None:
        if self.metered is not None and self.metered.operation is Operation.WRITES:
            await self.app.operations.require(tx, self.principal.tenant_id, self.metered.operation, times)

    async def _require_credential(self, tx: Transaction) -> None:
        """Return if what a write was let in by has not ended while it waited for an erasure of all that its person has:
        nothing is to be stored after that. Raises RequestRefused with 401."""
        if self.metered is not None and self.metered.operation is Operation.WRITES:
            await self._require_valid(tx)

    async def _require_valid(self, tx: Transaction) -> None:
        try:
            await require_valid(tx, self.principal, self.now)
        except Refused as error:
            raise RequestRefused(401, str(error), CHALLENGE) from error

    async def _count(self, tx: Transaction) -> None:
        """Count the request with what it has changed. Raises QuotaUsedUp where it was more than is left."""
        metered = self.metered
        if metered is None:
            return
        metered.is_counted = True
        if metered.times > 1:
            await self._require_quota(tx, metered.times)
        await self.app.operations.add(tx, metered.actor, metered.operation, metered.times, metered.tokens)

    def _named(self) -> NamedRequest | None:
        if self.key is None:
            return None
        return NamedRequest(str(self.principal.id), self.principal.user, self.key, self.whole)


async def _nothing(tx: Transaction, access: EntryAccess) -> None:
    """What a change is answered with that has no body."""


def _in_project(access: EntryAccess, name: str | None) -> EntryAccess:
    """The facts for a request about a project, by its id or name. Raises as `named_project`."""
    return access if name is None else replace(access, project=named_project(access, name).id)


async def _call(
    request: Request,
    nexus: Nexus,
    principal: Bearer,
    idempotency_key: Annotated[
        str | None,
        Header(
            description="Makes a repeated write take effect once in a day: a new text for each write.",
            json_schema_extra={"pattern": f"^[ -~]{{1,{MAX_IDEMPOTENCY_CHARS}}}$"},
        ),
    ] = None,
) -> ApiCall:
    if idempotency_key is not None:
        plain = idempotency_key.isascii() and idempotency_key.isprintable()
        if not plain or not 1 <= len(idempotency_key) <= MAX_IDEMPOTENCY_CHARS:
            raise RequestRefused(400, f"An idempotency key has 1 to {MAX_IDEMPOTENCY_CHARS} visible ASCII characters.")
    whole = b"" if idempotency_key is None else await whole_request(request)
    return ApiCall(nexus.app, principal, whole, idempotency_key, metered_of(request))


Calling = Annotated[ApiCall, Depends(_call)]
InProject = Annotated[
    str | None,
    Query(
        alias="project",
        min_length=1,
        max_length=200,
        description="The project that the request is about, by its id or name: what an isolated one has is found by "
        "requests alone that name it.",
    ),
]
