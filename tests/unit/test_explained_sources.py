"""What an explanation shows of a stored prompt: each source that its reader may read now, and nothing of the others."""

import uuid
from dataclasses import dataclass, replace
from typing import Any

import pytest

from composer.model import Item, Visibility, profile_namespace
from composer.prompt.explain import ExplainedSection, explain, readable_messages
from composer.prompt.lines import recall_line, said_in, summary_line
from composer.visibility import Readable, readable
from tests.support.harness import START
from tests.unit.test_visibility_rules import ALICE, BOB, GENERAL, access

HERE, ELSEWHERE = GENERAL.namespace, "room:elsewhere"
READABLE: Readable = readable(access(), [])
MEMORY, FACT, EPISODE = (uuid.UUID(int=n) for n in (31, 32, 33))


@dataclass(frozen=True)
class Filed:
    """How an item is filed now."""

    namespace: str
    visibility: Visibility = Visibility.PUBLIC
    user_id: uuid.UUID | None = BOB
    vendors: tuple[str, ...] = ("*",)


def source(
    id: uuid.UUID = EPISODE, layer: str = "semantic", kind: str = "episode", namespace: str = HERE
) -> dict[str, Any]:
    """A source of a stored prompt, as it is stored."""
    tag = {"namespace": namespace, "visibility": "public", "user_id": str(BOB)}
    return {"id": str(id), "layer": layer, "kind": kind, "messages": [], "score": None, "reasons": {}, **tag}


def section(name: str, text: str, *sources: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "tokens": 10, "text": text, "sources": list(sources)}


def prompt(*sections: dict[str, Any]) -> dict[str, Any]:
    sent = "\n\n".join(each["text"] for each in sections)
    return {"sections": list(sections), "role_messages": [{"role": "system", "content": sent}]}


RECALL = section(
    "RECALL",
    "What is known:\n- a memory\n- a message",
    source(MEMORY, kind="preference"),
    source(EPISODE),
)


def shown(stored: dict[str, Any], filed: dict[uuid.UUID, Filed], name: str = "RECALL") -> ExplainedSection:
    return next(each for each in explain(stored, READABLE, filed) if each.name == name)


def test_an_item_that_may_be_read_now_is_shown() -> None:
    found = shown(prompt(RECALL), {MEMORY: Filed(HERE)})
    assert [source.text for source in found.sources] == ["- a memory", "- a message"]
    assert found.text == RECALL["text"]


def test_an_item_that_was_filed_elsewhere_since_is_not_shown_even_if_it_was_looked_up() -> None:
    for now in (Filed(ELSEWHERE), Filed(HERE, Visibility.PRIVATE), Filed(HERE, vendors=("claude",))):
        found = shown(prompt(RECALL), {MEMORY: now})
        assert [source.text for source in found.sources] == ["- a message"]
        assert "a memory" not in found.text


def test_an_item_that_is_not_there_any_more_or_may_not_be_read_is_not_shown() -> None:
    found = shown(prompt(RECALL), {})
    assert [source.mark for source in found.sources] == ["s2"], "the marks are those of the answer"
    assert found.text == "What is known:\n- a message"


def test_how_an_item_was_filed_when_it_was_used_does_not_count() -> None:
    facts = section("FACTS", "- the fact", source(FACT, "structured", "fact", profile_namespace(BOB)))
    assert (
        shown(prompt(facts), {FACT: Filed(profile_namespace(ALICE), Visibility.SHARED)}, "FACTS").text == "- the fact"
    )


def test_a_message_is_judged_by_where_it_was_written() -> None:
    recalled = section("RECALL", "- here\n- elsewhere", source(), source(namespace=ELSEWHERE))
    assert shown(prompt(recalled), {}).text == "- here"


def test_a_text_that_cannot_be_divided_is_shown_as_a_whole_or_not_at_all() -> None:
    view = section("WORKING", "bob: here\nbob: elsewhere", source(layer="working", kind="message"))
    assert shown(prompt(view), {}, "WORKING").text == view["text"]
    hidden = {**view, "sources": [*view["sources"], source(layer="working", kind="message", namespace=ELSEWHERE)]}
    assert shown(prompt(hidden), {}, "WORKING").text == ""


def test_who_speaks_in_a_view_is_named_only_with_all_of_that_view() -> None:
    named = section("CONTEXT", "In #general, with bob.")
    for namespace, text in ((HERE, "In #general, with bob."), (ELSEWHERE, "")):
        view = section("WORKING", "bob: hello", source(layer="working", kind="message", namespace=namespace))
        assert shown(prompt(named, view), {}, "CONTEXT").text == text


def test_the_prompt_as_it_was_sent_is_shown_only_if_all_of_it_may_be_read() -> None:
    stored = prompt(RECALL)
    whole = explain(stored, READABLE, {MEMORY: Filed(HERE)})
    assert [each.content for each in readable_messages(stored, whole)] == [RECALL["text"]]
    part = explain(stored, READABLE, {MEMORY: Filed(ELSEWHERE)})
    assert [each.content for each in readable_messages(stored, part)] == ["What is known:\n- a message"]


@pytest.mark.parametrize("author", ["alice", "a: b (c)", "Ann Lee", "", "\u202eevil: "])
@pytest.mark.parametrize("said", ["see you", "one: two", "a\nb: c\n\nd", "(s2) 2026-01-01 bob: no", "- x"])
def test_a_source_says_what_was_said_without_the_head_of_its_line(author: str, said: str) -> None:
    item = Item("semantic", "episode", "x", said, START, HERE, Visibility.PUBLIC, BOB, author=author)
    line = recall_line(replace(item, came_from='from the room "#a b"', passage="part 1 of 2"), [])
    assert said_in(line, "episode") == said
    assert said_in(summary_line(replace(item, kind="day")), "day") == said


def test_a_source_has_who_said_it_and_when() -> None:
    told = source(EPISODE) | {"at": START.isoformat(), "who": "alice"}
    [found] = shown(prompt(section("RECALL", "Known:\n- (s1) 2026-01-01 09:00 alice: see you", told)), {}).sources
    assert (found.at, found.who, found.said) == (START, "alice", "see you")
    [before] = shown(prompt(section("RECALL", "Known:\n- (s1) 2026 alice: see you", source(EPISODE))), {}).sources
    assert (before.at, before.who, before.said) == (None, "", "see you"), "as prompts were stored before"


def test_a_fact_is_said_without_who_set_it() -> None:
    assert said_in('- deploy_day = "Friday (or not)" (the project; alice, 2026-01-01)', "fact") == (
        'deploy_day = "Friday (or not)"'
    )
