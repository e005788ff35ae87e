"""Memory rules: what is worth storing, what repeats or supersedes what, and when it expires."""

import itertools
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.memory.rules import (
    LIFETIME_DAYS,
    MAX_LIFETIMES,
    expiry_of,
    is_worth_storing,
    judge,
    paraphrase_merges,
)
from composer.memory.wording import PARAPHRASE_LIKENESS, contradicts, paraphrases, repeats
from composer.repositories.memories import StoredMemory

MONDAY = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)


def stored(number: int, text: str, kind: str = "preference", days: int = 0) -> StoredMemory:
    return StoredMemory(uuid.UUID(int=number), kind, text, MONDAY + timedelta(days=days))


@pytest.mark.parametrize(
    "text",
    [
        *("hi", "Hello there!", "thanks a lot", "good morning all", "ok great", "lol", "", "   ", "...", "?!"),
        *("alice asked when the launch is", "The user wants to know the deadline", "bob greeted everyone"),
        *("we decided what?", "I always do", "I prefer it that way", "I prefer this right now lol", "=== 12 % 34 ==="),
        *("I'll be back in a second", "give me a second please", "we decided to wait a second"),
    ],
)
def test_statements_without_content_are_not_stored(text: str) -> None:
    assert not is_worth_storing("preference", text)


@pytest.mark.parametrize(
    "text",
    [
        *("I prefer tea", "We decided to ship on Friday", "alice lives in Lisbon", "my salary is 91k", "Ich mag Käse"),
        *("We decided to hire a second designer.", "I have a second passport"),
    ],
)
def test_statements_with_content_are_stored(text: str) -> None:
    assert is_worth_storing("fact", text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I prefer tea", "I prefer tea."),
        ("I prefer tea over the coffee", "i PREFER  tea over coffee"),
        ("We decided to deploy the billing service on Fridays", "we decided to deploy the billing services on friday"),
    ],
)
def test_a_statement_in_nearly_the_same_words_is_a_repetition(one: str, other: str) -> None:
    assert repeats(one, other)
    assert repeats(other, one)


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("I prefer tea", "I don't prefer tea any more", "preference"),
        ("I love coriander", "I hate coriander", "preference"),
        ("our launch is on Friday", "our launch is on Monday", "fact"),
        ("my favourite editor is vim", "my favourite editor is emacs", "preference"),
        ("We decided to deploy on Fridays", "We decided to deploy on Mondays", "decision"),
        ("We agreed on a budget of 400 euros", "We agreed on a budget of 650 euros", "decision"),
        ("We decided to use Postgres for billing", "We decided to use MySQL for billing instead", "decision"),
        ("I usually drink coffee", "I no longer drink coffee", "habit"),
    ],
)
def test_statements_that_cannot_both_be_true_are_contradictions_and_no_repetitions(
    one: str, other: str, kind: str
) -> None:
    assert contradicts(other, kind, one, kind)
    assert contradicts(one, kind, other, kind)
    assert not repeats(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I prefer tea", "I prefer short meetings"),
        ("I love sailing", "I love Berlin"),
        ("We decided to ship apollo on Friday", "We decided to paint the office on Monday"),
        ("my dog is called Rex", "my boss is called Anna"),
        ("I don't like tea any more", "I love Berlin"),
        ("I always rebase", "I never commit on Fridays"),
    ],
)
def test_statements_about_different_things_are_neither_repetitions_nor_contradictions(one: str, other: str) -> None:
    assert not contradicts(one, "preference", other, "preference")
    assert not repeats(one, other)


def test_the_later_statement_supersedes_whichever_is_stored_first() -> None:
    old, new = stored(1, "our launch is on Friday", "fact"), stored(2, "our launch is on Monday", "fact", days=1)
    assert judge("fact", new.text, new.at, [old]).replaces == (old,)
    late = judge("fact", old.text, old.at, [new])
    assert (late.replaces, late.replaced_by) == ((), new)


def test_a_statement_expires_at_its_deadline_or_after_the_lifetime_of_its_kind() -> None:
    assert expiry_of("fact", "the code is valid until 2026-06-01", MONDAY) == datetime(2026, 6, 2, tzinfo=UTC)
    assert expiry_of("action item", "I'll send it by tomorrow", MONDAY) == datetime(2026, 5, 6, tzinfo=UTC)
    friday = expiry_of("action item", "bob will send it by Friday", MONDAY)
    assert friday is not None
    assert friday > datetime(2026, 5, 8, tzinfo=UTC)
    assert expiry_of("preference", "I prefer tea until Friday", MONDAY) is None
    assert expiry_of("fact", "my name is Bob", MONDAY) is None
    lasting = [expiry_of("habit", "I usually walk", MONDAY, stated) for stated in (1, 2, 99)]
    days = [timedelta(days=LIFETIME_DAYS["habit"] * times) for times in (1, 2, MAX_LIFETIMES)]
    assert lasting == [MONDAY + length for length in days]


