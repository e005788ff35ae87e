"""People of one name are told apart in a prompt by a number that nobody's own name can have."""

import itertools
import re
import uuid
from dataclasses import replace

import pytest

from composer.model import Item, Message, Visibility
from composer.ports.clock import EARLIEST
from composer.prompt.lines import author_label, message_line, numbers_of_namesakes, recall_line, structured_item
from composer.text.names import person_name, speaker_label, tool_name

ONE, TWO, THREE = (uuid.UUID(int=n) for n in (1, 2, 3))
OWN = {ONE: " [5470]", TWO: " [5083]", THREE: " [8075]"}  # of these ids, for ever: they stand in stored summaries


def test_only_people_of_one_name_have_numbers() -> None:
    assert numbers_of_namesakes([("Alex", ONE), ("Alex", ONE), ("Bo", TWO)]) == {}
    assert set(numbers_of_namesakes([("Alex", TWO), ("Bo", THREE), ("alex", ONE)])) == {ONE, TWO}


@pytest.mark.parametrize("name", ["\u0410lex", "\uff21lex", "Alex.", "\u00c1lex", "A\u200blex", "ALEX"])
def test_names_that_look_the_same_have_numbers_too(name: str) -> None:
    assert set(numbers_of_namesakes([("Alex", ONE), (name, TWO)])) == {ONE, TWO}


@pytest.mark.parametrize("name", ["Alex, Bo", "Bo and Alex", "alex & friends", "Alex Kim", "\u0410lex/Bo", "(ALEX) Bo"])
def test_who_has_anothers_whole_name_within_theirs_has_a_number_and_so_has_the_other(name: str) -> None:
    assert set(numbers_of_namesakes([("Alex", ONE), (name, TWO)])) == {ONE, TWO}
    assert numbers_of_namesakes([("Alex", ONE), (name, ONE)]) == {}, "who was renamed is one person"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u0418\u0432\u0430\u043d", "\u0418\u0412\u0410\u041d"),  # Ivan in Cyrillic, and in capitals
        ("\u0395\u03bb\u03ad\u03bd\u03b7", "\u0395\u039b\u0395\u039d\u0397"),  # Eleni in Greek
        ("\u0645\u062d\u0645\u062f", "\u0645\u0640\u062d\u0645\u062f"),  # with a tatweel, which is no letter
        ("Stra\u00dfe", "STRASSE"),
        ("Bob Smith", "Smith Bob"),
        ("Bob Smith", "Smith, Bob"),
        ("Bob Smith (app claude)", "bob smith"),
    ],
)
def test_case_in_any_script_order_of_words_and_longer_letters_do_not_count(one: str, other: str) -> None:
    assert set(numbers_of_namesakes([(one, ONE), (other, TWO)])) == {ONE, TWO}


def test_a_tool_is_called_an_app_of_its_person_and_no_person_is_called_so() -> None:
    item = Item("semantic", "memory", "m", "We pay.", EARLIEST, "n", Visibility.PUBLIC, ONE, author="Alex (app claude)")
    assert f"Alex (app claude){OWN[ONE]} (memory): We pay." in recall_line(item, [], namesakes=OWN)
    for name in ("Alex (app claude)", "Alex\u2009(app claude)", "Alex (app claude) (app claude)"):
        assert speaker_label(person_name(name, ())) == re.sub(r"[\u2009 ()]+", " ", name).strip()
    assert speaker_label("Alex" + " (app x)" * 2_000).startswith("Alex app x app x"), "of one tool, and it ends"
    assert speaker_label(tool_name(person_name("Alex (app x)", ()), "claude")) == "Alex app x (app claude)"


@pytest.mark.parametrize("name", ["Alexander", "Alexa Bo", "Bo", "\u2713"])
def test_other_names_have_none(name: str) -> None:
    assert numbers_of_namesakes([("Alex", ONE), (name, TWO)]) == {}


def test_the_number_is_the_persons_own_whoever_else_is_called_so() -> None:
    assert numbers_of_namesakes([("Alex", each) for each in (ONE, TWO, THREE)]) == OWN
    for pair in itertools.permutations(OWN, 2):
        assert numbers_of_namesakes([("Alex", each) for each in pair]) == {each: OWN[each] for each in pair}


def test_two_with_the_same_number_have_more_of_its_digits() -> None:
    first, again, mark = dict[str, uuid.UUID](), ONE, ""
    for again in (uuid.UUID(int=n) for n in range(10, 2_000)):
        mark = numbers_of_namesakes([("Alex", again), ("Alex", ONE)])[again]
        if mark in first:
            break
        first[mark] = again
    one = first[mark]
    found = numbers_of_namesakes([("Alex", one), ("Alex", again), ("Alex", THREE)])
    assert found[THREE] == OWN[THREE], "others keep theirs"
    assert found[one] != found[again]
    for each in (one, again):
        assert re.fullmatch(r" \[\d{5,7}\]", found[each])
        assert found[each].startswith(mark[:-1]), "it goes on as it stands elsewhere"
    assert numbers_of_namesakes([("Alex", again), ("Alex", one)]) == {each: found[each] for each in (one, again)}


def test_whose_name_has_a_number_in_a_text_beside_has_their_own_here_too() -> None:
    beside = f"Alex{OWN[ONE]}: I pay.\nAlex{OWN[TWO]}: I do not."
    assert numbers_of_namesakes([("Alex", TWO), ("Bo", ONE)], beside) == {TWO: OWN[TWO]}
    assert numbers_of_namesakes([("Alex", THREE)], beside) == {THREE: OWN[THREE]}, "it is neither of them"
    assert numbers_of_namesakes([("Alex", THREE)], "Alex: I pay.") == {}


def test_an_agent_is_called_as_its_admins_call_it() -> None:
    message = Message(
        id=uuid.UUID(int=9),
        external_id="9",
        seq=1,
        at=EARLIEST,
        user_id=None,
        agent_id=TWO,
        author="Team",
        text="hi",
        namespace="room:1",
        visibility=Visibility.PUBLIC,
    )
    assert author_label(message, {}) == "Team"
    assert author_label(replace(message, agent_id=None, user_id=ONE), {}) == "a person named Team"


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
