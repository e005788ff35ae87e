"""The fixtures of tests/e2e."""

from tests.e2e.conftest import *  # noqa: F403
