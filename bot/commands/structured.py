"""fact and landmark: exact values under a key, and pinned decisions."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bot.commands import parameters
from bot.commands.access import (
    access_context,
    access_tag_of,
    approval_sentence,
    author_of,
    require_trusted,
    scope_phrase,
    write_scope_flags,
    write_scope_of,
)
from bot.commands.command import PREFIX, Call, Command, CommandAnswer, Flag
from bot.commands.days import ON, as_of, day_suffix
from bot.commands.parameters import Parameter, ParameterKind
from composer import visibility
from composer.errors import BadInput, NotFound
from composer.layers.structured import differing, fact_subject
from composer.memory import remember as remembering
from composer.repositories.database import Transaction
from composer.repositories.facts import Fact
from composer.repositories.landmarks import MAX_PROPOSED, PROPOSAL_LIFETIME, Landmark, LandmarkState
from composer.rights.relations import ActorFacts
from composer.rights.table import Act


def fact_value(text: str) -> str:
    """A fact's value as JSON text. Text that is not JSON is a text value, and so is one with numbers that JSON does not
    have (NaN, Infinity), or that would not be stored as they are typed (1e999, 1e-400, 1.10). Raises BadInput for a
    text that can't be stored (a NUL, half a surrogate pair), and for more than 20 levels of lists and objects."""
    try:
        value = remembering.parse_value(text)
        json.dumps(value, allow_nan=False)
    except ValueError:
        value = text
    return json.dumps(remembering.clean_value(value), ensure_ascii=False)


_KEY: Final = parameters.fact_key("key", "the fact's key: one word")
_VALUE: Final[Parameter[str]] = Parameter(
    "value",
    ParameterKind.TEXT,
    fact_value,
    'JSON (5, true, null, "Friday", [1, 2], {"day": 5}); anything else, also NaN and 1.10, is stored as text',
)
_DECISION: Final = parameters.text("text", "the decision, stored exactly as written")
_LANDMARK: Final = parameters.landmark("id", "the beginning of its id; /nexus landmark list shows the ids")


async def _fact_set(call: Call) -> CommandAnswer:
    scope = write_scope_of(call)
    async with call.changing() as tx:
        access = await access_context(tx, call)
        tag, author = access_tag_of(call, access, scope), author_of(call, scope)
        fact = await remembering.set_fact(
            tx,
            tag,
            call.arguments[_KEY],
            call.arguments[_VALUE],
            author,
            call.incoming.adapter,
            call.event_id,
            call.now,
        )
        readable = visibility.readable(access, [])
        there = [f for f in await tx.facts.find(readable, call.now, fact.key) if readable.admits(f)]
    if author.needs_approval:
        return CommandAnswer(approval_sentence(access, tag, pooled=False))
    return CommandAnswer(f"{fact.key} = {fact.value}, {scope_phrase(call, scope)}.{_conflict(fact, there)}")


def _conflict(fact: Fact, there: Sequence[Fact]) -> str:
    """A sentence about the other values that the key of a fact has, too, or nothing."""
    newest = differing(there)
    others = [
        f"{f.value} ({fact_subject(f)}; {f.author}, {f.valid_from:%Y-%m-%d})"
        for f in there
        if f.value != fact.value and fact.id in newest and newest.get(f.id) is newest[fact.id]
    ]
    if not others:
        return ""
    return (
        f"\nAnother value holds, too: {'; '.join(others)}. Answers say that they differ, and which is newer, until you "
        "set the same value there or forget it."
    )


async def _fact_get(call: Call) -> CommandAnswer:
    return await _facts(call, call.arguments[_KEY])


async def _fact_list(call: Call) -> CommandAnswer:
    return await _facts(call, None)


async def _facts(call: Call, key: str | None) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        readable = visibility.readable(await access_context(tx, call), [])
        facts = [f for f in await tx.facts.find(readable, as_of(call), key) if readable.admits(f)]
    lines = [f"{f.key} = {f.value}  ({fact_subject(f)}; {f.author}, {f.valid_from:%Y-%m-%d})" for f in facts]
    return CommandAnswer(
        "\n".join(lines)
        or (
            f"There is no fact '{key}' here{day_suffix(call)}."
            if key
            else f"There are no facts here{day_suffix(call)}. To set one: /nexus fact set KEY VALUE"
        )
    )


async def _fact_history(call: Call) -> CommandAnswer:
    key = call.arguments[_KEY]
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        readable = visibility.readable(await access_context(tx, call), [])
        facts = [f for f in await tx.facts.history(readable, key) if readable.admits(f)]
    lines = [
        f"{f.valid_from:%Y-%m-%d %H:%M} to {f'{f.valid_to:%Y-%m-%d %H:%M}' if f.valid_to else 'now'}: {f.value}"
        f"  ({f.author})"
        for f in facts
    ]
    return CommandAnswer("\n".join(lines) or f"There is no fact '{key}' here.")


async def _landmark_add(call: Call) -> CommandAnswer:
    scope = write_scope_of(call)
    async with call.changing() as tx:
        access = await access_context(tx, call)
        tag = access_tag_of(call, access, scope)
        text, author = call.arguments[_DECISION], author_of(call, scope)
        landmark = await remembering.add_landmark(tx, tag, text, author, call.incoming.adapter, call.event_id, call.now)
    if author.needs_approval:
        return CommandAnswer(approval_sentence(access, tag, pooled=False))
    return CommandAnswer(f"Pinned, {scope_phrase(call, scope)}: {_one_line(landmark.text)}")


