"""The days that questions name, in many languages and in numbers; and lines that name none."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from composer.text.dates.periods import asked_periods

NOW = datetime(2026, 6, 1, 10, tzinfo=UTC).astimezone(ZoneInfo("Europe/Berlin"))  # a Monday

# What is asked, and the first and the last day that it means.
MAY_3, MAY_31, YESTERDAY, BEFORE = ("05-03", "05-03"), ("05-31", "05-31"), ("05-31", "05-31"), ("05-30", "05-30")
LAST_WEEK, TWO_WEEKS, FRIDAY, MAY = ("05-25", "05-31"), ("05-18", "05-24"), ("05-29", "05-29"), ("05-01", "05-31")
CASES = {
    "what was said on 31.05.2026?": MAY_31, "what was said on 31/05/2026?": MAY_31, "what was said on 5/31?": MAY_31,
    "what was said on 2026/05/31?": MAY_31, "what was decided on 31.05.?": MAY_31, "what was said on 31/5/26?": MAY_31,
    "what was said on 31 May?": MAY_31, "what was said on May 30th?": BEFORE, "what was said two weeks ago?": TWO_WEEKS,
    "what was said last Friday?": FRIDAY, "what was said the day before yesterday?": BEFORE, "and last week?": LAST_WEEK,
    "was wurde am 31. Mai gesagt?": MAY_31, "was haben wir am 3. Mai beschlossen?": MAY_3, "was war gestern los?": YESTERDAY,
    "was haben wir vorgestern besprochen?": BEFORE, "was wurde letzte Woche entschieden?": LAST_WEEK,
    "was haben wir vor zwei Wochen gesagt?": TWO_WEEKS, "was war letzten Freitag?": FRIDAY, "was geschah im Mai?": MAY,
    "was haben wir am Freitag entschieden?": FRIDAY, "was stand am 31.5. im Chat?": MAY_31, "was war vor 2 Tagen?": BEFORE,
    "qu'est-ce qu'on a dit hier ?": YESTERDAY, "qu'avons-nous décidé le 3 mai ?": MAY_3, "et avant-hier ?": BEFORE,
    "qu'est-ce qui a été dit la semaine dernière ?": LAST_WEEK, "on a dit quoi il y a deux semaines ?": TWO_WEEKS,
    "qu'a-t-on décidé vendredi dernier ?": FRIDAY, "qu'est-ce qu'on a dit en mai ?": MAY, "de quoi on a parlé vendredi ?": FRIDAY,
    "¿qué se dijo ayer?": YESTERDAY, "¿qué decidimos el 3 de mayo?": MAY_3, "¿qué se dijo anteayer?": BEFORE,
    "¿qué dijimos la semana pasada?": LAST_WEEK, "¿qué se dijo hace dos semanas?": TWO_WEEKS, "¿qué pasó en mayo?": MAY,
    "¿de qué hablamos el viernes pasado?": FRIDAY, "¿qué se dijo el viernes?": FRIDAY, "¿qué dijo Ana hace 2 días?": BEFORE,
    "o que foi dito ontem?": YESTERDAY, "o que decidimos em 3 de maio?": MAY_3, "o que foi dito anteontem?": BEFORE,
    "o que dissemos na semana passada?": LAST_WEEK, "o que foi dito há duas semanas?": TWO_WEEKS, "o que se disse na sexta?": FRIDAY,
    "cosa abbiamo detto ieri?": YESTERDAY, "cosa abbiamo deciso il 3 maggio?": MAY_3, "di cosa si è parlato l'altro ieri?": BEFORE,
    "cosa è stato detto la settimana scorsa?": LAST_WEEK, "cosa si è detto due settimane fa?": TWO_WEEKS, "e venerdì scorso?": FRIDAY,
    "wat is er gisteren gezegd?": YESTERDAY, "wat hebben we op 3 mei besloten?": MAY_3, "wat zeiden we eergisteren?": BEFORE,
    "wat is er vorige week gezegd?": LAST_WEEK, "wat is er twee weken geleden gezegd?": TWO_WEEKS, "wat was er afgelopen vrijdag?": FRIDAY,
    "co mówiono wczoraj?": YESTERDAY, "co ustaliliśmy 3 maja?": MAY_3, "co było przedwczoraj?": BEFORE, "co mówiliśmy w piątek?": FRIDAY,
    "o czym mówiliśmy w zeszłym tygodniu?": LAST_WEEK, "co było dwa tygodnie temu?": TWO_WEEKS,
    "что решили два дня назад?": BEFORE, "що було два дні тому?": BEFORE,
    "что говорили вчера?": YESTERDAY, "что решили 3 мая?": MAY_3, "что было позавчера?": BEFORE, "что решили в пятницу?": FRIDAY,
    "о чём говорили на прошлой неделе?": LAST_WEEK, "что было две недели назад?": TWO_WEEKS, "что решили в прошлую пятницу?": FRIDAY,
    "що говорили вчора?": YESTERDAY, "що вирішили 3 травня?": MAY_3, "про що говорили минулого тижня?": LAST_WEEK, "що було позавчора?": BEFORE,
    "dün ne konuşuldu?": YESTERDAY, "3 Mayıs'ta ne karar verdik?": MAY_3, "geçen hafta ne konuştuk?": LAST_WEEK,
    "iki hafta önce ne oldu?": TWO_WEEKS, "geçen cuma ne oldu?": FRIDAY, "evvelsi gün ne konuşuldu?": BEFORE,
    "vad sa vi igår?": YESTERDAY, "vad bestämde vi den 3 maj?": MAY_3, "vad sades förra veckan?": LAST_WEEK, "vad sa vi i fredags?": FRIDAY,
    "vad sa vi i förrgår?": BEFORE, "vad hände för två veckor sedan?": TWO_WEEKS,
    "hvad sagde vi i går?": YESTERDAY, "hvad blev der sagt sidste uge?": LAST_WEEK, "hva sa vi forrige uke?": LAST_WEEK,
    "o čem jsme mluvili včera?": YESTERDAY, "co jsme řekli 3. května?": MAY_3, "co bylo minulý týden?": LAST_WEEK,
    "mistä puhuttiin eilen?": YESTERDAY, "mitä päätettiin 3. toukokuuta?": MAY_3, "mistä puhuttiin viime viikolla?": LAST_WEEK,
    "ce s-a spus ieri?": YESTERDAY, "ce am decis pe 3 mai?": MAY_3, "ce s-a discutat săptămâna trecută?": LAST_WEEK,
    "昨日は何の話をした？": YESTERDAY, "5月3日に何を決めた？": MAY_3, "先週何を話した？": LAST_WEEK, "一昨日の話は？": BEFORE,
    "2週間前に何を決めた？": TWO_WEEKS, "先週の金曜日に何を話した？": FRIDAY, "2026年5月31日に何があった？": MAY_31,
    "昨天说了什么？": YESTERDAY, "5月3日我们决定了什么？": MAY_3, "上周讨论了什么？": LAST_WEEK, "前天说了什么？": BEFORE, "两周前说了什么？": TWO_WEEKS,
    "上周五说了什么？": FRIDAY, "어제 무슨 얘기 했어?": YESTERDAY, "5월 3일에 뭘 정했어?": MAY_3, "지난주에 무슨 얘기 했지?": LAST_WEEK,
    "그저께 뭐라고 했어?": BEFORE, "2주 전에 뭘 정했지?": TWO_WEEKS, "지난주 금요일에 뭐라고 했어?": FRIDAY,
    "ماذا قيل أمس؟": YESTERDAY, "ماذا قررنا في 3 مايو؟": MAY_3, "ماذا قيل الأسبوع الماضي؟": LAST_WEEK, "ماذا قيل قبل أسبوعين؟": TWO_WEEKS,
    "कल क्या बात हुई थी?": YESTERDAY, "3 मई को क्या तय हुआ?": MAY_3, "पिछले हफ़्ते क्या बात हुई?": LAST_WEEK,
    "מה נאמר אתמול?": YESTERDAY, "מה החלטנו ב-3 במאי?": MAY_3, "מה נאמר בשבוע שעבר?": LAST_WEEK, "מה נאמר שלשום?": BEFORE,
    "hôm qua nói gì?": YESTERDAY, "ngày 3 tháng 5 chúng ta quyết định gì?": MAY_3, "tuần trước nói gì?": LAST_WEEK,
    "apa yang dibahas kemarin?": YESTERDAY, "apa yang diputuskan pada 3 Mei?": MAY_3, "apa yang dibahas minggu lalu?": LAST_WEEK,
}  # fmt: skip


@pytest.mark.parametrize(("question", "days"), CASES.items())
def test_the_days_that_a_question_names(question: str, days: tuple[str, str]) -> None:
    found = [
        (f"{start.astimezone(NOW.tzinfo):%m-%d}", f"{end.astimezone(NOW.tzinfo) - timedelta(days=1):%m-%d}")
        for start, end in asked_periods(question, NOW)
    ]
    assert found == [days]


def test_a_day_that_may_be_two_is_both() -> None:
    found = asked_periods("what was said on 01/02/2026?", NOW)
    assert sorted(f"{start.astimezone(NOW.tzinfo):%m-%d}" for start, _ in found) == ["01-02", "02-01"]


@pytest.mark.parametrize(
    "line",
    [
        *("may I use the sun lounger?", "so what do we do?", "we march on", "mon ami est là", "the service runs 24/7", "3/4 of it is done"),
        *("Was ist hier los?", "Wie ist hier das Passwort?", "Version 1.2.3 läuft"),
        *("Guten Morgen zusammen", "goedemorgen allemaal", "wat is hier het wachtwoord?", "God morgon!", "Die Mitte ist rot", "mi casa es su casa"),
        *("do you have a mar or dom file?", "der Sonntagsbraten", "mais c'est bon", "la mar está en calma", "Jan hat die Datei", "Mai ist nett"),
        *("你好，密码是什么？", "日本の首都は？", "월드컵 봤어?", "इस काम के लिए धन्यवाद", "сон был долгим", "ma si può fare?"),
        # Words that are names of days and months as well, as public texts have them.
        *("Quốc gia nào sản xuất dầu lớn thứ hai thế giới?", "Dünya'nın en büyük şehri hangisi?", "ENR hangi yılda dokuz pazar diliminde veri derledi?"),
        *("Comisiile sunt prezente în mai multe state.", "كم تستطيع أن تأكل في يوم واحد؟", "أحد أعرق الأحياء في المدينة", "Temel fark ağ ucundaki işlevdir."),
        *("o segundo lugar e a terça parte", "la quinta sinfonia", "mi hermana va en sexta marcha", "ve hangi özelliğiyle tanınır?"),
        *("ti do una mano", "sen de gel", "vas a venir?", "sex personer kom", "for å si det", "el plan B", "su nombre es Ana"),
    ],
)  # fmt: skip
def test_a_line_without_a_day_names_none(line: str) -> None:
    assert asked_periods(line, NOW) == []
