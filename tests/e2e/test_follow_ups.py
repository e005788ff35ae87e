"""In a thread of Slack or Discord a follow-up to the agent's answer is answered without a mention; nothing else is."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any, Protocol

import pytest

from composer.settings import Settings
from tests.support.discord.harness import Discord, Model, on_discord
from tests.support.discord.model import Channel, Guild, Permission, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import Office, Running, office_on
from tests.support.waiting import until


class Talk(Protocol):
    """A thread of a platform, in which Ann, who may change its room, and Bob write."""

    def nexus(self) -> AbstractAsyncContextManager[None]:
        """Nexus, connected, and caught up."""

    async def ask(self, text: str) -> None:
        """Let Ann write a message that mentions the agent."""

    async def say(self, who: str, text: str, *, to: str = "") -> Any:
        """Let somebody write, perhaps as a reply to what somebody else wrote last."""

    async def bot(self, text: str) -> None:
        """Let another bot write."""

    def mention(self, who: str) -> str:
        """A person as the platform's markup mentions them; "" is everybody in the channel."""

    async def command(self, text: str) -> None:
        """Let Ann give a command."""

    async def edit(self, said: Any, text: str) -> None: ...

    async def answers(self, count: int, stored: str) -> None:
        """Wait until a text is stored and the agent has given so many answers in the thread, and no more."""


