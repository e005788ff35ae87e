"""Messages per second that the ordinary import stores, indexes by words, and embeds."""

import time
from collections.abc import Awaitable, Callable
from typing import Final

from bot.importers.history import import_history
from bot.script.events import Line
from composer.app import App
from composer.model import CONSOLE
from composer.stores.models.minilm import MiniLM
from tests.bench.report import Report
from tests.bench.world import HashEmbedder, Vocabulary, data_folder, history, opened, stores

MESSAGES: Final = 20_000
EMBEDDED: Final = 2_000  # with MiniLM: the rate does not depend on the number


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Import into empty databases: one without an embedding model, one with MiniLM."""
    count = 3_000 if quick else MESSAGES
    some = 200 if quick else EMBEDDED
    vocabulary = Vocabulary()
    rates: dict[str, float] = {}
    with data_folder() as home:
        async with stores(home) as servers:
            note(f"importing {count:,} messages")
            async with opened(home, servers, "bulk", embedder=HashEmbedder()) as app:
                rates |= await _bulk(app, history(count, vocabulary, "bulk"))
            note(f"embedding {some:,} messages with MiniLM")
            async with opened(home, servers, "embedded", embedder=MiniLM()) as app:
                rates["embed with MiniLM and store vectors"] = await _embedded(
                    app, history(some, vocabulary, "embedded")
                )
    together = ("store (log)", "index by words", "embed with MiniLM and store vectors")
    rates["all three, as nexus import does"] = 1 / sum(1 / rates[name] for name in together)
    report = Report("import", figures=rates)
    report.table(
        f"import of {count:,} messages", ["messages a second", "rate"], [[k, round(v)] for k, v in rates.items()]
    )
    return report


async def _bulk(app: App, lines: list[Line]) -> dict[str, float]:
    tenant = app.directory.workspace(CONSOLE, "bulk").tenant_id
    steps: dict[str, Callable[[], Awaitable[object]]] = {
        "store (log)": lambda: import_history(app, lines, lambda _: None),
        "the same again (nothing new)": lambda: import_history(app, lines, lambda _: None),
        "index by words": lambda: app.indexer.catch_up(tenant, embed=False),
        "store vectors (embedding itself free)": lambda: app.indexer.catch_up(tenant),
    }
    return {name: len(lines) / await _seconds(step) for name, step in steps.items()}


async def _embedded(app: App, lines: list[Line]) -> float:
    tenant = app.directory.workspace(CONSOLE, "embedded").tenant_id
    await import_history(app, lines, lambda _: None)
    await app.indexer.catch_up(tenant, embed=False)
    return len(lines) / await _seconds(lambda: app.indexer.catch_up(tenant))


async def _seconds(step: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await step()
    return time.perf_counter() - started
