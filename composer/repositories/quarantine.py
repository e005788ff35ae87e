"""The quarantine: what the untrusted wrote, until somebody approves it; and what one author has contributed."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from composer.model import Trust, Visibility, derived_id
from composer.ports.clock import EARLIEST
from composer.ports.database import Row, Statements
from composer.repositories.landmarks import MAX_PROPOSED, PROPOSAL_LIFETIME
from composer.repositories.lineage import insert_lineage
from composer.repositories.readable import readable_parameters
from composer.visibility import AccessTag, Readable, Reviewable

PENDING_KIND: Final = "pending"  # of the quarantine's rows in the lineage


class QuarantineState(StrEnum):
    """Whether somebody has decided about a row. A decided row has no text any more."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class PendingItem:
    """A memory, fact or landmark that waits for approval. It becomes the item `item_id`.

    `detail` is the kind of a memory or the key of a fact; `text` of a fact is its value as JSON; `sources` are the
    messages it was found in, and `shown` those that a model was shown with them. `entry`: what else an entry has, as
    JSON. `row`: the id of what is stored.
    """

    kind: str
    item_id: uuid.UUID
    tag: AccessTag
    trust: Trust
    detail: str
    text: str
    author: str
    origin: str
    at: datetime
    sources: tuple[uuid.UUID, ...] = ()
    shown: tuple[uuid.UUID, ...] = ()
    entry: str | None = None
    row: uuid.UUID | None = None

    @property
    def id(self) -> uuid.UUID:
        """Its own id in the quarantine. Each version of an entry has another one: who approves it has seen that one."""
        if self.row is not None:
            return self.row
        if self.entry is None:
            return pending_id(self.item_id)
        return derived_id("pending", str(self.item_id), self.detail, self.text, self.entry)

    @property
    def namespace(self) -> str:
        """The namespace that it will be filed under."""
        return self.tag.namespace

    @property
    def visibility(self) -> Visibility:
        """Its visibility."""
        return self.tag.visibility

    @property
    def user_id(self) -> uuid.UUID:
        """Its author."""
        return self.tag.user_id

    @property
    def vendors(self) -> tuple[str, ...]:
        """All vendors: who reviews is not a vendor."""
        return ("*",)


def pending_id(item: uuid.UUID) -> uuid.UUID:
    """The id in the quarantine of the item that would get this id."""
    return derived_id("pending", str(item))


