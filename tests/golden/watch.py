"""What people see on both platforms and what the model is sent, from step to step, as the tests' servers have it."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tests.golden.names import AUDIT, Names, unordered
from tests.week.stage import Stage

# Requests whose number or moment depends on how fast the machine is.
PASSING: Final = (
    "typing",
    "setStatus",
    "apps.connections.open",
    "chat.update",
    "chat.appendStream",
    "PATCH /channels/",
)
# An answer that comes quickly is posted as a whole, others as they come.
POSTS: Final = ("chat.postMessage", "chat.startStream", "chat.stopStream")
READS: Final = ("GET ", "conversations.", "users.", "team.", "auth.", "bots.", "files.info")
QUIET_SECONDS: Final = 0.25  # nothing may happen for so long
State = dict[str, Any]


class Watch:
    """Looks at a stage after each step. `names` knows people, places and messages by what they are called."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.names = Names(seconds=True)
        self._seen: dict[str, State] = {}
        self._counts: Counter[str] = Counter()
        self._slack = self._discord = self._asked = self._alone = 0
        self._answered: dict[str, Any] = {}
        self._know_places()
        self.look()

    def _know_places(self) -> None:
        stage, know = self._stage, self.names.know_text
        know(str(stage.guild.id), "the server")
        know(str(stage.discord.bot.id), "nexus")
        for name, user in stage.users.items():
            know(str(user.id), f"{name} on discord")
        for place, channel in stage.channels.items():
            know(str(channel.id), f"#{place}")

    async def quiet(self, settle: Callable[[], Awaitable[None]]) -> None:
        """Until nothing happens any more, on either platform and at the model's server."""
        before: Any = None
        while before != (before := self._happened()):
            await asyncio.sleep(QUIET_SECONDS)
            await settle()

    def _happened(self) -> Any:
        stage = self._stage
        seen = len(stage.slack.calls), len(stage.discord.rest.calls), len(stage.model.requests)
        return *seen, len(stage.slack.api.ephemerals)

    def look(self) -> State:
        """All that has changed since the last look."""
        self._know_places()
        posted = {**self._on_slack(), **self._on_discord()}
        changed = [state for id, state in posted.items() if self._seen.get(id) != state]
        gone = [state for id, state in self._seen.items() if id not in posted and state["by"] == "nexus"]
        self._seen = posted
        found = {
            "posted": [state for state in changed if state["by"] == "nexus" or "reactions" in state],
            "gone": gone,
            "alone": self._to_one_person(),
            "requests": self._requests(),
            "asked": self._of_model(),
        }
        return {key: value for key, value in found.items() if value}

    def _on_slack(self) -> dict[str, State]:
        found: dict[str, State] = {}
        places = {id: name for name, id in self._stage.ids.items()}
        for id, channel in self._stage.slack.world.channels.items():
            place = places.get(id, channel.name or id)
            for ts, said in channel.messages.items():
                own = said.get("bot_id") == channel.team.bot_id
                self._know(ts, place, "nexus" if own else str(said.get("user", "somebody")))
                state = {"by": "nexus" if own else said.get("user", ""), "in": place, "text": said.get("text", "")}
                for key in ("thread_ts", "blocks", "files", "attachments", "reactions", "metadata"):
                    if said.get(key) and (own or key == "reactions"):
                        state[key] = said[key]
                found[f"{id} {ts}"] = state
        return found

    def _on_discord(self) -> dict[str, State]:
        found: dict[str, State] = {}
        server = self._stage.discord
        names = {id(channel): place for place, channel in self._stage.channels.items()}
        for channel in list(server.world.channels.values()):
            place = names.get(id(channel), channel.name or "dm")
            for said in server.messages(channel):
                own = said.author is server.bot
                self._know(str(said.id), place, "nexus" if own else said.author.name)
                found[str(said.id)] = _discord_state(said, place, own=own)
        return found

    def _know(self, id: str, place: str, author: str) -> None:
        if id not in self._answered:
            self._counts[f"{place} {author}"] += 1
            self._answered[id] = True
            self.names.know_text(id, f"message {self._counts[f'{place} {author}']} of {author} in {place}")

    def _to_one_person(self) -> list[State]:
        slack, found = self._stage.slack, list[State]()
        for said in slack.api.ephemerals[self._alone :]:
            found.append({key: said.get(key) for key in ("user", "channel", "text", "blocks", "thread_ts")})
        self._alone = len(slack.api.ephemerals)
        for token, used in self._stage.discord.world.interactions.items():
            shown = [_discord_state(said, "", own=True) for said in used.messages if said.ephemeral]
            if shown and AUDIT in shown[0]["text"]:  # its lines are sorted, so they must be in one text
                shown = [shown[0] | {"text": "\n".join(each["text"] for each in shown)}]
            state = {"user": used.user.name, "shown": shown, "choices": used.choices, "modal": used.modal}
            if self._answered.get(token) != state and (shown or used.choices or used.modal):
                found.append(state)
                self._answered[token] = state
        return found

    def _requests(self) -> list[str]:
        """Which kinds of requests were made to the platforms, but for those that only ask."""
        slack, discord = self._stage.slack.calls, self._stage.discord.rest.calls
        made = [call.method for call in slack[self._slack :]] + [call.route for call in discord[self._discord :]]
        self._slack, self._discord = len(slack), len(discord)
        made = ["a post" if each in POSTS else each for each in made]
        return sorted({each for each in made if not any(word in each for word in PASSING) and not _reads(each)})

    def _of_model(self) -> list[Any]:
        requests = self._stage.model.requests
        new = [{"path": each.path, "body": each.body} for each in requests[self._asked :]]
        self._asked = len(requests)
        return unordered(new)


def _reads(request: str) -> bool:
    return request.startswith(READS)


def _discord_state(said: Any, place: str, *, own: bool) -> State:
    state: State = {"by": "nexus" if own else said.author.name, "in": place, "text": said.content}
    if own:
        files = [[each.filename, hashlib.sha256(each.content).hexdigest()[:7]] for each in said.attachments]
        state |= {"answers": str(said.referenced.id)} if said.referenced else {}
        state |= {"components": said.components} if said.components else {}
        state |= {"files": files} if files else {}
        state |= {"mentions": [each.name for each in said.mentions]} if said.mentions else {}
        state |= {"flags": int(said.flags)} if said.flags else {}
    if said.reactions:
        state["reactions"] = {emoji: sorted(each.name for each in users) for emoji, users in said.reactions.items()}
    return state
