"""One person who gives commands on a platform, for tests that are alike on each: commands that a restart interrupts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pytest

from composer.settings import Settings
from tests.support.discord.harness import Discord, on_discord, point_at
from tests.support.discord.model import Channel, Guild, Interaction, Permission, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import Office, Running, office_on
from tests.support.waiting import until

STAGES: Final = ("discord", "slack", "slack, by mention")


class Stage(Protocol):
    """Nexus on one platform, and a person in a room of it. `runs` names what its adapter runs commands by."""

    runs: str

    @property
    def settings(self) -> Settings:
        """Those of Nexus."""
        ...

    def running(self) -> AbstractAsyncContextManager[Any]:
        """Nexus, connected and caught up."""
        ...

    async def say(self, running: Any, text: str) -> None:
        """Say something where they are now, and wait until it is stored."""
        ...

    async def give(self, command: str, **options: str | bool) -> None:
        """Give a command where they are now. It may not be answered."""
        ...

    async def confirm(self) -> None:
        """Press the button below the last answer."""
        ...

    def answers(self) -> list[str]:
        """What they were answered, each for them alone, oldest first."""
        ...

    async def set_admin(self, admin: bool) -> None:
        """Make them an admin of the whole workspace, or no longer one."""
        ...

    async def enter(self, where: str) -> None:
        """Go to a private channel, a private thread or a DM."""
        ...

    async def leave(self, what: str) -> None:
        """Leave the private channel or thread, or the platform."""
        ...


@asynccontextmanager
async def stage_of(name: str, settings: Settings) -> AsyncIterator[Stage]:
    """The stage of a name."""
    if name == "discord":
        with pytest.MonkeyPatch.context() as patched:
            async with DiscordServer() as server:
                point_at(server, patched)
                guild = await server.add_guild()
                room = await server.add_channel(guild, "general")
                ada = await server.add_member(guild, "Ada")
                yield DiscordStage(settings, server, guild, ada, room)
        return
    async with office_on(settings) as office:
        stage = SlackStage(office, office.general, by_mention=name == "slack, by mention")
        yield stage
        for each in stage.giving:
            each.cancel()


@dataclass
class DiscordStage:
    """Ada, on Discord."""

    settings: Settings
    server: DiscordServer
    guild: Guild
    ada: User
    place: Channel
    given: list[Interaction] = field(default_factory=list)
    runs: str = "bot.discord.slash.run_command"

    def running(self) -> AbstractAsyncContextManager[Discord]:
        """Nexus, connected and caught up."""
        return on_discord(self.settings, self.server, self.guild)

    async def say(self, running: Discord, text: str) -> None:
        """Say something, and wait until it is stored."""
        await self.server.post(self.place, self.ada, text)
        await running.stored(text)

    async def give(self, command: str, **options: str | bool) -> None:
        """Give a command. It may not be answered."""
        self.given.append(await self.server.invoke(f"nexus {command}", self.place, self.ada, **options))

    async def confirm(self) -> None:
        """Press the button below the last answer."""
        shown = self.given[-1].original
        assert shown is not None
        button = shown.components[0]["components"][0]["custom_id"]
        self.given.append(await self.server.click(shown, button, self.ada))

    def answers(self) -> list[str]:
        """What they were answered."""
        shown = [each.original for each in self.given if each.original is not None and each.original.content]
        assert all(each.ephemeral for each in shown)
        return [each.content for each in shown]

    async def set_admin(self, admin: bool) -> None:
        """Make them an admin of the server, or no longer one."""
        roles = [await self.server.add_role(self.guild, "admins", Permission.MANAGE_GUILD)] if admin else []
        await self.server.set_roles(self.guild, self.ada, *roles)

    async def enter(self, where: str) -> None:
        """Go to a private channel, a private thread or a DM."""
        match where:
            case "channel":
                self.place = await self.server.add_channel(self.guild, "cave", only=[self.ada])
            case "thread":
                self.place = await self.server.add_thread(self.place, "den", self.ada, private=True)
                await self.server.join_thread(self.place, self.server.bot)
            case "dm":
                self.place = self.server.dm(self.ada)

    async def leave(self, what: str) -> None:
        """Leave the private channel or thread, or the server."""
        match what:
            case "channel":
                await self.server.make_private(self.place, [self.server.bot])
            case "thread":
                await self.server.leave_thread(self.place, self.ada)
            case "platform":
                await self.server.remove_member(self.guild, self.ada)


@dataclass
class SlackStage:
    """Bob, on Slack. `by_mention`: he writes commands as messages to Nexus."""

    office: Office
    place: str
    by_mention: bool
    giving: list["asyncio.Task[Any]"] = field(default_factory=list)
    runs: str = "bot.slack.commands.run_command"

    @property
    def settings(self) -> Settings:
        """Those of Nexus."""
        return self.office.settings

    def running(self) -> AbstractAsyncContextManager[Running]:
        """Nexus, connected and caught up."""
        return self.office.socket()

    async def say(self, running: Running, text: str) -> None:
        """Say something, and wait until it is stored."""
        await self.office.slack.post(self.place, self.office.bob, text)
        await until(lambda: self._is_stored(running, text))

    async def _is_stored(self, running: Running, text: str) -> bool:
        return text in await running.stored()

    async def give(self, command: str, **options: str | bool) -> None:
        """Give a command. It may not be answered."""
        flags = [f"--{name}" for name, value in options.items() if value is True]
        text = " ".join((command, *(value for value in options.values() if isinstance(value, str)), *flags))
        slack, bob = self.office.slack, self.office.bob
        if self.by_mention:
            said = self.office.mention(f"/nexus {text}")
            self.giving.append(asyncio.create_task(slack.post(self.place, bob, said)))
        else:
            self.giving.append(asyncio.create_task(slack.command(self.place, bob, text)))

    async def confirm(self) -> None:
        """Press the button below the last answer."""
        shown = self.office.slack.ephemerals(self.office.bob)[-1]
        button = shown["blocks"][-1]["elements"][0]["action_id"]
        await self.office.slack.click(self.place, self.office.bob, shown["ts"], button)

    def answers(self) -> list[str]:
        """What he was answered."""
        return [shown["text"] for shown in self.office.slack.ephemerals(self.office.bob)]

    async def set_admin(self, admin: bool) -> None:
        """Make him an admin of the workspace, or no longer one."""
        self.office.slack.world.users[self.office.bob]["is_admin"] = admin

    async def enter(self, where: str) -> None:
        """Go to a private channel or a DM."""
        slack, people = self.office.slack, [self.office.alice, self.office.bob]
        if where == "channel":
            self.place = await slack.add_channel(self.office.team, "cave", people, private=True)
        else:
            self.place = await slack.add_im(self.office.team, self.office.bob)

    async def leave(self, what: str) -> None:
        """Leave the private channel, or the workspace."""
        if what == "channel":
            await self.office.slack.leave(self.place, self.office.bob)
        else:
            await self.office.slack.close_account(self.office.team, self.office.bob)
