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


@pytest.mark.parametrize(
    ("question", "names", "named"),
    [
        ("what was said in #ops?", {"Ops", "ops"}, {"Ops", "ops"}),  # two rooms, on two platforms
        ("what did we say in this room?", {"this"}, set()),
        ("what did the room say?", {"the", "say"}, set()),
        ("is there room for lunch?", {"there", "for"}, set()),
        ("which channel is it?", {"which", "is", "it"}, set()),
        ("what was said in May room?", {"may"}, set()),
        ("what was said in #this and in #may?", {"this", "may"}, {"this", "may"}),  # a mark says it plainly
        ("see https://example.org/#ops and issue c#ops", {"ops"}, set()),
        ("##ops", {"ops"}, set()),
        ("what of “#ops”, «#dev» and #qa\u2019s plan?", {"ops", "dev", "qa"}, {"ops", "dev", "qa"}),
        ("#ops… and #研发。", {"ops", "研发"}, {"ops", "研发"}),
        ("#STRASSE and the CAFÉ room", {"straße", "café"}, {"straße", "café"}),
        ("#ops/secret #ops-team #ops_team", {"ops"}, set()),
        ("<#C123|ops> and <#ops>", {"ops"}, {"ops"}),
        ("the general room and the random channel", {"general", "random"}, {"general", "random"}),
        ("#" * 3_000 + "ops", {"ops"}, set()),
        ("room " * 400, {"room"}, {"room"}),
    ],
)
def test_words_that_stand_beside_a_room_name_none(question: str, names: set[str], named: set[str]) -> None:
    assert rooms_named(question, names)[0] == named
