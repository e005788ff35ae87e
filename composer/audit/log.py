"""Seal, verify and cut the audit logs of tenants. None of this is on a turn's path."""

import uuid
from dataclasses import replace
from datetime import datetime
from typing import Final

import structlog

from composer.audit import chain
from composer.audit.chain import ChainProblem, Verification
from composer.ports.audit import AuditHeads, AuditKeys, Head
from composer.ports.clock import Clock
from composer.repositories.audit import Anchor, AuditAct
from composer.repositories.database import Database, Transaction

logger = structlog.get_logger()

SEAL_BATCH: Final = 500  # rows that are sealed in one transaction
AUDIT_PAGE: Final = 2_000  # rows that are verified at once
MAX_UNSEALED: Final = 100_000  # rows that a verification examines


class AuditLog:
    """The audit logs of an installation."""

    def __init__(self, database: Database, keys: AuditKeys, heads: AuditHeads, clock: Clock) -> None:
        self._database = database
        self._keys = keys
        self._heads = heads
        self._clock = clock

    async def seal(self, tenant: uuid.UUID) -> int:
        """Seal all rows of a tenant that have no seal; returns how many. Rows are added freely meanwhile.

        When the chain no longer reaches where it was last sealed, the noted end stays: it shows what was removed.
        """
        total = 0
        while True:
            async with self._database.transaction(tenant) as tx:
                await tx.serialize()
                before = await _end(tx, tenant)
                rows = await tx.audit.waiting(SEAL_BATCH)
                if not rows:
                    return total
                now = self._clock.now()
                seals, end = chain.sealed(tenant, before, rows, now, self._keys)
                await tx.audit.seal(seals, now, self._keys.current_id)
                noted = self._heads.get(tenant)
                continues = noted is None or await _reaches(tx, tenant, before, noted)
            if continues:
                self._heads.set(tenant, end)
            else:
                logger.error("audit.end_replaced", tenant=str(tenant), found=before.number)
            total += len(rows)

    async def verify_noted(self, tenant: uuid.UUID, by: uuid.UUID | None = None) -> Verification:
        """Verify a tenant's log for a user or (None) whoever runs Nexus, and record in it what was found."""
        found = await self.verify(tenant)
        broken = sum(each.count for each in found.causes.values())
        async with self._database.transaction(tenant) as tx:
            await tx.audit.record(AuditAct.AUDIT_VERIFIED, actor=by, details={"rows": found.rows, "broken": broken})
        return found

    async def verify(self, tenant: uuid.UUID) -> Verification:
        """Verify a tenant's whole log as of one moment."""
        head = self._heads.get(tenant)
        async with self._database.transaction(tenant, "read") as tx:
            found = chain.begin(tenant, await tx.audit.anchor(), self._keys)
            if head is not None and head.number == found.end.number and head.digest != found.end.digest:
                found.broken(head.number, ChainProblem.REPLACED)
            while rows := await tx.audit.sealed(found.end.number, AUDIT_PAGE):
                chain.verify(found, tenant, rows, self._keys)
                for seal, _ in rows:
                    if head is not None and seal.number == head.number and chain.digest_of(seal, tenant) != head.digest:
                        found.broken(head.number, ChainProblem.REPLACED, seal.sealed_at)
            chain.finish(found, tenant, await tx.audit.unsealed(MAX_UNSEALED), head, self._keys)
        return found

    async def cut(self, tenant: uuid.UUID, before: datetime) -> int:
        """Delete the sealed rows from before a time, as far as the chain begins with them; returns how many went. An
        anchor, signed, stays in their place."""
        async with self._database.transaction(tenant) as tx:
            await tx.serialize()
            last = await tx.audit.last_seal(before)
            if last is None:
                return 0
            anchor = Anchor(last.number, chain.digest_of(last, tenant), self._clock.now(), self._keys.current_id)
            signature = self._keys.sign(anchor.signed_bytes(tenant))
            deleted = await tx.audit.cut(replace(anchor, signature=signature))
            await tx.audit.record(AuditAct.AUDIT_CUT, details={"rows": deleted})
        return deleted


async def _reaches(tx: Transaction, tenant: uuid.UUID, end: Head, noted: Head) -> bool:
    """Whether a chain that ends at `end` holds the end that was noted earlier, or retention has cut that away since."""
    if noted.number >= end.number:
        return noted == end
    for seal, _ in await tx.audit.sealed(noted.number - 1, 1):
        if seal.number == noted.number:
            return chain.digest_of(seal, tenant) == noted.digest
    anchor = await tx.audit.anchor()
    return anchor is not None and anchor.number >= noted.number


async def _end(tx: Transaction, tenant: uuid.UUID) -> Head:
    """The end of a tenant's chain: its last seal, else the anchor, else the beginning."""
    last = await tx.audit.last_seal()
    if last is not None:
        return Head(last.number, chain.digest_of(last, tenant))
    anchor = await tx.audit.anchor()
    return chain.START if anchor is None else Head(anchor.number, anchor.digest)
