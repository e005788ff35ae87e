"""The checks of `nexus doctor`: everything that Nexus needs, each with a sentence that says what to do."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final

from bot.console import schedule
from composer.errors import NexusError, for_operator
from composer.operations.backups import BACKUP_PERIOD, newest_backup
from composer.operations.billing import configured_stripe, sold
from composer.operations.doctor import Doctor, JobRuns
from composer.ports.clock import Clock
from composer.settings import Settings
from composer.text.counts import counted

NOT_ASKED: Final = "not asked; nexus doctor --live does"
BACK_UP_NOW: Final = "leave nexus run with its jobs running as the database's owner, or run nexus backup"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. `ok` is None for what is not configured, which is fine."""

    name: str
    ok: bool | None
    detail: str


async def run_doctor(
    settings: Settings, slack_url: str | None = None, clock: Clock | None = None, *, live: bool = False
) -> list[Check]:
    """Check everything that Nexus needs, each on its own, so that one failure doesn't hide the next.

    Only `live` asks models and platforms: that may cost money, and takes seconds. `slack_url` replaces the address of
    Slack's API, and `clock` the system's.
    """
    checks = [
        Check(
            "settings",
            True,
            str(settings.config) if settings.config else "from the environment; there is no nexus.toml",
        )
    ]
    checks += [Check("settings", False, sentence) for sentence in settings.warnings]
    async with Doctor(settings, clock) as probe:
        checks.append(await _check("servers", probe.servers()))
        if checks[-1].ok:
            checks += await _database(probe, settings)
            checks.append(await _check("cache", probe.cache()))
        found = {check.name: check.ok for check in checks}
        reachable = found.get("database") is True and found["schema"] is not False
        if live or settings.embeds_here:
            checks.append(await _check("embedder", probe.embedder(stored=reachable)))
        else:
            checks.append(Check("embedder", None, f"{settings.embedder}: {NOT_ASKED}"))
        checks += await _models(probe, settings, stored=reachable, live=live)
        if settings.transcription_model and live:
            checks.append(await _check("transcription", probe.transcription(stored=reachable)))
        elif settings.transcription_model:
            checks.append(Check("transcription", None, f"{settings.transcription_model}: {NOT_ASKED}"))
        checks += [await _tool_server(probe, settings, name, stored=reachable, live=live) for name in settings.mcp]
    checks += await _gateway(settings, live=live)
    return checks + await _of_others(settings, slack_url, live=live)


async def _database(probe: Doctor, settings: Settings) -> list[Check]:
    """The database, its schema, and what is stored in it; each only where the one before is in order."""
    checks = [await _check("database", probe.database())]
    if not checks[-1].ok:
        return checks
    schema = await _check("schema", probe.schema())
    if schema.ok and (pending := await probe.pending()):
        schema = Check(
            "schema", None, f"{counted(len(pending), 'migration')} pending: run nexus migrate, or start Nexus"
        )
    checks.append(schema)
    if not schema.ok:
        return checks
    checks.append(await _check("tenant isolation", probe.tenant_isolation()))
    if unread := await probe.unread_memory():
        checks.append(Check("tenants", False, unread))
    if unretracted := await probe.unretracted():
        checks.append(Check("retractions", None, unretracted))
    if unreadable := await probe.unread_rooms():
        checks.append(Check("channels", None, unreadable))
    checks.append(await _check("backlog", probe.backlog()))
    if skipped := await probe.skipped():
        checks.append(Check("skipped messages", None, skipped))
    checks += await _restored(probe)
    checks.append(await _check("extraction", probe.extraction()))
    checks += await _usage(probe)
    checks.append(await _check("audit log", probe.audit()))
    return checks + await _jobs(probe, settings)


async def _models(probe: Doctor, settings: Settings, *, stored: bool, live: bool) -> list[Check]:
    """The models of the agents, and those that are named for other work. Only `live` asks them."""
    named = [(f"model of @{agent.slug}", agent) for agent in settings.agents]
    answering = {agent.model for agent in settings.agents}
    for name in (name for name in settings.named_models if name not in answering):
        named.append((f"model {name}", settings.agents[0].model_copy(update={"model": name, "reasoning_effort": None})))
    checks = []
    for title, agent in named:
        if live or not agent.model or not settings.has_model_api:
            check = await _check(title, probe.model(agent, stored=stored))
            checks.append(check if agent.model else Check(title, None, check.detail))
        else:
            checks.append(Check(title, None, f"{agent.model}: {NOT_ASKED}"))
    return checks


async def _tool_server(probe: Doctor, settings: Settings, name: str, *, stored: bool, live: bool) -> Check:
    """A tool server: where its tools are offered, and with a database (`stored`) which names of its settings are not
    known. Only `live` connects to it."""
    check = await _asked_tool_server(probe, settings, name, live=live)
    if not stored or not (settings.mcp[name].tenants or settings.mcp[name].rooms):
        return check
    try:
        places = await probe.server_places(name)
    except NexusError as error:
        return Check(check.name, False, f"{check.detail}; {for_operator(error)}")
    if places is None:
        return check
    ok = False if places.mistaken else None if places.waiting and check.ok else check.ok
    return Check(check.name, ok, "; ".join((check.detail, places.offered, *places.mistaken, *places.waiting)))


async def _asked_tool_server(probe: Doctor, settings: Settings, name: str, *, live: bool) -> Check:
    """Whether any of its tools is offered anywhere, and with `live` whether it answers."""
    title, server = f"mcp server {name}", settings.mcp[name]
    unused = ""
    if not server.tools:
        unused = f"none of its tools is offered: name them in tools of [mcp.{name}] in nexus.toml"
    elif not server.tenants and not server.rooms:
        unused = f"it is offered nowhere: name tenants or rooms in [mcp.{name}] in nexus.toml"
    if not live:
        place = f"{server.command or server.url}, {counted(len(server.tools), 'tool')}"
        return Check(title, False if unused else None, unused or f"{place}: {NOT_ASKED}")
    found = await _check(title, probe.tool_server(name))
    return Check(title, False, f"{found.detail}; {unused}") if found.ok and unused else found


