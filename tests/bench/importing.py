"""How many messages a second are stored, made findable by words, and embedded, by the ordinary import."""

import time
from collections.abc import Callable
from typing import Final

from bot.console.history import import_history
from bot.console.script import PLATFORM
from composer.stores.minilm import MiniLM
from tests.bench.report import Report
from tests.bench.world import HashEmbedder, Vocabulary, data_folder, history, opened, stores

MESSAGES: Final = 20_000
EMBEDDED: Final = 2_000  # with MiniLM: the rate does not depend on the number


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Import into empty databases: one for storing, words and vectors as such, one for MiniLM."""
    count = 3_000 if quick else MESSAGES
    some = 200 if quick else EMBEDDED
    vocabulary, rates = Vocabulary(), {}
    with data_folder() as home, stores(home) as servers:
        note(f"importing {count:,} messages")
        async with opened(home, servers, "bulk", embedder=HashEmbedder()) as app:
            here = app.directory.workspace(PLATFORM, "bulk")
            lines = history(count, vocabulary, "bulk")
            started = time.perf_counter()
            await import_history(app, lines, lambda _: None)
            rates["store (log)"] = count / (time.perf_counter() - started)
            started = time.perf_counter()
            await import_history(app, lines, lambda _: None)
            rates["the same again (nothing new)"] = count / (time.perf_counter() - started)
            started = time.perf_counter()
            await app.indexer.catch_up(here.tenant_id, embed=False)
            rates["index by words"] = count / (time.perf_counter() - started)
            started = time.perf_counter()
            await app.indexer.catch_up(here.tenant_id)
            rates["store vectors (embedding itself free)"] = count / (time.perf_counter() - started)
        note(f"embedding {some:,} messages with MiniLM")
        async with opened(home, servers, "embedded", embedder=MiniLM()) as app:
            here = app.directory.workspace(PLATFORM, "embedded")
            await import_history(app, history(some, vocabulary, "embedded"), lambda _: None)
            await app.indexer.catch_up(here.tenant_id, embed=False)
            started = time.perf_counter()
            await app.indexer.catch_up(here.tenant_id)
            rates["embed with MiniLM and store vectors"] = some / (time.perf_counter() - started)
    together = ("store (log)", "index by words", "embed with MiniLM and store vectors")
    rates["all three, as nexus import does"] = 1 / sum(1 / rates[name] for name in together)
    report = Report("import", figures=rates)
    report.table(f"import of {count:,} messages", ["messages a second", "rate"], [[k, round(v)] for k, v in rates.items()])
    return report
