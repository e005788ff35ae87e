"""Files in DMs on Slack: what somebody forgets while a file is on its way does not stay there."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from bot.console.doctor import run_doctor
from bot.delivery.retraction import MAX_RETRACTION_FAILURES
from bot.slack.client import OutcomeUnknown, Slack, SlackRefused
from bot.slack.files import SlackFiles
from composer.settings import Settings
from tests.support.harness import open_harness
from tests.support.slack.harness import Office, office_on
from tests.support.waiting import until

UPLOAD, SHARE = "files.getUploadURLExternal", "files.completeUploadExternal"


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


def before(monkeypatch: pytest.MonkeyPatch, method: str, act: Callable[[], Awaitable[object]]) -> None:
    """Do something right before the first call of `method`."""
    real = Slack.call
    done: list[bool] = []

    async def call(self: Slack, called: str, **given: Any) -> dict[str, Any]:
        if called == method and not done:
            done.append(True)
            await act()
        return await real(self, called, **given)

    monkeypatch.setattr(Slack, "call", call)


def shown(office: Office, acknowledged: Any) -> str:
    """All that Alice was shown, with the acknowledgement of her last command."""
    texts = [each["text"] for each in office.slack.ephemerals(office.alice)]
    return "\n".join([str((acknowledged.ack or {}).get("text", "")), *texts])


async def test_erasing_a_room_deletes_the_files_of_who_wrote_there(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        await harness.say("alice", "hello", room="lab")
        await harness.say("bob", "hello", room="lab")
        await harness.say("carol", "hello", room="hall")
        here, now = harness.workspace(), harness.clock.now()
        users = await rows(settings, "SELECT name, id FROM users WHERE name IN ('alice', 'bob', 'carol')")
        async with harness.app.database.transaction(here.tenant_id) as tx:
            for name, user in users:
                await tx.posted_files.record("slack", "T1", f"of {name}", user, now)
        await harness.command("alice", "/nexus erase room --yes", room="lab")
        async with harness.app.database.transaction(here.tenant_id, "read") as tx:
            due = await tx.posted_files.due("slack", "T1", now, 10)
        assert [file.external_id for file in due] == ["of alice", "of bob"], "Carol wrote nothing there"


async def rows(settings: Settings, query: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def test_a_file_whose_person_forgets_before_it_is_shared_is_deleted_once_it_is(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slack does not find a file that is not shared yet: that is not a file that is gone."""

    async def forget() -> None:
        forgotten = await office.slack.command(office.general, office.alice, "forget everything --yes")
        assert "1 exported file" in forgotten.ack["text"]
        await office.slack.wait_for(lambda: office.slack.calls_of("files.delete"))

    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, "the launch code is heron")
        await running.settle()
        before(monkeypatch, SHARE, forget)
        exported = await office.slack.command(office.general, office.alice, "export")
        await office.slack.wait_for(lambda: office.slack.calls_of(SHARE))
        await office.slack.wait_for(lambda: len(office.slack.calls_of("files.delete")) > 1)
        await office.slack.wait_for(lambda: "has changed meanwhile" in shown(office, exported))
        await until(lambda: none_left(office))


async def test_a_file_that_slack_does_not_let_delete_is_named_by_the_doctor_until_it_is_gone(office: Office) -> None:
    async def unretracted() -> list[str]:
        return [check.detail for check in await run_doctor(office.settings) if check.name == "retractions"]

    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, "the launch code is heron")
        await running.settle()
        exported = await office.slack.command(office.general, office.alice, "export")
        await office.slack.wait_for(lambda: bool(office.slack.world.files) and bool(shown(office, exported)))
        office.slack.fail("files.delete", "error", times=99, error="cant_delete_file")
        await office.slack.command(office.general, office.alice, "forget everything --yes")
        refused = "SELECT 1 FROM posted_files WHERE refused_since IS NOT NULL"
        await until(lambda: rows(office.settings, refused))
        [said] = await unretracted()
        assert f"1 file in slack:{office.team.id}" in said
        office.slack.routes.faults["files.delete"].clear()
    async with office.socket():
        await until(lambda: none_left(office))
    assert await unretracted() == []


