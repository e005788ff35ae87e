"""Ranking: a pure function of the candidates and the question, the same whatever order they come in."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.layers.ranking import MIN_COSINE, NAMED_SPEAKER_WEIGHT, TOGETHER_WEIGHT, rank, without_duplicates
from composer.model import Item, Visibility
from composer.repositories.recall import Candidate

NOW = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
STRATEGIES = ("hybrid", "semantic", "recent")


def found(
    number: int,
    text: str = "",
    *,
    meaning: float | None = 0.5,
    words: float = 1.0,
    age: float = 0,
    kind: str = "episode",
    author: str = "alice",
    messages: tuple[str, ...] | None = None,
    run: str = "room:here",
) -> Candidate:
    """A candidate; `age` in days."""
    said = (f"m{number}",) if messages is None else messages
    id = str(uuid.UUID(int=number))
    at = NOW - timedelta(days=age)
    item = Item(
        "semantic", kind, id, text or f"text {number}", at, run, Visibility.PUBLIC, author=author, messages=said
    )
    return Candidate(item, meaning, words)


def ranked_of(some: Sequence[Candidate], question: str, now: datetime, strategy: str = "hybrid") -> list[Item]:
    """As recall shows them."""
    return list(without_duplicates(rank(some, question, now, strategy)))


def order(candidates: list[Candidate], question: str = "what?", strategy: str = "hybrid") -> list[int]:
    return [uuid.UUID(item.id).int for item in ranked_of(candidates, question, NOW, strategy)]


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    numbers = draw(st.lists(st.integers(1, 40), unique=True, max_size=12))
    return [
        found(
            number,
            draw(st.sampled_from(["", "the same", "is it?", "another"])),
            meaning=draw(st.none() | st.floats(-1, 1)),
            words=draw(st.sampled_from([0.0, 0.0, 0.5, 3.25])),
            age=draw(st.sampled_from([0, 1, 30, 400])),
            kind=draw(st.sampled_from(["episode", "preference", "summary"])),
            author=draw(st.sampled_from(["alice", "bob"])),
            messages=draw(st.none() | st.just(()) | st.just(("m1",))),
            run=draw(st.sampled_from(["room:here", "room:there"])),
        )
        for number in numbers
    ]


@given(
    candidates(), st.randoms(use_true_random=False), st.sampled_from(STRATEGIES), st.sampled_from(["what?", "bob what"])
)
@pytest.mark.property
def test_the_order_depends_on_the_candidates_and_not_on_how_they_come(
    some: list[Candidate], random: Random, strategy: str, question: str
) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)
    assert ranked_of(shuffled, question, NOW, strategy) == ranked_of(some, question, NOW, strategy)


@given(candidates(), st.sampled_from(STRATEGIES))
@pytest.mark.property
def test_nothing_is_shown_twice_and_the_score_falls(some: list[Candidate], strategy: str) -> None:
    ranked = ranked_of(some, "what?", NOW, strategy)
    texts = [item.text for item in ranked]
    assert len(texts) == len(set(texts))
    if strategy == "recent":
        assert [item.at for item in ranked] == sorted((item.at for item in ranked), reverse=True)
    else:
        scores = [item.score or 0.0 for item in ranked]
        assert scores == sorted(scores, reverse=True)
    for item in ranked:
        assert item.score == pytest.approx(sum(item.reasons.values()), abs=1e-5)


def test_ties_go_to_the_newer_and_then_to_the_smaller_id() -> None:
    same = [found(n, kind="preference", messages=(), age=0) for n in (3, 1, 2)]
    assert order(same) == [1, 2, 3]
    # Half-lives later freshness is rounded away, and the time alone decides.
    old = [found(1, age=4_000), found(2, age=3_999), found(3, age=4_001)]
    assert {item.score for item in ranked_of(old, "what?", NOW)} == {ranked_of(old[:1], "what?", NOW)[0].score}
    assert order(old) == [2, 1, 3]


def test_meaning_and_words_together_beat_either_alone() -> None:
    both = [found(1, meaning=0.9, words=0.0), found(2, meaning=0.8, words=4.0), found(3, meaning=0.2, words=5.0)]
    assert order(both)[0] == 2


def test_by_meaning_alone_words_count_nothing() -> None:
    some = [found(1, meaning=0.3, words=9.0), found(2, meaning=0.9, words=0.0), found(3, meaning=0.6, words=3.0)]
    assert order(some, strategy="semantic") == [2, 3, 1]


def test_the_recent_strategy_puts_the_newest_first_whatever_its_text() -> None:
    some = [found(1, meaning=0.9, words=9.0, age=5), found(2, meaning=0.2, words=0.1, age=1), found(3, age=3)]
    assert order(some, strategy="recent") == [2, 3, 1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_shares_no_word_and_means_something_else_is_noise(strategy: str) -> None:
    some = [
        found(1, meaning=MIN_COSINE - 0.01, words=0.0),
        found(2, meaning=MIN_COSINE, words=0.0),
        found(3, meaning=None, words=0.0),
        found(4, meaning=None, words=0.1),
        found(5, meaning=-0.5, words=0.1),
    ]
    assert sorted(order(some, strategy=strategy)) == [2, 4, 5]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_items_that_say_the_very_same_the_best_stays(strategy: str) -> None:
    some = [
        found(1, "Deploy  on Friday", meaning=0.3, age=9),
        found(2, "deploy on\nfriday", meaning=0.9),
        found(3, meaning=0.4),
    ]
    assert sorted(order(some, strategy=strategy)) == [2, 3]


def test_a_message_goes_when_a_better_memory_was_made_from_it() -> None:
    memory = found(1, kind="preference", meaning=0.9, messages=("m7",))
    said, other = found(2, meaning=0.5, messages=("m7",)), found(3, meaning=0.4, messages=("m8",))
    assert order([memory, said, other]) == [1, 3]
    assert order([found(1, kind="preference", meaning=0.2, words=0.1, messages=("m7",)), said]) == [2]


def test_a_summary_goes_only_when_all_that_it_was_made_from_is_there() -> None:
    parts = [found(1, meaning=0.9, messages=("m1",)), found(2, meaning=0.8, messages=("m2",))]
    assert order([*parts, found(3, kind="summary", meaning=0.3, words=0.1, messages=("m1", "m2"))]) == [1, 2]
    assert order([*parts, found(3, kind="summary", meaning=0.3, words=0.1, messages=("m1", "m9"))]) == [1, 2, 3]


def test_the_same_message_id_in_another_room_is_another_message() -> None:
    here, there = found(1, meaning=0.9, messages=("m7",)), found(2, meaning=0.5, messages=("m7",), run="room:there")
    assert order([here, there]) == [1, 2]


def test_what_came_from_no_message_covers_nothing() -> None:
    assert order([found(1, meaning=0.9, messages=()), found(2, meaning=0.5, messages=())]) == [1, 2]


def test_a_speaker_who_is_named_in_the_question_ranks_first_among_equals() -> None:
    some = [found(1, author="alice"), found(2, author="Bob B.")]
    assert order(some, "what?") == [1, 2]
    assert order(some, "what did bob say?") == [2, 1]
    assert ranked_of(some, "what did bob say?", NOW)[0].reasons["speaker"] == NAMED_SPEAKER_WEIGHT


def test_who_is_named_does_not_outweigh_what_was_said() -> None:
    some = [found(1, author="alice", meaning=0.9, words=5.0), found(2, author="bob", meaning=0.4, words=1.0)]
    assert order(some, "what did bob say?") == [1, 2]


def test_a_question_seldom_holds_its_own_answer() -> None:
    assert order([found(1, "when do we deploy?"), found(2, "we deploy on Friday")]) == [2, 1]


def test_a_statement_ranks_before_a_message_and_a_fresh_one_before_an_old_one() -> None:
    assert order([found(1), found(2, kind="decision")]) == [2, 1]
    assert order([found(1, age=90), found(2, age=1)]) == [2, 1]


def test_an_answer_beside_a_matching_question_is_found_though_it_shares_no_word() -> None:
    asked = replace(found(1, "which day is the launch?", meaning=0.9, words=5.0), after=str(uuid.UUID(int=2)))
    answer, noise = found(2, "friday", meaning=0.0, words=0.0), found(3, "friday!", meaning=0.0, words=0.0)
    ranked = ranked_of([asked, answer, noise, found(4, meaning=0.3, words=0.5)], "launch?", NOW)
    assert {uuid.UUID(item.id).int for item in ranked} == {1, 2, 4}
    assert {item.id: dict(item.reasons).get("before", 0) > 0 for item in ranked}[answer.item.id]


def test_a_neighbour_of_a_match_ranks_first_among_equals_whichever_of_the_two_states_the_link() -> None:
    second, third = str(uuid.UUID(int=2)), str(uuid.UUID(int=3))
    rest = [found(2, meaning=0.5), found(3, meaning=0.5), found(4, meaning=0.2, words=0.1)]
    best = found(1, meaning=0.9, words=4.0)
    assert order([replace(best, before=third), *rest])[:2] == [1, 3]
    assert order([replace(best, after=second), *rest])[:2] == [1, 2]


def test_a_message_that_holds_the_questions_words_together_with_its_neighbours_ranks_first() -> None:
    ids = [str(uuid.UUID(int=n)) for n in range(6)]
    talk = [found(1, words=1.0), found(2, words=0.0), found(3, words=1.0), found(4, words=1.0), found(5, words=1.0)]
    linked = [replace(talk[0], matched=1, after=ids[2]), replace(talk[1], after=ids[3]), replace(talk[2], matched=2)]
    linked += [replace(talk[3], matched=1), replace(talk[4], matched=1)]
    reasons = {uuid.UUID(item.id).int: dict(item.reasons).get("together", 0) for item in ranked_of(linked, "?", NOW)}
    assert [reasons[n] for n in (1, 2, 3)] == [TOGETHER_WEIGHT] * 3, "two on either side count, links hold both ways"
    assert [reasons[n] for n in (4, 5)] == [TOGETHER_WEIGHT / 2] * 2


def test_versions_of_one_sentence_are_shown_once() -> None:
    long = "the backup of the billing database ran through at night and nobody had to do a thing"
    said = [found(1, long), found(2, long.upper() + "!!"), found(3, f"{long} today")]
    assert len(order(said)) == 1


@pytest.mark.parametrize(
    "other",
    [
        "the backup of the billing database did not run through at night and nobody had to do a thing",
        "the backup of the billing database ran through at night 2 and nobody had to do a thing",
        "the backup of the search database ran through at night and nobody had to do a thing",
        "the backup ran through at night",
    ],
)
def test_what_says_something_else_in_nearly_the_same_words_is_shown_too(other: str) -> None:
    one = "the backup of the billing database ran through at night and nobody had to do a thing"
    assert len(order([found(1, one), found(2, other)])) == 2


def test_a_session_with_several_matches_ranks_before_a_single_match() -> None:
    talk = [found(n, meaning=0.6, words=1.0, age=10 + n / 100) for n in (1, 2, 3)]
    lone = found(4, meaning=0.6, words=1.0, age=9)
    assert order([*talk, lone])[-1] == 4
    elsewhere = [replace(f, item=replace(f.item, namespace=f"room:{n}")) for n, f in enumerate(talk)]
    assert order([*elsewhere, lone])[0] == 4, "what was said at the same time elsewhere is another talk"


def test_a_day_that_the_question_names_counts() -> None:
    some = [found(1, age=1), found(2, age=40)]  # 2026-05-03 and 2026-03-25
    assert order(some, "what was decided?") == [1, 2]
    assert order(some, "what was decided in March?") == [2, 1]
    assert order(some, "what was decided on 25 March 2026?") == [2, 1]
    assert order(some, "what was decided in March 2024?") == [1, 2]


def test_words_of_time_count_if_the_question_asks_for_a_time() -> None:
    some = [found(1, "we met at the lake"), found(2, "we met on tuesday")]
    assert order(some, "who met?") == [1, 2]
    assert order(some, "when was it?") == [2, 1]


def test_nothing_found_is_nothing_ranked() -> None:
    assert ranked_of([], "what?", NOW) == []
