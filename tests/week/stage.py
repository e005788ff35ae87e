"""The platforms of the week with its people and rooms on them, and the process of Nexus between them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from bot.delivery.notices import ROOMS_QUESTION
from composer.ingest.recording import privacy_notice
from composer.model import RecordingPolicy
from tests.support.discord.model import Channel, Guild, Permission, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.clock import Clock
from tests.support.slack.model import Team
from tests.support.slack.server import SlackServer
from tests.support.waiting import PLATFORM_SECONDS, TIMEOUT_SECONDS
from tests.week.model import WeekModel
from tests.week.script import Week

ROOT: Final = Path(__file__).resolve().parents[2]
SERVICE: Final = "tests.week.service"
NOTICES: Final = {privacy_notice(policy) for policy in RecordingPolicy} | {ROOMS_QUESTION}
DAY_TOKENS: Final = 13_000  # what all answers of a day may use
SETTINGS: Final = """
timezone = "{zone}"
extraction = "pattern"
backups = 0

[[agents]]
model = "tide-large"
fallback_models = ["tide-small"]

[[budgets]]
per = "day"
kind = "answers"
tokens = {tokens}

[tenants.tidehouse]
workspaces = ["discord:{guild}", "slack:{team}"]
"""


@dataclass(slots=True)
class WeekClock:
    """The time on both platforms, in Unix seconds; only the player moves it."""

    seconds: float

    def now(self) -> float:
        return self.seconds


@dataclass
class Service:
    """The process of Nexus. `command` is what starts `python -m tests.week.service`."""

    command: Sequence[str]
    environment: Mapping[str, str]
    given: dict[str, str]
    process: asyncio.subprocess.Process | None = field(default=None, init=False)

    async def start(self, now: datetime) -> None:
        """Start it, and wait until it serves both platforms."""
        pipe = asyncio.subprocess.PIPE
        words = [*self.command, json.dumps(self.given | {"now": now.isoformat()})]
        self.process = await asyncio.create_subprocess_exec(
            *words, cwd=ROOT, env=self.environment, stdin=pipe, stdout=pipe, start_new_session=True
        )
        await self._answer("up")

    async def do(self, command: str, **arguments: Any) -> None:
        """Let it do one command of its `Service`, and wait until that is done."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([command, arguments]).encode() + b"\n")
        await self._answer("done")

    async def _answer(self, expected: str) -> None:
        """Read its output up to this line. Raises RuntimeError when it fails or ends."""
        assert self.process is not None
        assert self.process.stdout is not None
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while line := await self.process.stdout.readline():
                if line.decode().strip() == expected:
                    return
                if line.startswith(b"failed"):
                    raise RuntimeError(line.decode().strip())
        raise RuntimeError("Nexus has ended; what it wrote says why")

    async def stop(self) -> None:
        """End it as a clean stop does."""
        if self.process is not None and self.process.returncode is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            await asyncio.wait_for(self.process.wait(), TIMEOUT_SECONDS)

    async def kill(self) -> None:
        """End it by kill -9."""
        if self.process is not None and self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()


@dataclass
class Stage:
    """Both platforms, by the names of the week: people, places, messages."""

    week: Week
    clock: WeekClock
    discord: DiscordServer
    slack: SlackServer
    model: WeekModel
    guild: Guild
    team: Team
    users: dict[str, User] = field(default_factory=dict)  # on Discord
    members: dict[str, str] = field(default_factory=dict)  # on Slack: ids
    channels: dict[str, Channel] = field(default_factory=dict)  # of Discord, with threads and DMs
    ids: dict[str, str] = field(default_factory=dict)  # of Slack's channels, with DMs

    async def settle(self, service: Service) -> None:
        """Until what was said is stored, answered and indexed."""
        await self.slack.settled()
        await service.do("settle")

    def own(self, place: str) -> list[tuple[str, str | None]]:
        """What Nexus posted in a place, oldest first, without privacy notices: each text, and the id of the thread that
        it is in, if any."""
        if self.week.platform_of(place) == "discord":
            room = self.channel(place)
            rooms = [room, *(c for c in self.channels.values() if c.parent is room)]
            said = [m for each in rooms for m in self.discord.messages(each, self.discord.bot)]
            found = [(m.content, str(m.channel.id) if m.channel is not room else None, m.id) for m in said]
            return [
                (text, thread) for text, thread, _ in sorted(found, key=lambda each: each[2]) if text not in NOTICES
            ]
        said_there = self.slack.messages(self.ids[place])
        own = [m for m in said_there if m.get("bot_id") == self.team.bot_id and m["text"] not in NOTICES]
        return [(str(m["text"]), m.get("thread_ts")) for m in own]

    def channel(self, place: str) -> Channel:
        """A channel of Discord."""
        if place not in self.channels and place.startswith("dm "):
            self.channels[place] = self.discord.dm(self.users[place.split()[1]])
        return self.channels[place]

    def everything(self) -> dict[str, str]:
        """All that Nexus showed anywhere, by the place; what it showed to one person alone, by "alone NAME"."""
        places = [*self.week.rooms, *(p for p in (*self.channels, *self.ids) if p.startswith("dm "))]
        found = {place: "\n".join(text for text, _ in self.own(place)) for place in dict.fromkeys(places)}
        for name, user in self.users.items():
            shown = [m.content for i in self.discord.world.interactions.values() if i.user is user for m in i.messages]
            found[f"alone {name}"] = "\n".join(shown)
        for name, id in self.members.items():
            shown = [str(said.get("text")) for said in self.slack.ephemerals(id)]
            found[f"alone {name}"] = "\n".join((found.get(f"alone {name}", ""), *shown))
        return found