VOCABULARY = (
    *("I", "we", "prefer", "hate", "love", "tea", "coffee", "not", "never", "decided", "on", "Friday", "Monday", "12"),
    "my",
    *("launch", "is", "in", "by", "until", "31", "february", "eow", "now", "instead", "any", "more"),
)
WORDS = st.sampled_from(VOCABULARY)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=8).map(" ".join), min_size=2, max_size=4))
def test_a_verdict_does_not_depend_on_the_order_of_the_stored_memories(texts: list[str]) -> None:
    others = [stored(number, text, days=number) for number, text in enumerate(texts[1:], 1)]
    found = {judge("preference", texts[0], MONDAY, list(order)) for order in itertools.permutations(others)}
    assert len(found) == 1
    [only] = found
    assert only.replaced_by is None or only.replaced_by.at > MONDAY
    for one, other in itertools.combinations(texts, 2):
        assert repeats(one, other) == repeats(other, one)
        assert contradicts(one, "fact", other, "fact") == contradicts(other, "fact", one, "fact")
    over = expiry_of("action item", texts[0], MONDAY)
    assert over is not None
    assert over > MONDAY


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I love hiking in the mountains", "I really enjoy going hiking in the mountains"),
        ("I live in Berlin", "I'm living in Berlin"),
        ("We decided to move the standup to 10am", "We agreed that the standup moves to 10am"),
        ("I prefer green tea over coffee", "I'd rather have green tea over coffee"),
        ("My favorite editor is Vim", "Vim is my favorite editor"),
    ],
)
def test_a_statement_in_other_words_is_a_paraphrase(one: str, other: str) -> None:
    assert paraphrases(one, other, 0.93)
    assert paraphrases(other, one, 0.93)
    assert not paraphrases(one, other, PARAPHRASE_LIKENESS - 0.01), "vectors below the threshold make no paraphrase"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We will use the old logo", "We will use the new logo"),
        ("I love my dog", "I love my cat"),
        ("I always back up the database before a migration", "I always back up the database after a migration"),
        ("I prefer tabs over spaces", "I prefer spaces over tabs"),
        ("I'd rather work alone", "I hate working alone"),
        ("I love working alone", "I don't love working alone"),
        ("We ship the report on Friday", "We ship the report on Monday"),
        ("The coffee there is good", "The coffee there is bad"),
        ("I love Berlin", "I love the museums of Berlin in winter"),
    ],
)
def test_similar_vectors_alone_do_not_make_a_paraphrase(one: str, other: str) -> None:
    assert not paraphrases(one, other, 0.99)
    assert not paraphrases(other, one, 0.99)
    assert not repeats(one, other)


def test_a_reversed_preference_supersedes_the_older_one() -> None:
    assert contradicts("I prefer coffee over tea", "preference", "I prefer tea over coffee", "preference")
    assert not contradicts("I prefer tea over coffee", "preference", "I like tea more than coffee", "preference")


def test_a_merge_keeps_the_earlier_statement() -> None:
    first, second, third = (
        stored(n, text, days=n) for n, text in enumerate(("I love Rome", "I really love Rome", "I enjoy Rome"))
    )
    assert paraphrase_merges(second, [(first, 0.95), (third, 0.95)]) == [(second, first)]
    assert paraphrase_merges(first, [(third, 0.95), (second, 0.95)]) == [(second, first), (third, first)]
    assert paraphrase_merges(first, [(second, 0.5)]) == []


def test_a_superseded_memory_is_not_merged_with_a_later_statement() -> None:
    first, second = stored(0, "I love Rome"), stored(1, "I really love Rome", days=2)
    assert paraphrase_merges(second, [(replace(first, until=MONDAY + timedelta(days=1)), 0.95)]) == []
    assert paraphrase_merges(replace(first, until=MONDAY + timedelta(days=1)), [(second, 0.95)]) == []


def test_a_statement_is_compared_with_every_wording_of_a_memory() -> None:
    merged = replace(stored(0, "I love Rome"), also=("I enjoy the eternal city",))
    assert judge("preference", "I enjoy the eternal city!", MONDAY + timedelta(days=1), [merged]).same == merged
    denied = judge("preference", "I don't enjoy the eternal city", MONDAY + timedelta(days=1), [merged])
    assert denied.replaces == (merged,)
