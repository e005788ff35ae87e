"""Which messages ask in words to be reminded, and whom; which only sound so."""

import pytest

from composer.text.wishes import asks_for_reminder, reminds_all


@pytest.mark.parametrize(
    ("text", "everyone"),
    [
        ("remind me tomorrow to call Bob", False),
        ("@nexus can you remind us at 9?", True),
        ("erinnere mich morgen um 9 an den Zahnarzt", False),
        ("Bitte erinner mich in 10 Minuten an den Tee", False),
        ("erinner mich an die Rechnung, morgen 9:00", False),
        ("@nexus erinnere mich in einer halben Stunde daran, den Ofen auszumachen", False),
        ("erinnere uns jeden Montag an das Stand-up", True),
        ("rappelle-moi demain d'appeler Bob", False),
        ("Rappelle-moi d\u2019acheter du pain demain", False),
        ("rappelez-nous à 9 h de faire le stand-up", True),
        ("recuérdame mañana que llame a Bob", False),
        ("recuerdame en 10 minutos sacar el pan", False),
        ("recuérdanos preparar la reunión a las 9", True),
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
        # "Call me back", "looks like", and what was said or is known
        *("Rappelle-moi demain 9:00 au bureau", "Rappelle-moi demain, je suis en réunion", "Rappelle-moi plus tard"),
        *("Rappelez-moi au 06 12 34 56 78", "rappelle-moi demain au sujet de Pierre", "rappelle-moi ton nom"),
        *("rappelle-moi le mot de passe", "rappelle-moi de quoi on parlait", "rappelle-moi de quoi on parlait demain"),
        *("Hey, erinnert mich an morgen 9:00, das Foto", "Schönes Foto, erinnert mich an Oma"),
        *("Hey, erinnert mich an früher", "Super Song, erinnert uns an den Sommer", "Erinnere mich an morgen"),
        *("Bitte erinnere mich, wie das ging", "Ein toller Film: erinnert mich an Titanic"),
        *("Kannst du mich daran erinnern, was Bob gesagt hat?", "erinner mich daran, was wir gestern gesagt haben"),
        *("erinnere mich heute daran, was Bob gesagt hat", "ich erinnere mich morgen um 9 an alles"),
        *("Erinnere mich an Oma. Morgen koche ich",),
        *("recuérdame de qué hablamos", "Recuérdame tu nombre", "ok, recuérdame a tu hermana"),
        *("recuerdame hoy que dijo Bob", "recuérdame que hicimos hoy", "recuérdame ayer a las 9"),
    ],
)
def test_what_asks_for_none(text: str) -> None:
    assert not asks_for_reminder(text)
