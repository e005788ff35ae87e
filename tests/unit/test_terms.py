"""Terms of the word index, and splitting into sentences."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.text.languages import stems
from composer.text.terms import (
    MAX_QUERY_TERMS,
    MAX_TERM_CHARS,
    MAX_TERMS,
    STOP_WORDS,
    query_terms,
    sentences,
    terms,
    tongue,
    with_plain_mentions,
)

ROWS = Path(__file__).with_name("terms_in_languages.txt").read_text(encoding="utf-8").splitlines()
IN_LANGUAGES = [row.split("|") for row in ROWS if not row.startswith("#")]


def test_words_are_folded_and_stemmed_and_stop_words_are_dropped() -> None:
    assert terms("We are Deploying the DEPLOYMENTS, and they deployed!") == ["deploy", "deploy", "deploy"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Café", "cafe"),
        ("ﬁle", "file"),
        ("STRASSE", "straße"),
        ("İstanbul", "istanbul"),
        ("\uff11\uff12\uff13", "123"),
        ("1,000,000", "1000000"),
        ("Alice's", "alice"),
        ("Alice\u2019s", "alice"),
        ("e\u0301tude", "étude"),
    ],
)
def test_spellings_of_the_same_word_give_the_same_term(one: str, other: str) -> None:
    assert terms(one) == terms(other) != []


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("foo_bar", "foo_bar", {"foo", "bar"}),
        ("v2.6.8", "v2.6.8", {"v2", "6", "8"}),
        ("bob@acme.org", "bob@acme.org", {"bob", "org"}),
        ("src/app.py", "src/app.py", {"src", "app", "py"}),
        ("e-mail", "e-mail", {"mail"}),
        ("2026-05-04", "2026-05-04", {"2026", "05", "04"}),
        ("__init__", "__init__", {"init"}),
        ("C++", "c++", {"c"}),
        ("F#", "f#", {"f"}),
    ],
)
def test_an_identifier_gives_a_term_for_the_whole_and_for_each_part(text: str, whole: str, parts: set[str]) -> None:
    found = terms(f"see {text}, please")
    assert whole in found
    assert parts <= set(found)


@pytest.mark.parametrize(
    ("said", "asked", "term"), [row[1:] for row in IN_LANGUAGES], ids=[row[0] for row in IN_LANGUAGES]
)
def test_a_question_finds_another_form_of_its_word(said: str, asked: str, term: str) -> None:
    assert term in set(query_terms(asked, ())) & set(terms(said))


def test_a_question_is_not_searched_by_the_common_words_of_its_language() -> None:
    question = "Wann wird die Spülmaschine von dem Klempner repariert?"
    assert query_terms(question, ()) == ["spulmaschin", "repariert", "klempn"]
    assert query_terms("¿Dónde está la contraseña de la red?", ()) == ["contrasen", "red"]


def test_turkish_is_told_by_its_commonest_words_beside_endings_that_look_english() -> None:
    assert tongue("Merkez'in ekibi her yerde ileri: önce şehri, sonra ülkeyi temsil etti") == "turkish"
    assert tongue("Lizbon'un ekibi ve Paris'in ekibi on gün sonra Efes'te") == "turkish"
    assert tongue("Once more: is her dog in or on the sofa?") == "english"


def test_english_words_have_english_stems_alone() -> None:
    assert terms("The plumber repairs the dishwasher in the kitchen") == ["plumber", "repair", "dishwash", "kitchen"]


def test_punctuation_is_not_part_of_a_term() -> None:
    assert terms("It broke in app.py. Postgres-") == ["broke", "app.py", "app", "py", "postgr"]


def test_text_without_spaces_is_found_by_any_part_of_it() -> None:
    assert set(terms("京都")) <= set(terms("東京都庁舎"))
    assert terms("字") == ["字"]


def test_a_text_gives_a_bounded_number_of_bounded_terms() -> None:
    assert len(terms("word " * 5000)) == MAX_TERMS
    assert max(len(term) for term in terms("x" * 500 + " a_" + "y" * 500)) == MAX_TERM_CHARS


@given(st.text(max_size=300))
def test_any_text_gives_valid_terms(text: str) -> None:
    found = terms(text)
    assert found == terms(text)
    assert all(0 < len(term) <= MAX_TERM_CHARS and not any(c.isspace() for c in term) for term in found)


@given(st.text(max_size=300))
def test_a_text_is_found_by_each_of_its_own_query_terms(text: str) -> None:
    assert set(query_terms(text, [])) <= set(terms(text))


def test_a_word_that_stands_in_a_text_again_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def noted(word: str, language: str) -> tuple[str, ...]:
        read.append(word)
        return stems(word, language)

    monkeypatch.setattr("composer.text.terms.stems", noted)
    assert terms("deploying to berlin " * 200) == ["deploy", "berlin"] * 200
    assert read == ["deploying", "berlin"]


def test_lines_without_words_are_not_read_for_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def noted(line: str) -> Iterator[str]:
        read.append(line)
        yield line

    monkeypatch.setattr("composer.text.terms._line_sentences", noted)
    assert sentences("one\n" + "\n \t\n" * 1_000 + "two") == read == ["one", "two"]


def test_names_and_mentions_are_dropped_from_a_query() -> None:
    found = query_terms(
        "@nexus what did Alice and José tell <@U024> about James' migration?", ["alice", "jose", "James"]
    )
    assert found == ["migrat", "tell"]


def test_a_mention_is_dropped_and_an_address_is_not() -> None:
    assert "bob@acme.org" in query_terms("who is bob@acme.org", [])
    assert query_terms("@bob.smith (@carol)", []) == []


def test_a_query_keeps_the_most_specific_terms_in_a_fixed_order() -> None:
    words = [f"term{'x' * number}" for number in range(50)]
    found = query_terms(" ".join(words), [])
    assert found == sorted(words, key=len, reverse=True)[:MAX_QUERY_TERMS]
    assert query_terms("zeta beta beta alpha", []) == ["alpha", "beta", "zeta"]
    assert query_terms("the of and", []) == []


def test_stemming_is_the_same_in_every_thread() -> None:
    words = [f"{stem}{end}" for stem in ("deploy", "migrat", "connect", "relat") for end in ("ing", "ed", "ions", "s")]
    text = " ".join(words * 20)
    with ThreadPoolExecutor(8) as threads:
        assert {tuple(found) for found in threads.map(terms, [text] * 40)} == {tuple(terms(text))}


def test_stop_words_are_folded_like_terms() -> None:
    assert {word for word in STOP_WORDS if word != word.casefold()} == set()


def test_sentences_end_at_punctuation_and_line_breaks() -> None:
    assert sentences("First one. Second! Third?\nFourth\n\n") == ["First one.", "Second!", "Third?", "Fourth"]
    assert sentences("He said “no.” Then left. 日本。語") == ["He said “no.”", "Then left.", "日本。", "語"]
    assert sentences("") == []


@pytest.mark.parametrize(
    "text",
    [
        "Use foo.py, v2.6.8 and https://a.b/c?d=e. f",
        "We like e.g. this, i.e. that, Dr. Who",
        "`a. B` is code",
        "```x = 1. Y\nz. W\n```",
    ],
)
def test_a_sentence_is_not_cut_inside_code_names_or_abbreviations(text: str) -> None:
    assert text.removesuffix(" f") in sentences(text)


@given(st.text(max_size=300))
def test_splitting_into_sentences_loses_only_white_space(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("@nexus what did @bob say?", "@nexus what did bob say?"),
        ("ask @Bob Smith, not @Nexus Two or a@bob", "ask Bob Smith, not @Nexus Two or a@bob"),
        ("@NEXUS @nexusfan", "@NEXUS nexusfan"),
        ("@here and @everyone", "@here and @everyone"),
    ],
)
def test_a_mention_becomes_the_name_unless_it_is_an_agent(text: str, plain: str) -> None:
    assert with_plain_mentions(text, ["nexus", "Nexus Two", ""]) == plain


@pytest.mark.parametrize(
    ("text", "written_in"),
    [
        *(("the plumber is here", "english"), ("Lisbon", "english"), ("", "english"), ("42 \u2192 7", "english")),
        *(("Der Klempner kommt nicht.", "german"), ("el fontanero no viene con nosotros", "spanish")),
        *(
            ("Сантехник придёт", "CYRILLIC"),
            ("水管工来了", "CJK"),
            ("木曜日に来ます", "HIRAGANA"),
            ("서버가 느려요", "HANGUL"),
        ),
        ("wir deployen nicht mit сервер, sondern mit dem anderen", "german"),
    ],
)
def test_what_a_text_is_written_in(text: str, written_in: str) -> None:
    assert tongue(text) == written_in
