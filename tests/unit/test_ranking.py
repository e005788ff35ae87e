"""Ranking: a pure function of the candidates and the question, independent of the order of the candidates."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.layers import ranking
from composer.layers.ranking import (
    MIN_COSINE,
    NAMED_SPEAKER_WEIGHT,
    SESSION_WEIGHT,
    TOGETHER_WEIGHT,
    WORDS_WEIGHT,
    asking_share,
    is_question,
    rank,
    without_duplicates,
)
from composer.model import Item, Visibility
from composer.repositories.recall import Candidate

NOW = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
STRATEGIES = ("hybrid", "semantic", "recent")


def candidate(
    number: int,
    text: str = "",
    *,
    meaning: float | None = 0.5,
    words: float = 1.0,
    age: float = 0,
    kind: str = "episode",
    author: str = "alice",
    messages: tuple[str, ...] | None = None,
    namespace: str = "room:here",
) -> Candidate:
    """Make a candidate; `age` in days."""
    said = (f"m{number}",) if messages is None else messages
    id = str(uuid.UUID(int=number))
    at = NOW - timedelta(days=age)
    item = Item(
        "semantic", kind, id, text or f"text {number}", at, namespace, Visibility.PUBLIC, author=author, messages=said
    )
    return Candidate(item, meaning, words)


def ranked_of(some: Sequence[Candidate], question: str, now: datetime, strategy: str = "hybrid") -> list[Item]:
    """Rank and deduplicate, as recall does."""
    return list(without_duplicates(rank(some, question, now, strategy)))


def order(candidates: list[Candidate], question: str = "what?", strategy: str = "hybrid") -> list[int]:
    return [uuid.UUID(item.id).int for item in ranked_of(candidates, question, NOW, strategy)]


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    numbers = draw(st.lists(st.integers(1, 40), unique=True, max_size=12))
    return [
        candidate(
            number,
            draw(st.sampled_from(["", "the same", "is it?", "another"])),
            meaning=draw(st.none() | st.floats(-1, 1)),
            words=draw(st.sampled_from([0.0, 0.0, 0.5, 3.25])),
            age=draw(st.sampled_from([0, 1, 30, 400])),
            kind=draw(st.sampled_from(["episode", "preference", "summary"])),
            author=draw(st.sampled_from(["alice", "bob"])),
            messages=draw(st.none() | st.just(()) | st.just(("m1",))),
            namespace=draw(st.sampled_from(["room:here", "room:there"])),
        )
        for number in numbers
    ]


@given(
    candidates(), st.randoms(use_true_random=False), st.sampled_from(STRATEGIES), st.sampled_from(["what?", "bob what"])
)
def test_the_ranking_does_not_depend_on_the_order_of_the_candidates(
    some: list[Candidate], random: Random, strategy: str, question: str
) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)
    assert ranked_of(shuffled, question, NOW, strategy) == ranked_of(some, question, NOW, strategy)


@given(candidates(), st.sampled_from(STRATEGIES))
def test_no_item_is_shown_twice_and_scores_decrease(some: list[Candidate], strategy: str) -> None:
    ranked = ranked_of(some, "what?", NOW, strategy)
    texts = [(item.author, item.text) for item in ranked]  # what two people say alike is said twice
    assert len(texts) == len(set(texts))
    if strategy == "recent":
        assert [item.at for item in ranked] == sorted((item.at for item in ranked), reverse=True)
    else:
        scores = [item.score or 0.0 for item in ranked]
        assert scores == sorted(scores, reverse=True)
    for item in ranked:
        assert item.score == pytest.approx(sum(item.reasons.values()), abs=1e-5)


def test_ties_are_broken_by_the_newer_time_and_then_by_the_smaller_id() -> None:
    same = [candidate(n, kind="preference", messages=(), namespace=f"room:{n}") for n in (3, 1, 2)]
    assert order(same) == [1, 2, 3]
    # After many half-lives freshness rounds to zero, and only the time decides.
    old = [candidate(1, age=4_000), candidate(2, age=3_999), candidate(3, age=4_001)]
    assert {item.score for item in ranked_of(old, "what?", NOW)} == {ranked_of(old[:1], "what?", NOW)[0].score}
    assert order(old) == [2, 1, 3]


def test_a_match_by_meaning_and_words_ranks_before_a_match_by_one_of_them() -> None:
    both = [
        candidate(1, meaning=0.9, words=0.0),
        candidate(2, meaning=0.8, words=4.0),
        candidate(3, meaning=0.2, words=5.0),
    ]
    assert order(both)[0] == 2


def test_the_semantic_strategy_ignores_words() -> None:
    some = [
        candidate(1, meaning=0.3, words=9.0),
        candidate(2, meaning=0.9, words=0.0),
        candidate(3, meaning=0.6, words=3.0),
    ]
    assert order(some, strategy="semantic") == [2, 3, 1]


def test_the_recent_strategy_puts_the_newest_first_whatever_its_text() -> None:
    some = [
        candidate(1, meaning=0.9, words=9.0, age=5),
        candidate(2, meaning=0.2, words=0.1, age=1),
        candidate(3, age=3),
    ]
    assert order(some, strategy="recent") == [2, 3, 1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_candidate_without_a_shared_word_or_similar_meaning_is_left_out(strategy: str) -> None:
    some = [
        candidate(1, meaning=MIN_COSINE - 0.01, words=0.0),
        candidate(2, meaning=MIN_COSINE, words=0.0),
        candidate(3, meaning=None, words=0.0),
        candidate(4, meaning=None, words=0.1),
        candidate(5, meaning=-0.5, words=0.1),
    ]
    assert sorted(order(some, strategy=strategy)) == [2, 4, 5]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_items_with_the_same_text_the_best_is_shown(strategy: str) -> None:
    some = [
        candidate(1, "Deploy  on Friday", meaning=0.3, age=9),
        candidate(2, "deploy on\nfriday", meaning=0.9),
        candidate(3, meaning=0.4),
    ]
    assert sorted(order(some, strategy=strategy)) == [2, 3]


def test_a_message_is_left_out_when_a_memory_made_from_it_ranks_higher() -> None:
    memory = candidate(1, kind="preference", meaning=0.9, messages=("m7",))
    said, other = candidate(2, meaning=0.5, messages=("m7",)), candidate(3, meaning=0.4, messages=("m8",))
    assert order([memory, said, other]) == [1, 3]
    assert order([candidate(1, kind="preference", meaning=0.2, words=0.1, messages=("m7",)), said]) == [2]


def test_a_summary_is_left_out_only_when_all_its_sources_are_shown() -> None:
    parts = [candidate(1, meaning=0.9, messages=("m1",)), candidate(2, meaning=0.8, messages=("m2",))]
    assert order([*parts, candidate(3, kind="summary", meaning=0.3, words=0.1, messages=("m1", "m2"))]) == [1, 2]
    assert order([*parts, candidate(3, kind="summary", meaning=0.3, words=0.1, messages=("m1", "m9"))]) == [1, 2, 3]


def test_a_summary_covers_other_summaries_and_none_of_its_messages() -> None:
    day = candidate(1, kind="summary", meaning=0.9, messages=("m1", "m2"))
    session = candidate(2, "They met.", kind="summary", meaning=0.8, messages=("m1", "m2"))
    assert order([day, session, candidate(3, meaning=0.3, words=0.1, messages=("m1",))]) == [1, 3]


def test_the_same_message_id_in_another_room_is_another_message() -> None:
    here, there = (
        candidate(1, meaning=0.9, messages=("m7",)),
        candidate(2, meaning=0.5, messages=("m7",), namespace="room:there"),
    )
    assert order([here, there]) == [1, 2]


def test_an_item_without_source_messages_covers_nothing() -> None:
    assert order([candidate(1, meaning=0.9, messages=()), candidate(2, meaning=0.5, messages=())]) == [1, 2]


def test_a_message_of_a_speaker_named_in_the_question_ranks_first_among_equals() -> None:
    some = [candidate(1, author="alice"), candidate(2, author="Bob B.")]
    assert order(some, "what?") == [1, 2]
    assert order(some, "what did bob say?") == [2, 1]
    assert ranked_of(some, "what did bob say?", NOW)[0].reasons["speaker"] == NAMED_SPEAKER_WEIGHT


def test_a_named_speaker_does_not_outweigh_a_better_match() -> None:
    some = [candidate(1, author="alice", meaning=0.9, words=5.0), candidate(2, author="bob", meaning=0.4, words=1.0)]
    assert order(some, "what did bob say?") == [1, 2]


def test_a_question_ranks_after_a_statement() -> None:
    assert order([candidate(1, "when do we deploy?"), candidate(2, "we deploy on Friday")]) == [2, 1]


ASKED = "@nexus when is carol on leave?"


@pytest.mark.parametrize(("text", "namespace"), [(ASKED, "room:here"), ("when is carol on leave?", "dm:a:b")])
def test_what_was_asked_of_an_agent_ranks_after_every_statement(text: str, namespace: str) -> None:
    asked = candidate(1, text, meaning=0.9, words=5.0, namespace=namespace)
    some = [asked, candidate(2, "Carol's leave begins on Monday", meaning=0.2, words=0.1, namespace=namespace)]
    ranked = [uuid.UUID(item.id).int for item in rank(some, "is carol away?", NOW, agents=("nexus",))]
    assert ranked == [2, 1]
    about = [uuid.UUID(item.id).int for item in rank(some, "what did I ask about carol?", NOW, agents=("nexus",))]
    assert about == [1, 2], "who asks what was asked gets it"
    to_people = [asked, candidate(3, "when is carol on leave, bob?", meaning=0.3, words=0.2)]
    assert [uuid.UUID(i.id).int for i in rank(to_people, "is carol away?", NOW, agents=("nexus",))] == [3, 1]


def test_what_a_candidate_asks_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def noted(text: str) -> float:
        read.append(text)
        return asking_share(text)

    monkeypatch.setattr(ranking, "asking_share", noted)
    order([candidate(1, "@nexus where is the key?"), candidate(2, "the key is in the drawer")], "the key?")
    assert sorted(read) == ["@nexus where is the key?", "the key is in the drawer"]


def test_what_was_asked_of_another_agent_ranks_after_every_statement() -> None:
    asked = candidate(1, "@scout when is carol on leave?", meaning=0.9, words=5.0)
    to_nobody = candidate(3, "@scouting when is carol on leave?", meaning=0.8, words=4.0)  # whose name only begins so
    some = [asked, candidate(2, "Carol's leave begins on Monday", meaning=0.2, words=0.1), to_nobody]
    found = rank(some, "is carol away?", NOW, agents=("nexus",), all_agents=("nexus", "scout"))
    assert [uuid.UUID(item.id).int for item in found] == [3, 2, 1]


@pytest.mark.parametrize(
    ("text", "question", "repeated"),
    [
        (ASKED, "when is carol on leave?", True),
        (ASKED, "when will carol be on leave", True),
        (ASKED, "when is bob on leave?", False),
        ("carol is on leave when bob is", "when is carol on leave?", False),
        ("when is carol on leave, bob?", "when will carol be on leave", False),  # asked of a person
        ("@nexus who are you?", "what is it?", False),
    ],
)
def test_a_question_that_an_agent_was_asked_before_is_not_recalled_for_itself(
    text: str, question: str, repeated: bool
) -> None:
    found = list(without_duplicates([candidate(1, text).item], question, ("nexus",)))
    assert found == ([] if repeated else [candidate(1, text).item])


def test_a_statement_ranks_before_a_message_and_a_fresh_one_before_an_old_one() -> None:
    assert order([candidate(1), candidate(2, kind="decision")]) == [2, 1]
    assert order([candidate(1, age=90), candidate(2, age=1)]) == [2, 1]


def test_an_answer_next_to_a_matching_question_is_found_without_a_shared_word() -> None:
    asked = replace(candidate(1, "which day is the launch?", meaning=0.9, words=5.0), after=str(uuid.UUID(int=2)))
    answer, noise = candidate(2, "friday", meaning=0.0, words=0.0), candidate(3, "friday!", meaning=0.0, words=0.0)
    ranked = ranked_of([asked, answer, noise, candidate(4, meaning=0.3, words=0.5)], "launch?", NOW)
    assert {uuid.UUID(item.id).int for item in ranked} == {1, 2, 4}
    assert {item.id: dict(item.reasons).get("before", 0) > 0 for item in ranked}[answer.item.id]


def test_a_neighbour_of_a_match_ranks_first_among_equals_in_both_directions_of_the_link() -> None:
    second, third = str(uuid.UUID(int=2)), str(uuid.UUID(int=3))
    rest = [candidate(2, meaning=0.5), candidate(3, meaning=0.5), candidate(4, meaning=0.2, words=0.1)]
    best = candidate(1, meaning=0.9, words=4.0)
    assert order([replace(best, before=third), *rest])[:2] == [1, 3]
    assert order([replace(best, after=second), *rest])[:2] == [1, 2]


def test_an_answer_further_on_is_found_by_the_message_that_it_answers() -> None:
    first = str(uuid.UUID(int=1))
    question = candidate(1, "which day is the launch?", meaning=0.9, words=5.0)
    answer = replace(candidate(2, "alice: friday", meaning=0.0, words=0.0), reply_to=(first,))
    others = [candidate(3, "alice: friday!", meaning=0.0, words=0.0), candidate(4, meaning=0.3, words=0.5)]
    ranked = ranked_of([question, answer, *others], "launch?", NOW)
    assert {uuid.UUID(item.id).int for item in ranked} == {1, 2, 4}
    reasons = {uuid.UUID(item.id).int: dict(item.reasons) for item in ranked}
    assert reasons[2]["reply"] > 0
    assert "before" not in reasons[2]
    next_to_it = ranked_of([replace(question, after=answer.item.id), answer, *others], "launch?", NOW)
    reasons = {uuid.UUID(item.id).int: dict(item.reasons) for item in next_to_it}
    assert reasons[2]["before"] > 0
    assert "reply" not in reasons[2], "it does not count twice"


def test_a_message_whose_neighbours_complete_the_words_of_the_question_ranks_first() -> None:
    ids = [str(uuid.UUID(int=n)) for n in range(6)]
    talk = [
        candidate(1, words=1.0),
        candidate(2, words=0.0),
        candidate(3, words=1.0),
        candidate(4, words=1.0),
        candidate(5, words=1.0),
    ]
    linked = [replace(talk[0], matched=1, after=ids[2]), replace(talk[1], after=ids[3]), replace(talk[2], matched=2)]
    linked += [replace(talk[3], matched=1), replace(talk[4], matched=1)]
    reasons = {uuid.UUID(item.id).int: dict(item.reasons).get("together", 0) for item in ranked_of(linked, "?", NOW)}
    assert [reasons[n] for n in (1, 2, 3)] == [TOGETHER_WEIGHT] * 3, (
        "two neighbours on each side count, and links count in both directions"
    )
    assert [reasons[n] for n in (4, 5)] == [TOGETHER_WEIGHT / 2] * 2


def test_versions_of_one_sentence_are_shown_once() -> None:
    long = "the backup of the billing database ran through at night and nobody had to do a thing"
    said = [candidate(1, long), candidate(2, long.upper() + "!!"), candidate(3, f"{long} today")]
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
def test_a_different_statement_in_nearly_the_same_words_is_also_shown(other: str) -> None:
    one = "the backup of the billing database ran through at night and nobody had to do a thing"
    assert len(order([candidate(1, one), candidate(2, other)])) == 2


def test_one_word_of_many_is_little_though_nothing_has_more() -> None:
    def words_of_best(matched: Sequence[int]) -> float:
        some = [replace(candidate(n, words=9.0 - n), matched=bits) for n, bits in enumerate(matched, 1)]
        return max(item.reasons.get("words", 0.0) for item in ranked_of(some, "what?", NOW))

    assert words_of_best([0b1111, 0b0001]) == WORDS_WEIGHT
    assert words_of_best([0b0001, 0b0010, 0b0100, 0b1000]) == pytest.approx(WORDS_WEIGHT / 4)


def test_a_session_of_weak_matches_is_no_full_one() -> None:
    def session_of(words: float) -> float:
        weak = [candidate(n, meaning=0.2, words=words, age=n / 1_000) for n in (1, 2)]
        best = candidate(3, meaning=0.9, words=9.0, age=30)
        ranked = ranked_of([*weak, best], "what?", NOW)
        return max(item.reasons.get("session", 0.0) for item in ranked)

    assert 0 < session_of(1.0) < 0.01
    assert session_of(1.0) < session_of(4.0) < session_of(9.0) < SESSION_WEIGHT


def test_a_session_with_several_matches_ranks_before_a_single_match() -> None:
    talk = [candidate(n, meaning=0.6, words=1.0, age=10 + n / 100) for n in (1, 2, 3)]
    lone = candidate(4, meaning=0.6, words=1.0, age=9)
    assert order([*talk, lone])[-1] == 4
    elsewhere = [replace(f, item=replace(f.item, namespace=f"room:{n}")) for n, f in enumerate(talk)]
    assert order([*elsewhere, lone])[0] == 4, "messages at the same time in another room are another session"


def test_a_message_of_a_day_named_in_the_question_ranks_higher() -> None:
    some = [candidate(1, age=1), candidate(2, age=40)]  # 2026-05-03 and 2026-03-25
    assert order(some, "what was decided?") == [1, 2]
    assert order(some, "what was decided in March?") == [2, 1]
    assert order(some, "what was decided on 25 March 2026?") == [2, 1]
    assert order(some, "what was decided in March 2024?") == [1, 2]


def test_a_text_with_a_time_ranks_higher_if_the_question_asks_for_a_time() -> None:
    some = [candidate(1, "we met at the lake"), candidate(2, "we met on tuesday")]
    assert order(some, "who met?") == [1, 2]
    assert order(some, "when was it?") == [2, 1]


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("where is it?", True),
        ("Hi all! Does anybody know where the key to the cellar is?", True),
        ("金庫の鍵はどこですか\uff1f", True),
        ("who has the key", True),
        ("I moved to Oslo in May, and the dog likes it. And you?", False),
        ("I bought a bicycle yesterday, a red one. Can you recommend a good lock?", False),
        ("the key is in the cellar", False),
    ],
)
def test_a_text_that_tells_something_is_no_question(text: str, asks: bool) -> None:
    assert is_question(text) is asks


def test_what_an_agent_was_told_beside_a_question_is_not_ranked_last() -> None:
    told = candidate(
        1, "I bought a bicycle yesterday, a red one. Can you recommend a lock?", namespace="dm:1", words=3.0
    )
    some = [told, candidate(2, "they sell bicycles"), candidate(3, "where is my bicycle?", namespace="dm:1", words=4.0)]
    assert order(some, "which bicycle did I buy?") == [1, 2, 3]


def test_without_candidates_the_ranking_is_empty() -> None:
    assert ranked_of([], "what?", NOW) == []


def test_a_message_of_the_named_day_comes_before_one_of_the_next_morning() -> None:
    some = [candidate(1, age=1), candidate(2, age=0.01), candidate(3, age=50, meaning=0.2)]
    for question in ("what of the launch yesterday?", "what of the launch on 3 May?"):
        ranked = {uuid.UUID(item.id).int: item for item in rank(some, question, NOW)}
        assert list(ranked)[:2] == [1, 2], question
        assert "date" in ranked[1].reasons
        assert "near" not in ranked[1].reasons
        assert "date" not in ranked[2].reasons
        assert "near" in ranked[2].reasons


def test_what_was_said_in_a_named_room_comes_first() -> None:
    some = [candidate(1, namespace="room:ops"), candidate(2, meaning=0.55)]
    ranked = list(rank(some, "what of the launch?", NOW, rooms=("room:ops",)))
    assert [uuid.UUID(item.id).int for item in ranked] == [1, 2]
    assert ["room" in item.reasons for item in ranked] == [True, False]
    assert order(some, "what of the launch?") == [2, 1]
