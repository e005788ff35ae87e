"""Generated requests to the whole API, as people and tools of two tenants, while every answer is watched (tests/fuzz).

`make fuzz` sends many more.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from composer.settings import Settings
from composer.visibility import Readable
from tests.fuzz.program import fuzz
from tests.fuzz.world import World, open_world
from tests.support.planted_bugs import in_sql, replacing

OF_TOOLS = "^/v1/(agent|query|whoami)"
ONE_ENTRY = "^/v1/entries(/{id})?$"


@pytest.fixture
async def world(settings: Settings) -> AsyncIterator[World]:
    async with open_world(settings) as world:
        yield world


@pytest.mark.parametrize(("viewer", "only"), [("alice", "^/"), ("claude of alice", OF_TOOLS)])
async def test_generated_requests_find_no_failure_and_nothing_of_others(
    world: World, tmp_path: Path, viewer: str, only: str
) -> None:
    ran = await fuzz(world, tmp_path, viewer, examples=2, seed=1, phases="fuzzing", only=only)
    assert not ran.failed, ran.output
    assert not world.findings.found, "\n".join(world.findings.found)
    assert len(world.findings.spread) < len(world.findings.canaries) / 2, "too little is left that would be noticed"
    asked = {who for (who, _, _) in world.findings.asked}
    assert viewer in asked


async def test_a_missing_owner_check_is_found(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everyones = in_sql(
        "entries_get",
        replacing("AND e.namespace = ANY", "AND (true OR e.namespace = ANY"),
        replacing(":readers::uuid[], :vendor)", ":readers::uuid[], :vendor))"),
    )
    everyones(monkeypatch)
    monkeypatch.setattr(Readable, "admits", lambda readable, row: True)
    async with open_world(settings) as world:
        ran = await fuzz(world, tmp_path, "alice", examples=4, seed=1, phases="fuzzing", only=ONE_ENTRY)
    assert any("is answered to alice and bob" in each for each in world.findings.found), ran.output
