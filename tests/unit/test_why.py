"""`/nexus why` explains how the view of a busy room was chosen."""

from collections.abc import Mapping

from bot.commands.explaining import busy_room_sentence
from composer.prompt.explain import ExplainedSection, ExplainedSource

CHOSEN = {"candidates": 100.0, "related": 0.4}


def section(name: str, *reasons: Mapping[str, float]) -> ExplainedSection:
    sources = tuple(
        ExplainedSource("", "working", "message", (f"m{n}",), None, each, "") for n, each in enumerate(reasons)
    )
    return ExplainedSection(name, 10, sources)


def test_the_sentence_counts_the_latest_and_the_chosen_messages() -> None:
    sentence = busy_room_sentence([section("WORKING", {}, {}, {}), section("RELATED", CHOSEN, CHOSEN)])
    assert sentence is not None
    assert "of its last 100 messages 5 are shown, the last 3 and 2 earlier ones" in sentence


def test_an_old_answer_with_the_chosen_messages_among_the_latest_is_counted_alike() -> None:
    old = busy_room_sentence([section("WORKING", CHOSEN, CHOSEN, {}, {}, {})])
    assert old == busy_room_sentence([section("WORKING", {}, {}, {}), section("RELATED", CHOSEN, CHOSEN)])


def test_there_is_no_sentence_for_a_room_that_is_not_busy() -> None:
    assert busy_room_sentence([section("WORKING", {}, {}), section("RECALL", {"meaning": 0.8})]) is None
