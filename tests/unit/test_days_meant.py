"""The days that a text means, seen from when it was said, and the coming ones that a question asks for."""

import uuid
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from composer.layers.ranking import DATE_WEIGHT, MAX_TEXTS_WITH_DAYS, rank
from composer.model import Item, Visibility
from composer.repositories.recall import Candidate
from composer.text.dates.meant import MAX_CHARS_WITH_DAYS, days_meant
from composer.text.dates.question_times import QuestionTimes
from composer.text.dates.vocabulary import Period

TUESDAY = datetime(2026, 5, 26, 9, tzinfo=UTC)
WEDNESDAY = datetime(2026, 5, 27, 14, tzinfo=UTC)
LATER = datetime(2026, 6, 10, 9, tzinfo=UTC)


def candidate(number: int, text: str, at: datetime, *, kind: str = "episode", words: float = 1.0) -> Candidate:
    id = str(uuid.UUID(int=number))
    return Candidate(Item("semantic", kind, id, text, at, f"room:{number}", Visibility.PUBLIC, author="al"), 0.5, words)


# What was said on Tuesday 26 May, and a question about a day that it means, asked on 10 June.
OVER = {
    "the auditors arrive the day after tomorrow": "who arrived on 28 May?",
    "tomorrow the lift gets a new motor": "what happened to the lift on 27 May 2026?",
    "yesterday somebody scratched my car": "what happened on the 25th of May?",
    "we drop the old host in three days": "what did we drop on May 29th?",
    "next Friday the band plays": "who played on 29 May?",
    "the offsite is in two weeks": "what was on 9 June?",
    "four weeks from now the lease ends": "what ended on 23 June?",
    "in a fortnight the visa runs out": "what ran out on 10 June?",
    "a fortnight ago we switched the supplier": "what did we switch on 13 May?",
    "the fair starts on 31.05.": "what started on 31 May?",
    "the fair starts on May 31": "what started on 31.05.2026?",
    "friday next week we move": "what did we do on 5 June?",
    "der Aufzug geht erst übermorgen wieder": "was war am 28. Mai?",
    "vorgestern ist das Rohr geplatzt": "was ist am 24. Mai passiert?",
    "in drei Tagen kommt der Koch": "wer kam am 29. Mai?",
    "das Fest ist am 31.05.": "was war am 31. Mai?",
    "am nächsten Montag ist zu": "was war am 1. Juni?",
    "le déménageur passe après-demain": "qui est passé le 28 mai ?",
    "avant-hier la machine est tombée en panne": "qu'est-ce qui est arrivé le 24 mai ?",
    "on va au théâtre vendredi prochain": "où est-on allés le 29 mai ?",
    "pasado mañana viene el técnico": "¿quién vino el 28 de mayo?",
    "hace dos días firmé el contrato": "¿qué se firmó el 24 de mayo?",
    "dentro de tres días es la fiesta": "¿qué fiesta hubo el 29 de mayo?",
    "послезавтра отключают воду": "что отключали 28 мая?",
    "вчера сгорел блок питания": "что случилось 25 мая?",
    "через три дня приедет курьер": "кто приезжал 29 мая?",
    "昨日、古いサーバーを処分しました": "5月25日に何を捨てた？",
    "明後日エアコンの業者さんが来ます": "5月28日に誰が来た？",
    "来週の金曜日に引っ越します": "6月5日に何があった？",
    "后天审计的人来": "5月28日谁来了？",
    "dopodomani arriva il tecnico": "chi è venuto il 28 maggio?",
}
# The same, asked on Wednesday 27 May about the coming Thursday: the one before was a week ago.
TO_COME = {
    "the auditors arrive the day after tomorrow": "who arrives on Thursday?",
    "fire drill in two days, alarms at 11": "is there a drill on Thursday?",
    "they come on 28.05.": "who will come on 28 May?",
    "the fitter comes on Thursday": "who is coming tomorrow?",
    "übermorgen bringt die Bäckerei das Frühstück": "wer kommt am Donnerstag?",
    "le déménageur passe après-demain": "qui vient jeudi ?",
    "pasado mañana viene el técnico": "¿quién viene el jueves?",
    "послезавтра курьер заберёт мониторы": "кто приедет в четверг?",
    "明後日エアコンの業者さんが来ます": "木曜日に誰が来ますか？",
}


@pytest.mark.parametrize(
    ("text", "question", "now"),
    [*((*pair, LATER) for pair in OVER.items()), *((*pair, WEDNESDAY) for pair in TO_COME.items())],
)
def test_what_means_a_day_counts_as_of_that_day(text: str, question: str, now: datetime) -> None:
    other = candidate(2, "the kettle is clean", TUESDAY + timedelta(hours=1))
    best, second = rank([candidate(1, text, TUESDAY), other], question, now)
    assert best.text == text
    assert best.reasons is not None
    assert second.reasons is not None
    assert best.reasons["date"] in (DATE_WEIGHT, DATE_WEIGHT / 2)
    assert "date" not in second.reasons


