"""share: change who may read one's own memory, fact or landmark."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context, access_tag_of, require_trusted
from bot.commands.command import CONFIRM, PREFIX, Call, Case, Command, CommandAnswer
from bot.commands.structured import short_id
from composer import visibility
from composer.errors import BadInput, NotFound
from composer.model import Visibility
from composer.people.places import NamedPlace, named, room_ids
from composer.repositories.database import Transaction
from composer.repositories.own_data import OwnFilter, OwnItem
from composer.rights.table import Act
from composer.text.cleaning import shorten
from composer.visibility import AccessContext, AccessTag, Owned, WriteScope

MAX_LISTED_ITEMS: Final = 50
MAX_SHARED_TEXT_CHARS: Final = 100  # of an item in a list


class Where(StrEnum):
    """Where an item may be filed."""

    HERE = WriteScope.HERE
    EVERYWHERE = WriteScope.EVERYWHERE
    PROJECT = WriteScope.PROJECT
    GLOBAL = WriteScope.GLOBAL


_ID: Final = parameters.word(
    "id",
    f"the beginning of its id; leave it out to list what is yours, with ids ({PREFIX} share)",
    parameters.item_id,
    required=False,
)
_WHERE: Final = parameters.choice(
    "where",
    "here; everywhere: about you, for all to know, where you take part or are mentioned; project; global",
    Where,
    required=False,
)


@dataclass(frozen=True, slots=True)
class _Question:
    """What to ask before a change, and the ids of what it is about. `closes`: the item becomes private, which needs no
    question."""

    text: str
    touches: tuple[object, ...] = ()
    closes: bool = False


async def _share(call: Call) -> CommandAnswer:
    beginning, where = call.arguments.get(_ID), call.arguments.get(_WHERE)
    if beginning is None:
        return await _list(call)
    if where is None or CONFIRM.name not in call.flags:
        # An answer that only asks for confirmation changes nothing, so it does not count as done.
        async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
            question = await _question(tx, call, beginning, where)
        if where is None:
            return CommandAnswer(question.text)
        if not question.closes:
            return call.unconfirmed(question.text, question.text, question.touches)
    async with call.changing("alone") as tx:
        assert where is not None
        access = await access_context(tx, call)
        item, tag = await _target(tx, call, access, beginning, where)
        place = await _named(tx, call, visibility.owned_by(access), tag.namespace)
        await tx.sharing.move(item, tag, str(where), call.now)
    return CommandAnswer(
        f"Moved to {place.name}: {_shown(item)}\nReaders from now on: {place.readers}. Earlier answers stay."
    )


async def _question(tx: Transaction, call: Call, beginning: str, where: Where | None) -> _Question:
    """What to ask before a change; where nothing is to be changed, what the item is and who reads it."""
    access = await access_context(tx, call)
    owned = visibility.owned_by(access)
    if where is None:
        item = await _own_item(tx, call, owned, beginning)
        now = await _named(tx, call, owned, item.namespace)
        if item.pending:
            waits = f"It waits for approval in {now.name}: nobody is answered from it yet."
            return _Question(f"{_shown(item)}\n{waits} {_take_back(item)}")
        return _Question(
            f"{_shown(item)}\nFiled in {now.name}. Readers: {now.readers}.\nTo change that: {PREFIX} share "
            f"{short_id(item.id)} here, everywhere, project or global"
        )
    item, tag = await _target(tx, call, access, beginning, where)
    now, then = await _named(tx, call, owned, item.namespace), await _named(tx, call, owned, tag.namespace)
    replaced = " A fact of the same key there is replaced." if item.kind == "fact" else ""
    return _Question(
        f"{_shown(item)}\nReaders now: {now.readers}.\nReaders then: {then.readers}.{replaced}",
        (item.id, item.namespace, tag.namespace),
        closes=_closes(access, tag),
    )


def _closes(access: AccessContext, tag: AccessTag) -> bool:
    return tag.visibility is Visibility.PRIVATE and visibility.effective_project(access) is None


async def _target(
    tx: Transaction, call: Call, access: AccessContext, beginning: str, where: Where
) -> tuple[OwnItem, AccessTag]:
    """The item and where it is to be filed. Raises Refused where there is no such place, or if an isolated project
    would be left; that is judged before the item is looked up."""
    require_trusted(call)
    access_tag_of(call, access, where)
    item = await _own_item(tx, call, visibility.owned_by(access), beginning)
    if item.pending:
        raise BadInput(f"That waits for approval, and can't be filed elsewhere before. {_take_back(item)}")
    tag = visibility.access_tag_for_moving(access, where, await tx.sharing.isolated_project(item.namespace))
    if (item.namespace, item.visibility) == (tag.namespace, tag.visibility):
        raise BadInput(f"It is filed there already: {_shown(item)}")
    return item, tag


async def _own_item(tx: Transaction, call: Call, owned: Owned, beginning: str) -> OwnItem:
    found = [i for i in await tx.own_data.of_id(owned, beginning, 2, call.now) if i.trashed_at is None]
    if not found:
        raise NotFound(f"You have no memory, fact or landmark '{beginning}'; {PREFIX} share lists what is yours.")
    if len(found) > 1:
        raise BadInput(f"Several of yours begin with '{beginning}'; write more of the id: {found[0].id.hex}")
    return found[0]


async def _list(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        owned = visibility.owned_by(await access_context(tx, call))
        items = await tx.own_data.memory(owned, OwnFilter(), MAX_LISTED_ITEMS + 1, call.now)
        places = {
            namespace: await _named(tx, call, owned, namespace) for namespace in {item.namespace for item in items}
        }
    lines = [
        f"{short_id(i.id)}  {i.at:%Y-%m-%d} {'pending ' if i.pending else ''}{i.kind}, {places[i.namespace].name}: "
        f"{_shown(i)}"
        for i in items
    ]
    if len(lines) > MAX_LISTED_ITEMS:
        lines[MAX_LISTED_ITEMS:] = [f"The latest {MAX_LISTED_ITEMS} are shown; {PREFIX} export has all."]
    return CommandAnswer("\n".join(lines) or f"Nothing is remembered of you yet. To add some: {PREFIX} remember TEXT")


async def _named(tx: Transaction, call: Call, owned: Owned, namespace: str) -> NamedPlace:
    joined = await tx.conversations.joined_ids(owned.users, call.presence)
    places = await tx.own_data.places(owned, room_ids([namespace]), joined)
    return named(namespace, places, await tx.own_data.projects(owned), owned.users)


def _take_back(item: OwnItem) -> str:
    return f"To take it back: {PREFIX} forget item {short_id(item.id)}"


def _shown(item: OwnItem) -> str:
    return shorten(item.text, MAX_SHARED_TEXT_CHARS)


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "share",
        (_ID, _WHERE),
        "List what is remembered of you, or change who may read one item",
        _share,
        "share 1f0c9a2b everywhere",
        (CONFIRM,),
        act=Act.SEE_OWN,
        names_rooms=True,
        cases=(
            Case(Act.MOVE_TO_PROJECT, lambda given: given.get(_WHERE) is Where.PROJECT, "to the project"),
            Case(Act.MOVE_TO_GLOBAL, lambda given: given.get(_WHERE) is Where.GLOBAL, "to everyone"),
        ),
    ),
)
