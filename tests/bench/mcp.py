"""What a search over MCP costs beside the same search over REST, in turns: by a tool's key, over real HTTP, in both
revisions of the protocol. The client is a process of its own; CPU time is that of the server and of the database."""

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.server import open_port
from tests.bench.api import Measuring, Note, Person, Spent, Work, stored_person
from tests.bench.cpu import Cpu
from tests.bench.report import Report, quantile
from tests.bench.world import HashEmbedder, data_folder, opened, settled, stores

ENTRIES: Final = 1_000
QUICK_ENTRIES: Final = 200
CLIENTS: Final = (1, 16)
ROUNDS: Final = 4  # of each way, in turns
REQUESTS: Final = 200  # of one round
QUICK_REQUESTS: Final = 48
LIMIT: Final = 10
REST: Final = "REST"


async def measure(quick: bool, note: Note) -> Report:
    """Store the entries of a person, and let a tool of theirs search them each way."""
    size, requests = (QUICK_ENTRIES, QUICK_REQUESTS) if quick else (ENTRIES, REQUESTS)
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, "mcp", embedder=HashEmbedder()) as app:
            settings = app.settings.model_copy(update={"requests_per_minute": 1_000_000, "web_port": 0})
            app = replace(app, settings=settings)
            person = await stored_person(app, "alice", size, note, vendor="claude")
            await settled(app)
            async with AsyncExitStack() as stack:
                address = await open_port(settings, web_app(app, Metrics([]), {}, None), stack)
                cpu = Cpu(str.__str__(settings.database_url or ""))
                measuring, works = Measuring(address, cpu, app, requests), _works(person)
                found = {(work.name, clients): Spent() for work in works for clients in CLIENTS}
                for work in works:  # loads what is loaded once, and opens connections
                    await measuring.web(work, max(CLIENTS), Spent(), 2 * max(CLIENTS))
                await cpu.look()
                for clients in CLIENTS:
                    note(f"{clients} clients")
                    for _ in range(ROUNDS):
                        for work in works:
                            await measuring.web(work, clients, found[work.name, clients], requests)
    return _report(found)


def _works(person: Person) -> list[Work]:
    def question(number: int) -> str:
        words = person.texts[number % len(person.texts)].rstrip(".").split()
        return f"what about {' '.join(words[:5])} {number}"

    async def never(_: int) -> None:
        raise NotImplementedError

    def over_rest(number: int) -> tuple[str, str, dict[str, Any] | None]:
        return "GET", f"/v1/agent/search?q={quote(question(number))}&limit={LIMIT}", None

    works = [Work(REST, over_rest, never, person)]
    accepted = {"Accept": "application/json, text/event-stream"}
    for revision in ("2026-07-28", "2025-11-25"):
        modern = revision == "2026-07-28"
        said: dict[str, Any] = {"protocolVersion": revision, "clientCapabilities": {}} if modern else {}
        meta = {f"io.modelcontextprotocol/{name}": value for name, value in said.items()}

        def over_mcp(number: int, meta: Any = meta) -> tuple[str, str, dict[str, Any] | None]:
            given = {"name": "search", "arguments": {"query": question(number), "limit": LIMIT}}
            params = {**given, "_meta": meta} if meta else given
            return "POST", "/mcp", {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}

        headers = {**accepted, "MCP-Protocol-Version": revision}
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "search"} if modern else {}
        works.append(Work(f"MCP {revision}", over_mcp, never, person, headers))
    return works


def _report(found: dict[tuple[str, int], Spent]) -> Report:
    report, rows = Report("mcp"), []
    for (name, clients), spent in found.items():
        rest = found[REST, clients]
        ms = [each * 1_000 for each in spent.times]
        added = spent.each - rest.each
        rows.append(
            (
                name,
                clients,
                spent.each,
                spent.server / spent.requests,
                added,
                spent.each / rest.each,
                spent.requests / spent.seconds,
                quantile(ms, 0.5),
                quantile(ms, 0.95),
            )
        )
        report.figures[f"{name}, {clients} clients"] = {
            "cpu_ms": spent.each,
            "server_ms": spent.server / spent.requests,
            "added_ms": added,
            "per_second": spent.requests / spent.seconds,
        }
    head = [
        "search over",
        "clients",
        "CPU ms",
        "of it Python",
        "more than REST",
        "times REST",
        "a s",
        "p50 ms",
        "p95 ms",
    ]
    report.table("a tool's search over MCP beside REST; the vectors of questions cost next to nothing here", head, rows)
    return report
