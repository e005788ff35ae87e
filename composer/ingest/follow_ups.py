"""Find the messages in threads that are questions to an agent without a mention, since they follow up its answer.

A message in a thread follows up the answer of an agent if its author has asked that agent there before, and the last
message before it is that answer, or the author's own next question to the agent. It does not where it is for somebody
else, and where the answer is to another person's follow-up: so two people who talk to each other are interrupted once.
"""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import takewhile
from typing import Final

from composer.ingest.addressing import find_addressed_agents
from composer.model import Agent
from composer.repositories.messages import Spoken

READ_TALK: Final = 50  # messages of a thread, the latest, in which its participants are looked for


def followed_agent(
    message: Spoken, earlier: Sequence[Spoken], agents: Sequence[Agent], thread: str, young: timedelta
) -> uuid.UUID | None:
    """The agent whose answer a message follows up in a thread of this name; None if there is none. `earlier` is what
    was said there before it, latest first; the answer is at most `young` old."""
    own = list(takewhile(lambda each: each.user == message.user and each.asked, earlier))
    before = earlier[len(own) :]
    answer = before[0] if before else message
    question = next((each for each in before if answer.id in each.replies), None)
    agent = answer.agent
    if agent is None or question is None or message.at - answer.at > young:
        return None
    if any(agent not in each.asked for each in own):
        return None
    if question.user == message.user:
        return agent
    has_asked = any(each.user == message.user and agent in each.asked for each in before)
    return agent if has_asked and _names_agent(question, agents, thread) else None


def with_follow_ups(
    talk: Sequence[Spoken], new: frozenset[uuid.UUID], agents: Sequence[Agent], thread: str, young: timedelta
) -> dict[uuid.UUID, uuid.UUID]:
    """Of what was said in a thread, those of the `new` messages that follow up an answer, with its agent."""
    said = sorted(talk, key=lambda each: (each.at, each.seq))
    found: dict[uuid.UUID, uuid.UUID] = {}
    for number, each in enumerate(said):
        agent = followed_agent(each, said[:number][::-1], agents, thread, young) if each.id in new else None
        if agent is not None:
            found[each.id] = agent
            said[number] = replace(each, asked=frozenset({agent}))
    return found


def _names_agent(question: Spoken, agents: Sequence[Agent], thread: str) -> bool:
    """Whether a question says itself that it is one, by a mention or as a reply."""
    return question.reply_to not in (None, thread) or bool(find_addressed_agents(question.text, agents))
