"""The fixtures of tests/property."""

from tests.property.conftest import *  # noqa: F403
