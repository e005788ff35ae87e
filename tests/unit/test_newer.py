"""What came after a statement and is like it stands beside it, and is marked; nothing else does."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from composer.layers.newer import MOST_IN_ALL, with_newer
from composer.model import Item, Visibility
from composer.prompt.lines import recall_line
from composer.repositories.recall import Candidate

START = datetime(2026, 5, 4, tzinfo=UTC)
PEOPLE = {name: uuid.uuid5(uuid.NAMESPACE_DNS, name) for name in ("alice", "bob", "carol")}
HAMBURG = ("old", "alice", "I live in Hamburg")


def item(id: str, author: str, text: str, day: int = 0, *, kind: str = "episode", by_agent: bool = False) -> Item:
    at, user = START + timedelta(days=day), PEOPLE.get(author)
    message = (id.removeprefix("memory-"),)
    return Item(
        *("semantic", kind, id, text, at, "room:1", Visibility.PUBLIC, user),
        author=author,
        messages=message,
        by_agent=by_agent,
    )


def later(one: Item, likeness: float, *, only: bool = True) -> Candidate:
    return Candidate(one, 0.2, 0.0, newer_than="old", likeness=likeness, only_newer=only)


def shown(
    items: list[Item], candidates: list[Candidate], question: str = "where does she live?", seen: set[str] | None = None
) -> list[tuple[str, str]]:
    everything = [Candidate(one, 0.5, 1.0) for one in items if one.id not in {c.item.id for c in candidates}]
    known = {("room:1", id) for id in seen or ()}
    return [(one.id, one.newer_than) for one in with_newer(items, [*everything, *candidates], question, known)]


def test_what_is_newer_comes_last_and_says_than_what() -> None:
    old, rest = item(*HAMBURG), item("rest", "bob", "the harbour is nice")
    new = later(item("new", "alice", "we moved to Berlin", 9), 0.5)
    assert shown([old, rest], [new]) == [("old", ""), ("rest", ""), ("new", "old")]


def test_what_stands_out_comes_before_what_it_replaces() -> None:
    old, rest = item(*HAMBURG), item("rest", "bob", "the harbour is nice")
    new = later(item("new", "alice", "we moved to Berlin", 9), 0.8)
    others = [later(item(f"other{n}", "alice", f"I read book {n}", 9), 0.3) for n in range(3)]
    assert shown([rest, old], [new, *others]) == [("rest", ""), ("new", "old"), ("old", "")]
    assert shown([rest, old, new.item], [new, *others]) == [("rest", ""), ("new", "old"), ("old", "")]
    for then in ("Where did she live in May?", "where was alice born?", "what hadn\u2019t she seen?"):
        assert shown([rest, old], [new, *others], then) == [("rest", ""), ("old", ""), ("new", "old")]
    assert shown([rest, old], [new]) == [("rest", ""), ("old", ""), ("new", "old")], (
        "there is nothing to compare it with"
    )
    alike = [later(item(f"other{n}", "alice", f"I like city {n}", 9), 0.7) for n in range(3)]
    assert [id for id, _ in shown([rest, old], [new, *alike])][:2] == ["rest", "old"], "one of many replaces nothing"
    told = later(item("new", "alice", "we moved to Berlin, and here is all of it: " + "so it went. " * 30, 9), 0.8)
    assert shown([rest, old], [told, *others])[:2] == [("rest", ""), ("old", "")], "a long text replaces nothing"


def test_what_goes_on_within_minutes_replaces_nothing_and_what_corrects_does() -> None:
    old, rest = item("old", "alice", "Rack 4 is in Turin"), item("rest", "bob", "the racks are nice")
    others = [later(item(f"other{n}", "alice", f"I read book {n}", 9), 0.3) for n in range(3)]
    less = later(item("less", "carol", "the rack is in the room", 9), 0.7)

    def before_it(matched: int, minutes: int) -> set[str]:
        follows = replace(item("next", "alice", "Rack is in Perth"), at=old.at + timedelta(minutes=minutes))
        known = Candidate(old, 0.5, 1.0, matched=0b11)
        so = replace(later(follows, 0.9), matched=matched)
        found = with_newer([rest, old, follows], [known, so, less, *others], "where is rack 4?", set())
        assert ("next", "old") in [(one.id, one.newer_than) for one in found], "it is marked in any case"
        ids = [one.id for one in found]
        return set(ids[1 : ids.index("old")])

    assert before_it(0b01, 14) == set(), "nor does what is less like it"
    assert "next" in before_it(0b11, 14), "it has all that the statement has of the question"
    assert "next" in before_it(0b01, 15)


def test_a_german_question_what_is_not_about_then() -> None:
    old, rest = item("old", "alice", "Die Schulung kostet 450 Euro"), item("rest", "bob", "the training was nice")
    new = later(item("new", "bob", "Wir haben nachverhandelt, 380 Euro", 9), 0.8)
    others = [later(item(f"other{n}", "alice", f"Ich lese Buch {n}", 9), 0.3) for n in range(3)]
    for now in ("Was kostet die Schulung?", "Was nimmt Lena daf\u00fcr?"):
        assert shown([old, rest], [new, *others], now)[:2] == [("new", "old"), ("old", "")], now
    for then in ("What was the training?", "Where was Lena?", "Was Lena there?"):
        english = replace(old, text="The training costs 450") if then.startswith("Was") else old
        assert shown([english, rest], [new, *others], then)[0] == ("old", ""), then


def test_a_quarter_more_than_half_of_the_rest_stands_out() -> None:
    old = item(*HAMBURG)
    others = [later(item(f"other{n}", "alice", f"I read book {n}", 9), 0.3) for n in range(3)]
    near, far = (later(item("new", "alice", "we moved to Berlin", 9), likeness) for likeness in (0.56, 0.54))
    assert shown([old], [near, *others])[0] == ("new", "old")
    assert shown([old], [far, *others])[0] == ("old", "")


def test_what_names_the_old_value_replaces_it_sooner() -> None:
    old = item("old", "carol", "Our CI runs on Jenkins.")
    new = later(item("new", "bob", "Jenkins is switched off, builds are in Actions.", 9), 0.6)
    others = [later(item(f"other{n}", "bob", f"The build of branch {n} is green", 9), 0.4) for n in range(3)]
    asked = "what does our CI run on?"
    assert shown([old], [new, *others], asked) == [("new", "old"), ("old", "")]
    assert shown([old], [new, *others], "why does our CI run on Jenkins?") == [("old", ""), ("new", "old")]
    also = later(item("also", "bob", "Jenkins is a nice name", 9), 0.4)
    assert shown([old], [new, also, *others], asked)[0] == ("old", ""), "it is not the only one that names it"


def test_where_nothing_is_asked_what_is_newer_comes_last() -> None:
    old, new = item(*HAMBURG), later(item("new", "alice", "we moved to Berlin", 9), 0.8)
    others = [later(item(f"other{n}", "alice", f"I read book {n}", 9), 0.3) for n in range(3)]
    assert shown([old], [new, *others], "I long for the harbour where she lives.") == [("old", ""), ("new", "old")]


def test_the_latest_of_three_values_comes_first() -> None:
    first, second = item(*HAMBURG), item("second", "alice", "we moved to Berlin", 9)
    third = item("third", "alice", "we moved to Rome", 19)
    of_second = [Candidate(third, 0.2, 0.0, newer_than="second", likeness=0.9)]
    of_second += [Candidate(item("book", "alice", "I read a book", 20), 0.0, 0.0, newer_than="second", likeness=0.1)]
    found = [later(second, 0.9), later(item("film", "alice", "I saw a film", 20), 0.1), *of_second]
    assert shown([first, second], found) == [("third", "second"), ("second", "old"), ("old", "")]


def test_what_was_recalled_anyway_is_marked_where_it_stands() -> None:
    old, new = item(*HAMBURG), item("new", "alice", "we moved to Berlin", 9)
    assert shown([new, old], [later(new, 0.8, only=False)]) == [("new", "old"), ("old", "")]


def test_a_memory_and_its_message_are_one_statement() -> None:
    memory = item("memory-old", "alice", "alice lives in Hamburg", kind="fact")
    new = later(item("new", "alice", "we moved to Berlin", 9), 0.8)
    again = later(item("memory-new", "alice", "alice moved to Berlin", 9, kind="fact"), 0.7)
    found = with_newer([memory], [Candidate(item(*HAMBURG), 0.5, 1.0), new, again], "where does she live?", set())
    assert [one.id for one in found] == ["memory-old", "new"]


def test_of_somebody_who_is_named_only_their_own_word_counts_or_what_names_them() -> None:
    old = item(*HAMBURG)
    others = [
        later(item("bob", "bob", "I live in Bremen", 9), 0.9),
        later(item("carol", "carol", "alice lives in Berlin now", 9), 0.55),
        later(item("own", "alice", "we moved to Berlin", 9), 0.5),
    ]
    assert shown([old], others, "where does alice live?") == [("old", ""), ("own", "old"), ("carol", "old")]
    assert ("bob", "old") in shown([old], others, "who lives near the harbour?")


def test_questions_agents_summaries_and_what_is_shown_are_not_newer() -> None:
    old = item(*HAMBURG)
    none = [
        later(item("asked", "bob", "where does alice live?", 9), 1.2),
        later(item("agent", "nexus", "Alice lives in Hamburg (s1).", 9, by_agent=True), 1.5),
        later(item("told", "", "they spoke of Hamburg", 9, kind="summary"), 1.1),
        later(item("view", "alice", "we moved to Berlin", 9), 0.8),
        later(item("far", "bob", "lunch is at noon", 9), 0.1),
    ]
    assert shown([old], none, seen={"view"}) == [("old", "")]


def test_a_question_has_nothing_newer_and_additions_are_few() -> None:
    question = item("q", "bob", "who lives in Hamburg?")
    many = [later(item(f"n{n}", "carol", f"number {n} of it", n), 0.9) for n in range(1, 9)]
    assert shown([question], [replace(each, newer_than="q") for each in many]) == [("q", "")]
    assert len(shown([question, item(*HAMBURG)], many)) <= 2 + MOST_IN_ALL


def test_a_line_says_what_it_is_newer_or_older_than() -> None:
    old, new = item(*HAMBURG), replace(item("new", "alice", "we moved to Berlin", 9), newer_than="old")
    newer, older = recall_line(new, [old], "in #general"), recall_line(old, [item("rest", "bob", "hm"), new])
    assert newer == "- (s2) 2026-05-13 00:00 alice (in #general, newer than s1): we moved to Berlin"
    assert older == "- (s3) 2026-05-04 00:00 alice (older than s2): I live in Hamburg"
