"""Which questions are plain ones, in many languages. plain_questions.txt was written before the examples were tried."""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from composer.layers.plain import has_topic, kind_with
from composer.layers.plain import kind_of as small_or_plain
from composer.text.plain_questions import Plain, plain_kind, topic_terms

OTHERS: Final = "none"
HELD_OUT: Final = [
    line.split("\t") for line in Path(__file__).with_name("plain_questions.txt").read_text("utf-8").splitlines()
]
NAMES: Final = (
    *("carol", "miguel", "priya", "tom", "anna", "jonas", "lena", "oliver", "camille", "pablo", "giulia", "pedro"),
    *("daan", "kasia", "иван", "оксана", "ayşe", "erik", "田中", "小明", "민수"),
)


def kind_of(question: str) -> str:
    named = [name for name in NAMES if name in question.casefold()]
    return kind_with(named, question, plain_kind(question)) or OTHERS


def test_nine_of_ten_plain_questions_are_known_in_twenty_languages() -> None:
    right, all_of = Counter[str](), Counter[str]()
    for kind, _, question in HELD_OUT:
        right[kind] += kind_of(question) == kind
        all_of[kind] += 1
    assert sum(right.values()) >= 0.94 * len(HELD_OUT)
    for kind in Plain:
        assert right[kind] >= 0.8 * all_of[kind], kind
    assert right[OTHERS] >= 0.95 * all_of[OTHERS]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("what did I miss?", Plain.MISSED),
        ("Was habe ich verpasst?", Plain.MISSED),
        ("what do you know about me?", Plain.ME),
        ("Was weißt du über mich?", Plain.ME),
        ("list the decisions", Plain.DECISIONS),
        ("Welche Entscheidungen gibt es?", Plain.DECISIONS),
        ("what did carol say?", Plain.SAID),
        ("Was hat Carol gesagt?", Plain.SAID),
        ("summarise this week", Plain.SUMMARY),
        ("Fasse diese Woche zusammen", Plain.SUMMARY),
        ("what are my open tasks?", Plain.TASKS),
        ("Welche Aufgaben sind offen?", Plain.TASKS),
        ("what are the open questions?", Plain.QUESTIONS),
        ("what are my reminders?", Plain.REMINDERS),
        ("remind me of the open questions tomorrow at 9", OTHERS),
        ("when is the launch?", OTHERS),
        ("who is carol?", OTHERS),
        ("what do you know about the launch?", OTHERS),
        ("and now?", OTHERS),
        ("hello", OTHERS),
        ("", OTHERS),
        ("what did I miss? " * 100, OTHERS),
    ],
)
def test_a_plain_question_is_of_its_kind(question: str, kind: str) -> None:
    assert kind_of(question) == kind


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("what did we decide about the invoice template?", {"invoic", "templat"}),
        ("Was haben wir zum Logo beschlossen?", {"logo"}),
        ("what did we decide?", set()),
        ("Welche Entscheidungen haben wir getroffen?", set()),
        ("co przegapiłam?", set()),
        ("我们决定了什么\uff1f", set()),
    ],
)
def test_the_topic_is_what_no_plain_question_says(question: str, topic: set[str]) -> None:
    assert topic_terms(question) == topic


@pytest.mark.parametrize(
    "text",
    [
        *(
            "hi",
            "bye",
            "yes",
            "no way",
            "what's up?",
            "brb",
            "thanks!",
            "good morning nexus",
            "are you there?",
            "lol ok",
        ),
        *("ja", "danke", "tschüss", "hallo", "привет", "спасибо", "merci", "grazie", "tak", "谢谢", "ありがとう", "네"),
        *("how are you?", "no worries, talk later", "that's great, well done", "haha nice one", "hm", "sounds good"),
    ],
)
def test_small_talk_asks_for_no_list(text: str) -> None:
    assert small_or_plain(text, ["nexus"]) is None


@pytest.mark.parametrize(
    "question",
    [
        "Πότε είναι η παρουσίαση του προϊόντος;",
        "लॉन्च की तारीख क्या तय हुई थी?",
        "การประชุมครั้งต่อไปคือเมื่อไหร่?",
        "متى يبدأ اجتماع الفريق في المكتب الجديد؟",
        "Когда запускается мобильное приложение?",
        "Khi nào ứng dụng di động ra mắt tại Hà Nội?",
        "移动应用什么时候在柏林发布？",
    ],
)
def test_an_ordinary_question_of_a_language_with_few_or_no_examples_asks_for_no_list(question: str) -> None:
    assert small_or_plain(question, ["nexus"]) not in (Plain.MISSED, Plain.ME, Plain.TASKS, Plain.QUESTIONS)


def test_a_time_and_a_name_are_no_topic() -> None:
    assert not has_topic("what did Carol say on Friday?", ["Carol"])
    assert not has_topic("Was hat Carol am 3. Mai gesagt?", ["Carol"])
    assert has_topic("what did Carol say on Friday about pricing?", ["Carol"])


EVERYDAY: Final = (  # in their words neither here nor in the examples
    *("quand est-ce qu'on livre le site ?", "qui est-ce qui répond au client ?", "¿cuándo sale el tren?"),
    *("模型什么时候训练完？", "新版本什么时候上线？", "ウェブサイトはいつ公開されますか", "部長は誰ですか"),
    *(
        "웹사이트는 언제 여나요?",
        "Сколько стоил прошлый сервер?",
        "Где был куплен принтер?",
        "Кто был первым клиентом?",
    ),
    *("Trang web mở khi nào?", "Wie viele Lizenzen wurden bestellt?", "Wann wurde die Heizung repariert?"),
)


@pytest.mark.parametrize("question", EVERYDAY)
def test_an_everyday_question_is_searched_for_and_no_list(question: str) -> None:
    assert small_or_plain(question, ["Nexus"]) is None


def test_a_thanks_that_is_like_a_question_is_small_talk() -> None:
    assert small_or_plain("you made my day", ["Nexus"]) is None
