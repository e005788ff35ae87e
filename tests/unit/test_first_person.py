"""What is embedded of a question that names participants."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.text.first_person import in_first_person


@pytest.mark.parametrize(
    ("text", "people", "embedded"),
    [
        ("When did Caroline's sister call?", ["Caroline"], "When did my sister call?"),
        ("When did caroline\u2019s sister call her?", ["Caroline"], "When did my sister call her?"),
        ("When did Ann paint Bob's boat?", ["Ann", "Bob"], "When did I paint my boat?"),
        ("what did bob b. say", ["Bob B."], "what did I. say"),
        ("What is Ann Lee's job, and does she like it?", ["Ann Lee"], "What is my job, and does she like it?"),
        ("What do Ann and Bob have in common?", ["Ann", "Bob"], "What do I and I have in common?"),
        ("Bobby and bob", ["bob"], "Bobby and I"),
    ],
)
def test_a_question_about_participants_is_embedded_as_they_would_say_it(
    text: str, people: list[str], embedded: str
) -> None:
    assert in_first_person(text, people) == embedded


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("Caroline?", ["Caroline"]),
        ("who is it?", []),
        ("will the launch slip?", ["Will"]),
        ("did she tell  him?", ["Caroline"]),
        ("Bobby\n_", ["bob"]),
    ],
)
def test_a_question_that_names_nobody_or_nothing_else_stays_as_it_is(text: str, people: list[str]) -> None:
    assert in_first_person(text, people) == text


def test_names_of_agents_are_left_out() -> None:
    assert in_first_person("Nexus, where is her desk?", ["Ann"], ["Nexus"]) == ", where is her desk?"
    assert in_first_person("Nexus, where is Ann's desk?", ["Ann", "Nexus"], ["Nexus"]) == ", where is my desk?"


@given(st.text(alphabet=" annboblee'.?_\n", max_size=60))
def test_no_name_of_a_participant_is_embedded_beside_other_words(text: str) -> None:
    embedded = in_first_person(text, ["Ann Lee"], ["bob"])
    assert embedded == text or {"ann", "lee", "bob"}.isdisjoint(embedded.replace("'", " ").replace(".", " ").split())


def test_a_genitive_without_a_mark_is_told_by_the_name_beside_it() -> None:
    assert in_first_person("Wo ist Lenas Büro?", {"Lena", "Lenas"}) == "Wo ist my Büro?"
    assert in_first_person("Where is James?", {"James"}) == "Where is I?"
