"""People of one name are told apart in a prompt by a number that nobody's own name can have."""

import uuid
from dataclasses import replace

import pytest

from composer.model import Item, Message, Visibility
from composer.ports.clock import EARLIEST
from composer.prompt.lines import message_line, numbers_of_namesakes, recall_line, structured_item

ONE, TWO, THREE = (uuid.UUID(int=n) for n in (1, 2, 3))


def test_only_people_of_one_name_have_numbers() -> None:
    assert numbers_of_namesakes([("Alex", ONE), ("Alex", ONE), ("Bo", TWO)]) == {}
    assert numbers_of_namesakes([("Alex", TWO), ("Bo", THREE), ("alex", ONE)]) == {ONE: " [1]", TWO: " [2]"}


@pytest.mark.parametrize("name", ["\u0410lex", "\uff21lex", "Alex.", "\u00c1lex", "A\u200blex", "ALEX"])
def test_names_that_look_the_same_have_numbers_too(name: str) -> None:
    assert numbers_of_namesakes([("Alex", ONE), (name, TWO)]) == {ONE: " [1]", TWO: " [2]"}


def test_authors_of_facts_and_decisions_have_the_number() -> None:
    item = Item("structured", "fact", "1", "", EARLIEST, "room:1", Visibility.PUBLIC, ONE, author="Alex")
    fact = replace(item, text='- pay = "; Alex, " (about Alex; Alex, 2026-05-04; conflicts with another value)')
    decision = replace(item, kind="landmark", text="- 2026-05-04 Alex (proposed): Alex pays")
    assert structured_item(fact, {ONE: " [2]"}).text == (
        '- pay = "; Alex, " (about Alex; Alex [2], 2026-05-04; conflicts with another value)'
    )
    assert structured_item(decision, {ONE: " [2]"}).text == "- 2026-05-04 Alex [2] (proposed): Alex pays"
    assert structured_item(decision, {TWO: " [2]"}) is decision


@pytest.mark.parametrize("name", ["Alex [2]", "Alex(2)", "Alex \uff3b2\uff3d", "[Alex] 2", "Alex : 2"])
def test_nobody_has_a_name_with_such_a_number(name: str) -> None:
    item = Item("semantic", "episode", "1", "hello", EARLIEST, "room:1", Visibility.PUBLIC, ONE, author=name)
    assert " [2]" not in recall_line(item, [])
    assert " Alex" in recall_line(item, [])
    assert recall_line(replace(item, author="Alex"), [], "", None, {ONE: " [2]"}).endswith(" Alex [2]: hello")


def test_a_line_of_the_conversation_has_the_number_too() -> None:
    message = Message(
        id=uuid.UUID(int=9),
        external_id="9",
        seq=1,
        at=EARLIEST,
        user_id=TWO,
        agent_id=None,
        author="Alex",
        text="hi",
        namespace="room:1",
        visibility=Visibility.PUBLIC,
    )
    assert message_line(message, (), {TWO: " [2]"}).startswith("Alex [2] (")
