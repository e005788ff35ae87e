"""Plays the week: lets people act on both platforms, and checks after every step what Nexus posted, and where.

What is posted must be what the step says, in its place, and nothing else anywhere; what was posted before must stand
unchanged, but for answers that an erasure takes back.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.discord.slash import GROUPED
from composer.memory.forget import RETRACTED
from tests.support.discord.model import Message
from tests.week.model import UNKNOWN
from tests.week.script import Day, Secret, Step
from tests.week.stage import Service, Stage

Post = tuple[str, str | None]  # a text, and the id of the thread that it is in


@dataclass(frozen=True, slots=True)
class Line:
    """Something to show: `kind` is said, asked, answer, alone (an answer for its asker alone), posted, taken (an answer
    back) or note. `kept`: the secret that the question was about, and that the prompt of this answer did not hold."""

    day: str
    at: str
    place: str
    who: str
    text: str
    kind: str
    kept: tuple[Secret, ...] = ()


@dataclass(frozen=True, slots=True)
class Expected:
    """A post: the beginning of its text, and whether it stands in a thread."""

    text: str
    thread: bool = False

    def fits(self, post: Post) -> bool:
        """Whether it is this post."""
        text, thread = post
        return text.startswith(self.text) and (thread is not None or not self.thread)


@dataclass
class Player:
    """Plays steps in their order. `show` gets a line for each thing that somebody did or saw."""

    stage: Stage
    service: Service
    show: Callable[[Line], Awaitable[None]]
    posts: dict[str, list[Post]] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)  # by the id of a step: Slack's ts, or Discord's message
    kept: dict[str, str] = field(default_factory=dict)  # values out of commands' answers
    told: list[str] = field(default_factory=list)  # what was said, to know which secrets exist
    answers: int = 0

    async def play(self) -> None:
        """Play the whole week."""
        await self.service.start(self.stage.week.start)
        for day in self.stage.week.days:
            for step in day.steps:
                await self._step(day, step)
        await self.service.stop()

    async def _step(self, day: Day, step: Step) -> None:
        await self._show(day, step, step.note, "note")
        await self._move(day, step)
        await self.service.do("post_due")
        expected: dict[str, list[Expected]] = {}
        for post in step.posts or ():
            expected.setdefault(post.place, []).append(Expected(post.text))
        await self._check(day, step, expected, taken_back=False)
        if step.asks and step.killed:
            await self._killed(day, step)
        elif step.restarted:
            await self.service.stop()
            await self._away(day, step, [])
        elif step.asks:
            self._ask_of_model(step)
            await self.service.do("stored", message=await self._say(day, step))
            await self._answered(day, [step])
        elif step.command:
            await self._command(day, step)
        elif step.edits or step.deletes or step.leaves or step.says:
            await self._act(day, step)
        elif step.job:
            for name in step.job:
                await self.service.do("job", name=name)
        elif step.down is not None:
            self.stage.model.down = set(step.down)

    async def _move(self, day: Day, step: Step, *, running: bool = True) -> None:
        moment = self.stage.week.moment(day.day, step.at)
        self.stage.clock.seconds = moment.timestamp()
        await self.stage.slack.advance(0)  # what is due by then
        if running:
            await self.service.do("move", to=moment.isoformat())

    # What people do

    async def _act(self, day: Day, step: Step) -> None:
        """Something that nobody answers."""
        if step.says and not step.edits:
            await self.service.do("stored", message=await self._say(day, step))
        elif step.leaves:
            await self._leave(day, step)
        else:
            await self._change(day, step)
        await self.stage.settle(self.service)
        await self._check(day, step, {})

    async def _say(self, day: Day, step: Step) -> str:
        """Post a message; returns its id on the platform."""
        pasted = "".join(f" {word}" for word in ("ebb", "flow", "calm", "tide") * (step.pastes // 4))
        await self._show(day, step, step.asks or step.says, "asked" if step.asks else "said")
        text = (step.asks or step.says) + pasted
        self.told.append(text)
        if self.stage.week.platform_of(step.place) == "slack":
            return await self._say_on_slack(step, text)
        server, channel = self.stage.discord, self.stage.channel(step.place)
        if step.thread:
            channel = await self._thread(step)
        mention = f"{server.bot.mention} " if step.asks and channel.guild else ""
        message = await server.post(channel, self.stage.users[step.who], mention + text)
        self.said[step.id] = message
        return str(message.id)

    async def _say_on_slack(self, step: Step, text: str) -> str:
        stage = self.stage
        mention = f"<@{stage.team.bot_user}> " if step.asks and not step.place.startswith("dm ") else ""
        thread = self.said[step.thread] if step.thread else ""
        ts = await stage.slack.post(stage.ids[step.place], stage.members[step.who], mention + text, thread=thread)
        self.said[step.id] = ts
        return ts

    async def _thread(self, step: Step) -> Any:
        key = f"{step.place}/{step.thread}"
        if key not in self.stage.channels:
            on, author = self.said[step.thread], self.stage.users[step.who]
            parent = self.stage.channel(step.place)
            self.stage.channels[key] = await self.stage.discord.add_thread(parent, step.thread, author, on=on)
        return self.stage.channels[key]

    async def _change(self, day: Day, step: Step) -> None:
        """Edit or delete a message."""
        what = f"(edits) {step.says}" if step.edits else "(deletes the message)"
        await self._show(day, step, what, "said")
        message = self.said[step.edits or step.deletes]
        if isinstance(message, Message):
            work = self.stage.discord.edit(message, step.says) if step.edits else self.stage.discord.delete(message)
            await work
            id = str(message.id)
        else:
            channel, id = self.stage.ids[step.place], str(message)
            slack = self.stage.slack
            await (slack.edit(channel, id, step.says) if step.edits else slack.delete(channel, id))
        if step.edits:
            await self.service.do("stored", message=id, text=step.says)
        else:
            await self.service.do("gone", message=id)

    async def _leave(self, day: Day, step: Step) -> None:
        await self._show(day, step, f"(leaves {step.leaves})", "said")
        if step.leaves == "discord":
            user = self.stage.users[step.who]
            await self.stage.discord.remove_member(self.stage.guild, user)
            await self.service.do("left", user=str(user.id))
        else:
            await self.stage.slack.leave(self.stage.ids[step.leaves], self.stage.members[step.who])

    # Answers

    def _ask_of_model(self, step: Step) -> None:
        """Tell the model's server which secrets the asker must not learn there."""
        asked = next(each.asked for each in self.stage.week.answers if each.asked in step.asks)
        self.stage.model.hidden[asked] = tuple(secret.word for secret in self._hidden(step))

    def _hidden(self, step: Step) -> list[Secret]:
        return [secret for secret in self.stage.week.secrets if step.place not in secret.stays]

    async def _answered(self, day: Day, steps: Sequence[Step]) -> None:
        """Check the answers to questions, each in its place, and nothing else anywhere."""
        await self.stage.settle(self.service)
        expected: dict[str, list[Expected]] = {}
        for step in steps:
            expected.setdefault(step.place, []).append(Expected(self._right(step), bool(step.thread)))
        found = await self._check(day, steps[0], expected, show=False)
        for step in steps:
            text = found[step.place].pop(0)
            assert step.refused in text, (step, text)
            self.answers += 1
            known = self._check_prompt(step) if not step.refused else ()
            await self._show(day, step, text, "answer", known)

    def _right(self, step: Step) -> str:
        """The answer that is right; of a refusal, what stands in it is checked by itself."""
        if step.refused:
            return ""
        return next(each.says for each in self.stage.week.answers if each.asked in step.asks) if step.known else UNKNOWN

    def _check_prompt(self, step: Step) -> tuple[Secret, ...]:
        """What the model was shown for a question. Returns the secrets that were kept from it."""
        asked = [each for each in self.stage.model.asked if each.answer.asked in step.asks][-1]
        shown = [secret.word for secret in self._hidden(step) if secret.word in asked.prompt]
        assert not shown, (step, shown)
        assert not step.never or step.never not in asked.prompt, step
        assert not step.model or asked.model == step.model, (step, asked.model)
        told = "\n".join(self.told)
        about = [secret for secret in self._hidden(step) if secret.word in asked.answer.needs]
        return tuple(secret for secret in about if secret.word in told)

    async def _command(self, day: Day, step: Step) -> None:
        """Give a command; its answer is for its caller alone."""
        options = {key: value.format_map(self.kept) for key, value in step.options.items()}
        typed = " ".join((step.command, *options.values(), *(["--yes"] if step.confirmed else [])))
        await self._show(day, step, f"/nexus {typed}", "said")
        if self.stage.week.platform_of(step.place) == "slack":
            text = await self._command_on_slack(step, typed)
        else:
            text = await self._command_on_discord(step, options)
        await self.stage.settle(self.service)
        assert step.shows in text, (step, text)
        assert not [secret for secret in self._hidden(step) if secret.word in text], (step, text)
        for name, pattern in step.keeps.items():
            match = re.search(pattern, text)
            assert match, (step, text)
            self.kept[name] = match[1]
        await self._show(day, step, text, "alone")
        await self._check(day, step, {})

    async def _command_on_discord(self, step: Step, options: dict[str, str]) -> str:
        words = ["nexus", *([GROUPED[step.command]] if step.command in GROUPED else []), step.command]
        given: dict[str, Any] = {**options} | ({"yes": True} if step.confirmed else {})
        server, user = self.stage.discord, self.stage.users[step.who]
        used = await server.invoke(" ".join(words), self.stage.channel(step.place), user, **given)
        await server.until(lambda: used.original and used.original.content)
        assert all(message.ephemeral for message in used.messages), step
        return "\n".join(message.content for message in used.messages)

    async def _command_on_slack(self, step: Step, typed: str) -> str:
        slack, user = self.stage.slack, self.stage.members[step.who]
        before = len(slack.ephemerals(user))
        answered = await slack.command(self.stage.ids[step.place], user, typed)
        await slack.wait_for(lambda: answered.ack.get("text") or answered.responses)
        return "\n".join(str(said.get("text")) for said in slack.ephemerals(user)[before:])

    # Interruptions

    async def _killed(self, day: Day, step: Step) -> None:
        """Kill Nexus in the middle of an answer."""
        self._ask_of_model(step)
        self.stage.model.hung.clear()
        self.stage.model.hangs = True
        await self._say(day, step)
        await self.stage.model.hung.wait()
        await self.service.kill()
        self.stage.model.hangs = False
        await self._away(day, step, [step])

    async def _away(self, day: Day, step: Step, asked: list[Step]) -> None:
        """Let things happen while Nexus is away, start it again, and check that every question is answered once."""
        ids = []
        for each in step.meanwhile:
            await self._move(day, each, running=False)
            if each.asks:
                self._ask_of_model(each)
                asked.append(each)
            ids.append(await self._say(day, each))
        await self.service.start(self.stage.week.moment(day.day, step.meanwhile[-1].at))
        for id in ids:
            await self.service.do("stored", message=id)
        await self._answered(day, asked)

    # What Nexus posts

    async def _check(
        self,
        day: Day,
        step: Step,
        expected: dict[str, list[Expected]],
        *,
        show: bool = True,
        taken_back: bool = True,
    ) -> dict[str, list[str]]:
        """Check all posts everywhere; returns the texts of the new ones, by place."""
        found: dict[str, list[str]] = {}
        taken = self._taken()
        for place in self._places():
            before, wanted, now = self.posts.get(place, []), expected.get(place, []), self.stage.own(place)
            for old, new in zip(before, now, strict=False):
                erased = taken_back and any(word in old[0] for word in step.forgets)
                may_go = erased or (taken_back and any(map(old[0].startswith, step.may_take)))
                assert not erased or old in taken[place], (step, place, old)
                assert new == old or (may_go and old in taken[place]), (step, place, old, new)
            new_posts = now[len(before) :]
            assert len(now) == len(before) + len(wanted), (step, place, wanted, new_posts)
            assert all(map(Expected.fits, wanted, new_posts)), (step, place, wanted, new_posts)
            for secret in self.stage.week.secrets:
                assert place in secret.stays or not any(secret.word in text for text, _ in now), (place, secret)
            for text, _ in taken[place]:
                await self._show(day, step, f"{RETRACTED} It was: {text}", "taken", place=place)
            self.posts[place] = now
            found[place] = [text for text, _ in new_posts]
            for text in found[place] if show else ():
                await self._show(day, step, text, "posted", place=place)
        return found

    def _places(self) -> list[str]:
        dms = (place for place in (*self.stage.channels, *self.stage.ids) if place.startswith("dm "))
        return list(dict.fromkeys((*self.stage.week.rooms, *dms)))

    def _taken(self) -> dict[str, list[Post]]:
        """What was posted before and is taken back since, by place."""
        return {
            place: [
                old
                for old, new in zip(self.posts.get(place, []), self.stage.own(place), strict=False)
                if new != old and new[0] == RETRACTED
            ]
            for place in self._places()
        }

    async def _show(
        self, day: Day, step: Step, text: str, kind: str, kept: tuple[Secret, ...] = (), place: str | None = None
    ) -> None:
        if text:
            await self.show(Line(day.day, step.at, step.place if place is None else place, step.who, text, kind, kept))
