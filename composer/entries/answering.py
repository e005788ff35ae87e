"""Answer a question from entries: the model sees what was found and nothing else, and nothing of it is stored."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from composer.entries.search import FACT, LANDMARK, EntryReader, SearchResult
from composer.model import Agent, Message, Usage, Visibility, derived_id, entries_namespace
from composer.ports.models import Chunk, MeteredModel, Tokenizer, Work, WorkKind
from composer.prompt.budget import pack
from composer.prompt.sections import FACTS, LANDMARKS, RECALL, Prompt, PromptInput
from composer.text.cleaning import clean_text
from composer.text.names import in_quotes
from composer.text.work import COUNTED_PER_READ, off_loop

NOTHING_FOUND: Final = "I remember nothing that fits your question."
_SOURCES: Final = (FACTS, LANDMARKS, RECALL)


@dataclass(frozen=True, slots=True)
class SourceMark:
    """A source that the model was shown: its id, and its mark in the answer (empty: facts and landmarks have none)."""

    id: str
    mark: str


class EntryAnswerer:
    """Lets a model answer from what was found. It keeps nothing."""

    def __init__(self, model: MeteredModel, tokenizer: Callable[[Agent], Tokenizer]) -> None:
        """`tokenizer` is that of an agent's model."""
        self._model = model
        self._tokenizer = tokenizer

    async def prepare(
        self, agent: Agent, reader: EntryReader, name: str, question: str, found: SearchResult, now: datetime
    ) -> Prompt:
        """The prompt of an answer to the person `name`; `now` in the tenant's time zone. What does not fit the agent's
        context window is left out, worst first."""
        asked = _question(reader, name, question, now)
        prompt_input = PromptInput(
            agent=agent,
            context=_context(name, now),
            message=asked,
            facts=[replace(h.item, text=f"- {h.item.text}") for h in found.hits if h.item.kind == FACT],
            landmarks=[replace(h.item, text=f"- {h.item.text}") for h in found.hits if h.item.kind == LANDMARK],
            recall=[hit.item for hit in found.hits if hit.entry is not None],
            recall_tokens=agent.window,  # what was found has its own limit
            here="in the entries",
        )
        chars = len(question) + sum(len(hit.item.text) for hit in found.hits)
        return await off_loop(chars // COUNTED_PER_READ, partial(pack, prompt_input, self._tokenizer(agent)))

    async def answer(self, agent: Agent, reader: EntryReader, prompt: Prompt) -> AsyncIterator[Chunk]:
        """The answer, in chunks, recorded under the reader's name. A prompt without a source is answered by a
        sentence, and no model is asked. Raises as `MeteredModel.stream`."""
        if not sources_of(prompt):
            yield Chunk(NOTHING_FOUND, Usage())
            return
        work = Work(reader.tenant_id, WorkKind.ANSWER, agent, user_id=reader.user)
        async for chunk in self._model.stream(work, prompt.role_messages):
            yield chunk


def sources_of(prompt: Prompt) -> Sequence[SourceMark]:
    """The sources that a prompt shows, in its order."""
    found: list[SourceMark] = []
    for section in prompt.sections:
        if section.name in _SOURCES:
            marked = section.name == RECALL
            found += [SourceMark(item.id, f"s{n}" if marked else "") for n, item in enumerate(section.sources, 1)]
    return found


def _question(reader: EntryReader, name: str, question: str, now: datetime) -> Message:
    id = derived_id("entry question", str(reader.user), now.isoformat())
    namespace = entries_namespace(reader.user)
    text = clean_text(question)
    return Message(id, str(id), 1, now, reader.user, None, name, text, namespace, Visibility.PRIVATE)


def _context(name: str, now: datetime) -> str:
    return (
        f"[CONTEXT]\nOne question of {in_quotes(name)}, outside any conversation. Answer it from what is shown below "
        f"alone, and name the mark of each entry that you use.\nToday is {now:%A, %Y-%m-%d}."
    )
