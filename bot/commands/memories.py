"""remember, recall, forget: write, search and erase memories."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context, scope_phrase, write_scope_flags, write_scope_of
from bot.commands.command import PREFIX, Call, Command, CommandAnswer, Flag, command_id
from bot.commands.days import ON, as_of, day_suffix
from bot.commands.parameters import ForgetScope
from composer import visibility
from composer.errors import NotFound
from composer.memory import forget as forgetting
from composer.memory import remember as remembering
from composer.model import Agent, Message, derived_id
from composer.prompt.lines import recall_line
from composer.repositories.database import Transaction
from composer.turn.compose import PromptRequest
from composer.visibility import WriteScope

MAX_UNCONFIRMED: Final = 3  # items that `forget WORDS` erases without asking for --yes

_STATEMENT: Final = parameters.text("text", "the statement, stored exactly as written")
_QUERY: Final = parameters.text("text", "what to search for")
_TARGET: Final = parameters.forget_target(
    "what",
    "words to match in your own messages and entries; the id of one message; here (all your messages in this "
    "conversation); "
    "everything (all you ever said or stored)",
)


async def _remember(call: Call) -> CommandAnswer:
    scope = write_scope_of(call)
    async with call.changing() as tx:
        tag = visibility.access_tag_for(await access_context(tx, call), scope)
        author, text = call.incoming.user_name, call.arguments[_STATEMENT]
        await remembering.remember(tx, tag, text, author, call.incoming.adapter, call.event_id, call.now)
    call.app.indexer.due(call.workspace.tenant_id)
    return CommandAnswer(f"Remembered, {scope_phrase(call, scope)}.")


async def _recall(call: Call) -> CommandAnswer:
    question = unstored_question(call, call.arguments[_QUERY])
    items = await call.app.composer.recall(replace(question, message=replace(question.message, at=as_of(call))))
    lines = [recall_line(item, number) for number, item in enumerate(items, 1)]
    return CommandAnswer(
        "\n".join(lines)
        or f"I found nothing about that here{day_suffix(call)}. Try other words, or ask where it was discussed."
    )


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
    )
    agent = agent or next((a for a in call.agents if a.id == call.conversation.agent_id), call.agents[0])
    return PromptRequest(call.workspace.tenant_id, call.conversation.id, call.user, agent, message)


async def _forget(call: Call) -> CommandAnswer:
    target, confirmed = call.arguments[_TARGET], "yes" in call.flags
    if target.whole and not confirmed:
        what = (
            "all that you said here"
            if target.scope is ForgetScope.HERE
            else "all your messages, memories and facts, everywhere"
        )
        return CommandAnswer(f"This erases {what}, for good. To confirm: {PREFIX} forget {target.text} --yes")
    if target.scope is ForgetScope.MATCHING and not confirmed:
        # An answer that only asks for confirmation changes nothing, so it does not count as done
        # (bot/commands/idempotency.py).
        async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
            messages, items = await _targets(tx, call)
        if len(messages) + len(items) > MAX_UNCONFIRMED:
            found = f"{len(messages)} messages and {len(items)} other items of yours contain these words"
            return CommandAnswer(f"{found}. To erase them for good: {PREFIX} forget {target.text} --yes")
    async with call.changing() as tx:
        messages, items = await _targets(tx, call)
        if target.scope is ForgetScope.EVERYTHING:
            await tx.commands.discard_calls(call.user, command_id(call.workspace, call.incoming))
        receipt = await forgetting.forget(tx, messages, items, call.now, call.conversation.id)
    await call.app.forgotten(call.workspace, receipt)
    return CommandAnswer(str(receipt))


async def _targets(tx: Transaction, call: Call) -> tuple[list[uuid.UUID], list[tuple[str, uuid.UUID]]]:
    """The caller's own messages and items that the target names."""
    access, target = await access_context(tx, call), call.arguments[_TARGET]
    match target.scope:
        case ForgetScope.HERE:
            return await tx.messages.find_ids_by_author(call.user, call.conversation.id), []
        case ForgetScope.EVERYTHING:
            return await tx.messages.find_ids_by_author(call.user, None), await tx.erasure.owned_items(call.user)
        case ForgetScope.MESSAGE:
            return await _own_message(tx, call, target.text), []
        case ForgetScope.MATCHING:
            return await tx.erasure.find_matching(call.user, visibility.forgettable_namespaces(access), target.text)


async def _own_message(tx: Transaction, call: Call, external_id: str) -> list[uuid.UUID]:
    found = await tx.messages.find_by_external_id(call.workspace.platform, call.workspace.name, external_id)
    own = [message for message, _, author in found if author == call.user]
    if not own:
        raise NotFound(f"You have no message '{external_id}' here.")
    return own


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "remember",
        (_STATEMENT,),
        "Store a statement, exactly as written",
        _remember,
        "remember we ship on Fridays",
        write_scope_flags(WriteScope.GLOBAL),
    ),
    Command(
        "recall",
        (_QUERY,),
        "Search what I remember here, with sources",
        _recall,
        "recall what did we decide about backups",
        (ON,),
    ),
    Command(
        "forget",
        (_TARGET,),
        "Erase your own messages and entries, for good",
        _forget,
        "forget message 1094817263",
        (Flag("yes", "erase without asking for confirmation", listed=False),),
    ),
)
