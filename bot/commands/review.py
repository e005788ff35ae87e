"""memory pending, approve, reject, by, undo: review what the untrusted wrote, and take back what somebody planted."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, time
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context, find_user, record_read
from bot.commands.command import CONFIRM, PREFIX, Call, Command, CommandAnswer, valued
from bot.commands.days import named_day, with_dates
from bot.commands.parameters import ParameterKind, UserReference
from bot.commands.structured import short_id
from composer import visibility
from composer.errors import BadInput, NotFound
from composer.memory import review
from composer.memory.review import Contributions
from composer.model import Trust
from composer.ports.clock import EARLIEST
from composer.repositories.database import Transaction
from composer.repositories.quarantine import PendingItem
from composer.rights.table import Act
from composer.text.cleaning import shorten
from composer.text.masking import mask
from composer.visibility import Reviewable

MAX_SHOWN_PENDING: Final = 50  # items in one answer
MAX_PENDING_SHOWN_CHARS: Final = 200  # of an item

_ITEM: Final = parameters.word(
    "id",
    f"the beginning of its id; {PREFIX} memory pending shows the ids",
    lambda given: given.lower().replace("-", ""),
    kind=ParameterKind.WORD,
)
_AUTHOR: Final[parameters.Parameter[UserReference]] = parameters.user("user", "the person who wrote it")
_SINCE: Final = parameters.day("since", "only what was written on this day or later, such as 2026-05-01 or yesterday")


async def _reviewable(tx: Transaction, call: Call) -> Reviewable:
    """What the caller may review here."""
    facts, access = await call.judge(tx), await access_context(tx, call)
    return visibility.reviewable(access, room_admin=facts.room_admin)


async def _waiting(tx: Transaction, call: Call) -> list[PendingItem]:
    """What waits for the caller's approval, oldest first."""
    return await tx.quarantine.find_pending(await _reviewable(tx, call))


