"""Traces of the attack files: each case with all that its steps brought about, and the rows that it left."""

import asyncio
import itertools
import json
import re
import uuid
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest
import redis

from composer.settings import Settings
from composer.stores.embedded.servers import Servers
from tests.golden.names import Names
from tests.golden.recording import Recorder
from tests.golden.rows import columns_of, read_rows, tenants_of
from tests.support import api_stage, attack_stage, harness
from tests.support.api_answers import sent
from tests.support.api_attack_cases import all_cases as api_cases
from tests.support.attack_cases import all_cases
from tests.support.databases import clone

COUNTED_SECONDS: Final = 1.2  # what is counted in memory is stored by then, so that requests show it
COUNTS: Final = re.compile(rb"^\w+ /\S*(usage|stats)")
PAUSE_SECONDS: Final = 0.05  # what follows an answer, such as noting that a key was used, is done before the next step


def chosen(cases: list[Any], every: int) -> list[Any]:
    """One of so many cases."""
    return cases[::every]


async def record_attacks(servers: Servers, folder: Path, recorder: Recorder, every: int) -> None:
    """Play the cases of tests/attacks, on one app."""
    redis.Redis.from_url(servers.redis_url).flushall()
    cases = sorted(all_cases(), key=lambda case: not case.runs_jobs)
    async with clone(servers.database_url, "goldenattacks") as url:
        raw = await asyncpg.connect(url)
        columns = await columns_of(raw)
        home = folder / "attacks"
        home.mkdir()
        settings = Settings(home=home, database_url=url, redis_url=servers.redis_url)
        steps: list[dict[str, Any]] = []
        judge = attack_stage._Play._judge

        def seen(self: Any, step: Any, outcome: attack_stage.Outcome) -> None:
            answered = {name: value for name, value in vars(outcome).items() if value}
            steps.append({"step": step.event, **answered})
            judge(self, step, outcome)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(attack_stage._Play, "_judge", seen)
            async with attack_stage.open_stage(settings, cases, home) as stage:
                before = set(await tenants_of(raw))
                for case in chosen(cases, every):
                    steps.clear()
                    verdict = await _verdict(stage.play(case))
                    now = await tenants_of(raw)
                    names = Names()
                    rows = await read_rows(raw, columns, sorted(set(now) - before), names)
                    before = set(now)
                    came = names.value({"verdict": verdict, "steps": steps})
                    recorder.add(case.id, input=_script(case), rows=rows, **came)
        await raw.close()


async def record_api(servers: Servers, folder: Path, recorder: Recorder, every: int) -> None:
    """Play the cases of tests/attacks/api-*.yaml: each request with its answer, byte for byte but for ids and keys."""
    redis.Redis.from_url(servers.redis_url).flushall()
    async with clone(servers.database_url, "goldenapi") as url:
        raw = await asyncpg.connect(url)
        columns = await columns_of(raw)
        home = folder / "api"
        home.mkdir()
        settings = Settings(home=home, database_url=url, redis_url=servers.redis_url)
        steps: list[dict[str, Any]] = []
        command = harness.AppHarness.command

        async def seen(url: str, request: bytes) -> Any:
            if COUNTS.match(request):
                await asyncio.sleep(COUNTED_SECONDS)
            answer = await sent(url, request)
            said = {"request": request.decode("latin-1"), "status": answer.status, "headers": _plain(answer.headers)}
            steps.append(said | {"body": _parsed(answer.body)})
            await asyncio.sleep(PAUSE_SECONDS)
            return answer

        async def commanded(self: Any, user: str, text: str, **options: Any) -> Any:
            answer = await command(self, user, text, **options)
            steps.append({"command": text, "user": user, "text": answer.text})
            return answer

        played: list[tuple[Any, list[uuid.UUID], dict[str, Any]]] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(api_stage, "sent", seen)
            patch.setattr(harness.AppHarness, "command", commanded)
            async with api_stage.open_api_stage(settings) as stage:
                before = set(await tenants_of(raw))
                for case in chosen(api_cases(), every):
                    steps.clear()
                    patch.setattr(harness, "_numbers", itertools.count(1))
                    stage.harness.clock.set(harness.START)
                    replies = len(stage.harness.delivery.replies)
                    verdict = await _verdict(stage.play(case))
                    posted = [getattr(each, "text", str(each)) for each in stage.harness.delivery.replies[replies:]]
                    now = set(await tenants_of(raw))
                    came = {"verdict": verdict, "steps": list(steps), "posted": posted}
                    played.append((case, sorted(now - before), came))
                    before = now
        # What is counted, and what the gateway learns from, is stored a moment after an answer, or at the end.
        for case, tenants, came in played:
            names = Names()
            rows = await read_rows(raw, columns, tenants, names)
            recorder.add(case.id, input=_script(case), rows=rows, **names.value(came))
        await raw.close()


async def _verdict(playing: Awaitable[None]) -> str:
    """What the stage says of a case: that the attack failed, or why not."""
    try:
        await playing
    except (AssertionError, Exception) as error:
        return f"{type(error).__name__}: {error}"
    return "the attack failed"


def _script(case: Any) -> list[Any]:
    return [step.model_dump(mode="json", exclude_defaults=True) for step in case.script]


def _plain(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in ("date", "content-length")}


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body
