"""fact and landmark: what holds exactly, and what was decided."""

import uuid
from collections.abc import Sequence
from typing import Final

from bot.commands.command import (
    WRITE_SCOPE_FLAGS,
    Call,
    Command,
    CommandAnswer,
    Names,
    Parameter,
    access_context,
    whereabouts,
    write_scope_of,
)
from composer import visibility
from composer.errors import BadInput, NotFound, Refused
from composer.layers.structured import fact_subject
from composer.memory import remember as remembering
from composer.repositories.database import Transaction
from composer.repositories.landmarks import Landmark, LandmarkState
from composer.visibility import WriteScope


async def _fact_set(call: Call) -> CommandAnswer:
    key, _, value = call.words.partition(" ")
    if not value.strip():
        raise BadInput('A fact needs a key and a JSON value; for example: /nexus fact set deploy_day "Friday"')
    reach = write_scope_of(call)
    async with call.changing() as tx:
        mark = visibility.access_tag_for(await access_context(tx, call), reach)
        fact = await remembering.set_fact(
            tx, mark, key, value.strip(), call.incoming.user_name, call.incoming.adapter, call.event, call.now
        )
    return CommandAnswer(f"{fact.key} = {fact.value}, {whereabouts(call, reach)}.")


async def _fact_get(call: Call) -> CommandAnswer:
    if not call.words:
        raise BadInput("Which fact? For example: /nexus fact get deploy_day")
    return await _facts(call, call.words)


async def _fact_list(call: Call) -> CommandAnswer:
    return await _facts(call, None)


async def _facts(call: Call, key: str | None) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        readable = visibility.readable(await access_context(tx, call), [])
        facts = [f for f in await tx.facts.find(readable, call.now, key) if readable.admits(f)]
    lines = [f"{f.key} = {f.value}  ({fact_subject(f)}; {f.author}, {f.valid_from:%Y-%m-%d})" for f in facts]
    return CommandAnswer("\n".join(lines) or (f"There is no fact '{key}' here." if key else "There are no facts here."))


async def _fact_history(call: Call) -> CommandAnswer:
    if not call.words:
        raise BadInput("Which fact? For example: /nexus fact history deploy_day")
    async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        readable = visibility.readable(await access_context(tx, call), [])
        facts = [f for f in await tx.facts.history(readable, call.words) if readable.admits(f)]
    lines = [
        f"{f.valid_from:%Y-%m-%d %H:%M} to {f'{f.valid_to:%Y-%m-%d %H:%M}' if f.valid_to else 'now'}: {f.value}"
        f"  ({f.author})"
        for f in facts
    ]
    return CommandAnswer("\n".join(lines) or f"There is no fact '{call.words}' here.")


async def _landmark_add(call: Call) -> CommandAnswer:
    reach = write_scope_of(call)
    async with call.changing() as tx:
        mark = visibility.access_tag_for(await access_context(tx, call), reach)
        await remembering.add_landmark(tx, mark, call.words, call.incoming.user_name, call.event, call.now)
    return CommandAnswer(f"Pinned, {whereabouts(call, reach)}: {' '.join(call.words.split())}")


async def _landmark_list(call: Call) -> CommandAnswer:
    retired = "retired" in call.flags
    async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        found = await _landmarks(tx, call, retired=retired)
    replaced = {mark.replaces for mark in found}
    lines = [_landmark_line(mark, mark.id in replaced) for mark in found]
    return CommandAnswer("\n".join(lines) or "There are no landmarks here.")


def _landmark_line(mark: Landmark, replaced: bool) -> str:
    state = {LandmarkState.PINNED: "", LandmarkState.PROPOSED: " (proposed)"}.get(mark.state, "")
    if mark.state is LandmarkState.RETIRED:
        by = "" if mark.settled_by is None else f" by {mark.settled_by}"
        state = f" ({'amended' if replaced else 'retired'}{by})"
    source = f"  [message {', '.join(mark.messages)}]" if mark.messages else ""
    words = " ".join(mark.text.split())
    return f"{short_id(mark.id)}  {mark.decided_at:%Y-%m-%d} {mark.author}{state}: {words}{source}"