@asynccontextmanager
async def on_stage(week: Week) -> AsyncIterator[Stage]:
    """The platforms and the model's server, with everybody on them."""
    clock = WeekClock(week.start.timestamp())
    async with (
        DiscordServer(now=clock.now) as discord,
        SlackServer(Clock(clock.now)) as slack,
        WeekModel(week) as model,
    ):
        discord.rest.answer_within = slack.outbox.ack_seconds = PLATFORM_SECONDS
        stage = Stage(week, clock, discord, slack, model, await discord.add_guild("Tidehouse"), await slack.add_team())
        await _people(stage)
        await _rooms(stage)
        yield stage


async def _people(stage: Stage) -> None:
    lead = await stage.discord.add_role(stage.guild, "lead", Permission.ADMINISTRATOR)
    for name, person in stage.week.people.items():
        if "discord" in person.platforms:
            roles = [lead] if person.admin else []
            stage.users[name] = await stage.discord.add_member(stage.guild, name.capitalize(), *roles)
        if "slack" in person.platforms:
            stage.members[name] = await stage.slack.add_user(stage.team, name, admin=person.admin)
            key = f"dm {name}" if person.platforms[0] == "slack" else f"dm {name} slack"
            stage.ids[key] = await stage.slack.add_im(stage.team, stage.members[name])


async def _rooms(stage: Stage) -> None:
    for name, room in stage.week.rooms.items():
        if room.platform == "discord":
            only = [stage.users[who] for who in room.private] or None
            stage.channels[name] = await stage.discord.add_channel(stage.guild, name, only=only)
        else:
            people = [stage.members[who] for who in room.private or stage.members]
            private = bool(room.private)
            stage.ids[name] = await stage.slack.add_channel(stage.team, name, people, private=private)


def service_for(stage: Stage, home: Path, command: Sequence[str] = (), **urls: str) -> Service:
    """Nexus for the stage, with its settings in `home`; `urls` are `database_url` and `redis_url` where it does not run
    servers of its own. `command` starts the program `SERVICE`, by default as a Python of its own."""
    home.mkdir(parents=True, exist_ok=True)
    settings = SETTINGS.format(zone=stage.week.zone, tokens=DAY_TOKENS, guild=stage.guild.id, team=stage.team.id)
    (home / "nexus.toml").write_text(settings, encoding="utf-8")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEXUS_")}
    environment = {
        **inherited,
        "PYTHONPATH": str(ROOT),
        "NEXUS_HOME": str(home),
        "NEXUS_CONFIG": str(home / "nexus.toml"),
        "NEXUS_OPENAI_BASE_URL": stage.model.url,
        "NEXUS_DISCORD_TOKEN": stage.discord.token,
        "NEXUS_SLACK_BOT_TOKEN": stage.team.bot_token,
        "NEXUS_SLACK_APP_TOKEN": stage.slack.app_token,
        **{f"NEXUS_{key.upper()}": value for key, value in urls.items()},
    }
    given = {
        "api": stage.discord.api,
        "gateway": stage.discord.gateway_url,
        "base_url": stage.slack.base_url,
    }
    return Service(command or (sys.executable, "-m", SERVICE), environment, given)
