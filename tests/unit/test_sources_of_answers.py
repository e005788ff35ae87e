"""Why a source was found, as its card says it."""

from collections.abc import Mapping, Sequence

import pytest

from bot.web.pages.sources import found_by
from composer.layers.ranking import REASONS


@pytest.mark.parametrize(
    ("reasons", "why"),
    [
        ({"meaning": 0.5, "words": 0.4, "fresh": 0.1}, ["meaning", "words"]),
        ({"meaning": 0.1, "words": 0.5, "together": 0.2}, ["words", "around"]),
        ({"meaning": 0.1, "before": 0.1, "reply": 0.2, "session": 0.1}, ["around"]),
        ({"speaker": 0.3, "date": 0.4, "near": 0.1, "room": 0.2}, ["time", "person"]),
        ({"fresh": 0.1, "statement": 0.05, "question": -0.25}, []),
        ({}, []),
        ({"messages": 12.0, "window": 8000.0, "requested": 1.0}, []),
    ],
)
def test_the_largest_parts_of_its_score_say_why(reasons: Mapping[str, float], why: Sequence[str]) -> None:
    assert found_by(reasons) == why


def test_each_part_that_brings_something_there_says_why() -> None:
    of_all = {"fresh", "statement", "question", "agent"}
    assert {name for name in REASONS if not found_by({name: 1.0})} == of_all