async def none_left(office: Office) -> bool:
    return not office.slack.world.files and not await rows(office.settings, "SELECT FROM posted_files")


@pytest.mark.parametrize("command", ["export", "why --prompt"])
async def test_a_file_whose_text_was_read_before_its_person_forgot_is_not_shared(
    office: Office, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    async def forget() -> None:
        forgotten = await office.slack.command(office.general, office.alice, "forget everything --yes")
        assert "Forgotten for good" in forgotten.ack["text"]

    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, office.mention("the launch code is heron"))
        await office.answered()
        await running.settle()
        before(monkeypatch, UPLOAD, forget)
        answer = await office.slack.command(office.general, office.alice, command)
        await office.slack.wait_for(lambda: "has changed meanwhile" in shown(office, answer))
        assert not office.slack.calls_of(SHARE)
        monkeypatch.undo()
        again = await office.slack.command(office.general, office.alice, "export")
        assert "is in our direct messages" in again.ack["text"], "asked for again, it comes"
        assert not any("heron" in content.decode() for _, content in office.slack.world.files.values())


async def test_a_file_that_is_not_found_stays_due_as_long_as_it_may_still_be_shared(settings: Settings) -> None:
    """The process that was about to share it died, or still is about to."""
    async with open_harness(settings) as harness:
        await harness.say("alice", "hello", room="lab")
        here = harness.workspace()
        calls: list[tuple[str, str]] = []
        ((user,),) = await rows(settings, "SELECT id FROM users")

        async def call(method: str, file: str) -> None:
            calls.append((method, file))
            raise SlackRefused(method, "file_not_found")

        async def workspace() -> Any:
            return here

        slack: Any = SimpleNamespace(call=call)
        inbox: Any = SimpleNamespace(workspace=workspace)
        files = SlackFiles(harness.app, slack, inbox, inbox)
        async with harness.app.database.transaction(here.tenant_id) as tx:
            until = harness.clock.now() + timedelta(minutes=30)
            await tx.posted_files.record(here.platform, here.name, "F1", user, until)
            await tx.posted_files.withdraw([user])
        await files.delete_due()
        assert await rows(settings, "SELECT external_id, due FROM posted_files") == [("F1", True)]
        harness.clock.tick(3600)
        await files.delete_due()
        assert calls == [("files.delete", "F1")] * 2
        assert await rows(settings, "SELECT external_id FROM posted_files") == []


async def test_a_file_that_cannot_be_deleted_holds_up_no_other(settings: Settings) -> None:
    # README, "Forgetting": Slack failed at one, and none behind it was deleted as long as it did.
    async with open_harness(settings) as harness:
        await harness.say("alice", "hello", room="lab")
        here = harness.workspace()
        deleted: list[str] = []
        ((user,),) = await rows(settings, "SELECT id FROM users")
        failing = [f"F{number}" for number in range(MAX_RETRACTION_FAILURES)]

        async def call(method: str, file: str) -> None:
            if file in failing:
                raise OutcomeUnknown("Slack failed at files.delete (internal_error).")
            deleted.append(file)

        async def workspace() -> Any:
            return here

        slack: Any = SimpleNamespace(call=call)
        inbox: Any = SimpleNamespace(workspace=workspace)
        files = SlackFiles(harness.app, slack, inbox, inbox)
        async with harness.app.database.transaction(here.tenant_id) as tx:
            for file in (*failing, "F9"):
                await tx.posted_files.record(here.platform, here.name, file, user, harness.clock.now())
                await tx.posted_files.share(here.platform, here.name, file)
            await tx.posted_files.withdraw([user])
        for _ in range(2):
            with pytest.raises(OutcomeUnknown):
                await files.delete_due()
        assert deleted == ["F9"]
        assert len(await rows(settings, "SELECT FROM posted_files")) == MAX_RETRACTION_FAILURES