async def _landmark_list(call: Call) -> CommandAnswer:
    retired = "retired" in call.flags
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        found = await _landmarks(tx, call, retired=retired)
    replaced = {landmark.replaces for landmark in found}
    lines = [_landmark_line(landmark, landmark.id in replaced) for landmark in found]
    return CommandAnswer("\n".join(lines) or "There are no landmarks here. To pin a decision: /nexus landmark add TEXT")


def _landmark_line(landmark: Landmark, replaced: bool) -> str:
    state = ""
    if landmark.state is LandmarkState.PROPOSED:
        lapses = landmark.decided_at + PROPOSAL_LIFETIME
        state = " (lapsed)" if landmark.lapsed else f" (proposed: lapses on {lapses:%Y-%m-%d} unless accepted)"
    if landmark.state is LandmarkState.RETIRED:
        by = "" if landmark.settled_by is None else f" by {landmark.settled_by}"
        state = f" ({'amended' if replaced else 'retired'}{by})"
    source = f"  [message {', '.join(landmark.messages)}]" if landmark.messages else ""
    head = f"{short_id(landmark.id)}  {landmark.decided_at:%Y-%m-%d} {landmark.author}{state}"
    return f"{head}: {_one_line(landmark.text)}{source}"


async def _landmarks(tx: Transaction, call: Call, *, retired: bool = False) -> list[Landmark]:
    readable = visibility.readable(await access_context(tx, call), [])
    found = await tx.landmarks.find(readable, call.now, retired=retired)
    return [landmark for landmark in found if readable.admits(landmark)]


def short_id(id: uuid.UUID) -> str:
    """The part of an id that people type: eight hexadecimal digits. More are asked for when these fit two."""
    return id.hex[:8]


def _one_line(text: str) -> str:
    return " ".join(text.split())


async def _landmark(tx: Transaction, call: Call) -> Landmark:
    """The pinned or proposed landmark whose id begins as typed. Raises NotFound and BadInput."""
    beginning, typed = call.arguments[_LANDMARK], call.arguments.texts[_LANDMARK.name]
    found = [landmark for landmark in await _landmarks(tx, call) if landmark.id.hex.startswith(beginning)]
    if not found:
        raise NotFound(f"There is no landmark '{typed}' here; {PREFIX} landmark list shows them.")
    if len(found) > 1:
        raise BadInput(f"{len(found)} landmarks begin with '{typed}'; write more of the id: {found[0].id.hex}")
    require_trusted(call)
    return found[0]


async def _with_landmark(tx: Transaction, call: Call, facts: ActorFacts) -> ActorFacts:
    """The landmark is what is to be changed."""
    landmark = await _landmark(tx, call)
    return replace(facts, item=landmark, proposed=landmark.state is LandmarkState.PROPOSED)


async def _landmark_accept(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        landmark = await _landmark(tx, call)
        await remembering.set_landmark_state(tx, landmark, LandmarkState.PINNED, call.incoming.user_name, call.now)
    return CommandAnswer(f"Accepted: {_one_line(landmark.text)}")


async def _landmark_retire(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        landmark = await _landmark(tx, call)
        await remembering.set_landmark_state(tx, landmark, LandmarkState.RETIRED, call.incoming.user_name, call.now)
    return CommandAnswer(f"No longer pinned; landmark list --retired still shows it: {_one_line(landmark.text)}")


async def _landmark_amend(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        before = await _landmark(tx, call)
        text, by = call.arguments[_DECISION], call.incoming.user_name
        landmark = await remembering.amend_landmark(tx, before, text, by, call.user, call.event_id, call.now)
    return CommandAnswer(f"Amended; its id is {short_id(landmark.id)} now: {_one_line(landmark.text)}")


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "fact set",
        (_KEY, _VALUE),
        f"Set a fact (to remove one of yours: {PREFIX} forget item ID, with its id from {PREFIX} share)",
        _fact_set,
        "fact set deploy_day Friday",
        write_scope_flags(),
        act=Act.WRITE,
    ),
    Command("fact get", (_KEY,), "Show a fact", _fact_get, "fact get deploy_day", (ON,), act=Act.READ),
    Command(
        "fact list",
        (),
        "List the facts of this conversation",
        _fact_list,
        "fact list --on 2026-05-01",
        (ON,),
        act=Act.READ,
    ),
    Command(
        "fact history",
        (_KEY,),
        "Show a fact's earlier values",
        _fact_history,
        "fact history deploy_day",
        act=Act.READ,
    ),
    Command(
        "landmark add",
        (_DECISION,),
        "Pin a decision in every prompt here",
        _landmark_add,
        "landmark add we ship on Fridays",
        write_scope_flags(),
        act=Act.WRITE,
    ),
    Command(
        "landmark list",
        (),
        f"List what is pinned; of proposals {MAX_PROPOSED}, the latest of each author by turns; they lapse in "
        f"{PROPOSAL_LIFETIME.days} days",
        _landmark_list,
        "landmark list",
        (Flag("retired", "also list retired, amended and lapsed ones"),),
        act=Act.READ,
    ),
    Command(
        "landmark accept",
        (_LANDMARK,),
        "Pin a proposed decision",
        _landmark_accept,
        "landmark accept 1f0c9a2b",
        act=Act.ACCEPT_LANDMARK,
        gather=_with_landmark,
    ),
    Command(
        "landmark amend",
        (_LANDMARK, _DECISION),
        "Replace a decision with a new version; the old one stays in the history",
        _landmark_amend,
        "landmark amend 1f0c9a2b we ship on Mondays",
        act=Act.SETTLE_LANDMARK,
        gather=_with_landmark,
    ),
    Command(
        "landmark retire",
        (_LANDMARK,),
        "Unpin a decision; it stays in the history",
        _landmark_retire,
        "landmark retire 1f0c9a2b",
        act=Act.SETTLE_LANDMARK,
        gather=_with_landmark,
    ),
)
