"""Times to come in many languages and forms: what is read, what is left over, and what is asked rather than guessed."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from composer.text.dates.repeats import Repeat
from composer.text.dates.when import Unreadable, read_when, why_unread

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 5, 4, 7, 30, tzinfo=UTC)  # a Monday, 9:30 in Berlin


@pytest.mark.parametrize(
    ("text", "at", "what", "repeats"),
    [
        ("um halb drei Tee", "Mon 2026-05-04 14:30", "Tee", ""),
        ("at 5 call", "Tue 2026-05-05 05:00", "call", ""),
        ("tomorrow 3 p.m. call", "Tue 2026-05-05 15:00", "call", ""),
        ("Friday 16.30 call", "Fri 2026-05-08 16:30", "call", ""),
        ("at noon call", "Mon 2026-05-04 12:00", "call", ""),
        ("noon call", "Mon 2026-05-04 12:00", "call", ""),
        ("tomorrow evening call", "Tue 2026-05-05 18:00", "call", ""),
        ("every monday 10 standup", "Mon 2026-05-04 10:00", "standup", "every Monday at 10:00"),
        ("in an hour and a half call", "Mon 2026-05-04 11:00", "call", ""),
        ("half past three call", "Mon 2026-05-04 15:30", "call", ""),
        ("tomorrow at half past three call", "Tue 2026-05-05 15:30", "call", ""),
        ("15h30 call", "Mon 2026-05-04 15:30", "call", ""),
        ("tomorrow 15h call", "Tue 2026-05-05 15:00", "call", ""),
        ("at quarter to five call", "Mon 2026-05-04 16:45", "call", ""),
        ("tomorrow at 9 o'clock call", "Tue 2026-05-05 09:00", "call", ""),
        ("tomorrow at nine call", "Tue 2026-05-05 09:00", "call", ""),
        ("at midnight call", "Tue 2026-05-05 00:00", "call", ""),
        ("Fri 9am call", "Fri 2026-05-08 09:00", "call", ""),
        ("next Friday call", "Fri 2026-05-08 09:00", "call", ""),
        ("next friday at 8 in the morning call", "Fri 2026-05-08 08:00", "call", ""),
        ("in 3 months call", "Tue 2026-08-04 09:30", "call", ""),
        ("in 1.5 hours call", "Mon 2026-05-04 11:00", "call", ""),
        ("in 90 minutes call", "Mon 2026-05-04 11:00", "call", ""),
        ("2 hours from now call", "Mon 2026-05-04 11:30", "call", ""),
        ("end of month call", "Sun 2026-05-31 17:00", "call", ""),
        ("eod call", "Mon 2026-05-04 17:00", "call", ""),
        ("the day after tomorrow at 8 call", "Wed 2026-05-06 08:00", "call", ""),
        ("12 p.m. call", "Mon 2026-05-04 12:00", "call", ""),
        ("tomorrow 12 a.m. call", "Tue 2026-05-05 00:00", "call", ""),
        ("25.12.2026 10:00 call", "Fri 2026-12-25 10:00", "call", ""),
        ("12/25 10:00 call", "Fri 2026-12-25 10:00", "call", ""),
        ("29 February 9:00 call", "Tue 2028-02-29 09:00", "call", ""),
        ("every month on the 1st at 9 pay rent", "Mon 2026-06-01 09:00", "pay rent", "on day 1 of every month at 09:00"),
        ("on the first of every month at 10:00 pay rent", "Mon 2026-06-01 10:00", "pay rent", "on day 1 of every month at 10:00"),
        ("weekdays at 9 standup", "Tue 2026-05-05 09:00", "standup", "every weekday at 09:00"),
        ("daily at 8:30 standup", "Tue 2026-05-05 08:30", "standup", "every day at 08:30"),
        ("every morning at 8 stretch", "Tue 2026-05-05 08:00", "stretch", "every day at 08:00"),
        ("call Tom in 2 hours", "Mon 2026-05-04 11:30", "call Tom", ""),
        ("to call the bank tomorrow at 9", "Tue 2026-05-05 09:00", "call the bank", ""),
        ("call mum on Friday at 5pm please", "Fri 2026-05-08 17:00", "call mum", ""),
        ("at 9 every monday standup", "Mon 2026-05-11 09:00", "standup", "every Monday at 09:00"),
        ("this evening call", "Mon 2026-05-04 18:00", "call", ""),
        ("tonight at 8 call", "Mon 2026-05-04 20:00", "call", ""),
        ("in the evening call", "Mon 2026-05-04 18:00", "call", ""),
        ("morgen um 9 Bob anrufen", "Tue 2026-05-05 09:00", "Bob anrufen", ""),
        ("übermorgen um 8 Bob anrufen", "Wed 2026-05-06 08:00", "Bob anrufen", ""),
        ("morgen abend um 8 Bob anrufen", "Tue 2026-05-05 20:00", "Bob anrufen", ""),
        ("jeden Montag um 10 Standup", "Mon 2026-05-04 10:00", "Standup", "every Monday at 10:00"),
        ("jeden Werktag um 9:30 Standup", "Tue 2026-05-05 09:30", "Standup", "every weekday at 09:30"),
        ("in einer halben Stunde Tee", "Mon 2026-05-04 10:00", "Tee", ""),
        ("in anderthalb Stunden Tee", "Mon 2026-05-04 11:00", "Tee", ""),
        ("am Freitag um 16.30 Uhr Bericht", "Fri 2026-05-08 16:30", "Bericht", ""),
        ("am 3. Juni um 10 Uhr Zahnarzt", "Wed 2026-06-03 10:00", "Zahnarzt", ""),
        ("heute Abend Müll rausbringen", "Mon 2026-05-04 20:00", "Müll rausbringen", ""),
        ("jeden Monat am 1. um 9 Miete", "Mon 2026-06-01 09:00", "Miete", "on day 1 of every month at 09:00"),
        ("morgen um 9 an die Miete", "Tue 2026-05-05 09:00", "an die Miete", ""),
        ("an die Miete morgen um 9", "Tue 2026-05-05 09:00", "an die Miete", ""),
        ("nächsten Montag um 8 Uhr früh Bus", "Mon 2026-05-11 08:00", "Bus", ""),
        ("lundi à 9h appeler Bob", "Mon 2026-05-11 09:00", "appeler Bob", ""),
        ("demain à 15h30 appeler Bob", "Tue 2026-05-05 15:30", "appeler Bob", ""),
        ("demain soir appeler Bob", "Tue 2026-05-05 18:00", "appeler Bob", ""),
        ("après-demain à 8 h appeler Bob", "Wed 2026-05-06 08:00", "appeler Bob", ""),
        ("dans une demi-heure appeler Bob", "Mon 2026-05-04 10:00", "appeler Bob", ""),
        ("tous les lundis à 10h réunion", "Mon 2026-05-04 10:00", "réunion", "every Monday at 10:00"),
        ("vendredi prochain à midi déjeuner", "Fri 2026-05-08 12:00", "déjeuner", ""),
        ("mañana a las 5 de la tarde llamar a Bob", "Tue 2026-05-05 17:00", "llamar a Bob", ""),
        ("el viernes a las 16:30 llamar", "Fri 2026-05-08 16:30", "llamar", ""),
        ("pasado mañana a las 8 llamar", "Wed 2026-05-06 08:00", "llamar", ""),
        ("en media hora llamar", "Mon 2026-05-04 10:00", "llamar", ""),
        ("cada lunes a las 10 reunión", "Mon 2026-05-04 10:00", "reunión", "every Monday at 10:00"),
        ("dentro de dos horas llamar", "Mon 2026-05-04 11:30", "llamar", ""),
        ("amanhã às 9 ligar para o Bob", "Tue 2026-05-05 09:00", "ligar para o Bob", ""),
        ("toda segunda às 10 reunião", "Mon 2026-05-04 10:00", "reunião", "every Monday at 10:00"),
        ("daqui a duas horas ligar", "Mon 2026-05-04 11:30", "ligar", ""),
        ("domani alle 9 chiamare Bob", "Tue 2026-05-05 09:00", "chiamare Bob", ""),
        ("tra un'ora chiamare", "Mon 2026-05-04 10:30", "chiamare", ""),
        ("ogni lunedì alle 10 riunione", "Mon 2026-05-04 10:00", "riunione", "every Monday at 10:00"),
        ("domani pomeriggio alle 3 chiamare", "Tue 2026-05-05 15:00", "chiamare", ""),
        ("morgen om 9 uur Bob bellen", "Tue 2026-05-05 09:00", "Bob bellen", ""),
        ("over twee uur bellen", "Mon 2026-05-04 11:30", "bellen", ""),
        ("elke maandag om 10 uur standup", "Mon 2026-05-04 10:00", "standup", "every Monday at 10:00"),
        ("jutro o 9 zadzwonić", "Tue 2026-05-05 09:00", "zadzwonić", ""),
        ("za dwie godziny zadzwonić", "Mon 2026-05-04 11:30", "zadzwonić", ""),
        ("w każdy poniedziałek o 10 spotkanie", "Mon 2026-05-04 10:00", "spotkanie", "every Monday at 10:00"),
        ("w piątek o 16:30 raport", "Fri 2026-05-08 16:30", "raport", ""),
        ("завтра в 9 позвонить Бобу", "Tue 2026-05-05 09:00", "позвонить Бобу", ""),
        ("через два часа позвонить", "Mon 2026-05-04 11:30", "позвонить", ""),
        ("каждый понедельник в 10 планёрка", "Mon 2026-05-04 10:00", "планёрка", "every Monday at 10:00"),
        ("в пятницу в 5 вечера отчёт", "Fri 2026-05-08 17:00", "отчёт", ""),
        ("завтра о 9 подзвонити", "Tue 2026-05-05 09:00", "подзвонити", ""),
        ("через годину подзвонити", "Mon 2026-05-04 10:30", "подзвонити", ""),
        ("yarın saat 9'da Bob'u ara", "Tue 2026-05-05 09:00", "Bob'u ara", ""),
        ("iki saat sonra ara", "Mon 2026-05-04 11:30", "ara", ""),
        ("her pazartesi saat 10'da toplantı", "Mon 2026-05-04 10:00", "toplantı", "every Monday at 10:00"),
        ("imorgon klockan 9 ring Bob", "Tue 2026-05-05 09:00", "ring Bob", ""),
        ("om två timmar ring", "Mon 2026-05-04 11:30", "ring", ""),
        ("på fredag kl 16.30 rapport", "Fri 2026-05-08 16:30", "rapport", ""),
        ("明日の午後3時に会議", "Tue 2026-05-05 15:00", "会議", ""),
        ("明日9時にボブに電話", "Tue 2026-05-05 09:00", "ボブに電話", ""),
        ("2時間後に電話", "Mon 2026-05-04 11:30", "電話", ""),
        ("毎週月曜日10時に会議", "Mon 2026-05-04 10:00", "会議", "every Monday at 10:00"),
        ("毎日9時に体操", "Tue 2026-05-05 09:00", "体操", "every day at 09:00"),
        ("明天下午3点开会", "Tue 2026-05-05 15:00", "开会", ""),
        ("明天9点给鲍勃打电话", "Tue 2026-05-05 09:00", "给鲍勃打电话", ""),
        ("两小时后打电话", "Mon 2026-05-04 11:30", "打电话", ""),
        ("每周一10点开会", "Mon 2026-05-04 10:00", "开会", "every Monday at 10:00"),
        ("下周五上午9点半开会", "Fri 2026-05-15 09:30", "开会", ""),
        ("내일 9시에 전화", "Tue 2026-05-05 09:00", "전화", ""),
        ("내일 오후 3시에 회의", "Tue 2026-05-05 15:00", "회의", ""),
        ("2시간 후에 전화", "Mon 2026-05-04 11:30", "전화", ""),
        ("매주 월요일 10시에 회의", "Mon 2026-05-04 10:00", "회의", "every Monday at 10:00"),
        ("غدا في الساعة 9 اتصل ببوب", "Tue 2026-05-05 09:00", "اتصل ببوب", ""),
        ("بعد ساعتين اتصل", "Mon 2026-05-04 11:30", "اتصل", ""),
        ("كل يوم اثنين الساعة 10 اجتماع", "Mon 2026-05-04 10:00", "اجتماع", "every Monday at 10:00"),
        ("कल 9 बजे बॉब को फ़ोन करना", "Tue 2026-05-05 09:00", "बॉब को फ़ोन करना", ""),
        ("हर सोमवार 10 बजे बैठक", "Mon 2026-05-04 10:00", "बैठक", "every Monday at 10:00"),
        ("मुझे कल शाम 5 बजे फ़ोन", "Tue 2026-05-05 17:00", "फ़ोन", ""),
        ("מחר בשעה 9 להתקשר", "Tue 2026-05-05 09:00", "להתקשר", ""),
        ("ngày mai lúc 9 giờ gọi Bob", "Tue 2026-05-05 09:00", "gọi Bob", ""),
        ("besok jam 9 telepon Bob", "Tue 2026-05-05 09:00", "telepon Bob", ""),
        ("zítra v 9 zavolat", "Tue 2026-05-05 09:00", "zavolat", ""),
        ("huomenna klo 9 soita", "Tue 2026-05-05 09:00", "soita", ""),
    ],
)  # fmt: skip
def test_a_time_is_read_whole(text: str, at: str, what: str, repeats: str) -> None:
    found = read_when(text, NOW, BERLIN)
    assert found is not None
    when, rest = found
    assert (f"{when.at.astimezone(BERLIN):%a %Y-%m-%d %H:%M}", rest) == (at, what)
    assert (when.repeat.words if when.repeat else "") == repeats


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("01/02 9:00 call", Unreadable.TWO_DAYS),
        ("every other monday at 9 call", Unreadable.REPEAT),
        ("tomorrow call Bob at 10:00", Unreadable.PART),
        ("tomorrow before noon call", Unreadable.PART),
        ("Friday around lunch call", Unreadable.PART),
        ("tomorrow or Friday call", Unreadable.PART),
        ("monday-friday 9:00 standup", Unreadable.PART),
        ("9:00 - 10:00 tea", Unreadable.PART),
        ("yesterday call", Unreadable.OVER),
        ("morgen oder Freitag Bob anrufen", Unreadable.PART),
        ("morgen vor 12:00 Bob anrufen", Unreadable.PART),
        ("demain appeler Bob à 15h30", Unreadable.PART),
        ("gestern Bob anrufen", Unreadable.OVER),
        ("le 31 juin appeler Bob", Unreadable.ABSENT),
        ("3/4 um 9 Bob anrufen", Unreadable.TWO_DAYS),
        ("every 2 weeks review", Unreadable.REPEAT),
        ("next week call", None),
    ],
)  # fmt: skip
def test_a_time_that_is_understood_in_part_is_asked(text: str, why: Unreadable | None) -> None:
    assert read_when(text, NOW, BERLIN) is None
    assert why_unread(text, NOW, BERLIN, timedelta(days=732)) is why


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("12 p.m. call", "noon"), ("tomorrow 12am call", "midnight"), ("at 5 call", "write 17:00"),
        ("half past three call", "write 03:30"), ("tomorrow call", "no hour"), ("Freitag anrufen", "no hour"),
        ("2026-10-25 02:30 call", "twice"), ("2027-03-28 02:30 call", "leave out 02:30"), ("um 4 anrufen", "write 16:00"),
        ("tomorrow evening call", "no hour"),
    ],
)  # fmt: skip
def test_what_was_assumed_is_said(text: str, note: str) -> None:
    found = read_when(text, NOW, BERLIN)
    assert found is not None
    assert note in found[0].note


@pytest.mark.parametrize(
    "text", ["tomorrow 3 p.m. call", "in 2 hours call", "lundi à 9h appeler", "明日9時に電話", "at 07:00 run"]
)
def test_of_a_whole_time_nothing_is_said(text: str) -> None:
    found = read_when(text, NOW, BERLIN)
    assert found is not None
    assert found[0].note == ""


@pytest.mark.parametrize(
    ("text", "at", "what"),
    [
        ("at 9:00 UTC call", "05-04 11:00", "call"),
        ("tomorrow 9am America/New_York call", "05-05 15:00", "call"),
        ("call Bob tomorrow at 9 (Asia/Tokyo)", "05-05 02:00", "call Bob"),
        ("morgen um 9 Uhr Europe/London Bob anrufen", "05-05 10:00", "Bob anrufen"),
        ("tomorrow at 9:15 say that the call is 9:00 UTC", "05-05 09:15", "say that the call is 9:00 UTC"),
        ("every monday at 10:00 UTC standup", "05-04 12:00", "standup"),
    ],
)
def test_a_zone_after_the_hour_is_that_of_the_time(text: str, at: str, what: str) -> None:
    found = read_when(text, NOW, BERLIN)
    assert found is not None
    assert (f"{found[0].at.astimezone(BERLIN):%m-%d %H:%M}", found[1]) == (at, what)
    repeat = found[0].repeat
    assert repeat is None or (repeat.words, Repeat.of(str(repeat))) == ("every Monday at 10:00 (UTC)", repeat)


def test_a_zone_that_is_several_is_asked() -> None:
    for text in ("9:00 PST call", "tomorrow at 9 IST call", "at 9pm CET call", "at 9:00 Europe/Atlantis call"):
        assert read_when(text, NOW, BERLIN) is None
        assert why_unread(text, NOW, BERLIN, timedelta(days=732)) is Unreadable.ZONE, text


def test_the_last_day_of_a_month_is_kept() -> None:
    found = read_when("every month on the 31st at 9:00 pay", NOW, BERLIN)
    assert found is not None
    repeat = found[0].repeat
    assert repeat is not None
    days = [found[0].at]
    days += [day := repeat.after(days[-1], BERLIN)]
    days += [repeat.after(day, BERLIN)]
    assert [f"{day.astimezone(BERLIN):%m-%d %H:%M}" for day in days] == ["05-31 09:00", "06-30 09:00", "07-31 09:00"]