async def _jobs(probe: Doctor, settings: Settings) -> list[Check]:
    """Whether the jobs run and succeed, and how old the newest backup is."""
    try:
        runs = await probe.job_runs()
    except NexusError as error:
        return [Check("jobs", False, for_operator(error))]
    ok, detail = schedule.health(runs.latest, runs.now)
    return [Check("jobs", ok, detail), _backup(settings, runs)]


def _backup(settings: Settings, runs: JobRuns) -> Check:
    newest = newest_backup(settings.home, runs.latest)
    if newest is not None:
        age = runs.now - newest
        old = bool(settings.backups) and age > 2 * BACKUP_PERIOD
        sentence = f"the newest is of {newest:%Y-%m-%d %H:%M} UTC, {counted(max(age.days, 0), 'day')} old"
        return Check("backup", not old, f"{sentence}: {BACK_UP_NOW}" if old else sentence)
    if not settings.backups:
        return Check("backup", None, "NEXUS_BACKUPS is 0, so none is scheduled: nexus backup makes one")
    since = min((run.started_at for run in runs.latest), default=None)
    missed = since is not None and runs.now - since > 2 * BACKUP_PERIOD and schedule.is_served(runs.latest)
    return Check("backup", False if missed else None, f"there is none yet: {BACK_UP_NOW}")


async def check_receipt(settings: Settings, receipt: str) -> list[Check]:
    """Check that nothing of what a receipt names is stored any more."""
    async with Doctor(settings) as probe:
        checks = [await _check("servers", probe.servers())]
        if checks[0].ok:
            checks.append(await _check("erased", probe.erased(receipt)))
    return checks


async def _gateway(settings: Settings, *, live: bool) -> list[Check]:
    """The model servers that the gateway passes requests on to; no check where it is off. Only `live` asks them."""
    if all(settings.upstream_of(slug) is None for slug in ("", *settings.tenants)):
        return []  # without loading the libraries of the web port, which takes as long as all other checks
    from bot.web.gateway import doctor as gateway_doctor  # noqa: PLC0415 - its libraries are for the web port alone

    return [Check(*found) for found in await gateway_doctor.inspect(settings, NOT_ASKED, live=live)]


async def _of_others(settings: Settings, slack_url: str | None, *, live: bool) -> list[Check]:
    """The services of others: who signs people in, who charges, and the platforms."""
    checks = await _openid(settings, live=live) + await _billing(settings, live=live)
    return checks + await _platforms(settings, slack_url, live=live)


async def _openid(settings: Settings, *, live: bool) -> list[Check]:
    """Whether the OpenID provider is what the settings say; no check where none is set. Only `live` asks it."""
    if settings.openid is None:
        return []
    if not live:
        return [Check("openid", None, f"{settings.openid.issuer}: {NOT_ASKED}")]
    from bot.web.openid import OpenIdProvider  # noqa: PLC0415 - its library is for the web port alone

    return [await _check("openid", OpenIdProvider(settings.openid).check())]


async def _billing(settings: Settings, *, live: bool) -> list[Check]:
    """Whether the billing provider sells the plans; no check where billing is off. Only `live` asks it."""
    stripe = configured_stripe(settings)
    if stripe is None:
        return []
    if not live:
        return [Check("billing", None, f"{', '.join(sold(settings))}: {NOT_ASKED}")]
    return [await _check("billing", stripe.check(sold(settings)))]


async def _platforms(settings: Settings, slack_url: str | None, *, live: bool) -> list[Check]:
    tokens = {"discord": settings.discord_token, "slack": settings.slack_bot_token}
    if not live:
        return [Check(name, None, f"a token is set: {NOT_ASKED}") for name, token in tokens.items() if token]
    if not any(tokens.values()):
        return []
    from bot.discord import doctor as discord_doctor  # noqa: PLC0415 - the SDKs take half a second
    from bot.slack import doctor as slack_doctor  # noqa: PLC0415 - the SDKs take half a second

    found = [Check("discord", ok, detail) for ok, detail in await discord_doctor.inspect(settings)]
    address = {} if slack_url is None else {"base_url": slack_url}
    return found + [Check("slack", ok, detail) for ok, detail in await slack_doctor.inspect(settings, **address)]


async def _usage(probe: Doctor) -> list[Check]:
    """How much of the budgets is used; no check without budgets where no call of a model failed."""
    try:
        detail, degraded = await probe.usage()
    except NexusError as error:
        return [Check("usage", False, for_operator(error))]
    return [Check("usage", None if degraded else True, detail)] if detail else []


async def _restored(probe: Doctor) -> list[Check]:
    """Whether a restored database is complete; no check for one that was never restored."""
    try:
        detail = await probe.restored()
    except NexusError as error:
        return [Check("restored", False, for_operator(error))]
    return [] if detail is None else [Check("restored", True, detail)]


async def _check(name: str, probe: Awaitable[str]) -> Check:
    try:
        return Check(name, True, await probe)
    except NexusError as error:
        return Check(name, False, for_operator(error))
    except asyncio.CancelledError:
        raise
    except Exception as error:  # doctor reports every failure
        return Check(name, False, f"{type(error).__name__}: {error}")


def as_json(checks: list[Check]) -> list[dict[str, Any]]:
    """Checks as JSON."""
    return [{"name": check.name, "ok": check.ok, "message": check.detail} for check in checks]
