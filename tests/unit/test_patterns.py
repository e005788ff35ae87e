"""Patterns extract statements of people about themselves and their teams, word for word, and nothing else."""

from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.memory import patterns
from composer.memory.patterns import Statement, extract


def kinds(text: str) -> list[str]:
    return [statement.kind for statement in extract(text)]


STATED = {
    "preference": [
        "I prefer tea",
        "@nexus I really like dark mode",
        "bob, I much prefer small pull requests",
        "I love sailing, it calms me",
        "We would rather meet in the morning.",
        "I'd rather walk",
        "My favourite editor is vim",
        "our preferred database is Postgres",
        "I am allergic to peanuts",
        "I'm a vegetarian",
        "I'm a big fan of Rust",
        "I can't stand meetings before ten",
        "Honestly, I hate tabs",
        "At home I prefer tea",
        "please remember that I prefer short answers",
        "I don't like Unity, but I do like GNOME.",
    ],
    "decision": [
        "We decided to deploy on Fridays",
        "we've decided: no more meetings",
        "I have finally decided to leave",
        "We agreed on two reviewers",
        "We went with Postgres",
        "we'll go with the blue logo",
        "Let's use uv for that",
        "I'm going to switch to Linux",
        "Decision: we ship on Monday",
        "The decision was to wait.",
        "OK, we have settled on Berlin",
        "I picked the smaller office",
    ],
    "habit": [
        "I usually start at nine",
        "we always rebase",
        "I never drink coffee",
        "Every morning I read the news",
        "On Fridays I tend to leave early",
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in STATED.items() for text in texts])
def test_a_statement_about_oneself_is_extracted_word_for_word(kind: str, text: str) -> None:
    assert extract(text) == [Statement(kind, text)]


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("I like walks. I prefer tea.", [False]),
        ("I like walks.\nI prefer tea.", [False, True]),
        ("> which?\nI like walks", [False]),
        ("mallory 11:02\nI like walks.", [True]),
        ("Hi Bob,\n\nI like walks.\n\nThanks,\nAlice", [True]),
        ("bob: I like walks", [True]),
        ("I like walks.\nmallory wrote\nI like walks.", [False]),
        ("Decided: we ship on Friday", [False]),
    ],
)
def test_what_stands_below_the_first_line_or_behind_a_colon_waits(text: str, waits: list[bool]) -> None:
    assert [each.waits for each in extract(text)] == waits


@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\u2018", "\u02bc", "\u2032", "`", "\u00b4"])
def test_every_apostrophe_character_is_recognised(apostrophe: str) -> None:
    assert kinds(f"I{apostrophe}d rather walk") == ["preference"]
    assert kinds(f"I{apostrophe}m allergic to nuts") == ["preference"]
    assert kinds(f"We{apostrophe}ve decided to wait") == ["decision"]
    assert kinds(f"we{apostrophe}ll use Postgres") == ["decision"]
    assert kinds(f"We haven{apostrophe}t agreed on a date, we decided to wait") == []


@pytest.mark.parametrize(
    "text",
    [
        # negated or undecided
        "I don't like tea",
        "We have not decided to deploy",
        "We didn't agree, and I decided nothing, we haven't decided on it",
        "Maybe we'll use Postgres",
        "I don't think I like tea",
        "I wouldn't say I love tea",
        "I'm not sure, I love tea I guess",
        "I wish we decided on something",
        # questions
        "do we always rebase?",
        "we decided to deploy on Fridays?",
        "I prefer what?!",
        # hypothetical
        "If we decided to move, I would tell you",
        "Suppose I prefer tea",
        "Unless we'll use Postgres, no",
        # said by somebody else
        "She said I prefer tea",
        "Bob says we decided to wait",
        "they told me I always rebase",
        "you wrote: I prefer tea",
        "According to the minutes we decided to wait",
        # quoted
        "> I prefer tea",
        'He shouted "I prefer tea" and left',
        "the song \u201cI love Berlin\u201d is old",
        "\u00abI love Berlin\u00bb is old",
        "the button 'I prefer tea' is broken",
        "the button \u2018I don\u2019t care, I prefer tea\u2019 is broken",
        # code
        "`I prefer tea`",
        "```\nI prefer tea\n```",
        "```py\n# we decided to wait\nI prefer tea",
        # it has no object, or is not about the speaker
        "I love it!",
        "I like that.",
        "I really love having them around.",
        "I picked up the parcel",
        "I love your idea",
        "I like",
        "That is what I love",
        "a job I enjoy every day",
        "I would like to find the manual",
        "I'll take a look",
        "We went to the beach",
        "I never knew that",
        "I always wanted a horse",
        "the alike prefer tea",
        "",
        "   \n\t ",
        "?",
    ],
)
def test_other_sentences_are_not_extracted(text: str) -> None:
    assert extract(text) == []


def test_quotations_and_code_are_skipped() -> None:
    text = "> I prefer coffee\nI prefer tea.\n```\nI prefer milk\n```\nwe decided to wait, `I love x`"
    assert [statement.text for statement in extract(text)] == ["I prefer tea.", "we decided to wait,"]