async def _landmarks(tx: Transaction, call: Call, *, retired: bool = False) -> list[Landmark]:
    readable = visibility.readable(await access_context(tx, call), [])
    found = await tx.landmarks.find(readable, call.now, retired=retired)
    return [mark for mark in found if readable.admits(mark)]


def short_id(id: uuid.UUID) -> str:
    """As much of an id as people type; the rest of it is asked for when it fits two."""
    return id.hex[:8]


async def _landmark(tx: Transaction, call: Call, id: str) -> Landmark:
    """The pinned or proposed one that is meant by the beginning of its id, if the caller may settle it."""
    if not id:
        raise BadInput(
            f"Which landmark? /nexus landmark list shows their ids; for example: /nexus {call.name} 1f0c9a2b"
        )
    named = id.lower().replace("-", "")
    found = [mark for mark in await _landmarks(tx, call) if mark.id.hex.startswith(named)]
    if not found:
        raise NotFound(f"There is no landmark '{id}' here; /nexus landmark list shows them.")
    if len(found) > 1:
        raise BadInput(f"{len(found)} landmarks begin with '{id}'; write more of the id: {found[0].id.hex}")
    if not visibility.may_manage_landmarks(await access_context(tx, call), found[0].namespace):
        raise Refused("That landmark belongs to more than this conversation; ask someone who may write there.")
    return found[0]


async def _landmark_accept(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        mark = await _landmark(tx, call, call.words)
        await remembering.set_landmark_state(tx, mark, LandmarkState.PINNED, call.incoming.user_name, call.now)
    return CommandAnswer(f"Accepted: {' '.join(mark.text.split())}")


async def _landmark_retire(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        mark = await _landmark(tx, call, call.words)
        await remembering.set_landmark_state(tx, mark, LandmarkState.RETIRED, call.incoming.user_name, call.now)
    return CommandAnswer(f"No longer pinned, and kept: {' '.join(mark.text.split())}")


async def _landmark_amend(call: Call) -> CommandAnswer:
    id, _, text = call.words.partition(" ")
    async with call.changing() as tx:
        before = await _landmark(tx, call, id)
        by = call.incoming.user_name
        mark = await remembering.amend_landmark(tx, before, text, by, call.user, call.event, call.now)
    return CommandAnswer(f"Amended; it is {short_id(mark.id)} now: {' '.join(mark.text.split())}")


_FACT: Final = Parameter("key", names=Names.FACT)
_LANDMARK: Final = Parameter("id", names=Names.LANDMARK)

COMMANDS: Final[Sequence[Command]] = (
    Command("fact set", (_FACT, Parameter("value", "JSON")), "let a fact hold", _fact_set, WRITE_SCOPE_FLAGS),
    Command("fact get", (_FACT,), "what holds now", _fact_get),
    Command("fact list", (), "all facts that hold here", _fact_list),
    Command("fact history", (_FACT,), "what held when", _fact_history),
    Command(
        "landmark add",
        (Parameter("text"),),
        "pin a decision in every prompt here",
        _landmark_add,
        WRITE_SCOPE_FLAGS,
        hidden=(WriteScope.EVERYWHERE, WriteScope.GLOBAL),
    ),
    Command("landmark list", (), "the decisions that are pinned here, with their ids", _landmark_list, ("retired",)),
    Command("landmark accept", (_LANDMARK,), "let a proposed decision stand", _landmark_accept),
    Command(
        "landmark amend",
        (_LANDMARK, Parameter("text")),
        "put a new version in its place; the old one is kept",
        _landmark_amend,
    ),
    Command("landmark retire", (_LANDMARK,), "pin a decision no longer; it is kept", _landmark_retire),
)
