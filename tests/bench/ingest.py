"""Messages per second from the adapter to recall, embedded by MiniLM, and what limits the rate; none may be lost."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import psutil

from bot.script.events import MessageEvent
from bot.script.places import incoming
from composer.app import App
from composer.model import CONSOLE, Incoming, Workspace
from composer.stores.models.minilm import MiniLM
from tests.bench.cpu import Cpu
from tests.bench.report import Report
from tests.bench.world import Vocabulary, data_folder, history, opened, stores

MESSAGES: Final = 3_000
BATCH: Final = 50  # messages that an adapter passes in one batch
MB: Final = 1_000_000
NAME: Final = "ingest"


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Receive messages as from an adapter, as fast as possible, while the indexer follows."""
    count = 400 if quick else MESSAGES
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, NAME, embedder=MiniLM()) as app:
            note(f"receiving, indexing and embedding {count:,} messages")
            return await _taken_in(app, count)


async def _taken_in(app: App, count: int) -> Report:
    workspace = app.directory.workspace(CONSOLE, NAME)
    events = [line.event for line in history(count + BATCH, Vocabulary(), NAME)]
    messages = [_incoming(workspace, event) for event in events if isinstance(event, MessageEvent)]
    process, cpu = psutil.Process(), Cpu(app.settings.database_url or "")
    working = asyncio.create_task(app.indexer.run())
    try:
        await _receive(app, workspace, messages[:BATCH])  # load the model and open the connections
        await _caught_up(app, workspace)
        await cpu.look()
        started, before, own, main = time.perf_counter(), cpu.now(), time.process_time(), time.thread_time()
        memory = [process.memory_info().rss / MB]
        waiting = 0
        for quarter in range(4):
            part = messages[BATCH + quarter * count // 4 : BATCH + (quarter + 1) * count // 4]
            await _receive(app, workspace, part)
            waiting = max(waiting, sum(await _backlog(app, workspace)))
            received = time.perf_counter() - started
            await _caught_up(app, workspace)
            memory.append(process.memory_info().rss / MB)
        took = time.perf_counter() - started
        everything, own, main = cpu.now() - before, time.process_time() - own, time.thread_time() - main
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    lost = len(messages) - await _found(app, workspace)
    shares = {"embedding": own - main, "Python, but for embedding": main, "SQL": everything / 1000 - own}
    figures = {"messages a second": count / took, "lost": float(lost), "most waiting": float(waiting)}
    figures |= {f"CPU share of {name}": part / (everything / 1000) for name, part in shares.items()}
    figures |= {"CPU ms a message": everything / count, "cores busy": everything / 1000 / took}
    figures |= {f"MB after {n} of 4": size for n, size in enumerate(memory)}
    report = Report(NAME, figures=figures)
    report.table(
        f"{count:,} messages from the adapter to recall by word and meaning, behind one another in four bursts "
        f"(the last was received after {received:.1f} of {took:.1f} s)",
        ["", "figure"],
        [[name, value] for name, value in figures.items()],
    )
    return report


def _incoming(workspace: Workspace, event: MessageEvent) -> Incoming:
    assert event.at is not None
    return incoming(workspace, event.place(), event.user, event.text, event.at, id=event.id)


async def _receive(app: App, workspace: Workspace, messages: list[Incoming]) -> None:
    for start in range(0, len(messages), BATCH):
        await app.receive(workspace, messages[start : start + BATCH])


async def _backlog(app: App, workspace: Workspace) -> tuple[int, int]:
    async with app.database.transaction(workspace.tenant_id, "read") as tx:
        return (await tx.maintenance.backlog()).indexing


async def _caught_up(app: App, workspace: Workspace) -> None:
    while any(await _backlog(app, workspace)):  # noqa: ASYNC110  the indexer tells nobody
        await asyncio.sleep(0.05)


async def _found(app: App, workspace: Workspace) -> int:
    """Count the messages that recall finds by word and meaning."""
    async with app.database.connection() as connection, connection.transaction(readonly=True):
        await connection.execute(f"SET LOCAL nexus.tenant = '{workspace.tenant_id}'")
        return int(
            await connection.fetchval(
                "SELECT count(*) FROM recall_index AS r JOIN episodes AS e ON e.tenant_id = r.tenant_id AND e.id = r.id"
                " WHERE r.embedding IS NOT NULL"
                " AND (r.length = 0 OR EXISTS (SELECT FROM recall_terms AS t WHERE t.item_id = r.id))"
            )
        )
