"""What the terminal shows: lines that are broken between words, and sources with their reasons in words."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from bot.commands.explaining import reasons_sentence
from bot.commands.table import COMMANDS, in_columns
from bot.console.explained import stacked
from bot.console.render import wrapped
from composer.layers.ranking import REASONS
from composer.prompt.explain import ExplainedSection, ExplainedSource

HELP = "\n".join(in_columns([(command.usage, command.help) for command in COMMANDS.values()]))


def test_help_keeps_its_words_whole_and_within_the_width() -> None:
    for width in (40, 60, 79):
        lines = wrapped(HELP, width).split("\n")
        assert max(map(len, lines)) <= max(width, 8 + max(map(len, HELP.split())))
        assert " ".join(lines).split() == HELP.split()
    assert "/nexus remind list\n    List your reminders" in wrapped(HELP, 60)
    assert wrapped(HELP, 400) == HELP, "what fits stays as it is"


@given(st.text(alphabet="ab  -\n/", max_size=200), st.integers(20, 80))
def test_no_word_is_lost_or_broken(text: str, width: int) -> None:
    assert wrapped(text, width).split() == text.split()


def test_every_part_of_a_score_has_words() -> None:
    for name in REASONS:
        assert reasons_sentence({"meaning": 0.1, name: 0.2}).startswith("It ")
        assert reasons_sentence({name: 0.2})
    assert reasons_sentence({}) == ""


def test_the_reasons_are_a_sentence_with_what_counted_most_first() -> None:
    assert reasons_sentence({"meaning": 0.3, "session": 0.4, "words": 0.2, "question": -0.15, "fresh": 0.001}) == (
        "It was said in the same discussion as others that fit, is close in meaning to the question and has words of "
        "the question, though it asks something itself."
    )


def test_a_narrow_terminal_gets_each_source_under_its_section() -> None:
    source = ExplainedSource(
        "s1", "semantic", "episode", ("m1",), 0.5, {"session": 0.4}, "- (s1) bob: the crane needs a cable", uuid.uuid4()
    )
    text = stacked([ExplainedSection("RECALL", 12, (source,)), ExplainedSection("FACTS", 0, ())], 50)
    assert text.split("\n") == [
        "RECALL: 12 tokens",
        "  - (s1) bob: the crane needs a cable",
        "    from m1; score 0.500; It was said in the same",
        "        discussion as others that fit.",
        "FACTS: 0 tokens",
    ]
