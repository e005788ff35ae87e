"""compact: the oldest part of what an agent sees of a conversation becomes a summary, now."""

from collections.abc import Sequence
from typing import Final

from bot.commands.command import Call, Command, CommandAnswer, Names, Parameter, access_context, is_room_admin
from bot.commands.memories import unstored
from composer.errors import BadInput, Refused
from composer.model import Agent, ConversationKind
from composer.prompt.sections import EXTRACTIVE


async def _compact(call: Call) -> CommandAnswer:
    agent = _agent(call)
    async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        access = await access_context(tx, call)
        in_room = access.conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD)
        if in_room and not access.asker_admin and not await is_room_admin(tx, call):
            raise Refused("Only an admin of this room may compact what is seen of it.")
    made = await call.app.composer.compact(unstored(call, agent))
    if made is None:
        return CommandAnswer(f"There is too little to compact for @{agent.slug}, or it was compacted just access.")
    how = "in sentences as they were said" if made.model == EXTRACTIVE else f"written by {made.model}"
    return CommandAnswer(
        f"Compacted for @{agent.slug}: the oldest {made.messages:,} messages, until {made.through[0]:%Y-%m-%d %H:%M}, "
        f"stand as a summary of {made.tokens:,} tokens ({how}). They stay in the log.\n"
        f"before: {made.before:,} of {agent.window:,} tokens\n"
        f"after: {made.after:,} of {agent.window:,} tokens\n"
        f"{made.text}"
    )


def _agent(call: Call) -> Agent:
    """Whose view: in a DM or session that of its agent, in a room of the one that is named, or the first."""
    if call.conversation.agent_id is not None:
        return next(agent for agent in call.agents if agent.id == call.conversation.agent_id)
    named = call.words.removeprefix("@").lower()
    found = [agent for agent in call.agents if agent.slug == named] if named else list(call.agents[:1])
    if not found:
        raise BadInput(f"There is no agent '{named}'; there is {', '.join(agent.slug for agent in call.agents)}.")
    return found[0]


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "compact",
        (Parameter("agent", required=False, names=Names.AGENT),),
        "shorten what an agent sees of this conversation, for admins of a room",
        _compact,
    ),
)
