"""What a misspelt word stands for, among the words that were said."""

import pytest

from composer.text.spelling import MAX_CORRECTED, beginnings, is_swapped_stop_word, may_be_misspelt, meant
from composer.text.terms import terms

SAID = "dishwasher repairman deployment postgres migration cafeteria week reception kubernetes warehouse certificate"


@pytest.mark.parametrize(
    ("typed", "right"),
    [
        *(
            ("dishwaser", "dishwasher"),
            ("repairmen", "repairman"),
            ("deploymnet", "deployment"),
            ("cafetria", "cafeteria"),
        ),
        *(
            ("postgress", "postgres"),
            ("migraton", "migration"),
            ("recieption", "reception"),
            ("kuberntes", "kubernetes"),
        ),
        *(("wharehouse", "warehouse"), ("certifcate", "certificate"), ("Kubernettes", "Kubernetes")),
    ],
)
def test_a_misspelt_word_stands_for_the_nearest_that_was_said(typed: str, right: str) -> None:
    [word], [wanted] = terms(typed), terms(right)
    known = [term for term in terms(SAID) if any(term.startswith(each) for each in beginnings(word))]
    assert meant(word, known) == wanted


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("state", "stage"),
        ("regard", "reward"),
        ("consid", "confid"),
        ("trait", "trail"),
        ("status", "stat"),
        ("desir", "describ"),
    ],
)
def test_another_word_is_no_misspelt_one(word: str, said: str) -> None:
    assert meant(word, [said]) is None


def test_the_longest_stem_that_it_begins_with_counts_then_the_fewest_wrong_letters() -> None:
    assert meant("planetss", ["plane", "planet", "planner"]) == "planet"
    assert meant("planer", ["planner", "planet"]) == "planet"
    assert meant("invitatoin", ["invitation", "invitatoins"]) == "invitation"


def test_only_words_are_compared_and_few() -> None:
    assert may_be_misspelt(["v2.6.9", "teh", "src/app.py", "x12345", "cafetria", "会議"]) == ["cafetria"]
    assert len(may_be_misspelt([f"question{'x' * n}" for n in range(9)])) == MAX_CORRECTED


def test_a_stop_word_with_two_letters_swapped_says_nothing() -> None:
    assert all(map(is_swapped_stop_word, ("teh", "wehn", "adn", "waht", "hwo")))
    assert not any(map(is_swapped_stop_word, ("tea", "thesis", "wine", "x")))
