"""What an answer cites or quotes of its prompt is found again in its text."""

import uuid
from typing import Final

import pytest

from composer.prompt.cited import Cited, cited, marked
from composer.prompt.explain import ExplainedSection, ExplainedSource
from composer.stores.models.offline_model import QUOTING


def source(text: str, mark: str = "") -> ExplainedSource:
    return ExplainedSource(mark, "semantic", "episode", ("m",), 1.0, {}, text, uuid.uuid4())


FACT: Final = source('- diet: "no nuts" (2026-05-01)')
LANDMARK: Final = source("- 2026-04-01 carol: We chose Valkey.\n  | For the cache.")
DAY: Final = source("- day, 2026-05-01: They met. The office moves to Lisbon.")
FIRST: Final = source("- (s1) 2026-05-01 09:00 bob (in #general): The van is red.", "s1")
SECOND: Final = source("- (s2) 2026-05-01 09:01 alice (in #general): The boat is blue.", "s2")
SECTIONS: Final = (
    ExplainedSection("FACTS", 1, (FACT,), FACT.text),
    ExplainedSection("LANDMARKS", 1, (LANDMARK,), LANDMARK.text),
    ExplainedSection("SUMMARIES", 1, (DAY,), DAY.text),
    ExplainedSection("WORKING", 1, (source(""),), "bob (2026-05-04 09:02): I parked the van.\n  | Behind the barn."),
    ExplainedSection("RECALL", 1, (FIRST, SECOND), f"{FIRST.text}\n{SECOND.text}"),
)


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("- (s2) alice (2026-05-01 09:01): The boat is blue.", Cited("RECALL", SECOND.text, SECOND)),
        ('- (facts) diet: "no nuts" (2026-05-01)', Cited("FACTS", FACT.text, FACT)),
        ("- carol (2026-04-01): We chose Valkey. For the cache.", Cited("LANDMARKS", LANDMARK.text, LANDMARK)),
        ("- (summaries) The office moves to Lisbon.", Cited("SUMMARIES", DAY.text, DAY)),
        (
            "- bob (2026-05-04 09:02): I parked the van. Behind\u2026",
            Cited("WORKING", "- bob (2026-05-04 09:02): I parked the van. Behind\u2026"),
        ),
    ],
)
def test_each_quote_of_an_answer_without_a_model_is_found_where_it_stands(quote: str, found: Cited) -> None:
    assert cited(SECTIONS, f"{QUOTING}\n{quote}") == [found]


def test_what_its_reader_may_not_read_any_more_is_not_found() -> None:
    unreadable = [ExplainedSection(each.name, each.tokens, ()) for each in SECTIONS]
    quotes = "- (s2) alice (2026-05-01 09:01): The boat is blue.\n- bob (2026-05-04 09:02): I parked the van."
    assert cited(unreadable, f"{QUOTING}\n{quotes}") == []


def test_the_marks_of_a_models_answer_are_found_in_their_order_and_once() -> None:
    found = cited(SECTIONS, "The boat is blue (s2, s1), and so it stays (s2, s9). `(s1)`")
    assert [each.source for each in found] == [SECOND, FIRST]
    assert [s.cited for section in marked(SECTIONS, found[:1]) for s in section.sources if s.mark] == [False, True]
