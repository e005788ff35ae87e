"""A text repeats another one when they share words that nothing else explains."""

import pytest

from composer.text.rarity import is_rare
from composer.text.repetition import matches, words_of


@pytest.mark.parametrize(
    ("erased", "text"),
    [
        ("the vault is quokka7", "It is Quokka7."),
        ("my pay is 91,000", "She gets 91000."),
        ("my number is 4 7 1 1", "That is 4711."),
        ("my number is 4711", "4-7-1-1, she said"),
        ("the word is q u o k", "quok"),
        ("the sign is \U0001f984\U0001f511", "\U0001f984!"),
        ("between you and me: no, not now, once again", "He told me: not now, once again."),
        ("not now", "Not now!"),
        ("mein Geheimnis heißt Cafe\u0301zq", "Cafézq"),
        ("filler " * 30_000 + "quokka7", "quokka7"),
        ("我的密码是彩虹", "彩虹"),
        ("quo\u200bkka", "quokka"),
    ],
)
def test_a_text_that_shares_a_word_repeats(erased: str, text: str) -> None:
    assert words_of(erased) & words_of(text)


@pytest.mark.parametrize(
    ("erased", "text"),
    [
        ("the vault is quokka7", "It is in the other one, I am not sure."),
        ("not now", "I will not do it now."),
        ("my pay is 91,000", "We are 91 here."),
        ("", "anything"),
        ("... !!", "... !!"),
    ],
)
def test_a_text_that_shares_no_word_repeats_nothing(erased: str, text: str) -> None:
    assert not words_of(erased) & words_of(text)


def test_words_match_in_any_case_form_and_spacing() -> None:
    assert matches("It is Cafézq", "CAFE\u0301ZQ")
    assert matches("at  the\nbank", "the BANK")
    assert matches("call 4 7 1 1", "4711")
    assert matches("\U0001f984", "\U0001f984")
    assert matches("Alice\u2019s \u201ccode\u201d e\u2011mail 4\u20137", 'alice\'s "CODE" e-mail 4-7')
    assert matches("Don't", "don\u2019t")
    assert matches("\u0130stanbul", "istanbul")
    assert matches("geht\xb4s um den \u201aPlan\u2018 B\u2014bald", "geht's um den 'plan' b--bald")
    assert matches("\xab\xa0le code\u202f\xbb, 5\u2032 et 6\u2033", '"le code", 5\' et 6"')
    assert not matches("anything", " ")
    assert not matches("a café", "cafe")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the ball", "all"),
        ("the ball", "e"),
        ("recall", "call"),
        ("unterStraße", "straße"),
        ("e\u0301 is a letter", "e"),
        ("\u0915\u093e", "\u0915"),  # a letter with its vowel sign
        ("number 47112", "4711"),
        ("4 7 11 2", "4 7 1"),
    ],
)
def test_a_part_of_a_word_does_not_match(text: str, words: str) -> None:
    assert not matches(text, words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(all) of it", "ALL"),
        ("alice's tea", "alice"),
        ("the word is zq_one", "zq_one"),
        ("die Straße, sagt er", "STRASSE"),
        ("\u0915\u093e \u0915", "\u0915\u093e"),
        ("我的密码是彩虹", "密码"),
        ("call 0 4 7 1 1 now", "4711"),
        ("see @nexus?", "@nexus"),
        ("\U0001f984\U0001f511", "\U0001f511"),
    ],
)
def test_whole_words_match(text: str, words: str) -> None:
    assert matches(text, words)


@pytest.mark.parametrize(
    "text",
    ["quokka7", "91k", "4711", "9:30", "47", "Porto", "Tamaki", "Krankschreibung", "\U0001f984", "病院", "szpital"],
)
def test_names_numbers_and_what_few_texts_say_are_rare(text: str) -> None:
    assert any(map(is_rare, words_of(text)))


@pytest.mark.parametrize(
    "text",
    [
        "make a table", "hello", "Sorry, I can recall nothing of that.", "1. one 2. two, 20 or 30", "12", "\U0001f44d",
        "ich und nicht haben", "hacer hoy", "не делать", "です", "我的", "not now, once again",
    ],
)  # fmt: skip
def test_what_many_texts_say_is_not_rare(text: str) -> None:
    assert not any(map(is_rare, words_of(text)))
