"""A restore that dies on its way."""

from pathlib import Path
from typing import Any

import pytest

from bot.console import operations
from composer.repositories.audit import Audit
from composer.settings import Settings
from composer.stores.embedded.servers import Servers
from tests.integration.test_compaction import rows
from tests.support.databases import clone
from tests.support.harness import open_harness


# docs/operations.md: every tenant's audit log says that it was restored. A restore that died before that had filled the
# database, in which no restore could be done any more.
async def test_a_restore_that_dies_before_it_is_recorded_is_done_again(
    settings: Settings, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    async def die(*_: Any, **__: Any) -> None:
        raise Killed

    async with open_harness(settings) as harness:
        await harness.say("alice", "hello", room="general")
        await harness.app.backup.write(tmp_path / "one.backup", harness.clock.now())
    async with clone(servers.database_url, "dying_restore", "template0") as url:
        target = settings.model_copy(update={"database_url": url})
        with monkeypatch.context() as patched:
            patched.setattr(Audit, "record", die)
            with pytest.raises(Killed):
                await operations.restore(target, tmp_path / "one.backup")
        await operations.restore(target, tmp_path / "one.backup")
        assert await rows(target, "SELECT 1 FROM audit_events WHERE act = 'restored'")