class Quarantine:
    """Items that wait for approval, and the marks of those that were decided."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def add(self, items: Sequence[PendingItem], state: QuarantineState = QuarantineState.PENDING) -> None:
        """Add items with their lineage. Those that are known, pending or decided, stay unchanged."""
        rows = await self._sql.fetch(
            "quarantine_insert",
            ids=[item.id for item in items],
            kinds=[item.kind for item in items],
            item_ids=[item.item_id for item in items],
            namespaces=[item.namespace for item in items],
            user_ids=[item.user_id for item in items],
            visibilities=[str(item.visibility) for item in items],
            trusts=[str(item.trust) for item in items],
            details=[item.detail for item in items],
            texts=[item.text for item in items],
            authors=[item.author for item in items],
            origins=[item.origin for item in items],
            at=[item.at for item in items],
            states=[str(state) for _ in items],
            entries=[item.entry for item in items],
        )
        new = {row["id"] for row in rows}
        added = [item for item in items if item.id in new]
        links = [(PENDING_KIND, item.id, "message", source) for item in added for source in item.sources]
        links += [(PENDING_KIND, i.id, "shown", source) for i in added for source in i.shown if source not in i.sources]
        await insert_lineage(self._sql, links)

    async def put(self, item: PendingItem) -> None:
        """Add an entry that waits for approval, in place of an earlier version of it, pending or decided."""
        await self._sql.execute("quarantine_drop", user_id=item.user_id, item_id=item.item_id)
        await self.add([item])

    async def waits(self, users: Sequence[uuid.UUID], entry: uuid.UUID) -> bool:
        """Whether a version of an entry of a person waits for approval."""
        found = await self._sql.fetch_value(
            "quarantine_entry_waits", user_ids=list(users), item_id=entry, namespace=None, origin=None, key=None
        )
        return found is not None

    async def find_by_key(self, users: Sequence[uuid.UUID], namespace: str, origin: str, key: str) -> uuid.UUID | None:
        """The id of the entry that waits for approval and that one writer made with a key for a person in a place."""
        found: uuid.UUID | None = await self._sql.fetch_value(
            "quarantine_entry_waits",
            user_ids=list(users),
            item_id=None,
            namespace=namespace,
            origin=origin,
            key=key,
        )
        return found

    async def states(self, items: Sequence[uuid.UUID]) -> dict[uuid.UUID, QuarantineState]:
        """The states of the rows of these items, by item; those that never were in quarantine are left out."""
        by_row = {pending_id(item): item for item in items}
        rows = await self._sql.fetch("quarantine_states", ids=list(by_row)) if by_row else []
        return {by_row[row["id"]]: QuarantineState(row["state"]) for row in rows}

    async def find_pending(
        self, reviewable: Reviewable, author: uuid.UUID | None = None, since: datetime = EARLIEST
    ) -> list[PendingItem]:
        """The items that wait for approval in the places that a viewer may review, oldest first."""
        rows = await self._sql.fetch(
            "quarantine_pending", **_reviewable_parameters(reviewable), author=author, since=since
        )
        items = [replace(_item(row, row["item_id"], row["origin"]), row=row["id"]) for row in rows]
        return [item for item in items if _is_decided_by(reviewable, item)]

    async def count(self, reviewable: Reviewable, decidable: Readable, users: Sequence[uuid.UUID], at: datetime) -> int:
        """How many items `find_pending` finds, together with the decisions that are proposed where somebody may accept
        them (`decidable`), and the open invitations of somebody (`users`) to teams and projects."""
        reviewed = {f"reviewed_{name}": value for name, value in _reviewable_parameters(reviewable).items()}
        found = await self._sql.fetch_value(
            "waiting_count",
            **readable_parameters(decidable),
            **reviewed,
            user_ids=list(users),
            at=at,
            max_proposed=MAX_PROPOSED,
            lifetime=PROPOSAL_LIFETIME,
        )
        return int(found or 0)

    async def decide(self, item: PendingItem, state: QuarantineState) -> bool:
        """Approve or reject an item; False when that was decided meanwhile."""
        row = await self._sql.fetch_one("quarantine_decide", ids=[item.id], state=str(state), decided=False)
        return row is not None

    async def withdraw(self, items: Sequence[PendingItem]) -> None:
        """Reject items for good, also approved ones: indexing their messages again does not make them again."""
        await self.add(items, QuarantineState.REJECTED)
        state, ids = str(QuarantineState.REJECTED), [item.id for item in items]
        await self._sql.execute("quarantine_decide", ids=ids, state=state, decided=True)

    async def contributions(self, reviewable: Readable, author: uuid.UUID, since: datetime) -> list[PendingItem]:
        """The memories, facts and landmarks of one author in the places that a viewer may review, oldest first.

        Each has the id of the stored item as its `item_id`.
        """
        rows = await self._sql.fetch(
            "contributions_find", **readable_parameters(reviewable), author=author, since=since
        )
        items = [_item(row, row["id"], "") for row in rows]
        return [item for item in items if reviewable.admits(item)]

    async def find_amendments(self, landmarks: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """The versions that have replaced these landmarks since, without these themselves."""
        return [row["id"] for row in await self._sql.fetch("landmarks_amending", ids=list(landmarks))]


def _reviewable_parameters(reviewable: Reviewable) -> dict[str, Any]:
    """The parameters by which a query reads what may be approved: of memories as any readable rows, where the `others`
    are, and where its `authors` decide about their `own`."""
    own = reviewable.own
    return {
        **readable_parameters(reviewable.memories),
        "others": list(reviewable.others.namespaces),
        "own": [] if own is None else list(own.namespaces),
        "authors": [] if own is None else list(own.readers),
    }


def _is_decided_by(reviewable: Reviewable, item: PendingItem) -> bool:
    if item.trust is Trust.MEMBER:
        return reviewable.admits_own(item)
    return reviewable.of(item.kind).admits(item)


def _item(row: Row, item: uuid.UUID, origin: str) -> PendingItem:
    tag = AccessTag(row["namespace"], Visibility(row["visibility"]), row["user_id"])
    return PendingItem(
        kind=row["kind"],
        item_id=item,
        tag=tag,
        trust=Trust(row["trust"]),
        detail=row["detail"],
        text=row["text"],
        author=row["author"],
        origin=origin,
        at=row["at"],
        sources=tuple(row["sources"]),
        shown=tuple(row["shown"]),
        entry=row["entry"],
    )
