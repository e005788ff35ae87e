"""The words of a Discord message, wherever in it they stand."""

from types import SimpleNamespace
from typing import Any

import pytest

from bot.discord.words import MAX_WORDS_CHARS, Card, Forwarded, Outside, component_words, outside_words

ALERT = Card("[FIRING] DiskFull", "Disk of db-7 is full.", fields=[("host", "db-7")], footer="Alertmanager")


@pytest.mark.parametrize(
    ("content", "outside", "words"),
    [
        ("", Outside([ALERT]), "[FIRING] DiskFull\nDisk of db-7 is full.\nhost: db-7\nAlertmanager"),
        ("see https://site.example", Outside([Card("A site", "its words", url="https://site.example")]), ""),
        ("look", Outside([Card("A video", kind="video")]), ""),
        ("", Outside([Card("Deploys", author="CI", url="https://ci.example/7")]), "CI\nDeploys"),
        ("", Outside(polls=[("Which day?", ["Friday", "Saturday"])]), "Poll: Which day?\n- Friday\n- Saturday"),
        (
            "",
            Outside(
                [
                    Card(
                        fields=[
                            ("poll_question_text", "Which day?"),
                            ("victor_answer_text", "Saturday"),
                            ("victor_answer_id", "2"),
                            ("total_votes", "7"),
                        ]
                    )
                ]
            ),
            "Poll: Which day?\nMost votes: Saturday\nVotes in all: 7",
        ),
        ("hi", Outside(stickers=["party parrot"]), "(sticker: party parrot)"),
        ("", Outside(forwarded=[Forwarded("the server moves")]), "> the server moves"),
        (
            "",
            Outside(forwarded=[Forwarded("", Outside([ALERT]))]),
            "> [FIRING] DiskFull\n> Disk of db-7 is full.\n> host: db-7\n> Alertmanager",
        ),
        ("", Outside(forwarded=[Forwarded("one\ntwo", Outside(stickers=["wave"]))]), "> one\n> two\n> (sticker: wave)"),
        (
            "see it",
            Outside([ALERT], by_person=True),
            "> [FIRING] DiskFull\n> Disk of db-7 is full.\n> host: db-7\n> Alertmanager",
        ),
        (
            "",
            Outside([Card("A", "one\n\ntwo")], stickers=["wave"], by_person=True),
            "> A\n> one\n> two\n(sticker: wave)",
        ),
        ("", Outside(), ""),
    ],
)
def test_the_words_outside_the_content_are_read(content: str, outside: Outside, words: str) -> None:
    assert outside_words(content, outside) == words


def test_long_cards_are_bounded() -> None:
    assert len(outside_words("", Outside([Card(description="word " * 3_000)] * 10))) == MAX_WORDS_CHARS


def part(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**fields)


def test_components_are_read_wherever_they_stand() -> None:
    inside = part(children=[part(content="Release 4.7 went out")], accessory=part(label="Roll back"))
    assert component_words([part(children=[inside]), part(label="Details")]) == [
        "Release 4.7 went out",
        "(button: Roll back)",
        "(button: Details)",
    ]
    deep = part(content="bottom")
    for _ in range(50):
        deep = part(children=[deep])
    assert component_words([deep]) == []
