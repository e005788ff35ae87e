"""Bugs planted in a statement of SQL, for tests of tests."""

from collections.abc import Callable

import pytest

from composer.stores.database import statements
from sql.loader import parse_query, queries

Patch = pytest.MonkeyPatch


def in_sql(name: str, *changes: Callable[[str], str]) -> Callable[[Patch], None]:
    """Plant a bug that changes the text of a query."""

    def plant(patch: Patch) -> None:
        text = queries()[name].source
        for change in changes:
            changed = change(text)
            assert changed != text, f"{name} has changed: plant this bug again"
            text = changed
        altered = {**queries(), name: parse_query(name, text)}
        patch.setattr(statements, "queries", lambda: altered)

    return plant


def replacing(old: str, new: str) -> Callable[[str], str]:
    """Replace one text by another."""
    return lambda text: text.replace(old, new)
