"""Find the agents that a message addresses. Pure."""

import re
from collections.abc import Collection, Sequence
from typing import Final

from composer.model import Agent, Conversation, Incoming

_ADDRESS = re.compile(r"@(?<![\w@]@)([a-zA-Z0-9][a-zA-Z0-9_.-]*)")
_TO_SOMEBODY = re.compile(r"\A[^\w@]{0,20}(?:\w{1,20}[^\w@]{1,20})?@")
_TO_ALL: Final = ("@here", "@channel", "@everyone")


def find_addressed_agents(text: str, agents: Sequence[Agent]) -> list[Agent]:
    """The agents that a text addresses by `@slug`, in the order of the configuration."""
    slugs = {name.casefold().rstrip(".-") for name in _ADDRESS.findall(text)}
    return [agent for agent in agents if agent.slug in slugs]


def unaddressed(text: str, slugs: Collection[str]) -> str:
    """A text that addresses no agent of these slugs: without the @ before each."""

    def read(found: re.Match[str]) -> str:
        return found[1] if found[1].casefold().rstrip(".-") in slugs else found[0]

    return _ADDRESS.sub(read, text)


def is_for_others(text: str) -> bool:
    """Whether a text is for somebody else than an agent that it does not mention: it begins with a mention, perhaps
    after one word ("hey @bob"), or is for the whole room."""
    return _TO_SOMEBODY.match(text) is not None or any(each in text for each in _TO_ALL)


def find_answering_agents(agents: Sequence[Agent], incoming: Incoming, conversation: Conversation) -> list[Agent]:
    """The agents that must answer a message: the one of its DM or session, or in a room those that it addresses."""
    if conversation.agent_id is not None:
        return [agent for agent in agents if agent.id == conversation.agent_id]
    named = find_addressed_agents(incoming.text, agents)
    return [agent for agent in agents if agent in named or agent.slug in incoming.addressed_agents]
