"""Summaries without a model: what is chosen, that it fits, and what stands in when something fails."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from composer.errors import Unavailable
from composer.model import Agent
from composer.ports.models import ChatMessage, Chunk, Vectors
from composer.prompt.sections import EXTRACTIVE
from composer.stores.tokens import tokenizer_for
from composer.summaries.summariser import Said, Summariser, candidates, extractive, summary_prompt
from tests.unit.test_prompt import AGENT

AT = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
TOKENIZER = tokenizer_for("")
TALK = [
    Said("alice", AT, "Does anyone know how to restore the backups of the old server?"),
    Said("bob", AT, "alice: no idea"),
    Said("carol", AT, "ok thanks"),
    Said("dave", AT, "We decided to move the invoices to the new database on Friday."),
    Said("erin", AT, "Does anyone know how to restore the backups of the old server?"),
]


class Down:
    """An embedder that does not answer."""

    name, width = "down", 3

    async def embed(self, texts: Sequence[str]) -> Vectors:
        raise Unavailable("The embedder does not answer.")


class Writer:
    """A chat model that answers with a text, or fails."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        if self.answer is None:
            raise RuntimeError("out of order")
        yield Chunk(self.answer)


def test_what_begins_and_decides_is_chosen_with_its_speaker_and_nothing_twice() -> None:
    lines = extractive(candidates(TALK), None, 45, TOKENIZER).text.split("\n")
    assert lines == [f"alice: {TALK[0].text}", f"dave: {TALK[3].text}"]


def test_sentences_that_mean_the_same_are_chosen_once() -> None:
    said = [Said("alice", AT, "The crane is broken today"), Said("bob", AT, "Nobody could lift anything this morning")]
    alike = np.array([[1.0, 0.0], [0.99, 0.1]], dtype=np.float32)
    apart = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    chosen = candidates(said)
    assert len(extractive(chosen, alike, 100, TOKENIZER).text.split("\n")) == 1
    assert len(extractive(chosen, apart, 100, TOKENIZER).text.split("\n")) == 2


def test_where_every_sentence_is_too_long_the_beginning_of_the_weightiest_stands_with_a_mark() -> None:
    pasted = " ".join(f"{n * 7919:08x}" for n in range(20))
    said = [
        Said("bob", AT, f"then the log says {pasted}"),
        Said("dave", AT, f"We decided to move the invoices: {pasted}"),
    ]
    written = extractive(candidates(said), None, 40, TOKENIZER)
    assert written.text.startswith("dave: We decided to move the invoices: 00000000")
    assert written.text.endswith(" …")
    assert 20 < written.tokens <= 40


PIECES = st.lists(st.builds(Said, st.text(max_size=20), st.just(AT), st.text(max_size=200)), max_size=20)


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(PIECES, st.integers(0, 80))
def test_it_never_exceeds_its_budget(pieces: list[Said], budget: int) -> None:
    written = extractive(candidates(pieces), None, budget, TOKENIZER)
    assert written.tokens == (TOKENIZER.count(written.text) if written.text else 0)
    assert written.tokens <= budget


@pytest.mark.parametrize("answer", [None, "", "  "])
async def test_a_model_that_fails_or_says_nothing_is_replaced(answer: str | None) -> None:
    agent = Agent(AGENT.id, "nexus", "Nexus", "", "gpt-4o", 8_000)
    written = await Summariser(Down(), Writer(answer)).summarise(TALK, 60, TOKENIZER, agent)
    assert written.model == EXTRACTIVE
    assert "dave: We decided" in written.text


async def test_what_a_model_writes_is_kept_within_the_budget_and_named() -> None:
    agent = Agent(AGENT.id, "nexus", "Nexus", "", "gpt-4o", 8_000)
    long = "\n".join(f"Line {n} of the minutes." for n in range(100))
    written = await Summariser(Down(), Writer(long)).summarise(TALK, 60, TOKENIZER, agent)
    assert (written.model, written.text.startswith("Line 0 of the minutes.")) == ("gpt-4o", True)
    assert 30 < written.tokens <= 60


def test_the_prompt_stands_in_a_file_and_says_how_long_the_summary_may_be() -> None:
    assert "at most 70 words" in summary_prompt(100)
