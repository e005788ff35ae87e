"""Who is told that what they look at has changed. A change says where something is filed and whose it is, never what it
is; whoever listens is told of it only where they may read that, judged when it happens."""

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from composer.model import Visibility

CHANGED: Final = "changed"  # the first word of such a notice (note_changed and note_shown of the database)
MAX_HEARD: Final = 1_000  # changes that a listener has not asked for yet; of more, the earliest are not told


@dataclass(frozen=True, slots=True)
class Change:
    """A row of a `table` that was written, moved or erased: its access tag, before or after that. `tenant_id` None: of
    the installation."""

    tenant_id: uuid.UUID | None
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    table: str
    vendors: tuple[str, ...] = ("*",)

    @property
    def place(self) -> str:
        """The id of the room, team or project that it is in, or of whom it is."""
        return self.namespace.partition(":")[2].partition(".")[0]


class Heard:
    """What one listener has heard since they last asked."""

    def __init__(self, tenant: uuid.UUID) -> None:
        self.tenant = tenant
        self._changes: dict[Change, None] = {}
        self._any = asyncio.Event()

    def add(self, change: Change) -> None:
        """Note a change."""
        if change.tenant_id not in (None, self.tenant):
            return
        self._changes[change] = None
        if len(self._changes) > MAX_HEARD:
            del self._changes[next(iter(self._changes))]
        self._any.set()

    async def wait(self) -> Sequence[Change]:
        """The changes since the last time, as soon as there is one."""
        await self._any.wait()
        self._any.clear()
        found, self._changes = list(self._changes), {}
        return found


def _id(text: str) -> uuid.UUID | None:
    return None if text == "-" else uuid.UUID(text)


class ChangesHub:
    """Passes on what the database says to every process."""

    def __init__(self) -> None:
        self._listeners: set[Heard] = set()

    def on_notice(self, notice: str) -> None:
        """A transaction was stored that changed something."""
        _, tenant, visibility, user, namespace, table = notice.split(" ")
        change = Change(_id(tenant), namespace, Visibility(visibility), _id(user), table)
        for listener in self._listeners:
            listener.add(change)

    @contextmanager
    def listening(self, tenant: uuid.UUID) -> Iterator[Heard]:
        """Hear what changes in a tenant, within this block."""
        heard = Heard(tenant)
        self._listeners.add(heard)
        try:
            yield heard
        finally:
            self._listeners.discard(heard)