def test_statements_come_in_the_order_of_the_text() -> None:
    assert kinds("We decided to wait.\nI prefer tea.\nI usually walk.") == ["decision", "preference", "habit"]


def test_a_repeated_sentence_is_extracted_once() -> None:
    assert extract("I prefer tea.\ni PREFER   tea.\nI prefer tea.") == [Statement("preference", "I prefer tea.")]


def test_what_is_pasted_is_not_searched() -> None:
    early, late = "We decided to go north. ", "We decided to go south."
    assert [s.text for s in extract(f"{early}\n{'filler words. ' * 100}{late}")] == [early.strip()]
    line = early + "These are many filler words that tell nothing. " * 6 + late
    assert extract(line) == [Statement("decision", line, waits=True)]
    assert extract("```\n" + "I prefer tea.\n" * 6_000 + "```\nI prefer milk.") == [
        Statement("preference", "I prefer milk.")
    ]


def test_a_long_statement_is_whole_and_waits() -> None:
    line = "I prefer " + "very " * 150 + "long walks"
    assert extract(line) == [Statement("preference", line, waits=True)]


@given(st.text(st.sampled_from("Ii 'we\u2019m.?!>`\"\nlovedcidprt,"), max_size=200) | st.text(max_size=200))
def test_every_statement_is_part_of_the_text_and_not_a_question(text: str) -> None:
    said = " ".join(text.split())
    for statement in extract(text):
        assert statement.text
        assert not statement.text.endswith("?")
        # Quotations and code are left out, so that a statement may join several pieces of the text.
        assert all(word in said for word in statement.text.split())


@pytest.mark.parametrize("kind", sorted(patterns._PATTERNS))
def test_no_sentence_that_a_pattern_finds_is_passed_over_for_the_words_in_it(kind: str) -> None:
    shortest = [" ".join(text.split(" ")) for text in matches(_parser.parse(patterns._PATTERNS[kind].pattern))]
    assert len(shortest) > 9
    assert [text for text in shortest if not patterns._may_match(kind, f"{text} ")] == []


def matches(parsed: Any) -> list[str]:
    """Short texts in the shape of a parsed pattern, in which each of its alternatives comes up. What is optional is
    left out, and so are conditions on what is beside a match."""
    found = [""]
    for operator, value in parsed:
        if operator is _parser.BRANCH:
            options = [text for branch in value[1] for text in matches(branch)]
        elif operator is _parser.SUBPATTERN:
            options = matches(value[3])
        elif operator in (_parser.MAX_REPEAT, _parser.MIN_REPEAT):
            options = matches(value[2]) if value[0] else [""]
        elif operator is _parser.LITERAL:
            options = [chr(value)]
        elif operator is _parser.IN:
            options = [_one_of(value)]
        else:
            assert operator in (_parser.AT, _parser.ASSERT_NOT), operator
            continue
        longer = max(len(found), len(options))
        found = [found[n % len(found)] + options[n % len(options)] for n in range(longer)]
    return found


def _one_of(allowed: Any) -> str:
    """A character of a class."""
    if allowed[0][0] is _parser.NEGATE:
        return "~"
    operator, value = allowed[0]
    if operator is _parser.CATEGORY:
        return " " if value is _parser.CATEGORY_SPACE else "0"
    return chr(value[0] if operator is _parser.RANGE else value)


@pytest.mark.parametrize("said", ["I prefer coffee over tea.", "We decided to ship on 12 June."])
@pytest.mark.parametrize(
    "whole",
    [
        "Fwd. {}",
        "mallory wants me to post this. {}",
        "If mallory had her way she would say what follows here. {}",
        "Entwurf. {}",
        "Joke! {}",
        "{} Just kidding.",
        "{} But only if the load test of the new cluster passes and the board agrees.",
        "{} Or did we?",
        "{} That is what my wife says.",
        "{} Forget that, wrong room.",
        "Fwd. Old version. {} Not true.",
    ],
)
def test_a_line_is_learnt_whole(whole: str, said: str) -> None:
    assert [(each.text, each.waits) for each in extract(whole.format(said))] == [(whole.format(said), False)]


@pytest.mark.parametrize(
    "line",
    [
        "Entscheidung: wir liefern am 12. Juni",
        "Decision: Mallory Inc. gets no access",
        "Decisi\u00f3n: el Sr. Garc\u00eda no recibe la llave",
        "Decision: the U.S. office closes in May",
        "Decision: we open in St. Gallen, not Bern",
    ],
)
def test_no_line_is_cut_at_a_dot_within_it(line: str) -> None:
    assert extract(line) == [Statement("decision", line)]


def test_a_long_line_waits_for_its_author() -> None:
    line = f"I prefer coffee over tea. {'The harbour crane is being repaired by the people of Petersen. ' * 5}".strip()
    assert extract(line) == [Statement("preference", line, waits=True)]


def test_statements_side_by_side_are_one_which_is_a_decision_where_one_of_them_is() -> None:
    line = "I prefer coffee. We decided to ship on 12 June."
    assert extract(line) == [Statement("decision", line)]