class SlackTalk:
    """A thread of Slack, under Ann's question in the channel."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._people = {"ann": office.alice, "bob": office.bob}
        self._thread = ""
        self._running: Running | None = None

    @asynccontextmanager
    async def nexus(self) -> AsyncIterator[None]:
        async with self._office.open() as self._running, self._running.serving():
            await self._office.slack.wait_for(
                lambda: (
                    self._office.slack.outbox.connections
                    and self._running
                    and self._running.adapter.reconciliation.completed
                )
            )
            yield

    async def ask(self, text: str) -> None:
        ts = await self.say("ann", self._office.mention(text))
        self._thread = self._thread or ts

    async def say(self, who: str, text: str, *, to: str = "") -> str:
        return await self._office.slack.post(self._office.general, self._people[who], text, thread=self._thread)

    async def bot(self, text: str) -> None:
        await self._office.slack.post_as_other_bot(self._office.general, text, thread=self._thread)

    def mention(self, who: str) -> str:
        return f"<@{self._people[who]}>" if who else "<!here>"

    async def command(self, text: str) -> None:
        await self._office.slack.command(self._office.general, self._office.alice, text)
        await self._office.slack.settled()

    async def edit(self, said: str, text: str) -> None:
        await self._office.slack.edit(self._office.general, said, text)

    async def answers(self, count: int, stored: str) -> None:
        assert self._running is not None
        running = self._running

        async def is_stored() -> bool:
            return any(text.endswith(stored) for text in await running.stored())

        await until(is_stored)
        assert len(await self._office.answered(count)) == count
        await running.settle()
        assert len(self._office.answers()) == count
        assert {each["thread_ts"] for each in self._office.answers()} == {self._thread}


class DiscordTalk:
    """A thread of Discord."""

    def __init__(self, settings: Settings, server: DiscordServer, guild: Guild, room: Channel, **people: User) -> None:
        self._settings = settings
        self._server = server
        self._guild = guild
        self._room = room
        self._people = people
        self._thread: Channel | None = None
        self._here: Discord | None = None
        self._said: dict[str, Any] = {}
        self._model = Model()

    @asynccontextmanager
    async def nexus(self) -> AsyncIterator[None]:
        async with on_discord(self._settings, self._server, self._guild, self._model) as self._here:
            yield

    async def _in(self) -> Channel:
        if self._thread is None:
            self._thread = await self._server.add_thread(self._room, "a thread", self._people["ann"])
        return self._thread

    async def ask(self, text: str) -> None:
        await self.say("ann", f"{self._server.bot.mention} {text}")

    async def say(self, who: str, text: str, *, to: str = "") -> Any:
        said = self._said.get(to)
        self._said[who] = await self._server.post(await self._in(), self._people[who], text, reply_to=said)
        return self._said[who]

    async def bot(self, text: str) -> None:
        other = self._server.world.add_user("Deployer", bot=True)
        await self._server.add_member(self._guild, other)
        await self._server.post(await self._in(), other, text)

    def mention(self, who: str) -> str:
        return self._people[who].mention if who else "@here"

    async def command(self, text: str) -> None:
        name, _, mode = text.partition(" ")
        invoked = await self._server.invoke(f"nexus room {name}", self._room, self._people["ann"], mode=mode)
        await self._server.answer_to(invoked)

    async def edit(self, said: Any, text: str) -> None:
        await self._server.edit(said, text)

    async def answers(self, count: int, stored: str) -> None:
        here, thread = self._here, await self._in()
        assert here is not None

        async def is_stored() -> bool:
            return any(text.endswith(stored) for text in await here.texts(thread))

        await until(is_stored)
        await until(lambda: len(here.answers(thread)) >= count)
        await here.settled()
        assert len(here.answers(thread)) == count


@pytest.fixture(params=["slack", "discord"])
async def talk(request: pytest.FixtureRequest, settings: Settings, server: DiscordServer) -> AsyncIterator[Talk]:
    if request.param == "slack":
        async with office_on(settings) as office:
            yield SlackTalk(office)
        return
    guild = await server.add_guild()
    room = await server.add_channel(guild, "general")
    ann = await server.add_member(guild, "Ann", await server.add_role(guild, "staff", Permission.ADMINISTRATOR))
    bob = await server.add_member(guild, "Bob")
    yield DiscordTalk(settings, server, guild, room, ann=ann, bob=bob)


async def test_a_follow_up_is_answered_in_the_thread(talk: Talk) -> None:
    async with talk.nexus():
        await talk.ask("when is the launch?")
        await talk.answers(1, "when is the launch?")
        await talk.say("ann", "and who leads it?")
        await talk.answers(2, "and who leads it?")
        await talk.say("ann", f"what did {talk.mention('bob')} say about it?")
        await talk.answers(3, "say about it?")


async def test_a_follow_up_under_a_question_in_a_channel_of_slack_shows_the_model_both(settings: Settings) -> None:
    async with office_on(settings) as office:
        talk = SlackTalk(office)
        async with talk.nexus():
            await talk.ask("when is the launch of Petrel?")
            await talk.answers(1, "when is the launch of Petrel?")
            await talk.say("ann", "and who leads it?")
            await talk.answers(2, "and who leads it?")
        related = office.model.prompts[-1].partition("[RELATED]\n")[2]
        assert "when is the launch of Petrel?" in related
        assert office.model.answer in related


async def test_a_message_for_somebody_else_is_left_alone(talk: Talk) -> None:
    async with talk.nexus():
        for number, who in enumerate(("bob", ""), start=1):
            await talk.ask("when is the launch?")
            await talk.answers(number, "when is the launch?")
            await talk.say("ann", f"{talk.mention(who)} have you seen it {number}?")
            await talk.answers(number, f"have you seen it {number}?")
            await talk.say("ann", f"well {number}?")
            await talk.answers(number, f"well {number}?")


async def test_other_bots_are_never_answered_and_what_comes_after_them_is_not_for_the_agent(talk: Talk) -> None:
    async with talk.nexus():
        await talk.ask("when is the launch?")
        await talk.answers(1, "when is the launch?")
        await talk.bot("build 7 is green")
        await talk.answers(1, "build 7 is green")
        await talk.say("ann", "at last")
        await talk.answers(1, "at last")


async def test_what_was_missed_is_answered_by_the_same_rule(talk: Talk) -> None:
    async with talk.nexus():
        await talk.ask("when is the launch?")
        await talk.answers(1, "when is the launch?")
    for who, text in (("ann", "and who leads it?"), ("bob", "hm"), ("ann", "Bob?")):
        await talk.say(who, text)
    async with talk.nexus():
        await talk.answers(2, "Bob?")
        await talk.ask("and now?")
        await talk.answers(3, "and now?")


async def test_what_was_missed_too_long_ago_is_not_answered(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    async with talk.nexus():
        await talk.ask("when is the launch?")
        await talk.answers(1, "when is the launch?")
    await talk.say("ann", "and who leads it?")
    monkeypatch.setattr("bot.platform.inbox.MAX_ANSWERED_AGE", timedelta())
    async with talk.nexus():
        await talk.answers(1, "and who leads it?")


async def test_a_message_that_was_edited_in_an_absence_is_judged_as_it_is_now(talk: Talk) -> None:
    async with talk.nexus():
        await talk.ask("when is the launch?")
        await talk.answers(1, "when is the launch?")
    said = await talk.say("ann", "and who leads it?")
    await talk.edit(said, f"{talk.mention('bob')} who leads it?")
    async with talk.nexus():
        await talk.answers(1, "who leads it?")


async def test_a_reply_to_somebody_elses_message_is_left_alone(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    bob = await server.add_member(guild, "Bob")
    talk = DiscordTalk(settings, server, guild, room, ann=ada, bob=bob)
    async with talk.nexus():
        await talk.say("bob", "it is on Friday")
        await talk.ask("when is the launch?")
        await talk.answers(1, "when is the launch?")
        await talk.say("ann", "are you sure?", to="bob")
        await talk.answers(1, "are you sure?")
