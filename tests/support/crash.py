"""A small program around the app that kills itself at a given step of a turn; its next start has to recover.

Run as `python -m tests.support.crash HOME DELIVERED STEP`, where DELIVERED is the folder of what people were shown.
With the step `none` it starts again, receives every message once more, as a platform repeats it, and answers open
turns.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bot.script.places import incoming, place_of
from composer.app import App, open_app
from composer.model import CONSOLE, Agent, Turn, Usage
from composer.ports.models import ChatMessage, Chunk
from composer.repositories.messages import Messages
from composer.repositories.recall import Recall
from composer.repositories.turns import Answer, Turns
from composer.settings import Settings
from composer.stores.database.working_cache import RedisWorkingCache
from composer.stores.models.minilm import MiniLM
from composer.turn.compose import Composer
from tests.support.harness import ManualClock

# Every step at which a turn can be cut off, in its order.
STEPS: Final = (
    "receiving",  # the message and its turn are written, not committed: the platform has no acknowledgement
    "received",  # committed; the working cache knows nothing of it
    "queued",  # before anything is read
    "composed",
    "asked",  # before the model's first word
    "streaming",  # after some of its words, which a person may have seen
    "storing",  # the answer is written, not committed
    "stored",  # committed; the working cache knows nothing of it
    "sending",  # before the person has it
    "sent",  # the person has it, and that is not marked yet
    "marking",  # it is marked
    "indexing",  # episodes and memories are written, not committed
    "indexed",  # committed, and without their vectors
    "embedding",  # the vectors are computed, not stored
)
SAID: Final = "@nexus we decided to deploy on Fridays, did we not? I prefer Fridays."
ANSWER: Final = ("on ", "Fridays, ", "as decided")


def die() -> None:
    """End this process at once, as by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


class Model:
    """Answers in three chunks; ends the process before the first or the third one if the step says so."""

    def __init__(self, step: str) -> None:
        self._step = step

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        if self._step == "asked":
            die()
        for number, piece in enumerate(ANSWER):
            if self._step == "streaming" and number == 2:
                die()
            yield Chunk(text=piece)
        yield Chunk(usage=Usage(1, 1))


class FileDelivery:
    """A delivery that shows each answer once, by its idempotency key, as platforms do: one file an answer."""

    def __init__(self, shown: Path, step: str) -> None:
        self._shown = shown
        self._step = step

    def on_wait(self, turn: Turn) -> None:
        pass

    def on_start(self, turn: Turn) -> None:
        """Nothing is shown before the answer."""

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """A chunk is part of the one message that the answer becomes."""

    async def deliver(self, reply: Answer) -> None:
        if self._step == "sending":
            die()
        path = self._shown / f"{reply.in_reply_to}.{reply.turn.id}"
        assert not path.exists() or path.read_text() == reply.text, "the same answer in other words"
        path.write_text(reply.text)
        if self._step == "sent":
            die()

    async def abandon(self, turn: Turn) -> None:
        pass

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        raise AssertionError(sentence)


def queues_turns(options: Mapping[str, Any]) -> bool:
    """Whether a call of `Messages.append` queues turns."""
    return bool(options.get("turns"))


def dying(
    owner: type,
    name: str,
    *,
    before: bool = False,
    call: int = 1,
    of: Callable[[Mapping[str, Any]], bool] = lambda options: True,
) -> None:
    """Make a method end the process at its `call`-th call, before or after it has done its work. Only those count whose
    options are `of` these."""
    method, calls = getattr(owner, name), 0

    async def instead(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += of(options)
        if calls == call and of(options) and before:
            die()
        done = await method(*args, **options)
        if calls == call and of(options):
            die()
        return done

    setattr(owner, name, instead)


def plant(step: str) -> None:
    """Make the process end at this step."""
    match step:
        case "receiving":
            dying(Messages, "append", of=queues_turns)
        case "received":
            dying(RedisWorkingCache, "append", before=True)
        case "queued":
            dying(Composer, "compose", before=True)
        case "composed":
            dying(Composer, "compose")
        case "storing":
            dying(Turns, "store_answer")
        case "stored":
            dying(RedisWorkingCache, "append", before=True, call=2)
        case "marking":
            dying(Turns, "mark_delivered")
        case "indexing":
            dying(Recall, "index")
        case "indexed":
            dying(MiniLM, "embed", before=True, call=2)  # the first call is for the question
        case "embedding":
            dying(MiniLM, "embed", call=2)


async def receive(app: App, step: str) -> None:
    """Receive one message in a workspace of the step's own, and wait until it is answered and indexed."""
    here = app.directory.workspace(CONSOLE, step)
    said = incoming(here, place_of("general", None, None), "alice", SAID, ManualClock().now(), id=step)
    await app.receive(here, [said])
    await app.turns.settle()
    await app.indexer.catch_up(here.tenant_id)


async def main(home: Path, shown: Path, step: str) -> None:
    plant(step)
    async with open_app(
        Settings(home=home, embedder="minilm"), clock=ManualClock(), model=Model(step), index=False
    ) as app:
        app.turns.serve(CONSOLE, FileDelivery(shown, step))
        if step != "none":
            await receive(app, step)
            raise AssertionError(f"the step {step} was never reached")
        await app.take_over()
        await app.turns.settle()
        for known in STEPS:
            await receive(app, known)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
