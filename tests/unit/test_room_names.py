"""Which rooms a question names, among those that may be named."""

import pytest

from composer.text.room_names import rooms_named


@pytest.mark.parametrize(
    ("question", "named", "rest"),
    [
        ("what did we say in #ops yesterday?", {"ops"}, "what did we say yesterday?"),
        ("what was said yesterday in the ops room?", {"ops"}, "what was said yesterday ?"),
        ("what was said in the channel OPS.", {"ops"}, "what was said"),
        ('and in "#dev-ops"?', {"dev-ops"}, "and ?"),
        ("#ops and #dev-ops: what changed?", {"ops", "dev-ops"}, "and : what changed?"),
        ("what did ops say?", set(), "what did ops say?"),  # a bare word
        ("what was said in #opsx, and in the lunch room?", set(), "what was said in #opsx, and in the lunch room?"),
        ("is there room for ops?", set(), "is there room for ops?"),
    ],
)
def test_a_room_is_named_with_its_mark_or_as_a_room(question: str, named: set[str], rest: str) -> None:
    found, left = rooms_named(question, {"ops", "dev-ops"})
    assert found == named
    assert " ".join(left.split()) == rest


def test_without_names_a_question_stays_as_it_is() -> None:
    assert rooms_named("in #ops  and the ops room?", ()) == (frozenset(), "in #ops  and the ops room?")