async def _pending(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        items = await _waiting(tx, call)
    await record_read(call, {item.namespace for item in items})
    lines = [f"{short_id(item.id)}  {_line(item)}" for item in items[:MAX_SHOWN_PENDING]]
    if len(items) > MAX_SHOWN_PENDING:
        lines.append(f"… and {len(items) - MAX_SHOWN_PENDING} more.")
    return CommandAnswer("\n".join(lines) or "Nothing waits here for your approval.")


async def _approve(call: Call) -> CommandAnswer:
    if CONFIRM.name not in call.flags:
        async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
            item = await _item(tx, call)
        if _text(item) != (whole := _in_one_line(item)):
            await record_read(call, {item.namespace})
            return call.unconfirmed(
                f"This stores all of the following {len(whole):,} characters of {_by_whom(item)}, of which the list "
                f"shows the beginning:\n{_quoted(item)}",
                touches=(item.id,),
            )
    async with call.changing("alone") as tx:
        item = await _item(tx, call)
        await review.approve(tx, item, call.now)
    call.app.indexer.due(call.workspace.tenant_id)
    return CommandAnswer(f"Approved: {_text(item)}")


async def _reject(call: Call) -> CommandAnswer:
    async with call.changing("alone") as tx:
        item = await _item(tx, call)
        receipt = await review.reject(tx, item, call.now)
    await call.app.forgotten(call.workspace.tenant_id, receipt)
    return CommandAnswer(f"Rejected, and erased: {_text(item)}")


async def _item(tx: Transaction, call: Call) -> PendingItem:
    """The pending item whose id begins as typed, if the caller may review it."""
    beginning, typed = call.arguments[_ITEM], call.arguments.texts[_ITEM.name]
    items = await _waiting(tx, call)
    found = [item for item in items if item.id.hex.startswith(beginning)]
    if not found:
        raise NotFound(f"There is nothing pending with the id '{typed}' here; {PREFIX} memory pending lists all.")
    if len(found) > 1:
        raise BadInput(f"{len(found)} items begin with '{typed}'; write more of the id: {found[0].id.hex}")
    return found[0]


async def _by(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        found = await _contributions(tx, call, EARLIEST)
    rows = sorted((*found.stored, *found.pending), key=lambda item: item.at, reverse=True)
    waiting = {item.id for item in found.pending}
    lines = [_line(item) + (" (pending)" if item.id in waiting else "") for item in rows[:MAX_SHOWN_PENDING]]
    if len(rows) > MAX_SHOWN_PENDING:
        lines.append(f"… and {len(rows) - MAX_SHOWN_PENDING} older ones.")
    name = call.arguments[_AUTHOR].text
    if not lines:
        return CommandAnswer(f"There is nothing by {name} here that you may review.")
    return CommandAnswer("\n".join((*lines, f"To take all of it back: {PREFIX} memory undo {name}")))


async def _undo(call: Call) -> CommandAnswer:
    call = with_dates(call, _SINCE)
    since, day, name = _since(call), named_day(call, _SINCE), call.arguments[_AUTHOR].text
    whose = f"by {name}{'' if day is None else f' from {day} on'}"
    if "yes" not in call.flags:
        async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
            found = await _contributions(tx, call, since)
            counts = await review.undone(tx, found)
        if not (found.stored or found.pending):
            return CommandAnswer(f"There is nothing {whose} here that you may take back.")
        return call.unconfirmed(
            f"This erases {_amount(counts)} {whose} or made from that, for good; what they replaced holds again, "
            "unless somebody has replaced it since. Their messages stay."
        )
    async with call.changing("alone") as tx:
        found = await _contributions(tx, call, since)
        counts = await review.undone(tx, found)
        receipt = await review.undo(tx, found, call.now, call.conversation.id)
    await call.app.forgotten(call.workspace.tenant_id, receipt)
    return CommandAnswer(f"Taken back: {_amount(counts)} {whose} or made from that. {receipt}")


def _since(call: Call) -> datetime:
    day, zone = named_day(call, _SINCE), call.zone
    return EARLIEST if day is None else datetime.combine(day, time(), zone).astimezone(UTC)


async def _contributions(tx: Transaction, call: Call, since: datetime) -> Contributions:
    """What a user has contributed to the places that the caller may review. Nothing by somebody who does not exist."""
    reviewable = (await _reviewable(tx, call)).memories.without_pool()
    user = await find_user(tx, call, call.arguments[_AUTHOR])
    if user is None:
        return Contributions((), ())
    return await review.contributions(tx, reviewable, user.id, since)


def _amount(counts: Counter[str]) -> str:
    names = {"pending": "pending item"}
    plurals = {"memory": "memories", "pending": "pending items"}
    parts = [
        f"{count} {names.get(kind, kind) if count == 1 else plurals.get(kind, f'{kind}s')}"
        for kind, count in sorted(counts.items())
        if count
    ]
    return ", ".join(parts) or "nothing"


def _line(item: PendingItem) -> str:
    return f"{item.at:%Y-%m-%d} {_by_whom(item)}, {item.kind}: {_text(item)}"


def _by_whom(item: PendingItem) -> str:
    return item.author if item.trust is Trust.MEMBER else f"{item.author} ({item.trust})"


def _text(item: PendingItem) -> str:
    """What a list shows of an item: the beginning, if it is long."""
    return shorten(_in_one_line(item), MAX_PENDING_SHOWN_CHARS)


def _in_one_line(item: PendingItem) -> str:
    return mask(" ".join(review.whole_text(item).split()))


def _quoted(item: PendingItem) -> str:
    """All of an item, line by line, without blank ones, so that none of our own sentences can stand in it."""
    lines = (" ".join(line.split()) for line in review.whole_text(item).splitlines())
    return mask("\n".join(f"> {line}" for line in lines if line))


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "memory pending",
        (),
        "List what waits here for your approval",
        _pending,
        "memory pending",
        act=Act.DECIDE,
    ),
    Command(
        "memory approve",
        (_ITEM,),
        "Remember something that waited; what the list cuts is shown whole first",
        _approve,
        "memory approve 1f0c9a2b",
        (CONFIRM,),
        act=Act.DECIDE,
    ),
    Command(
        "memory reject", (_ITEM,), "Erase something that waited", _reject, "memory reject 1f0c9a2b", act=Act.DECIDE
    ),
    Command(
        "memory by",
        (_AUTHOR,),
        "List the memories, facts and landmarks here that come from one person",
        _by,
        "memory by @bob",
        act=Act.REVIEW,
    ),
    Command(
        "memory undo",
        (_AUTHOR,),
        "Erase the memories, facts and landmarks here that come from one person",
        _undo,
        "memory undo @bob --since 2026-05-01",
        (valued(_SINCE), CONFIRM),
        act=Act.REVIEW,
    ),
)
