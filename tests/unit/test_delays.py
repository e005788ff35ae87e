"""What `--delays` delays is there, in the versions of the libraries that are installed."""

import inspect

import pytest

from tests.support.delays import DELAYED


@pytest.mark.parametrize(("owner", "name"), DELAYED)
def test_what_is_delayed_is_awaited(owner: type, name: str) -> None:
    assert inspect.iscoroutinefunction(inspect.unwrap(getattr(owner, name)))
