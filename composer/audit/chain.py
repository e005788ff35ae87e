"""The chain of the audit log: each seal holds the digest of its row and of the seal before it. Pure.

A signature shows that Nexus wrote a row or a seal; the chain shows that none between two of them went.
"""

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from composer.ports.audit import AuditKeys, Head
from composer.repositories.audit import Anchor, Seal, SignedEvent

START: Final = Head(0, bytes(32))  # of an empty chain
MAX_BREAKS: Final = 20  # reported; a log that was rewritten has as many as rows


class ChainProblem(StrEnum):
    """What is wrong with the chain at one number."""

    CHANGED = "the row was changed"
    REMOVED = "rows were removed"
    INSERTED = "the row was inserted, or its seal was changed"
    REPLACED = "the rows before this one were replaced"
    UNKNOWN_KEY = "the row was signed with a key that is not here"
    UNSEALED = "a row without a seal was inserted or changed"


@dataclass(frozen=True, slots=True)
class Break:
    """One place where the chain does not hold: the number of the row (0: of no sealed row), when it was sealed, and the
    id of the key that is not here."""

    number: int
    problem: ChainProblem
    at: datetime | None = None
    key_id: str = ""

    def __str__(self) -> str:
        """What is wrong, and for a key that is not here what to do."""
        if self.problem is ChainProblem.UNKNOWN_KEY:
            return f"the row is signed with the key {self.key_id}, which is not here: put it back into audit.key"
        return str(self.problem)


@dataclass(slots=True)
class Cause:
    """The first break of one cause, and how many there are of it: all, also past those that are reported."""

    first: Break
    count: int = 0


@dataclass(slots=True)
class Verification:
    """The result of verifying one tenant's log. `end` is the last seal that was read; it holds up to `holds_to`.

    `rows` were verified, `pending` have no seal yet, of which the oldest is from `oldest_pending`: also those that are
    signed with a key that is not here. `first` is the first number that is still there, after retention. `breaks` are
    the first ones, `causes` all of them.
    """

    end: Head = START
    first: int = 1
    rows: int = 0
    pending: int = 0
    oldest_pending: datetime | None = None
    holds_to: int = 0
    breaks: list[Break] = field(default_factory=list)
    causes: dict[tuple[ChainProblem, str, bool], Cause] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.breaks

    def broken(self, number: int, problem: ChainProblem, at: datetime | None = None, key_id: str = "") -> None:
        """Note a break, and count it with those of its cause, rows with a seal and rows without one apart."""
        found = self.causes.setdefault((problem, key_id, number > 0), Cause(Break(number, problem, at, key_id)))
        found.count += 1
        if len(self.breaks) < MAX_BREAKS:
            self.breaks.append(Break(number, problem, at, key_id))


def digest_of(seal: Seal, tenant: uuid.UUID) -> bytes:
    """The digest of a seal, which the next one holds. 32 bytes."""
    return hashlib.sha256(seal.signed_bytes(tenant)).digest()


def sealed(
    tenant: uuid.UUID, end: Head, rows: Sequence[SignedEvent], sealed_at: datetime, keys: AuditKeys
) -> tuple[list[Seal], Head]:
    """The seals of rows that are appended to a chain which ends at `end`, and its new end."""
    seals = []
    for row in rows:
        event_digest = hashlib.sha256(row.event.signed_bytes(tenant)).digest()
        seal = Seal(end.number + 1, row.event.id, sealed_at, event_digest, end.digest, keys.current_id)
        seals.append(replace(seal, signature=keys.sign(seal.signed_bytes(tenant))))
        end = Head(seal.number, digest_of(seal, tenant))
    return seals, end


def begin(tenant: uuid.UUID, anchor: Anchor | None, keys: AuditKeys) -> Verification:
    """A verification that begins at the anchor, if retention has cut the log."""
    found = Verification()
    if anchor is not None:
        found.end, found.first = Head(anchor.number, anchor.digest), anchor.number + 1
        known = keys.verify(anchor.key_id, anchor.signed_bytes(tenant), anchor.signature)
        signed = _require_signed(found, anchor.number, known, anchor.key_id)
        found.holds_to = anchor.number if signed else 0
    return found


def verify(
    found: Verification, tenant: uuid.UUID, rows: Sequence[tuple[Seal, SignedEvent | None]], keys: AuditKeys
) -> None:
    """Verify the next rows of a chain, in their order."""
    for seal, row in rows:
        if seal.number != found.end.number + 1:
            found.broken(found.end.number + 1, ChainProblem.REMOVED, seal.sealed_at)
        elif seal.before != found.end.digest:
            found.broken(seal.number, ChainProblem.REPLACED, seal.sealed_at)
        known = keys.verify(seal.key_id, seal.signed_bytes(tenant), seal.signature)
        if _require_signed(found, seal.number, known, seal.key_id, seal.sealed_at):
            _verify_row(found, tenant, seal, row, keys)
        found.end, found.rows = Head(seal.number, digest_of(seal, tenant)), found.rows + 1
        if found.whole:
            found.holds_to = seal.number


def _verify_row(found: Verification, tenant: uuid.UUID, seal: Seal, row: SignedEvent | None, keys: AuditKeys) -> None:
    if row is None:
        found.broken(seal.number, ChainProblem.REMOVED, seal.sealed_at)
        return
    data = row.event.signed_bytes(tenant)
    if hashlib.sha256(data).digest() != seal.event_digest:
        found.broken(seal.number, ChainProblem.CHANGED, seal.sealed_at)
    else:
        known = keys.verify(row.key_id, data, row.signature)
        _require_signed(found, seal.number, known, row.key_id, seal.sealed_at)


def _require_signed(
    found: Verification, number: int, known: bool | None, key_id: str, at: datetime | None = None
) -> bool:
    if known is None:
        found.broken(number, ChainProblem.UNKNOWN_KEY, at, key_id)
    elif not known:
        found.broken(number, ChainProblem.INSERTED, at)
    return bool(known)


def finish(
    found: Verification, tenant: uuid.UUID, unsealed: Sequence[SignedEvent], head: Head | None, keys: AuditKeys
) -> None:
    """Verify the rows without a seal, and that the end of the chain is not before the one that was noted elsewhere."""
    for row in unsealed:
        known = keys.verify(row.key_id, row.event.signed_bytes(tenant), row.signature)
        if known is False:
            found.broken(0, ChainProblem.UNSEALED, row.event.at)
            continue
        found.pending += 1
        found.oldest_pending = min(found.oldest_pending or row.event.at, row.event.at)
        if known is None:
            found.broken(0, ChainProblem.UNKNOWN_KEY, row.event.at, row.key_id)
    if head is not None and head.number > found.end.number:
        found.broken(found.end.number + 1, ChainProblem.REMOVED)
