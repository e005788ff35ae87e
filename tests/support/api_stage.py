"""Plays attacks over the API: requests go byte for byte to the web app, and every answer is judged."""

import json
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.settings import AgentSettings, GatewaySettings, Settings
from composer.settings.server_urls import ServerUrl
from tests.support.api import key_of, person
from tests.support.api_answers import Answer, Leaked, found_in, require_problem, said_over_mcp, sent
from tests.support.api_attack_cases import OWN_CANARY, Ask, Case, Ends, Step, Tell, Wait, with_own_canaries
from tests.support.attack_stage import EchoingModel
from tests.support.embedder import HashedWords
from tests.support.gateway import UPSTREAM_KEY
from tests.support.harness import AppHarness, open_harness
from tests.support.upstream import EchoingUpstream
from tests.support.web import served_at

WHO: Final = re.compile(r"(?:(\w+):)?(\w+)(?:/(\w+))?(?:\[([^\]]*)\])?")
PASSING: Final = frozenset({"date", "content-length", "connection"})  # headers that say nothing of what was asked for


class Broken(Exception):
    """A case that did not run as written, so that it shows nothing."""


@dataclass
class ApiStage:
    """A web app on which cases are played one after another, each in a tenant of its own."""

    harness: AppHarness
    url: str

    async def play(self, case: Case) -> None:
        """Play a case. Raises Leaked when the attack succeeds, and Broken when the case is not played as written."""
        run = _Play(self, case)
        for step in case.script:
            self.harness.clock.tick(0.001)  # less than a score shows
            await run.take(step)


