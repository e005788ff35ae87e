"""Whose files are held in memory until their answers are there."""

import uuid

import pytest

from bot.web.session_files import MAX_HELD_BYTES, SessionFiles
from composer.errors import Unavailable


async def test_no_organisation_holds_so_much_that_another_attaches_nothing() -> None:
    files, tenant, part = SessionFiles(), uuid.uuid4(), bytes(MAX_HELD_BYTES // 8)
    for person in [uuid.uuid4() for _ in range(3)] * 2:  # each holds as much as one may
        files.hold(tenant, person, uuid.uuid4(), {"held:1": part})
    with pytest.raises(Unavailable):
        files.hold(tenant, uuid.uuid4(), uuid.uuid4(), {"held:1": part})
    files.hold(uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), {"held:1": part})
