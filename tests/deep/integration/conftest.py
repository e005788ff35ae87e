"""The fixtures of tests/integration."""

from tests.integration.conftest import *  # noqa: F403
