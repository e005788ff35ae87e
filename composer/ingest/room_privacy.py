"""A room becomes private or public as its platform states it, also when the statements come late or repeat."""

import uuid
from dataclasses import replace
from datetime import datetime

from composer.model import room_namespace
from composer.repositories.conversations import ConversationRow
from composer.repositories.database import Transaction


async def set_privacy(
    tx: Transaction,
    rows: dict[uuid.UUID, ConversationRow],
    room: uuid.UUID,
    private: bool | None,
    stated_at: datetime | None,
    now: datetime,
) -> bool:
    """Make a locked room private or public, and return whether it changed. None, or a room not in `rows`: no change.

    `stated_at` None: it is so now. What was stated before the latest statement changes nothing: platforms deliver late
    and repeat. A room that is opened begins a new namespace: what was sent while it was private stays in the old one,
    also when its opening becomes known only after it was closed again.
    """
    row = rows.get(room)
    if row is None or private is None:
        return False
    if row.conversation.private == private:
        if stated_at is not None and _tells_more(row, stated_at):
            await tx.conversations.confirm_privacy(room, stated_at)
            rows[room] = _confirmed(row, stated_at)
        return False
    if stated_at is not None and row.privacy_at is not None and _is_outdated(private, stated_at, row.privacy_at):
        if private:
            return False
        if row.private_since is None or not row.private_since < stated_at < row.privacy_at:
            await tx.conversations.note_public(room, stated_at)
            rows[room] = replace(row, public_at=_latest(row.public_at, stated_at))
            return False
        await _set_privacy(tx, rows, room, False, stated_at)  # it was open in between
        await _set_privacy(tx, rows, room, True, row.privacy_at)
        namespace = rows[room].conversation.namespace
        await tx.conversations.refile_after(room, row.conversation.namespace, namespace, stated_at)
        return True
    await _set_privacy(tx, rows, room, private, stated_at or now)
    return True


async def _set_privacy(
    tx: Transaction, rows: dict[uuid.UUID, ConversationRow], room: uuid.UUID, private: bool, at: datetime
) -> None:
    """Make a locked room private or public from a time on."""
    row = rows[room]
    generation = row.generation + (0 if private else 1)
    namespace = room_namespace(room, generation)
    await tx.conversations.set_private(room, private, namespace, generation, at)
    changed = replace(row.conversation, private=private, namespace=namespace, version=row.conversation.version + 1)
    seq, opened_at = row.last_seq, row.opened_at
    if namespace != row.conversation.namespace:
        seq, opened_at = _first_seq_after(row.last_seq), at
    rows[room] = replace(
        row,
        conversation=changed,
        generation=generation,
        last_seq=seq,
        privacy_at=at,
        private_since=at if private else None,
        public_at=row.public_at if private else _latest(row.public_at, at),
        opened_at=opened_at,
    )


def _tells_more(row: ConversationRow, stated_at: datetime) -> bool:
    """Whether a statement that repeats a room's privacy is later than all others, or the earliest since its opening."""
    if row.privacy_at is None or row.privacy_at < stated_at:
        return True
    if row.private_since is None or (row.public_at is not None and stated_at <= row.public_at):
        return False
    return stated_at < row.private_since


def _confirmed(row: ConversationRow, stated_at: datetime) -> ConversationRow:
    latest = _latest(row.privacy_at, stated_at)
    earliest = None
    if row.conversation.private:
        earliest = stated_at if row.private_since is None else min(row.private_since, stated_at)
    public_at = row.public_at if row.conversation.private else _latest(row.public_at, stated_at)
    return replace(row, privacy_at=latest, private_since=earliest, public_at=public_at)


def _latest(known: datetime | None, at: datetime) -> datetime:
    return at if known is None else max(known, at)


def _is_outdated(private: bool, stated_at: datetime, privacy_at: datetime) -> bool:
    """Whether a later statement than this one is known. Of two of the same time, the one that says private holds."""
    return stated_at < privacy_at or (stated_at == privacy_at and not private)


def _first_seq_after(seq: int) -> int:
    """The sequence number that a new namespace begins after: rounded up to a hundred, as the query room_set_private
    does. The window of a view moves by these numbers, so exact ones would show how much was sent before the opening."""
    return -(-seq // 100) * 100
