"""The web port: liveness asks nobody, readiness says in words what is missing, metrics show counts and no person."""

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.console import schedule
from bot.serving import opens_port
from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.server import open_port
from composer.app import App
from composer.errors import Misconfigured
from composer.model import Usage
from composer.operations import readiness
from composer.ports.models import WorkKind
from composer.ports.observer import CallOutcome
from composer.settings import Settings, load_settings
from composer.stores.database.working_cache import RedisWorkingCache
from tests.support.harness import AppHarness, open_harness
from tests.support.web import served_at

Client = httpx2.AsyncClient


@asynccontextmanager
async def client_of(app: App, metrics: Metrics, **connected: Callable[[], Awaitable[bool]]) -> AsyncIterator[Client]:
    async with served_at(web_app(app, metrics, connected, None)) as url, httpx2.AsyncClient(base_url=url) as client:
        yield client


async def asked(client: Client, path: str) -> tuple[int, Any]:
    response = await client.get(path)
    return response.status_code, response.json()


async def up() -> bool:
    return True


async def down() -> bool:
    return False


async def test_a_process_that_serves_is_healthy_and_ready(harness: AppHarness) -> None:
    async with client_of(harness.app, Metrics(()), discord=up) as client:
        assert await asked(client, "/health") == (200, {"status": "running"})
        assert await asked(client, "/ready") == (200, {"ready": True, "missing": []})


async def test_health_asks_neither_the_database_nor_the_platforms(harness: AppHarness) -> None:
    await harness.app.database.close()
    async with client_of(harness.app, Metrics(()), slack=down) as client:
        assert await asked(client, "/health") == (200, {"status": "running"})
        status, said = await asked(client, "/ready")
    assert status == 503
    assert said["ready"] is False
    assert len(said["missing"]) == 2
    assert said["missing"][0].startswith("The database does not answer")
    assert said["missing"][1] == "Slack is not connected."


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("DELETE FROM schema_migrations WHERE version = 68", "The database's schema is 1 migration behind: run nexus"),
        ("ALTER TABLE messages NO FORCE ROW LEVEL SECURITY", "Row-level security is not enforced"),
    ],
)
async def test_readiness_names_a_schema_that_is_behind_and_isolation_that_is_off(
    harness: AppHarness, settings: Settings, statement: str, sentence: str
) -> None:
    owner = await asyncpg.connect(settings.database_url)
    try:
        await owner.execute(statement)
    finally:
        await owner.close()
    async with client_of(harness.app, Metrics(())) as client:
        status, said = await asked(client, "/ready")
    assert status == 503
    [found] = said["missing"]
    assert found.startswith(sentence)


async def test_a_database_that_is_too_slow_is_missing(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "ANSWER_SECONDS", 0.2)
    owner = await asyncpg.connect(settings.database_url)
    try:
        async with owner.transaction():
            await owner.execute("LOCK TABLE schema_migrations")
            found = await readiness.missing(harness.app.database, harness.app.cache)
    finally:
        await owner.close()
    assert "The database does not answer within 0 second." in found


async def test_an_unreachable_cache_is_named_without_its_address_or_password(harness: AppHarness) -> None:
    cache = RedisWorkingCache("redis://:hunter2@127.0.0.1:1/0")
    found = await readiness.missing(harness.app.database, cache)
    await cache.close()
    [sentence] = found
    assert "127.0.0.1" not in sentence
    assert "hunter2" not in sentence


