"""remember, recall, forget, why: what is kept, found, erased and explained."""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from bot.commands.command import (
    WRITE_SCOPE_FLAGS,
    Call,
    Command,
    CommandAnswer,
    Names,
    Parameter,
    access_context,
    command_id,
    whereabouts,
    write_scope_of,
)
from composer import visibility
from composer.errors import BadInput, NotFound
from composer.memory import forget as forgetting
from composer.memory import remember as remembering
from composer.model import Agent, Message, derived_id
from composer.prompt.budget import COMPACT_AT
from composer.prompt.explain import explain
from composer.prompt.lines import recall_line
from composer.prompt.sections import COMPACTION
from composer.repositories.database import Transaction
from composer.turn.compose import PromptRequest
from composer.visibility import WriteScope

MOST_UNASKED: Final = 3  # entries that are erased without asking back


async def _remember(call: Call) -> CommandAnswer:
    reach = write_scope_of(call)
    async with call.changing() as tx:
        mark = visibility.access_tag_for(await access_context(tx, call), reach)
        author = call.incoming.user_name
        await remembering.remember(tx, mark, call.words, author, call.incoming.adapter, call.event, call.now)
    call.app.indexer.due(call.workspace.tenant_id)
    return CommandAnswer(f"Remembered, {whereabouts(call, reach)}.")


async def _recall(call: Call) -> CommandAnswer:
    if not call.words:
        raise BadInput("What is to be recalled? For example: /nexus recall what did we decide about backups")
    items = await call.app.composer.recall(unstored(call))
    lines = [recall_line(item, number) for number, item in enumerate(items, 1)]
    return CommandAnswer("\n".join(lines) or "I recall nothing about that here.")


def unstored(call: Call, agent: Agent | None = None) -> PromptRequest:
    """The words of a command as a question that is not stored, to an agent: the conversation's own if none is named."""
    message = Message(
        derived_id("unstored", call.event),
        call.incoming.id,
        2**62,
        call.incoming.at,
        call.user,
        None,
        call.incoming.user_name,
        call.words,
        call.conversation.namespace,
        call.conversation.visibility,
    )
    agent = agent or next((a for a in call.agents if a.id == call.conversation.agent_id), call.agents[0])
    return PromptRequest(call.workspace.tenant_id, call.conversation.id, call.user, agent, message)


async def _forget(call: Call) -> CommandAnswer:
    """`forget WORDS`, `forget message ID`, `forget here --yes`, `forget everything --yes`."""
    whole = call.words in ("here", "everything")
    if not call.words:
        raise BadInput("What is to be forgotten? /nexus forget WORDS, or message ID, here, everything.")
    if whole and "yes" not in call.flags:
        what = "all that you said here" if call.words == "here" else "all that you ever said or had me remember"
        return CommandAnswer(f"This erases {what}, for good. Repeat it with --yes: /nexus forget {call.words} --yes")
    if not (whole or call.words.startswith("message ") or "yes" in call.flags):
        # What only asks back is not done (bot/commands/idempotency.py).
        async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
            messages, items = await _meant(tx, call)
        if len(messages) + len(items) > MOST_UNASKED:
            found = f"{len(messages)} messages and {len(items)} other entries of yours hold these words"
            return CommandAnswer(f"{found}. Erase them for good: /nexus forget {call.words} --yes")
    async with call.changing() as tx:
        messages, items = await _meant(tx, call)
        if call.words == "everything":
            await tx.commands.discard_calls(call.user, command_id(call.workspace, call.incoming))
        receipt = await forgetting.forget(tx, messages, items, call.now, call.conversation.id)
    await call.app.forgotten(call.workspace, receipt)
    return CommandAnswer(str(receipt))


