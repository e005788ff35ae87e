"""`/health`, `/ready` and `/metrics`, without a key, and `/v1/health` with one. They show no name, id or text."""

import asyncio
import math
import time
import uuid
from typing import Any, Final

import structlog
from fastapi import Depends, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from bot.web.dependencies import Nexus
from bot.web.limits import address_of
from bot.web.metrics import CONTENT_TYPE
from bot.web.principal import Bearer
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.state import WebState
from composer.entries.probe import probe_entries
from composer.errors import NexusError, where_raised
from composer.operations.backlog import Backlog, backlog
from composer.operations.backups import newest_backup
from composer.operations.readiness import missing

logger = structlog.get_logger()

SCRAPE_SECONDS: Final = 5.0  # for what metrics read from the database
HEALTH: Final = "/health"
READY: Final = "/ready"
METRICS: Final = "/metrics"
HEALTH_PATHS: Final = (HEALTH, READY, METRICS)
_READINESS: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["ready", "missing"],
    "properties": {"ready": {"type": "boolean"}, "missing": {"type": "array", "items": {"type": "string"}}},
}
_READY_DOCUMENT: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": description, "content": {"application/json": {"schema": _READINESS}}}
    for status, description in ((200, "It can serve"), (503, "It can't; a sentence for each thing that is missing"))
}
_METRICS_DOCUMENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "Prometheus's text format", "content": {"text/plain": {"schema": {"type": "string"}}}}
}

router = Router(tags=["health"])


async def _counted(request: Request, nexus: Nexus) -> None:
    """For what asks the database: apart from what else an address asks, which may be that of all clients."""
    await nexus.fair_use.admit(f"machine:{address_of(request)}")


@router.get(HEALTH, summary="Say that the process runs")
async def health() -> dict[str, str]:
    """200 while the process runs. Asks nobody."""
    return {"status": "running"}


@router.get(
    READY,
    summary="Say whether everything is ready",
    response_class=JSONResponse,
    responses={**_READY_DOCUMENT, **documented(429)},
    dependencies=[Depends(_counted)],
)
async def ready(nexus: Nexus) -> Response:
    """200 when this process can serve, else 503 with what is missing, a sentence each."""
    found = await missing(nexus.app.database, nexus.app.cache)
    found += [f"{name.title()} is not connected." for name, ask in nexus.connected.items() if not await ask()]
    return JSONResponse({"ready": not found, "missing": found}, 503 if found else 200)


@router.get(
    METRICS,
    summary="Show metrics",
    response_class=Response,
    responses={**_METRICS_DOCUMENT, **documented(429)},
    dependencies=[Depends(_counted)],
)
async def show_metrics(nexus: Nexus) -> Response:
    """The metrics in Prometheus's text format, also while the database is away."""
    nexus.metrics.set_open_turns(nexus.app.turns.open)
    try:
        async with asyncio.timeout(SCRAPE_SECONDS):
            await _read_installation(nexus)
    except (NexusError, TimeoutError, OSError) as error:
        logger.warning("metrics.installation_unavailable", **where_raised(error))
        nexus.metrics.set_installation(None, (), math.nan)
    return Response(nexus.metrics.text(), headers={"Content-Type": CONTENT_TYPE})


class ProbeTimes(BaseModel):
    """How long each step took."""

    create: float
    list: float
    delete: float


class ProbeResult(BaseModel):
    """Entries can be stored, listed and erased."""

    working: bool
    latency_ms: ProbeTimes


@router.get("/v1/health", summary="Check that entries work", response_model=ProbeResult, responses=documented(401, 503))
async def probe(nexus: Nexus, principal: Bearer) -> ProbeResult:
    """Create an entry, list it and erase it, in a transaction that is taken back: nothing stays of it, and no quota
    counts it. For people and tools, whatever their permissions."""
    app = nexus.app
    name, now = uuid.uuid4().hex, app.clock.now()
    took = await probe_entries(app.database, principal.tenant_id, principal.user, name, now, time.perf_counter)
    return ProbeResult(working=True, latency_ms=ProbeTimes(create=took.create, list=took.list, delete=took.delete))


async def _read_installation(nexus: WebState) -> None:
    app = nexus.app
    found: Backlog = await backlog(app.database)
    runs = await app.ledger.latest(app.clock.now())
    newest = newest_backup(app.settings.home, runs)
    age = math.inf if newest is None else (app.clock.now() - newest).total_seconds()
    nexus.metrics.set_installation(found, runs, age)
