"""Which words of a question are somebody's name."""

import pytest

from composer.layers.plain import words_of_names


@pytest.mark.parametrize(
    ("name", "question", "words"),
    [
        ("Lena Fischer", "When is Lena on vacation?", {"Lena"}),
        ("Lena Fischer", "when is lena on vacation?", {"lena"}),
        ("Lena Fischer", "When does Mrs Fischer fly to Rome?", {"Fischer"}),
        ("lena.f", "When does lena fly to Rome?", {"lena"}),
        ("Mark Budget", "what is the budget?", set()),
        ("Mark", "Will Tom mark it?", set()),
        ("Mark", "Will Mark mark it?", {"Mark"}),
        ("Ann", "where is the annex?", set()),
    ],
)
def test_a_name_is_known_by_its_capital_or_where_nobody_cares_for_capitals(
    name: str, question: str, words: set[str]
) -> None:
    assert words_of_names([name], question) == words