def days(text: str, at: datetime = TUESDAY) -> list[str]:
    return [
        f"{start.astimezone(at.tzinfo):%m-%d}" + (f" +{(end - start).days}" if end - start > timedelta(days=1) else "")
        for start, end in days_meant(text, at)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("they come on Friday", ["05-29"]),
        ("we went there on Friday", ["05-22"]),
        ("the band will play on Friday", ["05-29"]),
        ("the band plays next Friday", ["05-29", "06-05"]),
        ("it was last Friday", ["05-22"]),
        ("next week", ["06-01 +7"]),
        ("next week on Friday", ["06-05"]),
        ("see you next weekend", ["05-30 +2"]),
        ("in a couple of days", ["05-28 +2"]),
        ("in two weeks", ["06-08 +7"]),
        ("the trip is on 3 May 2027", ["05-03"]),
        ("the trip will be on 3 June", ["06-03"]),
        ("the trip is on 26 May", ["05-26"]),
        ("we fly in May", ["05-01 +31"]),
        ("it was signed on 3 June", ["06-03"]),
        ("today", ["05-26"]),
        ("yesterday and tomorrow", ["05-27", "05-25"]),
        ("the friday deploy", []),
        ("next week's plan", []),
        ("on 31 June", []),
        ("in 2 goals of 3", []),
        ("may I march with you?", []),
        ("", []),
    ],
)
def test_the_days_that_a_text_means(text: str, expected: list[str]) -> None:
    assert days(text) == expected


def test_days_are_those_of_the_zone_in_which_it_was_said() -> None:
    late = datetime(2026, 5, 26, 0, 30, tzinfo=ZoneInfo("Asia/Tokyo"))  # the 25th in UTC
    assert days("tomorrow", late) == ["05-27"]
    assert days("tomorrow", late.astimezone(UTC)) == ["05-26"]


def test_only_the_beginning_of_a_text_is_read() -> None:
    assert days("x" * (MAX_CHARS_WITH_DAYS - 9) + " tomorrow") == ["05-27"]
    assert days("x" * MAX_CHARS_WITH_DAYS + " tomorrow") == []


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("who arrives on Thursday?", ["05-28"]),
        ("who will be there on Thursday?", ["05-28"]),
        ("who arrives tomorrow?", ["05-28"]),
        ("the things on Thursday", ["05-21", "05-28"]),
        ("who knows the news on Thursday", ["05-21", "05-28"]),
        ("what did we do on Thursday?", ["05-21"]),
        ("last Thursday", ["05-21"]),
        ("who is away on 3 June?", ["06-03"]),
        ("wer kommt am Donnerstag?", ["05-28"]),
        ("was haben wir am Donnerstag besprochen?", ["05-21", "05-28"]),
        ("wer war letzten Donnerstag da?", ["05-21"]),
        ("qui vient jeudi ?", ["05-21", "05-28"]),
        ("qui est venu jeudi dernier ?", ["05-21"]),
        ("who is on call this weekend?", ["05-30"]),
        ("who has the vault key?", []),
    ],
)
def test_a_question_asks_for_the_past_and_the_coming_day_unless_it_says_which(
    question: str, expected: list[str]
) -> None:
    assert [f"{start:%m-%d}" for start, _ in QuestionTimes().meant(question, WEDNESDAY)] == expected


@pytest.mark.parametrize("question", ["who has the vault key?", "who is the auditor?", "when do the auditors arrive?"])
def test_no_text_is_read_where_the_question_names_no_time(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("composer.layers.ranking.days_meant", lambda text, at: pytest.fail(text))
    assert len(list(rank([candidate(1, "the auditors come tomorrow", TUESDAY)], question, WEDNESDAY))) == 1


def test_the_texts_that_match_best_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(text: str, at: datetime) -> list[Period]:
        read.append(text)
        return []

    monkeypatch.setattr("composer.layers.ranking.days_meant", counted)
    some = [candidate(n, f"text {n}", TUESDAY, words=float(n)) for n in range(1, 2 * MAX_TEXTS_WITH_DAYS)]
    assert len(list(rank(some, "who comes on Thursday?", WEDNESDAY))) == len(some)
    assert read == [f"text {n}" for n in range(2 * MAX_TEXTS_WITH_DAYS - 1, MAX_TEXTS_WITH_DAYS - 1, -1)]


def test_a_summary_means_no_day_by_its_own_date() -> None:
    found = list(rank([candidate(1, "they arrive tomorrow", TUESDAY, kind="summary")], "who came on 27 May?", LATER))
    assert "date" not in (found[0].reasons or {})
