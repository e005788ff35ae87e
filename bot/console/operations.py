"""`nexus migrate`, `doctor`, `admin`, `backup`, `restore`: for the person who runs Nexus."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.console.script import PLATFORM, external
from composer import operations as installation
from composer.app import App
from composer.doctor import Doctor
from composer.errors import BadInput, NexusError, NotFound
from composer.ports.reembedding import ReembedStatus
from composer.settings import Settings


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that doctor looked at. `ok` None: not configured, which is fine."""

    name: str
    ok: bool | None
    said: str


async def doctor(settings: Settings, slack_url: str | None = None) -> list[Check]:
    """Look at everything that Nexus needs, each on its own, so that one failure doesn't hide the next. The doors'
    platforms are asked where their tokens are set (`slack_url`: another address of Slack's API)."""
    checks = [Check("settings", True, str(settings.config) if settings.config else "from the environment alone")]
    checks += [Check("settings", False, sentence) for sentence in settings.warnings]
    async with Doctor(settings) as inspection:
        checks.append(await _check("servers", inspection.servers()))
        if checks[-1].ok:
            checks.append(await _check("database", inspection.database()))
            if checks[-1].ok:
                pending = await inspection.pending()
                said = f"{len(pending)} migrations to apply: the next start does it, or nexus migrate"
                checks.append(Check("schema", None, said) if pending else Check("schema", True, "up to date"))
                if not pending:
                    checks.append(await _check("tenants apart", inspection.separation()))
                    checks.append(await _check("backlog", inspection.backlog()))
                    checks += await _restored(inspection)
                    checks.append(await _check("extraction", inspection.extraction()))
            checks.append(await _check("cache", inspection.cache()))
        checks.append(await _check("embedder", inspection.embedder()))
        for agent in settings.agents:
            asked = await _check(f"model of @{agent.slug}", inspection.model(agent))
            checks.append(asked if agent.model else Check(asked.name, None, asked.said))
    return checks + await _doors(settings, slack_url)


async def _doors(settings: Settings, slack_url: str | None) -> list[Check]:
    if settings.discord_token is None and settings.slack_bot_token is None:
        return []
    from bot.discord import doctor as discord_doctor  # noqa: PLC0415 - the SDKs take half a second
    from bot.slack import doctor as slack_doctor  # noqa: PLC0415 - the SDKs take half a second

    found = [Check("discord", ok, said) for ok, said in await discord_doctor.inspect(settings)]
    address = {} if slack_url is None else {"base_url": slack_url}
    return found + [Check("slack", ok, said) for ok, said in await slack_doctor.inspect(settings, **address)]


async def _restored(inspection: Doctor) -> list[Check]:
    """Whether a database that was restored is whole; nothing of one that never was."""
    try:
        said = await inspection.restored()
    except NexusError as error:
        return [Check("restored", False, str(error))]
    return [] if said is None else [Check("restored", True, said)]


async def _check(name: str, asking: Awaitable[str]) -> Check:
    try:
        return Check(name, True, await asking)
    except NexusError as error:
        return Check(name, False, str(error))
    except asyncio.CancelledError:
        raise
    except Exception as error:  # doctor reports what it finds, whatever that is
        return Check(name, False, f"{type(error).__name__}: {error}")


async def migrate(settings: Settings) -> list[str]:
    """Bring the schema up to date; the steps taken."""
    return await installation.migrate(settings)


async def backup(settings: Settings, file: Path | None) -> dict[str, Any]:
    """Write a backup; where it is and what is in it."""
    now = datetime.now(UTC)
    path = file or settings.home / "backups" / f"nexus-{now:%Y%m%dT%H%M%SZ}.backup"
    if path.exists():
        raise BadInput(f"{path} is there already: name another file, or remove it.")
    manifest = await installation.backup(settings, path, now)
    return {"file": str(path), "bytes": path.stat().st_size, "rows": manifest.rows, "schema": manifest.schema}


async def reembed(settings: Settings, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Bring all vectors over to the configured embedder; what is stored then."""
    return _reembed_json(await installation.reembed(settings, progress))


async def reembed_status(settings: Settings) -> dict[str, Any]:
    """How far that is."""
    return _reembed_json(await installation.reembed_status(settings))


def _reembed_json(status: ReembedStatus) -> dict[str, Any]:
    found = asdict(status)
    return {"embedder": found.pop("current"), "next": found.pop("target"), **found}


def reembed_sentence(status: dict[str, Any]) -> str:
    """The same for a person."""
    current, coming = status["embedder"], status["next"]
    if current is None:
        return "No vectors are stored yet."
    said = f"The vectors of {status['items']:,} items are of {current['name']} ({current['width']} dimensions)"
    if coming is None:
        return f"{said}; no change is under way."
    state = "is at work" if status["running"] else "has stopped: run nexus reembed again, it goes on from there"
    share = f"{status['prepared']:,} of {status['items']:,} are made"
    return f"{said}. For {coming['name']} ({coming['width']}) {share}; nexus reembed {state}."


async def restore(settings: Settings, file: Path) -> dict[str, Any]:
    """Restore a backup into an empty place; what was in it."""
    manifest = await installation.restore(settings, file)
    return {"file": str(file), "taken_at": manifest.taken_at, "rows": manifest.rows, "schema": manifest.schema}


async def set_admin(app: App, workspace: str, user: str, admin: bool) -> str:
    """Make someone an admin of a workspace's tenant, or no longer one; their name. Raises NotFound."""
    place = app.directory.workspace(PLATFORM, workspace)
    async with app.database.transaction(place.tenant_id) as tx:
        found = await tx.people.find_user(PLATFORM, place.name, external(user))
        if found is None:
            raise NotFound(f"There is no user '{user}' in the workspace {workspace}.")
        await tx.people.set_admin(found.id, admin)
    return found.name


def as_json(checks: list[Check]) -> list[dict[str, Any]]:
    """Checks for a program."""
    return [{"name": check.name, "ok": check.ok, "said": check.said} for check in checks]
