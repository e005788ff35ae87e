"""Facts and decisions that an answer quotes, on a page: what stands in brackets is in the reader's language."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest

from bot.web.pages import rendering
from bot.web.pages.quoted import quoted_decision, quoted_fact
from composer.layers.structured import fact_item, landmark_item
from composer.model import Visibility
from composer.repositories.facts import Fact
from composer.repositories.landmarks import Landmark, LandmarkState
from composer.text.names import speaker_label
from composer.text.offline import OFFLINE

AT: Final = datetime(2021, 3, 1, 9, tzinfo=UTC)
ROOM: Final = "room:1"
FACT: Final = Fact(uuid.uuid4(), ROOM, Visibility.PUBLIC, uuid.uuid4(), "day", '"Friday (late); we, hope"', "alice", AT)
DECISION: Final = Landmark(uuid.uuid4(), ROOM, Visibility.PUBLIC, None, "We ship (soon): on Friday.", "alice", AT)


def of_line(line: str) -> str:
    return line.removeprefix("- ")


@pytest.mark.parametrize("author", ["alice", "bob (claude)", "Müller, Ann"])
@pytest.mark.parametrize("subject", ["", "Dana"])
def test_a_fact_of_a_prompt_is_taken_apart(author: str, subject: str) -> None:
    fact = replace(FACT, author=author, subject=subject)
    newer = replace(fact, id=uuid.uuid4())
    for newest, conflict in ((None, ""), (fact, "this is newer"), (newer, "that is newer")):
        found = quoted_fact(of_line(fact_item(fact, newest=newest).text))
        assert found.words == "day = Friday (late); we, hope"
        assert found.subject == (f"about {subject}" if subject else "this room")
        assert found.author == speaker_label(author)
        assert found.day == AT.date()
        assert found.conflict == (f"conflicts with another value, {conflict}" if conflict else "")


@pytest.mark.parametrize("origin", ["", 'from the room "#general"', "from project apollo"])
@pytest.mark.parametrize("state", list(LandmarkState))
def test_a_decision_of_a_prompt_is_taken_apart(state: LandmarkState, origin: str) -> None:
    found = quoted_decision(of_line(landmark_item(replace(DECISION, state=state), origin).text))
    assert (found.words, found.author, found.day) == (DECISION.text, "alice", AT.date())
    assert (found.proposed, found.origin) == (state is LandmarkState.PROPOSED, origin)


@pytest.mark.parametrize(
    "line", ["", ")", "day = ", 'day = "cut (this ro', "(this room; alice, 2021-13-01)", "a, b; c)"]
)
def test_what_is_no_line_of_a_prompt_stays(line: str) -> None:
    assert quoted_fact(line).words == line
    assert quoted_fact(line).day is None
    assert quoted_decision(line).words == line


def told(language: str, answer: str) -> str:
    [reader] = [each for each in rendering.languages() if each.code == language]
    template = rendering._environment().from_string("{{ answer | offline_told }}")
    return template.render(language=reader, dates=rendering.Dates(reader, UTC, AT), answer=answer)


def test_brackets_of_an_answer_without_a_model_are_in_the_language_of_its_reader() -> None:
    lines = [
        fact_item(FACT, newest=FACT).text.replace("- ", "- (facts) ", 1),
        landmark_item(replace(DECISION, state=LandmarkState.PROPOSED), "from project apollo").text.replace(
            "- ", "- (landmarks) ", 1
        ),
    ]
    answer = "\n".join((*lines, f"{OFFLINE}, so this only quotes what is remembered)"))
    german = told("de", answer)
    assert "(dieser Raum; alice, 1. März; es gilt auch ein anderer Wert, dieser ist neuer)" in german
    assert "1. März, alice (vorgeschlagen, aus dem Projekt apollo): We ship (soon): on Friday." in german
    assert "(this room; alice, 1 Mar; conflicts with another value, this is newer)" in told("en", answer)