async def _meant(tx: Transaction, call: Call) -> tuple[list[uuid.UUID], list[tuple[str, uuid.UUID]]]:
    """The caller's own messages and entries that are to be forgotten."""
    access = await access_context(tx, call)
    kind, _, rest = call.words.partition(" ")
    if call.words == "here":
        return await tx.messages.find_ids_by_author(call.user, call.conversation.id), []
    if call.words == "everything":
        return await tx.messages.find_ids_by_author(call.user, None), await tx.erasure.owned_items(call.user)
    if kind == "message" and rest:
        return await _own_message(tx, call, rest.strip()), []
    return await tx.erasure.find_matching(call.user, visibility.own_namespaces(access), call.words)


async def _own_message(tx: Transaction, call: Call, external_id: str) -> list[uuid.UUID]:
    found = await tx.messages.find_by_external_id(call.workspace.platform, call.workspace.name, external_id)
    own = [message for message, _, author in found if author == call.user]
    if not own:
        raise NotFound(f"You have no message '{external_id}' here.")
    return own


async def _why(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        access = await access_context(tx, call)
        own = visibility.conversation_namespace(access)
        found = await tx.turns.last_prompt(own, access.conversation, call.user, call.words or None)
    if found is None:
        raise NotFound("There is no answer of yours here to explain, or it has been forgotten since.")
    prompt, timings = json.loads(found[0]), json.loads(found[1])
    speakers = [
        uuid.UUID(source["user_id"])
        for section in prompt["sections"]
        for source in section["sources"]
        if source["user_id"] is not None and section["name"] in ("WORKING", "RELATED", "MESSAGE", "FACTS")
    ]
    sections = tuple(explain(prompt, visibility.readable(access, speakers)))
    total = f"{prompt['tokens']:,} of {prompt['window']:,} tokens"
    spent = ", ".join(f"{name} {value:.1f} ms" for name, value in timings.items())
    lines = [f"That answer's prompt had {total}; {spent}."]
    for section in sections:
        lines.append(f"{section.name}: {section.tokens} tokens, {len(section.parts)} sources")
        if section.name == "RELATED" and section.parts:
            shown = sum(len(each.parts) for each in sections if each.name == "WORKING")
            lines.append(
                f"  {related_sentence(shown, len(section.parts), int(section.parts[0].reasons['candidates']))}"
            )
        if section.name in ("RECALL", "FACTS", "LANDMARKS", "SUMMARIES"):
            lines.extend(f"  {part.text}" + (f"  score {part.score}" if part.score else "") for part in section.parts)
        lines.extend(f"  {compacted(part.reasons)}" for part in section.parts if part.kind == COMPACTION)
    return CommandAnswer("\n".join(lines), sections)


def related_sentence(latest: int, related: int, candidates: int) -> str:
    """How the view of a busy room was chosen, in one sentence."""
    return (
        f"This room is busy: of its last {candidates} messages {latest + related} are shown, the last {latest} and "
        f"{related} earlier ones that belong to this discussion."
    )


def compacted(reasons: Mapping[str, float]) -> str:
    """Why a view was compacted, and what came of it, in one sentence."""
    why = "someone asked for it" if reasons["requested"] else f"that is over {COMPACT_AT:.0%} of the window"
    return (
        f"This conversation's view was compacted: its oldest {reasons['messages']:,.0f} messages are a summary now "
        f"and stay in the log. The prompt would have had {reasons['before']:,.0f} of {reasons['window']:,.0f} tokens "
        f"({why}); compacted, {reasons['after']:,.0f}."
    )


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "remember",
        (Parameter("text"),),
        "keep a statement, exactly as written",
        _remember,
        WRITE_SCOPE_FLAGS,
        hidden=(WriteScope.GLOBAL,),
    ),
    Command("recall", (Parameter("text"),), "what I remember about something here, with sources", _recall),
    Command(
        "forget",
        (Parameter("what", "WORDS | message ID | here | everything", names=Names.FORGETTABLE),),
        "erase what is yours, for good",
        _forget,
        ("yes",),
        hidden=("yes",),
    ),
    Command("why", (Parameter("message", "MESSAGE ID", required=False),), "what your last answer was made from", _why),
)