async def test_metrics_count_turns_jobs_and_calls_and_show_nobody(settings: Settings, tmp_path: Path) -> None:
    metrics = Metrics({"small"})
    given = settings.model_copy(update={"home": tmp_path})
    async with open_harness(given, observer=metrics) as harness:
        with capture_logs() as logs:
            await harness.ask("alice", "@nexus where is the zebra budget?", room="boardroom")
        await schedule.run(harness.app, "expiry", harness.clock.now())
        metrics.model_called(WorkKind.EXTRACTION, "small", CallOutcome.DONE, Usage(30, 4, 0))
        metrics.model_called(WorkKind.ANSWER, "a model named by a person", CallOutcome.FAILED, Usage())
        async with client_of(harness.app, metrics) as client:
            response = await client.get("/metrics")
            text = response.text
    lines = text.splitlines()
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    for line in (
        'nexus_turns_total{outcome="delivered"} 1.0',
        'nexus_turn_step_seconds_count{step="total"} 1.0',
        'nexus_turn_step_seconds_count{step="deliver"} 1.0',
        'nexus_model_calls_total{kind="extraction",model="small",outcome="done"} 1.0',
        'nexus_model_calls_total{kind="answers",model="other",outcome="failed"} 1.0',
        'nexus_model_tokens_total{direction="prompt",kind="extraction",model="small"} 30.0',
        'nexus_job_runs_total{job="expiry",state="done"} 1.0',
        "nexus_turns_open 0.0",
        "nexus_database_up 1.0",
        'nexus_backlog{work="index"} 0.0',
        "nexus_backup_age_seconds +Inf",
    ):
        assert line in lines, line
    assert any(line.startswith('nexus_job_last_success_timestamp_seconds{job="expiry"} ') for line in lines)
    shown = text + json.dumps(logs)
    for secret in ("alice", "zebra", "boardroom", "a model named", "Nexus"):
        assert secret not in shown, secret
    assert not any(str(each.turn.id) in text for each in harness.delivery.replies)


async def test_each_turn_has_one_line_in_the_log(harness: AppHarness) -> None:
    with capture_logs() as logs:
        reply = await harness.ask("alice", "@nexus hello", room="general")
    [line] = [each for each in logs if each["event"] == "turn.ended"]
    assert line["turn"] == str(reply.turn.id)
    assert line["conversation"] == str(reply.turn.conversation_id)
    assert (line["outcome"], line["attempts"], line["adapter"]) == ("delivered", 1, reply.turn.adapter)
    assert {"total_ms", "deliver_ms", "model_ms", "pack_ms", "prompt_tokens", "completion_tokens"} <= line.keys()


async def test_metrics_are_shown_while_the_database_is_away(harness: AppHarness) -> None:
    metrics = Metrics(())
    async with client_of(harness.app, metrics) as client:
        before = (await client.get("/metrics")).text
        await harness.app.database.close()
        after = (await client.get("/metrics")).text
    assert 'nexus_backlog{work="index"}' in before
    assert "nexus_database_up 0.0" in after
    assert "nexus_backlog{" not in after


async def test_the_age_of_the_newest_backup_is_in_seconds(harness: AppHarness) -> None:
    folder = harness.app.settings.home / "backups"
    folder.mkdir(parents=True)
    (folder / "nexus-1.backup").touch()
    harness.clock.set(datetime.fromtimestamp((folder / "nexus-1.backup").stat().st_mtime + 90, UTC))
    async with client_of(harness.app, Metrics(())) as client:
        text = (await client.get("/metrics")).text
    [line] = [line for line in text.splitlines() if line.startswith("nexus_backup_age_seconds ")]
    assert float(line.split()[1]) == pytest.approx(90, abs=0.01)


async def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = Settings(home=tmp_path, web_port=port)
        async with AsyncExitStack() as stack:
            with pytest.raises(
                Misconfigured, match=f"^The web port {port} can't be opened on 127.0.0.1 .*NEXUS_WEB_PORT"
            ):
                await open_port(given, FastAPI(), stack)


def test_the_port_opens_when_it_is_asked_for_named_or_needed(tmp_path: Path) -> None:
    plain = load_settings({"NEXUS_HOME": str(tmp_path)}, tmp_path)
    assert not opens_port(plain, {"discord"}, requested=False)
    assert opens_port(plain, set(), requested=True)
    assert opens_port(
        load_settings({"NEXUS_HOME": str(tmp_path), "NEXUS_WEB_PORT": "9000"}, tmp_path), set(), requested=False
    )
    by_http = plain.model_copy(update={"slack_bot_token": SecretStr("b"), "slack_signing_secret": SecretStr("s")})
    assert opens_port(by_http, {"slack"}, requested=False)
    assert not opens_port(by_http, {"discord"}, requested=False)
    both = by_http.model_copy(update={"slack_app_token": SecretStr("a")})
    assert not opens_port(both, {"slack"}, requested=False)


def test_a_model_that_no_setting_names_is_no_label() -> None:
    metrics = Metrics({"known"})
    for number in range(100):
        metrics.model_called(WorkKind.ANSWER, f"m{number}", CallOutcome.DONE, Usage(1, 1))
    assert metrics.text().count(b"nexus_model_calls_total{") == 1
