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
    ],
)
def test_what_the_message_says_itself(text: str) -> None:
    assert asked_to_forget(text) is Forgetting.THIS


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
        "Meine PIN ist 1234, speichere das bitte nicht.",
        "Le code est 9911, ne retiens pas ça",
        "Mi clave es 1234. Borra eso",
    ],
)
def test_what_a_german_french_or_spanish_message_says_itself(text: str) -> None:
    assert asked_to_forget(text) is Forgetting.THIS


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
        *("olvida eso de la fiesta", "borra el archivo", "¿cómo borro eso?"),
    ],
)
def test_what_only_sounds_so_in_german_french_and_spanish(text: str) -> None:
    assert asked_to_forget(text) is None
