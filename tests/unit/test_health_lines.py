"""Lines of health: one thing and several are told apart in every language."""

import pytest

from bot.web.pages.rendering import languages
from composer.operations.health import HealthLine

ONE, MANY = "%(rows)s row waits for its seal", "%(rows)s rows wait for their seal"


@pytest.mark.parametrize(
    ("rows", "said", "german"),
    [(1, "1 row waits for its seal", "1 Zeile wartet"), (2, "2 rows wait for their seal", "2 Zeilen warten")],
)
def test_one_row_waits_and_two_wait(rows: int, said: str, german: str) -> None:
    line = HealthLine("audit", True, ONE, {"rows": rows}, MANY)
    assert line.said == said
    [language] = [each for each in languages() if each.code == "de"]
    assert german in language.texts.ngettext(line.text, line.many, line.count) % line.values
