"""Which messages ask in words to have something forgotten, and which only sound so."""

import pytest

from composer.text.forgetting import Forgetting, asked_to_forget


@pytest.mark.parametrize(
    "text",
    [
        "forget that",
        "Forget that!",
        "@nexus forget that please",
        "please forget this.",
        "Oops, wrong room. Can you delete that?",
        "could you please forget that",
        "forget what I just said",
        "Please forget what I\u2019ve told you about Bob",
        "delete my last message",
        "can you erase everything I said today",
        "please remove my previous two messages",
        "wait, forget that again",
        "delete that from your memory",
        "forget that message",
        "don't remember what I said",
        "please don't remember that",
        "never store that",
    ],
)
def test_what_was_said_before(text: str) -> None:
    assert asked_to_forget(text) in (Forgetting.BEFORE, Forgetting.THIS)


@pytest.mark.parametrize(
    "text",
    [
        "My PIN is 1234, please don't remember this",
        "I'm leaving in May. Don't store this!",
        "please do not keep this: the salary is 91k",
        "The code is 9911. Forget that",
        *("Meine PIN ist 1234, speichere das bitte nicht.", "Le code est 9911, ne retiens pas ça"),
        *("Mi clave es 1234. Borra eso", "Мой пароль 1234. удали это пожалуйста"),
        "@nexus: the code of the big vault is 9911, forget that",
    ],
)
def test_what_the_message_says_itself(text: str) -> None:
    assert asked_to_forget(text) is Forgetting.THIS


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        *(("dimentica quello che ho detto", "before"), ("esquece o que eu disse sobre o Rui", "before")),
        *(("wis mijn laatste bericht", "before"), ("skasuj to co powiedziałem", "before")),
        *(("удали моё последнее сообщение", "before"), ("bunu kaydetme lütfen", "before")),
        *(
            ("请不要记录这个。", "before"),
            ("さっきのメッセージを消してください", "before"),
            ("이거 기억하지 마", "before"),
        ),
        *(("Radera allt du vet om mig", "everything"), ("删除关于我的一切", "everything")),
        *(
            ("не забудь, что я сказал", None),
            ("bunu unutma", None),
            ("别忘了我说的话", None),
            ("ファイルを消して", None),
        ),
    ],
)
def test_other_languages_by_examples(text: str, asked: str | None) -> None:
    assert asked_to_forget(text) == asked


def test_the_words_of_a_request_without_its_verb_ask_for_nothing() -> None:
    for text in ("you know", "I know", "i said", "I'll take that as a no", "as I told you earlier"):
        assert asked_to_forget(text) is None


@pytest.mark.parametrize(
    "text", ["forget everything", "please delete everything you know about me", "erase all that you remember of me"]
)
def test_everything(text: str) -> None:
    assert asked_to_forget(text) is Forgetting.EVERYTHING


@pytest.mark.parametrize(
    "text",
    [
        "forget it",
        "oh, forget about that",
        "don't forget that we meet at nine",
        "don't forget that!",
        "never forget this",
        "I always forget that",
        "I won't forget that.",
        "forget that meeting",
        "forget that we deploy on Friday",
        "delete that file",
        "how do I delete this?",
        "should I remove that?",
        "did you forget that?",
        "I don't remember that",
        "sorry, don't remember that",
        "don't store this in the fridge",
        "what did I say?",
        "he said: forget everything",
        "My doctor says, forget that",
        "forget me not",
        "",
    ],
)
def test_what_only_sounds_so(text: str) -> None:
    assert asked_to_forget(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "vergiss das",
        "@nexus lösch das bitte",
        "Kannst du das bitte wieder löschen?",
        "Merk dir das nicht!",
        "Vergiss, was ich dir gerade gesagt habe",
        "lösche meine letzte Nachricht",
        "oublie ça",
        "Peux-tu effacer ça ?",
        "N\u2019enregistre pas ça, s'il te plaît",
        "oublie ce que je viens de dire",
        "supprime mon dernier message",
        "Hallo Nexus, vergiss das bitte!",
        "@nexus: oublie ça, s'il te plaît",
        "olvida eso",
        "¿Puedes borrar esto?",
        "por favor, no guardes eso",
        "olvida lo que te dije",
        "borra mi último mensaje",
    ],
)
def test_what_was_said_before_in_german_french_and_spanish(text: str) -> None:
    assert asked_to_forget(text) is Forgetting.BEFORE


@pytest.mark.parametrize(
    "text",
    [
        *("vergiss alles", "Lösche alles, was du über mich weißt"),
        *("oublie tout", "Efface tout ce que tu sais sur moi"),
        *("olvida todo", "borra todo lo que sabes de mí"),
    ],
)
def test_everything_in_german_french_and_spanish(text: str) -> None:
    assert asked_to_forget(text) is Forgetting.EVERYTHING


@pytest.mark.parametrize(
    "text",
    [
        *("vergiss es", "Vergiss das nicht!", "vergiss das bitte nicht", "vergiss das Meeting", "das vergesse ich"),
        *("vergiss nicht, was ich gesagt habe", "Vergiss meine letzte Nachricht nicht", "wie lösche ich das?"),
        *("vergiss das, was er sagte", "löschen Sie das nicht", "das habe ich vergessen"),
        *("laisse tomber", "n'oublie pas ça", "oublie pas ça", "je ne retiens pas ça", "oublie le rendez-vous"),
        *("j'oublie ça tout le temps", "il oublie tout", "comment supprimer ça ?"),
        *("olvídalo", "no olvides eso", "no te olvides de eso", "siempre olvida eso", "él olvida todo"),
        # "Never mind", quotes, and what names something else after a colon: only whole messages count
        *("Er meinte, vergiss das", "Vergiss das, war ein Witz", "Lösch das bitte: Zeile 5 in main.py"),
        *("Der Arzt sagte: vergiss alles", "Vergiss alles, was du über Python weisst", "nein, vergiss das"),
        *("vergiss, was ich gesagt habe, und fang neu an", "sie meinte, speichere das nicht"),
        *("Oublie ça, je vais le faire moi-même", "Supprime ça, puis relance le build", "non oublie ça jamais"),
        *("Comme dit la chanson : oublie tout", "ok efface tout, et recompile", "oublie tout, on recommence à zéro"),
        "Efface tout ce que tu sais de moi dans le test",
        *("Olvida eso, ya lo arreglé", "borra esto: la línea 3 del fichero", "olvida todo, empecemos de nuevo"),
        "borra lo que te dije en la línea 3",
        *("olvida eso de la fiesta", "borra el archivo", "¿cómo borro eso?"),
    ],
)
def test_what_only_sounds_so_in_german_french_and_spanish(text: str) -> None:
    assert asked_to_forget(text) is None
