"""`nexus doctor` costs nothing unless asked to; it says which jobs failed or are overdue, and how old the backup is."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from pydantic import SecretStr

from bot.console import schedule
from bot.console.doctor import Check, as_json, run_doctor
from composer.settings import McpSettings, Settings, TenantSettings
from composer.settings.server_urls import ServerUrl
from composer.stores.backup.backup import DatabaseBackup
from tests.support.harness import START, AppHarness, ManualClock, open_harness
from tests.support.mcp_office import Wiki, at, serving
from tests.support.model_server import Fail, ModelServer


async def check(settings: Settings, name: str, at: datetime) -> Check:
    [found] = [each for each in await run_doctor(settings, clock=ManualClock(at)) if each.name == name]
    return found


async def test_without_live_no_model_and_no_platform_is_asked(harness: AppHarness, settings: Settings) -> None:
    async with ModelServer() as server:
        given = settings.model_copy(
            update={
                "openai_base_url": ServerUrl(server.url),
                "model": "m",
                "embedder": "text-embedding-3-small",
                "agents": tuple(each.model_copy(update={"model": "m"}) for each in settings.agents),
                "extraction_model": "x",
                "transcription_model": "whisper",
                "discord_token": SecretStr("no-such-token"),
                "slack_bot_token": SecretStr("xoxb-no-such-token"),
            }
        )
        found = {each.name: each for each in await run_doctor(given, slack_url="http://127.0.0.1:1/")}
        assert server.requests == []
    for name in ("gateway", "model of @nexus", "model x", "embedder", "transcription", "discord", "slack"):
        assert found[name].ok is None, name
        assert found[name].detail.endswith("not asked; nexus doctor --live does"), name


@pytest.mark.parametrize(("answer", "ok"), [("", True), (Fail(401, "bad key"), False)])
async def test_with_live_a_moment_of_silence_is_transcribed(
    harness: AppHarness, settings: Settings, answer: str | Fail, ok: bool
) -> None:
    async with ModelServer() as server:
        given = {"openai_base_url": ServerUrl(server.url), "transcription_model": "whisper"}
        server.spoken.append(answer)
        checks = await run_doctor(settings.model_copy(update=given), live=True, slack_url="http://127.0.0.1:1/")
    [found] = [each for each in checks if each.name == "transcription"]
    assert found.ok is ok
    assert "whisper" in found.detail or "key" in found.detail
    [sent] = [each.body for each in server.requests if each.path.endswith("/transcriptions")]
    assert sent["bytes"].startswith(b"RIFF")
    assert sent["type"] == "audio/wav"


async def test_a_job_that_failed_is_said_until_it_succeeds(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = harness.clock.now()
    assert (await check(settings, "jobs", now)).ok is None
    with monkeypatch.context() as patch:
        patch.setattr(DatabaseBackup, "write", fails)
        outcome = await schedule.run(harness.app, "backup", now)
    assert outcome.state == "failed"
    found = await check(settings, "jobs", now)
    assert found.ok is False
    assert found.detail == "failed: backup at 2026-05-04 09:00 UTC (OSError). Run it again: nexus jobs run NAME"
    assert {"name": "jobs", "ok": False, "message": found.detail} in as_json([found])
    await schedule.run(harness.app, "backup", now)
    assert (await check(settings, "jobs", now)).ok is None, "nobody serves the schedule"


async def fails(*_: object) -> None:
    raise OSError("no space")


async def serve_for_an_hour(harness: AppHarness) -> None:
    frequent = (
        "embedding",
        "extraction",
        "thread",
        "session",
        "day",
        "week",
        "expiry",
        "quotas",
        "audit",
    )
    for job in frequent:
        await schedule.run(harness.app, job, START)


async def test_a_job_that_was_run_by_hand_makes_nothing_overdue(harness: AppHarness, settings: Settings) -> None:
    await schedule.run(harness.app, "day", START)
    for name in ("jobs", "backup"):
        assert (await check(settings, name, START + timedelta(days=100))).ok is None


async def test_a_run_that_is_not_done_in_time_is_overdue(harness: AppHarness, settings: Settings) -> None:
    await serve_for_an_hour(harness)
    soon = await check(settings, "jobs", START + timedelta(minutes=6))
    assert soon.ok is True, "audit was due a minute ago, and may take four"
    later = await check(settings, "jobs", START + timedelta(minutes=30))
    assert later.ok is False
    assert later.detail.startswith("overdue: ")
    assert "audit since 2026-05-04 09:20 UTC" in later.detail
    assert "day since" not in later.detail, "it may take an hour"
    assert "backup" not in later.detail, "a process without the owner's login does not make any"


@pytest.mark.parametrize(("days", "ok"), [(1, True), (3, False)])
async def test_a_backup_older_than_two_periods_is_red(
    harness: AppHarness, settings: Settings, days: int, ok: bool
) -> None:
    made_at = datetime(2026, 5, 1, 6, tzinfo=UTC)
    _backup_of(settings.home, made_at)
    found = await check(settings, "backup", made_at + timedelta(days=days))
    assert found.ok is ok
    assert found.detail.startswith(f"the newest is of 2026-05-01 06:00 UTC, {days} day")
    unscheduled = settings.model_copy(update={"backups": 0})
    assert (await check(unscheduled, "backup", made_at + timedelta(days=days))).ok is True


async def test_no_backup_is_red_once_the_jobs_have_run_for_two_periods(harness: AppHarness, settings: Settings) -> None:
    assert (await check(settings, "backup", START)).ok is None
    await serve_for_an_hour(harness)
    assert (await check(settings, "backup", START + timedelta(days=1))).ok is None
    assert (await check(settings, "backup", START + timedelta(days=3))).ok is False


def _backup_of(home: Path, at: datetime) -> None:
    (home / "backups").mkdir(parents=True)
    file = home / "backups" / "nexus-20260501T060000Z.backup"
    file.touch()
    os.utime(file, (at.timestamp(), at.timestamp()))


@pytest.mark.parametrize(
    ("given", "live", "ok", "said"),
    [
        ({}, False, None, ", 1 tool: not asked; nexus doctor --live does"),
        ({}, True, True, " answers; allowed: search; it also has erase"),
        ({"tools": ()}, False, False, "none of its tools is offered: name them in tools of [mcp.wiki] in nexus.toml"),
        ({"tools": ()}, True, False, "allowed: no tool; it also has erase, search; none of its tools is offered"),
        ({"tenants": ()}, False, False, "it is offered nowhere: name tenants or rooms in [mcp.wiki] in nexus.toml"),
        ({"tools": ("serch",)}, True, False, "it has no serch that can be offered: change tools of [mcp.wiki] in"),
        ({"token": SecretStr("zqwrong")}, True, False, "refused the token (401). Check token or headers."),
        ({"url": ServerUrl("http://127.0.0.1:1/mcp")}, True, False, "can't be reached (ConnectError)"),
    ],
)
async def test_tool_servers_are_connected_to_only_live(
    harness: AppHarness, settings: Settings, given: dict[str, Any], live: bool, ok: bool | None, said: str
) -> None:
    await harness.say("alice", "hello", room="lab")  # now its tenant is known
    async with serving(Wiki().add("search").add("erase")) as wiki:
        wiki.token = "right"
        server = at(wiki, "search", token=SecretStr("right")).model_copy(update=given)
        checks = await run_doctor(
            settings.model_copy(update={"mcp": {"wiki": server}}), live=live, slack_url="http://127.0.0.1:1/"
        )
        [found] = [each for each in checks if each.name == "mcp server wiki"]
        assert (found.ok, wiki.headers != []) == (ok, live and "url" not in given)
    assert said in found.detail
    assert "right" not in found.detail
    assert "zqwrong" not in found.detail


@pytest.mark.parametrize(
    ("given", "ok", "said"),
    [
        ({"tenants": ("acme",)}, None, "offered in the public rooms of acme"),
        ({"tenants": ("acme",), "private": True}, None, "offered in all rooms, DMs and sessions of acme"),
        ({"rooms": ("console:acme/lab",)}, None, "offered in console:acme/lab"),
        ({"tenants": ("nosuch",)}, False, "offered nowhere yet; the tenant nosuch is not known (there is acme)"),
        ({"tenants": ("slack:T1",)}, None, "nothing was said yet in slack:T1"),
        (
            {"rooms": ("console:acme/gnral",)},
            None,
            "nothing was said yet in the room console:acme/gnral: is that its id?",
        ),
        (
            {"tenants": ("acme", "nosuch"), "rooms": ("console:acme/lab", "console:acme/gnral")},
            False,
            "offered in the public rooms of acme and in console:acme/lab; the tenant nosuch is not known (there is "
            "acme); nothing was said yet in the room console:acme/gnral: is that its id?",
        ),
        ({"rooms": ("console:acme/vault",)}, None, "the room console:acme/vault is private: set private = true"),
        ({"rooms": ("console:acme/vault",), "private": True}, None, "offered in console:acme/vault"),
    ],
)
async def test_where_a_tool_server_is_offered_is_said_and_which_names_are_not_known(
    harness: AppHarness, settings: Settings, given: dict[str, Any], ok: bool | None, said: str
) -> None:
    await harness.say("alice", "hello", room="lab")
    await harness.say("alice", "hello", room="vault", private=True)
    server = McpSettings(url=ServerUrl("http://127.0.0.1:1/mcp"), tools=("search",), **given)
    found = await check(settings.model_copy(update={"mcp": {"wiki": server}}), "mcp server wiki", START)
    assert found.ok is ok
    assert found.detail.endswith(f"; {said}")


async def test_a_room_that_was_not_met_yet_is_pointed_out_also_when_the_server_answers(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.say("alice", "hello", room="lab")
    async with serving(Wiki().add("search")) as wiki:
        for room, ok in (("lab", True), ("gnral", None)):
            server = at(wiki, "search", tenants=(), rooms=(f"console:acme/{room}",))
            checks = await run_doctor(settings.model_copy(update={"mcp": {"wiki": server}}), live=True)
            assert [each.ok for each in checks if each.name == "mcp server wiki"] == [ok]


async def test_the_upstreams_of_the_gateway_are_asked_only_live(settings: Settings) -> None:
    async with ModelServer(key="right", models={"gpt-4o"}) as server:
        tenants = {"acme": {"gateway": {"base_url": server.url, "api_key": "right", "models": ["gpt-4o"]}}}
        own = Settings.model_validate({"home": settings.home, "tenants": tenants}).tenants
        update = {"gateway_base_url": ServerUrl(server.url), "gateway_api_key": SecretStr("wrong"), "tenants": own}
        given = settings.model_copy(update=update)
        silent = {each.name: each for each in await run_doctor(given) if each.name.startswith("gateway")}
        assert silent["gateway"].detail == f"{server.host}, all of its models: not asked; nexus doctor --live does"
        assert silent["gateway of acme"].detail.startswith(f"{server.host}, models gpt-4o: not asked")
        found = {each.name: each for each in await run_doctor(given, live=True) if each.name.startswith("gateway")}
        assert (found["gateway"].ok, "NEXUS_GATEWAY_API_KEY" in found["gateway"].detail) == (False, True)
        assert (found["gateway of acme"].ok, found["gateway of acme"].detail) == (
            True,
            f"{server.host} answers, models gpt-4o",
        )
    away = {each.name: each for each in await run_doctor(given, live=True) if each.name.startswith("gateway")}
    assert (away["gateway"].ok, "can't be reached" in away["gateway"].detail) == (False, True)
    assert "wrong" not in str(away)
    off = settings.model_copy(update={"gateway": settings.gateway.model_copy(update={"enabled": False})})
    assert [each for each in await run_doctor(off) if each.name.startswith("gateway")] == []


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (401, "does not accept the key (401): check NEXUS_OPENAI_API_KEY."),
        (400, "has no list of models (400): NEXUS_OPENAI_BASE_URL mostly ends in /v1."),
        (429, "has trouble (429): try again in a while."),
        (503, "has trouble (503): try again in a while."),
        (None, "The model server can't be reached. Check NEXUS_OPENAI_BASE_URL."),
    ],
)
async def test_the_gateway_names_the_setting_that_its_upstream_comes_from(
    settings: Settings, status: int | None, sentence: str
) -> None:
    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(status=status or 200)

    async with RawTestServer(answer) as server:
        port = 1 if status is None else server.port
        given = {"openai_base_url": ServerUrl(f"http://127.0.0.1:{port}/v1"), "openai_api_key": SecretStr("wrong")}
        checks = await run_doctor(settings.model_copy(update=given), live=True, slack_url="http://127.0.0.1:1/")
    [found] = [each for each in checks if each.name == "gateway"]
    assert (found.ok, found.detail.endswith(sentence)) == (False, True), found.detail


async def test_a_workspace_whose_memory_lies_with_another_tenant_than_its_own_is_named(
    harness: AppHarness, settings: Settings
) -> None:
    """Nothing moves the memory of a workspace that is listed under a tenant later, or under another one."""
    await harness.say("alice", "the vault code is walnut", workspace="acme", room="general")
    listed = settings.model_copy(update={"tenants": {"corp": TenantSettings(workspaces=("acme",))}})
    assert "tenants" not in {each.name for each in await run_doctor(settings)}
    found = await check(listed, "tenants", harness.clock.now())
    assert found.ok is False
    assert found.detail == (
        "console:acme belongs to the tenant corp by nexus.toml, and has memory with the tenant acme, which is not "
        "read. To have it read again: nexus setup --workspace console:acme, and start Nexus again (docs/settings.md, "
        "tenants)."
    )


async def test_a_section_that_was_taken_out_is_mended_by_the_command_that_is_named(settings: Settings) -> None:
    listed = settings.model_copy(update={"tenants": {"corp": TenantSettings(workspaces=("console:acme",))}})
    async with open_harness(listed) as harness:
        await harness.say("alice", "the vault code is walnut", workspace="acme", room="general")
        found = await check(settings, "tenants", harness.clock.now())
    assert found.ok is False
    assert "To have it read again: nexus setup --organisation corp --workspace console:acme, and start" in found.detail
