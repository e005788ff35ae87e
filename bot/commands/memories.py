"""remember, recall: write and search memories."""

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
    record_read,
    scope_phrase,
    write_scope_flags,
    write_scope_of,
)
from bot.commands.command import PREFIX, Call, Command, CommandAnswer, PlaceKind
from bot.commands.days import ON, as_of, day_suffix
from composer import visibility
from composer.memory import remember as remembering
from composer.model import Agent, Item, Message, derived_id
from composer.prompt.lines import numbers_in, recall_line
from composer.rights.table import Act
from composer.text.cleaning import shorten
from composer.text.notices import SHORT_ID_CHARS
from composer.turn.reading import PromptRequest

_STATEMENT: Final = parameters.text(
    "text", "the statement, stored as written; keys, passwords and card numbers are masked"
)
_QUERY: Final = parameters.text("text", "what to search for")
MAX_MEMORY_SHOWN_CHARS: Final = 200  # of a statement in which something was masked
SUMMARY_WORD: Final = "summary"
EPISODE: Final = "episode"  # a message as it is recalled; what else a person owns is erased by its own id


async def _remember(call: Call) -> CommandAnswer:
    scope = write_scope_of(call)
    async with call.changing() as tx:
        access = await access_context(tx, call)
        tag = access_tag_of(call, access, scope)
        author, text = author_of(call, scope), call.arguments[_STATEMENT]
        note = await remembering.remember(tx, tag, text, author, call.incoming.adapter, call.event_id, call.now)
    call.app.indexer.due(call.workspace.tenant_id)
    done = f"Remembered, {scope_phrase(call, scope)}."
    answer = approval_sentence(access, tag, pooled=True) if author.needs_approval else done
    return CommandAnswer(
        answer if note.text == text else f"{answer} It is stored as: {shorten(note.text, MAX_MEMORY_SHOWN_CHARS)}"
    )


async def _recall(call: Call) -> CommandAnswer:
    question = unstored_question(call, call.arguments[_QUERY])
    items = await call.app.composer.recall(replace(question, message=replace(question.message, at=as_of(call))))
    nothing = f"I found nothing about that here{day_suffix(call)}. Try other words, or ask where it was discussed."
    if not items and PlaceKind.of(call.conversation) is PlaceKind.DM:
        nothing += await _on_closed_rooms(call)
    await record_read(call, {item.namespace for item in items})
    if not items:
        return CommandAnswer(nothing)
    found = await _references(call, items)
    namesakes = numbers_in(items)
    shown = [recall_line(item, items[:n], namesakes=namesakes) for n, item in enumerate(items)]
    lines = [" ".join((line, *found.get(item.id, ()))) for line, item in zip(shown, items, strict=True)]
    own = any(reference.startswith(_YOURS) for each in found.values() for reference in each)
    forget = [f"To erase one of yours: {PREFIX} forget message ID, or {PREFIX} forget item ID"] if own else []
    return CommandAnswer("\n".join((*lines, *forget)))


async def _on_closed_rooms(call: Call) -> str:
    """What to add in a DM that its person has not opened to rooms; else nothing."""
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        access = await access_context(tx, call)
    if access.reads_rooms:
        return ""
    if visibility.effective_project(access) is None:
        return f" I do not search rooms in this DM. To search the rooms that you are in, give {PREFIX} rooms on."
    return (
        f" In this DM I search only the rooms of its project. {PREFIX} rooms on adds those of your rooms that this DM "
        "may read."
    )


_YOURS: Final = "[yours: "


async def _references(call: Call, items: Sequence[Item]) -> dict[str, list[str]]:
    """What stands behind each recalled item, by its id: the id by which its owner erases it, and the link to its latest
    message, as far as that may be named here (`visibility.may_be_named`)."""
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        access = await access_context(tx, call)
        ids = [uuid.UUID(item.id) for item in items]
        addresses = await tx.explanations.addresses(visibility.readable(access, []), ids, 1)
    own = access.linked_users(call.user)
    found: dict[str, list[str]] = {}
    for item in items:
        said = next((a for a in addresses.get(uuid.UUID(item.id), ()) if visibility.may_be_named(access, a)), None)
        message = f"message {said.external_id}" if said is not None else ""
        reference = message if item.kind == EPISODE else f"item {uuid.UUID(item.id).hex[:SHORT_ID_CHARS]}"
        mine = item.user_id in own and not item.by_agent and item.kind != SUMMARY_WORD
        shown = reference if mine else message
        link = None if said is None else call.permalink(said)
        found[item.id] = [*([f"{_YOURS if mine else '['}{shown}]"] if shown else []), *([link] if link else [])]
    return found


def unstored_question(call: Call, text: str, agent: Agent | None = None) -> PromptRequest:
    """A question of the caller that is not stored, to `agent`, by default the conversation's own or the first."""
    message = Message(
        derived_id("unstored", call.event_id),
        call.incoming.id,
        2**62,
        call.incoming.at,
        call.user,
        None,
        call.incoming.user_name,
        text,
        call.conversation.namespace,
        call.conversation.visibility,
        trust=call.incoming.sender_trust,
    )
    agent = agent or next((a for a in call.agents if a.id == call.conversation.agent_id), call.agents[0])
    return PromptRequest(call.workspace.tenant_id, call.conversation.id, call.user, agent, message)


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "remember",
        (_STATEMENT,),
        "Store a statement, exactly as written",
        _remember,
        "remember we ship on Fridays",
        write_scope_flags(),
        act=Act.WRITE,
    ),
    Command(
        "recall",
        (_QUERY,),
        "Search what I remember here, with sources",
        _recall,
        "recall what did we decide about backups",
        (ON,),
        act=Act.READ,
        names_rooms=True,
    ),
)
