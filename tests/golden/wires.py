"""Traces of the wires: what people do on Discord and on Slack, and what Nexus then posts, asks of the model and stores.

Nexus runs in a process of its own (tests/week/service.py), between the tests' own servers of both platforms; the clock
is moved from here.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from composer.stores.embedded.servers import Servers
from tests.golden.recording import Recorder
from tests.golden.watch import Watch
from tests.golden.week import add_all
from tests.support.databases import clone
from tests.support.discord.model import Channel, Message
from tests.support.model_server import Fail, Reply, Say
from tests.week.script import Week
from tests.week.stage import Service, Stage, on_stage, service_for

WEEK: Final = Week.model_validate(
    {
        "monday": "2026-11-02",
        "zone": "Europe/Oslo",
        "people": {
            "maya": {"platforms": ["discord", "slack"], "admin": True},
            "tom": {"platforms": ["discord"]},
            "iris": {"platforms": ["discord"]},
            "uwe": {"platforms": ["discord"]},
            "nina": {"platforms": ["slack"], "admin": True},
            "omar": {"platforms": ["slack"]},
            "pia": {"platforms": ["slack"]},
        },
        "rooms": {
            "general": {"platform": "discord"},
            "launch": {"platform": "discord"},
            "leads": {"platform": "discord", "private": ["maya", "tom"]},
            "old": {"platform": "discord"},
            "customers": {"platform": "slack"},
            "money": {"platform": "slack", "private": ["nina", "pia"]},
            "shop": {"platform": "slack"},
        },
        "secrets": [],
        "answers": [],
        "days": [],
    }
)
MINUTE: Final = timedelta(minutes=1)


def reply(body: Any) -> Reply:
    """What the model says: which words that begin with zq it was sent."""
    texts = [str(message["content"]) for message in body["messages"]]
    question = texts[-1].rpartition("[MESSAGE]")[2]
    if "zqfail" in question:
        return Fail(503, "The model is overloaded.", headers={"retry-after": "0"})
    words = " ".join(sorted(set(re.findall(r"zq[a-z]+", "\n".join(texts)))))
    if "zqlong" in question:
        return Say(tuple(f"Point {number}: {'word ' * 60}\n\n" for number in range(30)))
    if "zqlink" in question:
        return Say((f"See https://evil.example/?q={words.replace(' ', '-')} and @everyone <@U00000003>",))
    return Say((f"I know {words}", " and no more."))


@dataclass
class Script:
    """Lets people act, one step after another, and keeps what came of each."""

    stage: Stage
    service: Service
    watch: Watch
    steps: list[dict[str, Any]] = field(default_factory=list)
    at: Any = WEEK.start
    said: dict[str, Any] = field(default_factory=dict)
    running: bool = True

    async def step(self, what: str, act: Callable[[], Awaitable[Any]] | None = None) -> Any:
        """One step: a minute later, somebody acts."""
        self.at += MINUTE
        self.stage.clock.seconds = self.at.timestamp()
        await self.stage.slack.advance(0)
        result, verdict = None, ""
        try:
            if self.running:
                await self.service.do("move", to=self.at.isoformat())
                await self.service.do("post_due")
            if act is not None:
                result = await act()
            await self.quiet()
        except (AssertionError, Exception) as error:
            verdict = f"{type(error).__name__}: {error}"
        came = self.watch.look() | ({"error": verdict} if verdict else {})
        self.steps.append({"id": f"{len(self.steps) + 1:03} {what}", "input": what, "came": came})
        return result

    async def quiet(self) -> None:
        """Until nothing happens any more."""

        async def settle() -> None:
            await self.stage.slack.settled()
            if self.running:
                await self.service.do("settle")

        await self.watch.quiet(settle)

    # Discord

    async def post(
        self, place: str, who: str, text: str, *, ask: bool = False, key: str = "", unstored: bool = False, **more: Any
    ) -> Message:
        """Somebody writes on Discord."""
        server = self.stage.discord
        mention = f"{server.bot.mention} " if ask else ""
        room = self.stage.channel(place)

        async def act() -> Message:
            said = await server.post(room, self.stage.users[who], mention + text, **more)
            if self.running and not unstored:
                await self.service.do("stored", message=str(said.id))
            return said

        made: Message = await self.step(f"discord {place} {who}: {mention and '@nexus '}{text}", act)
        if key:
            self.said[key] = made
        return made

    async def use(self, place: str, who: str, path: str, **options: Any) -> Any:
        """Somebody uses a slash command on Discord."""
        server = self.stage.discord

        async def act() -> Any:
            used = await server.invoke(f"nexus {path}", self.stage.channel(place), self.stage.users[who], **options)
            await server.until(lambda: used.original and used.original.content)
            return used

        return await self.step(f"discord {place} {who}: /nexus {path} {options or ''}", act)

    async def suggest(self, place: str, who: str, path: str, focused: str, **options: Any) -> None:
        """Somebody types a command on Discord."""
        server = self.stage.discord

        async def act() -> None:
            room, user = self.stage.channel(place), self.stage.users[who]
            used = await server.autocomplete(f"nexus {path}", room, user, focused, **options)
            await server.until(lambda: used.choices is not None)

        await self.step(f"discord {place} {who} types /nexus {path} {options}", act)

    async def press(self, who: str, used: Any) -> None:
        """Somebody presses the button of an answer on Discord."""
        server = self.stage.discord

        async def act() -> None:
            message = used.original
            custom = message.components[0]["components"][0]["custom_id"]
            clicked = await server.click(message, custom, self.stage.users[who])
            await server.until(lambda: clicked.original and clicked.original.content)

        await self.step(f"discord {who} presses the button", act)

    # Slack

    async def say(
        self, place: str, who: str, text: str, *, ask: bool = False, key: str = "", thread: str = "", **more: Any
    ) -> str:
        """Somebody writes on Slack."""
        stage = self.stage
        mention = f"<@{stage.team.bot_user}> " if ask else ""
        root = self.said[thread] if thread else ""

        async def act() -> str:
            return await stage.slack.post(stage.ids[place], stage.members[who], mention + text, thread=root, **more)

        ts = str(await self.step(f"slack {place} {who}: {mention and '@nexus '}{text} {thread}", act))
        if key:
            self.said[key] = ts
        return ts

    async def type(self, place: str, who: str, text: str) -> Any:
        """Somebody gives a slash command on Slack."""
        slack = self.stage.slack

        async def act() -> Any:
            answered = await slack.command(self.stage.ids[place], self.stage.members[who], text)
            await slack.wait_for(lambda: answered.ack.get("text") or answered.responses)
            return answered

        return await self.step(f"slack {place} {who}: /nexus {text}", act)

    async def click(self, place: str, who: str) -> None:
        """Somebody presses the button of the last answer that was for them alone."""
        slack, user = self.stage.slack, self.stage.members[who]

        async def act() -> None:
            said = [each for each in slack.ephemerals(user) if each.get("blocks")][-1]
            elements = [element for block in said["blocks"] for element in block.get("elements", [])]
            action = next(each["action_id"] for each in elements if "action_id" in each)
            answered = await slack.click(self.stage.ids[place], user, said["ts"], action)
            await slack.wait_for(lambda: answered.responses or answered.ack.get("text"))

        await self.step(f"slack {who} presses the button", act)

    async def do(self, what: str, act: Callable[[], Awaitable[Any]]) -> Any:
        """Anything else."""
        return await self.step(what, act)


async def on_discord(s: Script) -> None:
    """What people do on Discord."""
    server, stage = s.stage.discord, s.stage
    team = await server.add_role(stage.guild, "team")
    for name in ("tom", "iris"):  # others are guests
        await server.set_roles(stage.guild, stage.users[name], team)
    await s.post("general", "tom", "the tiles come from zqharbour", key="tiles")
    asked = await s.post("general", "iris", "where do the tiles come from?", ask=True, key="asked")
    answer = next(each for each in server.messages(stage.channel("general"), server.bot) if each.referenced is asked)
    await s.post("general", "iris", "and then?", reply_to=answer)
    await s.post("leads", "tom", "we will renew for zqprice")
    await s.post("leads", "maya", "what do we pay?", ask=True)
    await s.post("general", "maya", "what do we pay?", ask=True)
    await s.post("dm iris", "iris", "my daughter will be called zqalma")
    await s.post("dm iris", "iris", "what will she be called?")
    await s.post("general", "iris", "what will she be called?", ask=True)
    await s.post("general", "tom", "read this, please", ask=True, files={"plan.md": b"Ship on zqfriday."})
    await s.post("general", "tom", "and these", files={"cat.png": b"\x89PNG zqpng", "big.txt": b"x" * 200_000})
    thread: Channel = await s.do(
        "discord: tom begins a thread",
        lambda: server.add_thread(stage.channel("general"), "tiles", stage.users["tom"], on=s.said["tiles"]),
    )
    stage.channels["general/tiles"] = thread
    await s.post("general/tiles", "tom", "the harbour closes on zqmay")
    await s.post("general/tiles", "iris", "when does it close?", ask=True)
    await s.post("general", "iris", "when does the harbour close?", ask=True)
    await s.do(
        "discord: a webhook", lambda: server.post_by_webhook(stage.channel("general"), "CI", "build zqbuild is green")
    )
    await s.post("general", "iris", "which build is green?", ask=True)
    await s.do("discord: an edit", lambda: _edit(s, s.said["tiles"], "the tiles come from zqquarry"))
    await s.post("general", "iris", "where are the tiles from?", ask=True)
    await s.use("general", "iris", "why")
    await s.use("general", "iris", "why", prompt=True)
    await s.use("general", "tom", "remember", text="the wifi is zqwifi")
    await s.use("general", "iris", "recall", text="wifi")
    await s.use("general", "uwe", "remember", text="the door code is zqdoor")
    await s.post("general", "uwe", "what is the wifi called?", ask=True)
    await s.use("general", "maya", "memory pending")
    await s.use("general", "maya", "memory by", user=stage.users["uwe"])
    await s.use("general", "iris", "fact get", key="no such")
    await s.use("general", "iris", "history", words="tiles")
    await s.use("general", "iris", "share")
    await s.use("general", "tom", "fact set", key="deploy_day", value="Thursday")
    await s.use("general", "tom", "fact set", key="deploy_day", value="Friday")
    await s.use("general", "iris", "fact list")
    await s.use("general", "iris", "fact history", key="deploy_day")
    await s.use("general", "maya", "landmark add", text="We ship on Fridays")
    await s.use("general", "iris", "landmark list")
    await s.use("general", "iris", "memory set")
    await s.use("general", "iris", "help")
    await s.use("general", "iris", "privacy")
    await s.use("general", "iris", "usage")
    await s.use("general", "iris", "room agents")
    await s.use("general", "iris", "room catch-up")
    await s.use("general", "maya", "project create", name="tides")
    await s.suggest("launch", "maya", "project assign", "name", name="t")
    await s.suggest("launch", "iris", "project assign", "name", name="t")
    pooled = await s.use("leads", "maya", "project assign", name="tides", pool=True)
    await s.press("tom", pooled)
    await s.press("maya", pooled)
    await s.use("launch", "maya", "project assign", name="tides", yes=True)
    await s.post("launch", "maya", "what do we renew?", ask=True)
    await s.use("dm iris", "iris", "rooms", mode="on")
    await s.post("dm iris", "iris", "where do the tiles come from?")
    await s.use("dm tom", "tom", "rooms", mode="on")
    await s.post("dm tom", "tom", "what do we renew for?")
    await s.do("discord: leads without tom", lambda: server.make_private(stage.channel("leads"), [stage.users["maya"]]))
    await s.post("dm tom", "tom", "what did we renew for?")
    await s.do("discord: leads is public", lambda: server.make_public(stage.channel("leads")))
    await s.post("leads", "iris", "what do we renew?", ask=True)
    await s.post("general", "tom", "zqlong please", ask=True)
    await s.post("general", "tom", "zqlink please", ask=True)
    await s.post("general", "tom", "zqfail please", ask=True)
    await s.use("dm iris", "iris", "remind me", reminder="in 2 hours call home")
    await s.use("dm iris", "iris", "keys create", tool="cursor")
    await s.use("dm iris", "iris", "keys list")
    forgetting = await s.use("dm iris", "iris", "forget", what="zqalma")
    await s.press("iris", forgetting)
    await s.post("dm iris", "iris", "what is she called?")
    await s.use("dm iris", "iris", "export")
    await s.do("discord: tom's message is deleted", lambda: _delete(s, s.said["tiles"]))
    await s.post("general", "iris", "where did the tiles come from?", ask=True)
    await s.do("discord: a thread is archived", lambda: server.archive(thread))
    await s.do("discord: a channel is deleted", lambda: server.delete_channel(stage.channels.pop("old")))
    await s.do("discord: tom leaves", lambda: server.remove_member(stage.guild, stage.users["tom"]))
    await s.post("leads", "maya", "who was here?", ask=True)
    await s.use("general", "iris", "opt-out")
    await s.post("general", "iris", "do not keep zqnever", unstored=True)
    await s.post("general", "maya", "what did Iris say?", ask=True)
    await s.use("general", "maya", "audit")
    await s.use("general", "maya", "settings", key="top_k", value="5")


async def on_slack(s: Script) -> None:
    """What people do on Slack."""
    slack, stage = s.stage.slack, s.stage
    customers, money = stage.ids["customers"], stage.ids["money"]
    await s.say("customers", "omar", "Nordlys wants &lt;zqblue&gt; &amp; <@U00000003>", key="blue")
    await s.say("customers", "nina", "what does Nordlys want?", ask=True, key="asked")
    await s.say("customers", "omar", "rather zqgreen", thread="asked")
    await s.say("customers", "nina", "what is it rather?", ask=True, thread="asked")
    await s.say("customers", "omar", "to all: zqred", thread="asked", broadcast=True)
    await s.say("dm nina", "nina", "my salary is zqsalary")
    await s.say("dm nina", "nina", "what is my salary?")
    await s.say("customers", "nina", "what is my salary?", ask=True)
    await s.say("money", "pia", "the margin is zqmargin")
    await s.say("money", "nina", "what is the margin?", ask=True)
    await s.say("customers", "pia", "what is the margin?", ask=True)
    await s.type("dm nina", "nina", "rooms on")
    await s.say("dm nina", "nina", "what is the margin?")
    await s.do("slack: nina leaves money", lambda: slack.leave(money, stage.members["nina"]))
    await s.say("money", "pia", "the discount is zqdiscount")
    await s.say("dm nina", "nina", "what is the discount?")
    await s.say("dm nina", "nina", "what was the margin?")
    await s.do("slack: nina joins money", lambda: slack.join(money, stage.members["nina"]))
    await s.say("dm nina", "nina", "what is the discount now?")
    await s.do(
        "slack: a file",
        lambda: slack.upload(customers, stage.members["omar"], "plan.md", b"Ship on zqfriday.", "text/markdown"),
    )
    await s.do(
        "slack: a picture",
        lambda: slack.upload(customers, stage.members["omar"], "cat.png", b"\x89PNG zqpng", "image/png"),
    )
    await s.say("customers", "nina", "what is the plan?", ask=True)
    await s.do("slack: another bot", lambda: slack.post_as_other_bot(customers, "deployed zqdeploy"))
    await s.say("customers", "nina", "what was deployed?", ask=True)
    await s.do("slack: an edit", lambda: slack.edit(customers, s.said["blue"], "Nordlys wants zqyellow"))
    await s.say("customers", "nina", "what does Nordlys want now?", ask=True)
    pane = await s.do(
        "slack: the pane", lambda: slack.start_assistant_thread(stage.team, stage.members["omar"], customers)
    )
    s.said["pane"] = pane
    stage.ids["dm omar"] = await slack.add_im(stage.team, stage.members["omar"])
    await s.say("dm omar", "omar", "plan the zqoffsite", thread="pane")
    await s.say("dm omar", "omar", "and its budget?", thread="pane")
    await s.do("slack: the home", lambda: slack.open_home(stage.team, stage.members["omar"]))
    await s.type("customers", "omar", "remember the wifi is zqwifi")
    await s.type("customers", "nina", "recall wifi")
    await s.type("customers", "nina", "why")
    await s.type("customers", "nina", "why --prompt")
    await s.type("customers", "omar", "fact set deploy_day Thursday")
    await s.type("customers", "nina", "fact list")
    await s.type("customers", "nina", "landmark add We ship on Fridays")
    await s.type("customers", "nina", "landmark list")
    await s.type("customers", "omar", "memory")
    await s.type("customers", "omar", "")
    await s.type("customers", "omar", "nonsense")
    await s.type("customers", "omar", "fact set")
    await s.type("customers", "nina", "project create moons")
    await s.type("customers", "nina", "project assign moons --pool")
    await s.type("money", "pia", "project create suns")
    await s.type("money", "pia", "project assign suns --pool")
    await s.click("money", "pia")
    await s.say("money", "pia", "what do the suns know?", ask=True)
    await s.type("customers", "nina", "project list")
    await s.say("customers", "nina", "/nexus fact list", ask=True)
    await s.type("dm nina", "nina", "forget zqsalary")
    await s.click("dm nina", "nina")
    await s.say("dm nina", "nina", "what is my salary by now?")
    await s.type("dm nina", "nina", "export")
    await s.type("dm nina", "nina", "keys create cursor")
    await s.type("dm nina", "nina", "remind me in 1 hour stretch")
    await s.type("customers", "nina", "remind here in 1 hour stand up")
    await s.type("dm nina", "nina", "remind list")
    await s.say("customers", "omar", "zqlong please", ask=True)
    await s.say("customers", "omar", "zqlink please", ask=True)
    await s.say("customers", "omar", "zqfail please", ask=True)
    await s.do("slack: omar is a guest", lambda: slack.restrict(stage.team, stage.members["omar"]))
    await s.say("customers", "omar", "remember the door code zqdoor", ask=True)
    await s.type("customers", "omar", "remember the door code is zqdoor")
    await s.type("customers", "nina", "memory pending")
    await s.do("slack: a deletion", lambda: slack.delete(customers, s.said["blue"]))
    await s.do(
        "slack: a bare deletion of one with replies", lambda: slack.delete(customers, s.said["asked"], bare=True)
    )
    await s.say("customers", "nina", "what did Nordlys want?", ask=True)
    await s.do("slack: money is public", lambda: slack.set_private(money, False, stage.members["nina"]))
    await s.say("money", "omar", "what is said here?", ask=True)
    await s.do("slack: money is private", lambda: slack.set_private(money, True, stage.members["nina"]))
    stage.ids["money"] = await s.do("slack: money has another id", lambda: slack.change_id(money))
    await s.say("money", "nina", "what is the margin here?", ask=True)
    await s.do("slack: shop is renamed", lambda: slack.rename(stage.ids["shop"], "store", stage.members["nina"]))
    await s.say("shop", "omar", "open on zqsunday")
    await s.say("shop", "nina", "when is it open?", ask=True)
    await s.do("slack: shop is deleted", lambda: slack.delete_channel(stage.ids.pop("shop")))
    await s.type("customers", "nina", "erase user <@U00000004>")
    await s.click("customers", "nina")
    await s.say("customers", "nina", "what did Omar say?", ask=True)


async def absence(s: Script) -> None:
    """Nexus is away: people write, edit, delete and move on both platforms. Then it is back."""
    server, slack, stage = s.stage.discord, s.stage.slack, s.stage
    before = await s.post("general", "maya", "before: zqbefore")
    kept = await s.say("customers", "pia", "before: zqbefore")
    await s.service.stop()
    s.running = False
    await s.post("general", "maya", "meanwhile: zqmeanwhile")
    await s.post("general", "maya", "what happened meanwhile?", ask=True)
    await s.do("discord: an edit meanwhile", lambda: server.edit(before, "before: zqafterwards"))
    await s.say("customers", "pia", "meanwhile: zqmeanwhile")
    await s.say("customers", "pia", "what happened meanwhile?", ask=True)
    await s.do("slack: an edit meanwhile", lambda: slack.edit(stage.ids["customers"], kept, "before: zqafterwards"))
    gone = await s.post("general", "maya", "said and deleted zqdeleted")
    await s.do("discord: a deletion meanwhile", lambda: server.delete(gone))
    await s.do("slack: pia leaves money", lambda: slack.leave(stage.ids["money"], stage.members["pia"]))
    await s.service.start(s.at)
    s.running = True
    for _ in range(6):  # what is compared after an absence goes on for a while
        await s.quiet()
    await s.step("nexus is back")
    await s.post("general", "maya", "what do you know now?", ask=True)
    await s.say("customers", "nina", "what do you know now?", ask=True)
    await s.say("dm nina", "nina", "what is the margin at last?")


async def later(s: Script) -> None:
    """What is due comes, and jobs run."""
    s.at += timedelta(hours=3)
    await s.step("three hours later")
    await s.step("three hours later, once more")
    s.at += timedelta(days=1)
    for job in ("day", "thread", "session", "week", "expiry", "retention", "trash", "audit"):
        await s.do(f"job {job}", lambda job=job: s.service.do("job", name=job))  # type: ignore[misc]
    await s.say("customers", "nina", "what happened yesterday?", ask=True)
    await s.post("general", "maya", "what happened yesterday?", ask=True)


async def _edit(s: Script, message: Message, text: str) -> None:
    await s.stage.discord.edit(message, text)
    await s.service.do("stored", message=str(message.id), text=text)


async def _delete(s: Script, message: Message) -> None:
    await s.stage.discord.delete(message)
    await s.service.do("gone", message=str(message.id))


async def record_wires(servers: Servers, folder: Path, recorder: Recorder) -> None:
    """Play what people do on both platforms."""
    async with clone(servers.database_url, "goldenwires") as url, on_stage(WEEK) as stage:
        stage.model.reply = reply  # type: ignore[method-assign]
        urls = {"database_url": str.__str__(url), "redis_url": servers.redis_url + "?db=7"}
        home = folder / "wires"
        service = service_for(stage, home, **urls)
        written = home / "nexus.toml"
        written.write_text(re.sub(r"\ntokens = \d+", "\ntokens = 100000000", written.read_text()), encoding="utf-8")
        script = Script(stage, service, Watch(stage))
        try:
            await service.start(WEEK.start)
            for part in (on_discord, on_slack, absence, later):
                await part(script)
        finally:
            await service.kill()
        await add_all(script.steps, script.watch.names, str.__str__(url), recorder)
