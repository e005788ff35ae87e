"""The floor of relevance: which questions recall nothing, and what they must have in common with what they find."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from composer.layers.relevance import asks_nothing, asks_only_for_a_time, fits, is_small_talk
from composer.model import Item, Visibility
from composer.repositories.recall import Candidate, Found

AGENT = ("Nexus", "nexus")
AT = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)


def candidate(
    number: int, *, meaning: float | None = 0.0, matched: int = 0, author: str = "bob", after: int | None = None
) -> Candidate:
    """Make a candidate that holds the terms of the bits in `matched`; `after` is the message that follows it."""
    id = str(uuid.UUID(int=number))
    item = Item("semantic", "episode", id, f"text {number}", AT, "room:here", Visibility.PUBLIC, author=author)
    follower = None if after is None else str(uuid.UUID(int=after))
    return Candidate(item, meaning, float(matched > 0), None, follower, matched)


@pytest.mark.parametrize(
    "text",
    [
        *("hi", "Hello Nexus!", "hey nexus, how are you?", "good morning everyone", "Thanks a lot!!", "thx", "lol ok"),
        *(
            "that's great, well done",
            "see you tomorrow",
            "are you there?",
            "who are you?",
            "what's up",
            "👍",
            "...",
            "",
        ),
        *("No worries, talk later", "danke!", "haha nice one", "you're welcome", "Happy Friday"),
    ],
)
def test_small_talk_is_recognised(text: str) -> None:
    assert is_small_talk(text, AGENT)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "what is the deadline?",
            "hi, when do we ship?",
            "thanks, and who owns billing?",
            "morning standup",
            "Lisbon",
        ),
        *(
            "is it nexus or scout that writes the minutes",
            "who is bob?",
            "好的部署",
            "ok deploy",
            "see the report tomorrow",
        ),
    ],
)
def test_a_question_is_not_small_talk(text: str) -> None:
    assert not is_small_talk(text, AGENT)


@pytest.mark.parametrize(
    "text",
    [
        *("you rock", "Nexus, you made my day!", "that cracked me up", "sorry, my bad", "lol true"),
        *("haha danke", "vielen lieben Dank!", "merci beaucoup", "à demain !", "jajaja qué bueno", "hasta mañana"),
        *("どうも", "お疲れ様です", "谢谢啦", "好的，没问题", "большое спасибо!", "grazie mille", "정말 고마워요"),
    ],
)
def test_small_talk_in_many_languages_asks_nothing(text: str) -> None:
    assert asks_nothing(text, AGENT)


@pytest.mark.parametrize(
    "text",
    [
        *("vault key", "allergies", "great budget", "sprint goal"),
        *("wifi password", "the Berlin trip", "thanks! and the deadline?", "sorry, which room again", "you rock 12"),
        *(
            "WLAN Passwort",
            "danke, und die Adresse?",
            "mot de passe wifi",
            "vacaciones de Lena",
            "会議はいつ",
            "密码是什么",
        ),
        "you rock the stage on Friday with the band of your brother",
    ],
)
def test_what_names_a_subject_asks_something(text: str) -> None:
    assert not asks_nothing(text, AGENT)


LINES = [
    line.split("\t")
    for line in (Path(__file__).parents[1] / "bench" / "small_talk_lines.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_short_requests_and_answers_in_six_languages_are_seldom_taken_for_small_talk() -> None:
    requests = [text for kind, _, text in LINES if kind == "none"]
    assert sum(asks_nothing(text, AGENT) for text in requests) <= len(requests) / 50


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "ja", "zh"])
def test_half_of_the_small_talk_that_nobody_knew_is_told_without_a_search(language: str) -> None:
    lines = [text for kind, of, text in LINES if kind == "small" and of == language]
    assert sum(asks_nothing(text, AGENT) for text in lines) >= len(lines) / 2


@pytest.mark.parametrize("text", ["laugh", "noise", "fingers", "五", "wie war die Besprechung?", "who else?"])
def test_a_word_alone_and_a_question_are_small_talk_only_as_an_example_is(text: str) -> None:
    assert not asks_nothing(text, AGENT)


@pytest.mark.parametrize("text", ["oops", "bravo", "how are you doing?", "¿cómo estás?", "wie war dein Wochenende?"])
def test_a_word_alone_and_a_question_may_be_small_talk(text: str) -> None:
    assert asks_nothing(text, AGENT)


@pytest.mark.parametrize(
    ("alone", "with_subject"),
    [
        ("was wurde am 31. Mai gesagt?", "was hat Bob gestern über das Logo gesagt?"),
        ("qu'est-ce qu'on a dit hier ?", "qu'a-t-on dit hier du logo ?"),
        ("¿qué se dijo ayer?", "¿qué se dijo ayer del presupuesto?"),
        ("o que foi dito ontem?", "o que foi dito ontem sobre o orçamento?"),
        ("cosa abbiamo detto ieri?", "cosa abbiamo detto ieri del contratto?"),
        ("wat is er gisteren gezegd?", "wat is er gisteren over het logo gezegd?"),
        ("co ustaliliśmy 3 maja?", "co ustaliliśmy 3 maja o budżecie?"),
        ("что говорили вчера?", "что говорили вчера о логотипе?"),
        ("dün ne konuşuldu?", "dün bütçe hakkında ne konuşuldu?"),
        ("昨日は何の話をした？", "昨日ロゴについて何を決めた？"),
        ("昨天说了什么？", "昨天关于标志说了什么？"),
        ("어제 무슨 얘기 했어?", "어제 로고에 대해 무슨 얘기 했어?"),
        ("ماذا قيل أمس؟", "ماذا قيل أمس عن الميزانية؟"),
        ("कल क्या बात हुई थी?", "कल बजट पर क्या बात हुई थी?"),
    ],
)
def test_a_time_alone_is_told_from_a_subject_in_other_languages(alone: str, with_subject: str) -> None:
    assert asks_only_for_a_time(f"@nexus {alone}", AGENT)
    assert not asks_only_for_a_time(with_subject, AGENT)


def test_a_question_for_a_time_alone_is_told_from_one_for_a_subject() -> None:
    for text in ("what happened on 11 December 2008?", "what did we talk about last week", "catch me up on Monday"):
        assert asks_only_for_a_time(text, AGENT)
    for text in ("what did we decide about the budget last week?", "who joined in May 2026?"):
        assert not asks_only_for_a_time(text, AGENT)


def found(
    candidates: Sequence[Candidate], rarities: Sequence[float], question: str = "what of it?", *, items: int = 1_000
) -> bool:
    terms = {f"term{n}": rarity for n, rarity in enumerate(rarities)}
    return fits(Found(list(candidates), terms, items), question, AGENT)


def test_a_text_in_another_language_needs_no_word_in_common() -> None:
    def said(text: str, meaning: float, question: str = "when is the plumber coming?") -> bool:
        one = candidate(1, meaning=meaning)
        return found([replace(one, item=replace(one.item, text=text))], [5.0], question)

    assert said("Сантехник придёт в четверг.", 0.35)
    assert said("Der Klempner kommt am Donnerstag und nicht morgen.", 0.35)
    assert not said("Сантехник придёт в четверг.", 0.25), "which has nothing to do with it"
    assert not said("Vielen Dank, das ist nett von dir", 0.35, "cheers mate"), "thanks are alike in all languages"
    assert not said("the electrician is here on Thursday", 0.35), "this would share a word with it"


def test_a_name_in_common_takes_nothing_from_a_text_in_another_language() -> None:
    """Such a name is a word in common that counts less than being in another language."""
    one = candidate(1, meaning=0.35, matched=0b01)
    turkish = replace(one, item=replace(one.item, text="Tesisatçı Seaman perşembe günü geliyor ve çok iyi."))
    assert found([turkish], [1.0, 9.0], "when is the plumber Seaman coming?")
    english = replace(one, item=replace(one.item, text="Seaman and the rest of them were not there"))
    assert not found([english], [1.0, 9.0], "when is the plumber Seaman coming?")
    assert not found([turkish], [1.0, 9.0], "the plumber Seaman comes"), "which asks nothing"


def test_a_question_needs_no_mark_to_find_a_text_in_another_language() -> None:
    one = candidate(1, meaning=0.35)
    russian = replace(one, item=replace(one.item, text="Сантехник придёт в четверг."))
    assert found([russian], [5.0], "when is the plumber coming")


def test_small_talk_answers_nothing() -> None:
    for text in ("thanks a lot!", "ann: you are welcome :)", "Gern geschehen!"):
        one, other = candidate(1, meaning=0.8), candidate(2, author="ann")
        like = replace(one, item=replace(one.item, text=text))
        assert not found([like, other], [5.0], "Got it, thanks a bunch"), text
        about = replace(candidate(3, meaning=0.8), item=replace(one.item, text="the bunch of keys is in the drawer"))
        assert found([like, other, about], [5.0], "Got it, thanks a bunch"), text


def test_in_a_small_scope_less_is_enough() -> None:
    assert not found([candidate(1, meaning=0.3)], [5.0])
    assert found([candidate(1, meaning=0.3)], [5.0], items=5)
    assert not found([candidate(1, meaning=0.1)], [5.0], items=5)


def test_words_that_say_nothing_of_a_subject_do_not_count() -> None:
    allergic = [candidate(1, meaning=0.0, matched=0b001)]
    terms = {"allerg": 4.0, "anyon": 9.0, "someth": 9.0}
    assert fits(Found(allergic, terms, 1_000), "is anyone allergic to something?", AGENT)
    assert not fits(Found(allergic, {"allerg": 4.0, "cat": 9.0}, 1_000), "is the cat allergic?", AGENT)


def test_what_shares_neither_words_nor_meaning_with_the_question_does_not_fit() -> None:
    assert not found([], [1.0])
    assert not found([candidate(1, meaning=0.3)], [5.0])
    assert not found([candidate(1, meaning=0.47)], [5.0]), "which teams' questions have in common with any talk"
    assert found([candidate(1, meaning=0.6)], [5.0])
    assert found([candidate(1, meaning=0.2, matched=1)], [5.0])


def test_a_common_word_does_not_make_a_question_fit_whose_rare_words_nobody_ever_said() -> None:
    common, unheard = 1.0, 9.0
    assert not found([candidate(1, meaning=0.35, matched=0b01)], [common, unheard])
    assert found([candidate(1, meaning=0.35, matched=0b10)], [common, unheard])


def test_the_words_of_a_message_count_together_with_those_of_its_neighbours() -> None:
    alone = [candidate(1, meaning=0.1, matched=0b01), candidate(2, meaning=0.1, matched=0b10)]
    assert not found(alone, [1.0, 1.0])
    linked = [candidate(1, meaning=0.1, matched=0b01, after=2), alone[1]]
    assert found(linked, [1.0, 1.0])


def test_a_question_that_names_somebody_who_speaks_here_needs_less() -> None:
    near = [candidate(1, meaning=0.35, author="Bob")]
    assert not found(near, [5.0], "what does Carol like?")
    assert found(near, [5.0], "what does Bob like?")
    assert not found([candidate(1, meaning=0.35, author="Nexus")], [5.0], "Nexus, what does Carol like?")


def test_what_is_like_small_talk_needs_more_in_common_since_rooms_are_full_of_it() -> None:
    near = [candidate(1, meaning=0.5)]
    assert found(near, [5.0], "the printer on the second floor")
    assert not found(near, [5.0], "you made my Thursday, thanks")
    assert found([candidate(1, meaning=0.7)], [5.0], "you made my Thursday, thanks")
    assert found(near, [5.0], "allergies"), "a word alone may be what is searched for"


def test_without_vectors_the_words_alone_decide() -> None:
    assert found([candidate(1, meaning=None, matched=1)], [1.0])
    assert not found([candidate(1, meaning=None, matched=0b01)], [1.0, 3.0])


def test_what_is_told_without_asking_needs_less_in_common_unless_it_may_be_small_talk() -> None:
    told = [candidate(1, meaning=0.3)]
    assert found(told, [5.0], "I'm really looking forward to the evening with Anna")
    assert found(told, [5.0], "我特别期待那天晚上我想让它变得很特别")
    assert not found([candidate(1, meaning=0.2)], [5.0], "I'm really looking forward to the evening with Anna")
    for short_or_asked in (
        "what a lovely evening it was",
        "when does the evening with Anna begin at the harbour?",
        "please tell me when the evening with Anna begins",
        "translate 'the evening with Anna' into Japanese",
        "I'm really looking forward to the evening with Anna. " * 40,  # a paste
    ):
        assert not found(told, [5.0], short_or_asked), short_or_asked