@dataclass
class _Play:
    """One run of one case."""

    stage: ApiStage
    case: Case
    kept: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)

    async def take(self, step: Step) -> None:
        harness, here = self.stage.harness, self.case.slug
        began = harness.clock.now()
        match step:
            case Ask():
                await self._ask(step)
            case Wait():
                harness.clock.tick(timedelta(hours=step.hours).total_seconds())
            case Tell():
                await self._tell(step)
                harness.clock.set(began)  # or what is told would make all else older
            case Ends():
                workspace, name, vendor, _ = self._who(step.revoked)
                found = await person(harness, name, workspace)
                async with harness.app.database.transaction(harness.workspace(workspace).tenant_id) as tx:
                    keys = await tx.api_keys.of([found.id])
                    await tx.api_keys.revoke([key.id for key in keys if key.vendor == vendor], harness.clock.now())
        await harness.app.turns.settle()
        await harness.app.indexer.catch_up(harness.workspace(here).tenant_id)

    async def _tell(self, step: Tell) -> None:
        harness, text = self.stage.harness, await self._filled(step.tell)
        place: dict[str, Any] = {"workspace": self.case.slug, "room": step.room, "dm": step.dm}
        if not text.startswith("/nexus"):
            await harness.say(step.user, text, **place)
            return
        answer = await harness.command(step.user, text, **place)
        if "--yes" in answer.text and "--yes" not in text:
            answer = await harness.command(step.user, f"{text} --yes", **place)

    async def _ask(self, ask: Ask) -> None:
        request = await self._request(ask)
        with capture_logs() as logs:
            answer = await sent(self.stage.url, request)
        shows, lacks = [[await self._filled(word) for word in words] for words in (ask.shows, ask.lacks)]
        self._judge(ask, answer, str(logs), shows, lacks)
        for where, expected in ask.says.items():
            wanted = await self._filled(expected) if isinstance(expected, str) else expected
            if (said := said_over_mcp(answer, where, wanted)) != wanted:
                raise Leaked(f"{self.case.id}: {where or 'all'} is {said!r}, not {wanted!r}: {answer.body}")
        if ask.label is not None:
            self.answers[ask.label] = answer
        for name, where in ask.keep.items():
            self.kept[name] = found_in(answer, where)

    async def _request(self, ask: Ask) -> bytes:
        if ask.wire is not None:
            return (await self._filled(ask.wire)).encode("latin-1")
        given = {name: [await self._filled(value) for value in values] for name, values in ask.headers.items()}
        named = {name.lower() for name in given}
        lines = [await self._filled(ask.do) + " HTTP/1.1"]
        lines += [f"{name}: {value}" for name, values in given.items() for value in values]
        if "host" not in named:
            lines.append("Host: localhost")
        if ask.who != "nobody" and "authorization" not in named:
            lines.append(f"Authorization: Bearer {await self._key(ask.who)}")
        raw = await self._filled(ask.raw) if ask.raw is not None else None
        if ask.json_ is not None:
            raw = await self._filled(json.dumps(ask.json_))
        if raw is not None:
            lines += [] if "content-type" in named else ["Content-Type: application/json"]
            lines += [] if "content-length" in named else [f"Content-Length: {len(raw.encode('latin-1'))}"]
        return "\r\n".join([*lines, "Connection: close", "", raw or ""]).encode("latin-1")

    def _judge(self, ask: Ask, answer: Answer, logs: str, shows: list[str], lacks: list[str]) -> None:
        said = f"{self.case.id}: {ask.do or ask.wire} as {ask.who} was answered {answer.whole[:2_000]}"
        if answer.status not in ask.status or answer.status >= 500:
            raise Leaked(f"{ask.status} was expected: {said}")
        whole = answer.whole + answer.body
        if missing := sorted(word for word in shows if word not in whole):
            raise Broken(f"{missing} is not shown: {said}")
        leaked = {word for word in OWN_CANARY.findall(whole.casefold()) if not any(word in each for each in shows)}
        leaked |= {word for word in lacks if word in whole}
        if leaked:
            raise Leaked(f"{sorted(leaked)}: {said}")
        if told := [each for each in (*self.keys.values(), *OWN_CANARY.findall(logs.casefold())) if each in logs]:
            raise Leaked(f"the log tells {told}: {logs}")
        if answer.status >= 400 and not ask.do.startswith("HEAD"):
            require_problem(answer, said)
        if ask.same_as is not None and self._shape(answer) != self._shape(self.answers[ask.same_as]):
            raise Leaked(f"{said}: this is not as {self.answers[ask.same_as].whole}")

    def _shape(self, answer: Answer) -> tuple[int, dict[str, str], str]:
        """All of an answer but what was asked for, which a sentence may repeat."""
        body = answer.body
        for value in sorted(self.kept.values(), key=len, reverse=True):
            body = body.replace(value, "·")
        headers = {name: value for name, value in answer.headers.items() if name not in PASSING}
        return answer.status, headers, body.replace(self._unknown, "·")

    async def _key(self, who: str) -> str:
        if who not in self.keys:
            began = self.stage.harness.clock.now()
            workspace, name, vendor, permissions = self._who(who)
            granted = None if permissions is None else permissions.split()
            self.keys[who] = await key_of(self.stage.harness, name, vendor, granted, workspace)
            self.stage.harness.clock.set(began)
        return self.keys[who]

    def _who(self, who: str) -> tuple[str, str, str | None, str | None]:
        found = WHO.fullmatch(self._own(who))
        if found is None:
            raise Broken(f"{self.case.id}: nobody is called {who}")
        workspace = self.case.slug if found[1] is None else f"{self.case.slug}-{found[1]}"
        return workspace, found[2], found[3], found[4]

    @property
    def _unknown(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, self.case.slug))

    def _own(self, text: str) -> str:
        return with_own_canaries(self.case, text)

    async def _filled(self, text: str) -> str:
        """A text of the case with its own canaries, keys, ids and times; of nested names the inner one first."""
        text = self._own(text)
        while len(parts := re.split(r"<<([^<>]+)>>", text)) > 1:
            for number in range(1, len(parts), 2):
                parts[number] = await self._named(parts[number])
            text = "".join(parts)
        return text

    async def _named(self, name: str) -> str:
        kind, _, rest = name.partition(" ")
        if name in self.kept:
            return self.kept[name]
        if name == "unknown":
            return self._unknown
        if kind == "upper":
            return rest.upper()
        if kind == "key":
            return await self._key(rest)
        if kind == "user":
            workspace, user, _, _ = self._who(rest)
            return str((await person(self.stage.harness, user, workspace)).id)
        if kind == "tenant":
            return self.stage.harness.workspace(self._who(f"{rest}:x" if rest else "x")[0]).tenant
        if kind == "hours":
            return (self.stage.harness.clock.now() + timedelta(hours=float(rest))).isoformat().replace("+00:00", "Z")
        if kind.isdecimal() and rest.startswith("x "):
            return rest[2:] * int(kind)
        raise Broken(f"{self.case.id}: nothing is called {name}")


@asynccontextmanager
async def open_api_stage(settings: Settings) -> AsyncIterator[ApiStage]:
    """A stage on a fresh database, whose model repeats every canary that it is sent, as the gateway's does."""
    async with EchoingUpstream(key=UPSTREAM_KEY) as upstream:
        chosen = _with_upstream(settings, upstream.url)
        async with AsyncExitStack() as stack:
            opening = open_harness(chosen, model=EchoingModel(), embedder=HashedWords())
            harness = await stack.enter_async_context(opening)
            app = web_app(harness.app, Metrics([]), {}, None)
            yield ApiStage(harness, await stack.enter_async_context(served_at(app)))


def _with_upstream(settings: Settings, url: str) -> Settings:
    return settings.model_copy(
        update={
            "gateway_base_url": ServerUrl(url),
            "gateway_api_key": SecretStr(UPSTREAM_KEY),
            "gateway": GatewaySettings(models=("gpt-4o", "gpt-4o-mini")),
            "agents": (AgentSettings(model="gullible"), AgentSettings(slug="sage", name="Sage", model="gullible")),
            "requests_per_minute": 1_000_000,
            "extraction": "pattern",
        }
    )
