"""compact: replace the oldest part of an agent's view of a conversation with a summary, now."""

from collections.abc import Sequence
from typing import Final

from bot.commands import parameters
from bot.commands.command import Call, Command, CommandAnswer
from bot.commands.memories import unstored_question
from composer.errors import BadInput
from composer.model import Agent
from composer.prompt.sections import EXTRACTIVE
from composer.rights.table import Act

_AGENT: Final = parameters.agent("agent", "the agent whose view is shortened; by default the first")


async def _compact(call: Call) -> CommandAnswer:
    agent = _agent(call)
    made = await call.app.composer.compact(unstored_question(call, "", agent))
    if made is None:
        return CommandAnswer(
            f"There is nothing to compact for @{agent.slug} yet: the conversation is short, or it was "
            "compacted within the last ten messages."
        )
    how = "quoted from the messages" if made.model == EXTRACTIVE else f"written by {made.model}"
    return CommandAnswer(
        f"Compacted for @{agent.slug}: a summary of {made.tokens:,} tokens ({how}) replaces the oldest "
        f"{made.messages:,} messages, until {made.through[0]:%Y-%m-%d %H:%M}. The messages themselves are not erased.\n"
        f"before: {made.before:,} tokens in WORKING\n"
        f"after: {made.after:,} tokens in WORKING\n"
        f"{made.text}"
    )


def _agent(call: Call) -> Agent:
    """The agent whose view is meant: that of a DM or a session, in a room the one that is named, or the first."""
    own = call.conversation.agent_id
    here = [agent for agent in call.agents if own is None or agent.id == own]
    slug = call.arguments.get(_AGENT)
    found = [agent for agent in here if agent.slug == slug] if slug else here[:1]
    if not found:
        raise BadInput(f"There is no agent '{slug}' here: choose one of {', '.join(agent.slug for agent in here)}.")
    return found[0]


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "compact",
        (_AGENT,),
        "Replace the oldest messages that an agent sees here with a summary",
        _compact,
        "compact",
        act=Act.COMPACT,
    ),
)
