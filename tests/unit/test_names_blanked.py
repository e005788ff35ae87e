"""Blanking somebody's name leaves other people's names as they are."""

import pytest

from composer.memory.names import without_mentions_of
from composer.repositories.people import NAMELESS


@pytest.mark.parametrize(
    ("text", "others", "blanked"),
    [
        ("@ann and @anna, @annabel too: ask @ann.", {"anna"}, "@* and @anna, @annabel too: ask @*."),
        ("@ann lee and @ann, hi", {"ann lee"}, "@ann lee and @*, hi"),
        ("_@ann_ and @ann_b", set(), "_@*_ and @ann_b"),
        ("@annさん, ann", set(), "@*さん, ann"),
        ("nobody is mentioned", set(), "nobody is mentioned"),
    ],
)
def test_only_whole_mentions_are_blanked(text: str, others: set[str], blanked: str) -> None:
    assert without_mentions_of({"ann"}, text, others) == blanked.replace("*", NAMELESS)


def test_a_name_that_ends_in_a_mark_is_blanked_before_a_letter() -> None:
    assert without_mentions_of({"Ann!", "Ann"}, "@Ann!s cake, @Ann", ()) == f"@{NAMELESS}s cake, @{NAMELESS}"
