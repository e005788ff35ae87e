"""Wishes to be reminded in many languages: what is read of each, and which requests to store are known."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from composer.text.requests import asks_to_store
from composer.text.wishes import reminder_wish

NOW = datetime(2026, 5, 4, 7, 30, tzinfo=UTC)  # a Monday, 9:30 in Berlin
NINE = "05-05 09:00"


@pytest.mark.parametrize(
    ("text", "at", "what"),
    [
        ("remind me in 2 hours to call Tom", "05-04 11:30", "call Tom"), ("remind me to call Tom in 2 hours", "05-04 11:30", "call Tom"),
        ("@nexus can you remind me tomorrow at 3 p.m. about the rent?", "05-05 15:00", "the rent"),
        ("Please remind me on Friday at 16.30 that the shop closes", "05-08 16:30", "the shop closes"),
        ("Erinnere mich morgen um 9 an die Miete", NINE, "an die Miete"), ("Erinnere mich morgen um 9 daran, Bob anzurufen", NINE, "Bob anzurufen"),
        ("Kannst du mich morgen um 9 an den Termin erinnern?", NINE, "an den Termin"),
        ("Rappelle-moi demain à 9h d'appeler Bob", NINE, "appeler Bob"), ("peux-tu me rappeler demain à 9h d'appeler Bob ?", NINE, "appeler Bob"),
        ("Recuérdame mañana a las 9 llamar a Bob", NINE, "llamar a Bob"), ("Me lembra amanhã às 9 de ligar para o Bob", NINE, "ligar para o Bob"),
        ("Ricordami domani alle 9 di chiamare Bob", NINE, "chiamare Bob"), ("Herinner me er morgen om 9 uur aan Bob te bellen", NINE, "aan Bob te bellen"),
        ("Przypomnij mi jutro o 9, żebym zadzwonił do Boba", NINE, "żebym zadzwonił do Boba"), ("Напомни мне завтра в 9 позвонить Бобу", NINE, "позвонить Бобу"),
        ("Нагадай мені завтра о 9 подзвонити Бобу", NINE, "подзвонити Бобу"), ("Yarın saat 9'da Bob'u aramamı hatırlat", NINE, "Bob'u aramamı"),
        ("ذكرني غدا في الساعة 9 أن أتصل ببوب", NINE, "أتصل ببوب"), ("मुझे कल 9 बजे बॉब को फ़ोन करने की याद दिलाना", NINE, "बॉब को फ़ोन करने"),
        ("明天9点提醒我给鲍勃打电话", NINE, "给鲍勃打电话"), ("提醒我明天9点给鲍勃打电话", NINE, "给鲍勃打电话"), ("明日9時にボブに電話するようリマインドして", NINE, "ボブに電話するよう"),
        ("내일 9시에 밥에게 전화하라고 알려 줘", NINE, "밥에게 전화하라"), ("Påminn mig imorgon klockan 9 om mötet", NINE, "mötet"),
        ("Připomeň mi zítra v 9 zavolat Bobovi", NINE, "zavolat Bobovi"), ("Muistuta minua huomenna klo 9 soittamaan Bobille", NINE, "soittamaan Bobille"),
        ("Ingatkan saya besok jam 9 telepon Bob", NINE, "telepon Bob"), ("Nhắc tôi ngày mai lúc 9 giờ gọi Bob", NINE, "gọi Bob"),
    ],
)  # fmt: skip
def test_a_wish_is_read_with_its_time_and_its_words(text: str, at: str, what: str) -> None:
    wish = reminder_wish(text, NOW, ZoneInfo("Europe/Berlin"))
    assert wish is not None
    assert (f"{wish.when.at.astimezone(ZoneInfo('Europe/Berlin')):%m-%d %H:%M}", wish.text) == (at, what)


@pytest.mark.parametrize(
    "text",
    [
        *("remind me sometime to call", "remind me tomorrow or Friday to call", "remind me what Bob said tomorrow", "remind me of it", "it reminds me of tomorrow 9:00"),
        *("Erinnere mich irgendwann an die Miete", "Напомни мне, что сказал Боб", "提醒我一下", "Ricordami cosa ha detto Bob ieri", "教えてください"),
        *("明日9時に何があるか知っている？", "Bob hatırlattı, yarın saat 9'da toplantı var", "remind me tomorrow at 9", "Przypomnij mi hasło", "ricordami il nome"),
    ],
)  # fmt: skip
def test_what_is_no_wish_or_not_understood_whole_is_none(text: str) -> None:
    assert reminder_wish(text, NOW, UTC) is None


@pytest.mark.parametrize(
    "text",
    [
        *("please remember that the door code is 4455", "Merk dir bitte, dass der Türcode 4455 ist", "Souviens-toi que le code est 4455"),
        *("Zapamiętaj, że kod do drzwi to 4455", "Запомни: код двери 4455", "Запам'ятай: код дверей 4455", "Kapı kodunun 4455 olduğunu unutma"),
        *("تذكر أن رمز الباب هو 4455", "याद रखना कि दरवाज़े का कोड 4455 है", "请记住门禁密码是4455", "ドアのコードは4455だと覚えておいて"),
        *("현관 비밀번호가 4455라는 걸 기억해 줘", "Kom ihåg att koden är 4455", "Ingat, kode pintu 4455", "Hãy nhớ mã cửa là 4455"),
    ],
)  # fmt: skip
def test_what_asks_to_store_something(text: str) -> None:
    assert asks_to_store(text)
