"""A channel that changes its id on its platform, and back."""

from dataclasses import replace

from composer.ingest.rooms import add_room_id, rooms_with_later_ids
from tests.support.harness import AppHarness


# docs/decisions/0045: calls go to the present id of a channel. Of one that got its first id back they went to the
# other one.
async def test_a_channel_that_gets_its_first_id_back_is_called_by_it(harness: AppHarness) -> None:
    at = harness.workspace()
    await harness.say("alice", "hello", room="c1")
    for id in ("c2", "c1"):
        await add_room_id(harness.app.database, at, "c1", id)
    [ids] = await rooms_with_later_ids(harness.app.database, at)
    assert (ids.name, ids.later_ids, ids.stored_ids) == ("c1", ("c2", "c1"), ())
    assert await rooms_with_later_ids(harness.app.database, replace(at, name="another")) == []
