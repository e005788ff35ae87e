"""What a platform said of somebody before it said it once more."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime

import pytest

from bot.script.places import incoming, place_of
from composer.model import Trust
from composer.settings import Settings
from tests.support.harness import AppHarness, open_harness


async def says(harness: AppHarness, trust: Trust, stated_at: datetime | None = None) -> Trust:
    """What alice is in Slack once she has written something with what Slack says of her, as of a time."""
    here, at = replace(harness.workspace(), platform="slack", name="T1"), harness.clock.tick()
    place = replace(place_of("general", None, None), private=False)
    said = incoming(here, place, "alice", "hello", at, id=f"m{at.timestamp()}", trust=trust)
    await harness.app.receive(here, [replace(said, trust_stated_at=stated_at)], answer=False)
    async with harness.app.database.transaction(here.tenant_id) as tx:
        user = await tx.people.find_user("slack", "T1", "alice")
        assert user is not None
        return await tx.people.trust(user.id)


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"requests_per_minute": 10_000})) as harness:
        yield harness


# docs/architecture.md: whether somebody is a member or a guest has a time, and an older statement changes nothing. One
# that said again what was stored was not noted, so what had been looked up before it counted as newer.
async def test_what_was_looked_up_before_a_platform_said_the_same_again_changes_nothing(harness: AppHarness) -> None:
    first, looked_up, later = (harness.clock.tick() for _ in range(3))
    assert await says(harness, Trust.GUEST, first) is Trust.GUEST
    assert await says(harness, Trust.GUEST, later) is Trust.GUEST
    assert await says(harness, Trust.MEMBER, looked_up) is Trust.GUEST, "another process had looked that up"
    assert await says(harness, Trust.MEMBER, harness.clock.tick()) is Trust.MEMBER
