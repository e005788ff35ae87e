"""Which messages ask in words to be reminded, and whom; which only sound so."""

import pytest

from composer.text.requests import asks_for_reminder, reminds_all


@pytest.mark.parametrize(
    ("text", "everyone"),
    [
        ("remind me tomorrow to call Bob", False),
        ("@nexus can you remind us at 9?", True),
        ("erinnere mich morgen um 9 an den Zahnarzt", False),
        ("Bitte erinner mich in 10 Minuten an den Tee", False),
        ("@nexus kannst du mich morgen an die Rechnung erinnern?", False),
        ("erinnere uns jeden Montag an das Stand-up", True),
        ("rappelle-moi demain d'appeler Bob", False),
        ("Peux-tu me rappeler d\u2019acheter du pain demain ?", False),
        ("rappelez-nous le stand-up à 9 h", True),
        ("recuérdame mañana que llame a Bob", False),
        ("recuerdame en 10 minutos sacar el pan", False),
        ("¿puedes recordarnos la reunión a las 9?", True),
    ],
)
def test_what_asks_for_a_reminder(text: str, everyone: bool) -> None:
    assert asks_for_reminder(text)
    assert reminds_all(text) is everyone


@pytest.mark.parametrize(
    "text",
    [
        *("remind me what Bob said", "that reminds me of something"),
        *("ich erinnere mich an den Zahnarzt", "Erinnere mich noch gut an den Tag", "Erinnere mich nicht daran"),
        *("Das erinnert mich an was", "erinnerst du dich an Bob?", "Kannst du mich verstehen?"),
        *("rappelle-moi ce que Bob a dit", "Rappelle-moi comment on déploie", "je me rappelle de ça"),
        *("ça me rappelle quelque chose", "peux-tu me rappeler quand c'est ?"),
        *("recuérdame qué dijo Bob", "recuerdame que dijo", "¿puedes recordarme cuándo es?", "recuérdame lo que dijo"),
        *("eso me recuerda a algo", "no recuerdo"),
    ],
)
def test_what_asks_for_none(text: str) -> None:
    assert not asks_for_reminder(text)
