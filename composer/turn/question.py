"""What a question says and asks for: the text to embed, what to search for, and whose words count as its speakers'."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from composer.layers import semantic, working
from composer.layers.plain import MAX_NAMING_CHARS, words_of_names
from composer.memory.index import embedding_text, without_mentions
from composer.model import Agent, Message
from composer.ports.models import Vectors
from composer.text.first_person import in_first_person
from composer.text.room_names import rooms_named
from composer.text.terms import query_terms, with_plain_mentions

MAX_QUESTION_CHARS: Final = 20_000  # of a question, that search terms are taken from


@dataclass(frozen=True, slots=True)
class Participants:
    """Who wrote in a conversation's view when it was last read, the agents apart, and whether several discussions were
    mixed in it. `named`: words by which a question names people of whom its viewer may read something."""

    people: frozenset[str]
    agents: frozenset[str]
    busy: bool
    named: frozenset[str] = frozenset()

    @classmethod
    def of(cls, window: working.Window) -> "Participants":
        """Those of a window."""
        agents = frozenset(message.author for message in window.recent if message.by_agent)
        people = frozenset(message.author for message in window.recent if not message.by_agent)
        return cls(people, agents, window.candidates > 0)


NO_PARTICIPANTS: Final = Participants(frozenset(), frozenset(), busy=False)  # of a conversation that was not read yet


def text_to_embed(question: Message, participants: Participants) -> str:
    """What is embedded of a question: its text as those who take part, or whom it names, would say it of themselves."""
    people = {question.author, *participants.people, *participants.named}
    return in_first_person(embedding_text(asked_text(question)), people, participants.agents)


def text_naming_people(question: Message, agents: Sequence[Agent]) -> str:
    """The beginning of a question, in which names are looked for: mentions are as if they were typed, but those of
    `agents` are left out."""
    return without_mentions(with_plain_mentions(asked_text(question)[:MAX_NAMING_CHARS], _names_of(agents)))


def search_query(
    question: Message,
    agent: Agent,
    recent: Sequence[Message],
    vector: Vectors | None,
    agents: Sequence[Agent],
    rooms: Mapping[str, frozenset[str]],
    people: Collection[str] = (),
) -> semantic.SearchQuery:
    """What to search for. The names of participants and of `people`, whom it names, are left out: in short messages
    they outweigh what is asked. To mention somebody is to name them; mentions of agents are left out. `agents` are
    those of the tenant, `rooms` the namespaces of what the viewer may read here, by the names of rooms."""
    names = {question.author, *(message.author for message in recent)}
    text = _searched_text(question, agents)
    named, subject = rooms_named(text, rooms)
    plain_text = without_mentions(subject)
    words = query_terms(plain_text, names | words_of_names(people, plain_text))
    return semantic.SearchQuery(
        embedding_text(text),
        vector,
        words,
        (agent.name, agent.slug),
        _names_of(agents),
        frozenset().union(*(rooms[name] for name in named)),
        embedding_text(subject),
    )


def text_with_times(question: Message, agents: Sequence[Agent]) -> str:
    """The text of a question in which times are looked for, as in its search query."""
    return embedding_text(_searched_text(question, agents))


def _searched_text(question: Message, agents: Sequence[Agent]) -> str:
    return with_plain_mentions(asked_text(question)[:MAX_QUESTION_CHARS], _names_of(agents))


def _names_of(agents: Sequence[Agent]) -> list[str]:
    return [name for each in agents for name in (each.name, each.slug)]


def asked_text(question: Message) -> str:
    """What a question says, in writing and in its voice notes."""
    spoken = (each.text for each in question.attachments if each.is_audio and each.text)
    return "\n".join(filter(None, (question.text, *spoken)))


def speakers_of(question: Message, recent: Sequence[Message]) -> list[uuid.UUID]:
    """Users mentioned in the question, then users who wrote or are mentioned in the recent messages, latest first."""
    users = list(question.mentions)
    for message in reversed(recent):
        if message.user_id is not None:
            users.append(message.user_id)
        users.extend(message.mentions)
    return list(dict.fromkeys(users))
