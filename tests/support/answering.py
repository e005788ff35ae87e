"""A process that receives questions and answers them beside others over one database, until it is killed.

Run as `python -m tests.support.answering OPTIONS`. OPTIONS is JSON: home, database_url, redis_url, and `log`, a file to
which each answer that is delivered is appended as a line: the conversation, the question's id, this process. It prints
`up` and its number. A line on its input is a question, as JSON: room, id; `stored ID` is printed once it is stored. The
model waits before it answers while there is a file `log`.wait; `asked ID` is printed then.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from bot.script.places import incoming, place_of
from composer.app import App, open_app
from composer.model import CONSOLE, Agent, Turn, Usage
from composer.ports.models import ChatMessage, Chunk
from composer.repositories.turns import Answer
from composer.settings import Settings
from tests.support.embedder import HashedWords

WORKSPACE: Final = "acme"


def say(text: str) -> None:
    """Tell who started this process."""
    os.write(1, f"{text}\n".encode())


class Model:
    """Answers with what was asked; waits first as long as it is told to."""

    def __init__(self, wait: Path) -> None:
        self._wait = wait

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        asked = messages[-1].content.rpartition(" ")[2].strip()
        yield Chunk("It is about ")
        if self._wait.exists():
            say(f"asked {asked}")
        while self._wait.exists():  # noqa: ASYNC110 (another process removes it)
            await asyncio.sleep(0.02)
        yield Chunk(asked, Usage(1, 1))


class Log:
    """A delivery that appends each answer to a file which all processes share."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def on_wait(self, turn: Turn) -> None:
        pass

    def on_start(self, turn: Turn) -> None:
        """Nothing is shown before the answer."""

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Nothing is shown before the answer."""

    async def deliver(self, reply: Answer) -> None:
        os.write(self._file, f"{reply.turn.conversation_id} {reply.in_reply_to} {os.getpid()}\n".encode())

    async def abandon(self, turn: Turn) -> None:
        raise AssertionError("nothing is erased")

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """The others answer."""


async def ask(app: App, room: str, id: str) -> None:
    """Receive one question."""
    here = app.directory.workspace(CONSOLE, WORKSPACE)
    text = f"@nexus what of {id}"
    question = incoming(here, place_of(room, None, None), "alice", text, app.clock.now(), id=id)
    await app.receive(here, [question])
    say(f"stored {id}")


async def main(given: dict[str, Any]) -> None:
    settings = Settings(home=Path(given["home"]), database_url=given["database_url"], redis_url=given["redis_url"])
    model = Model(Path(f"{given['log']}.wait"))
    async with open_app(settings, model=model, embedder=HashedWords(), index=False) as app:
        app.turns.serve(CONSOLE, Log(given["log"]))
        taking_over = asyncio.create_task(app.keep_taking_over())
        asking = set[asyncio.Task[None]]()
        say(f"up {os.getpid()}")
        while line := await asyncio.to_thread(sys.stdin.readline):
            task = asyncio.create_task(ask(app, **json.loads(line)))
            asking.add(task)
            task.add_done_callback(asking.discard)
        taking_over.cancel()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
