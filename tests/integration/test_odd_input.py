"""Dates, numbers and JSON at the ends of what is possible: refused with a sentence, and nothing is half written."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from bot.slack.reading import ts_of
from composer.errors import BadInput
from tests.support.databases import run_sql
from tests.support.exports import (
    ALICE,
    ANN,
    TOWN,
    SlackZip,
    discord_file,
    discord_person,
    discord_said,
    loaded,
    slack_said,
)
from tests.support.harness import AppHarness

ROOM: Final = {"room": "general"}
DEEP: Final = "[" * 300 + "]" * 300
COMMANDS: Final = {
    "/nexus forget here --until 9999-12-31 --yes": "is not within the years 1970 to 2200",
    "/nexus forget here --since 0001-01-01 --yes": "is not within the years 1970 to 2200",
    "/nexus erase room --until 9999-12-31 --yes": "is not within the years 1970 to 2200",
    "/nexus fact list --on 0001-01-01": "is not within the years 1970 to 2200",
    "/nexus recall anything --on 9999-12-31": "is not within the years 1970 to 2200",
    "/nexus memory undo bob --since 0001-01-01": "is not within the years 1970 to 2200",
    "/nexus settings retention_days 99999999": "a whole number from 0 to 36,500",
    "/nexus settings retention_days 00000000000099999999": "a whole number from 0 to 36,500",
    "/nexus settings top_k 00000000000099999999": "a whole number from 0 to 100",
    f"/nexus fact set deep {DEEP}": "this one has more",
    f"/nexus fact set deep {'[' * 900}": "",
}


async def test_a_command_is_refused_or_done_whatever_its_days_and_numbers(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    await harness.say("bob", "hello", **ROOM)
    await make_admin(harness, "alice")
    for command, sentence in COMMANDS.items():
        if not sentence:
            await harness.command("alice", command, **ROOM)
            continue
        with pytest.raises(BadInput, match=sentence):
            await harness.command("alice", command, **ROOM)
    assert (await harness.ask("alice", "@nexus hello?", **ROOM)).text
    assert await harness.compose("alice", "@nexus hello?", **ROOM)


async def make_admin(harness: AppHarness, user: str) -> None:
    workspace = harness.workspace()
    async with harness.app.database.transaction(workspace.tenant_id) as tx:
        found = await tx.people.find_user(workspace.platform, workspace.name, user)
        assert found is not None
        await tx.people.set_admin(found.id, True)


async def test_a_value_that_an_older_version_took_is_exported_as_its_text(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus fact set diet vegan --everywhere --yes", dm="nexus")
    await run_sql(str.__str__(harness.app.settings.database_url or ""), f"UPDATE facts SET value = '{DEEP}'")
    answer = await harness.command("alice", "/nexus export", dm="nexus")
    assert answer.file is not None
    assert [fact["value"] for fact in json.loads(answer.file.text)["facts"]] == [DEEP]


@pytest.mark.parametrize("odd", [{"ts": "99999999999.000000"}, {"ts": "NaN"}])
async def test_a_slack_export_says_where_a_time_is_wrong(
    harness: AppHarness, tmp_path: Path, odd: dict[str, Any]
) -> None:
    said = [slack_said("1777885200.000100", ALICE, "hello"), slack_said("1777885201.000100", ALICE, "hello") | odd]
    path = SlackZip({"general/2026-05-04": said}).write(tmp_path / "export.zip")
    done = await loaded(harness.app, "slack-export", path)
    assert done.new == 1
    assert re.search(r"2026-05-04\.json: message 2: `.*`: ", done.odd[0])


@pytest.mark.parametrize(
    "odd",
    [{"timestamp": "9999-12-31T23:59:59-12:00"}, {"timestamp": "0001-01-01T00:00:00+14:00"}, {"timestamp": -1e20}],
)
async def test_a_discord_export_says_where_a_time_is_wrong(
    harness: AppHarness, tmp_path: Path, odd: dict[str, Any]
) -> None:
    messages = [discord_said("1", discord_person(ANN, "ann"), "hello") | odd]
    path = discord_file(tmp_path / "town.json", {"id": TOWN, "name": "town"}, messages)
    with pytest.raises(BadInput, match=r"town\.json: .*timestamp"):
        await loaded(harness.app, "discord", path)


async def test_an_export_with_a_message_that_is_still_to_come_is_refused(harness: AppHarness, tmp_path: Path) -> None:
    """The adapters read on after the latest message: they would miss all until then."""
    ahead = harness.clock.now() + timedelta(days=3)
    said = [slack_said(ts_of(at), ALICE, f"at {at}") for at in (harness.clock.now(), ahead)]
    slack = SlackZip({"general/2026-05-04": said}).write(tmp_path / "export.zip")
    with pytest.raises(BadInput, match=r"2026-05-04\.json: message 2: .* is still to come: correct its time"):
        await loaded(harness.app, "slack-export", slack)
    messages = [discord_said("1", discord_person(ANN, "ann"), "hello", timestamp=ahead.isoformat())]
    town = discord_file(tmp_path / "town.json", {"id": TOWN, "name": "town"}, messages)
    with pytest.raises(BadInput, match=r"town\.json: .* is still to come"):
        await loaded(harness.app, "discord", town)


async def test_a_number_of_thousands_of_digits_is_refused(harness: AppHarness, tmp_path: Path) -> None:
    path = discord_file(tmp_path / "town.json", {"id": TOWN, "name": "town"}, [], messageCount=0, extra=7)
    path.write_text(path.read_text(encoding="utf-8").replace('"extra": 7', f'"extra": {"7" * 5_000}'), encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace('"guild"', f'"long": {"7" * 5_000}, "guild"'))
    with pytest.raises(BadInput, match=r"town\.json:2: this is not JSON \(a number is too long\)"):
        await loaded(harness.app, "discord", path)
