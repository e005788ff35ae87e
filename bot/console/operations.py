"""The work of `nexus admin`, `backup`, `restore`, `reembed`, `export` and `replay`."""

import uuid
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.console.files import require_folder
from bot.script.places import external
from composer import visibility
from composer.app import App
from composer.errors import BadInput, NotFound
from composer.model import CONSOLE, Trust
from composer.operations import upkeep
from composer.people.export import ExportFile, export_file
from composer.people.replay import DIFFERENT, SAME, Replay, replay
from composer.ports.memberships import NOWHERE
from composer.ports.reembedding import ReembedStatus
from composer.repositories.audit import AuditAct
from composer.settings import Settings
from composer.text.counts import counted


async def backup(settings: Settings, file: Path | None) -> dict[str, Any]:
    """Write a backup; returns its file and its figures."""
    now = datetime.now(UTC)
    if file is not None:
        require_folder(file)
    path = file or settings.home / "backups" / f"nexus-{now:%Y%m%dT%H%M%SZ}.backup"
    if path.exists():
        raise BadInput(f"{path} exists already: name another file, or remove this one.")
    manifest = await upkeep.backup(settings, path, now)
    return {"file": str(path), "bytes": path.stat().st_size, "rows": manifest.rows, "schema": manifest.schema}


async def reembed(settings: Settings, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Embed everything again with the configured embedder; returns the status afterwards."""
    return _reembed_json(await upkeep.reembed(settings, progress))


async def reembed_status(settings: Settings) -> dict[str, Any]:
    """The progress of `reembed`."""
    return _reembed_json(await upkeep.reembed_status(settings))


def _reembed_json(status: ReembedStatus) -> dict[str, Any]:
    found = asdict(status)
    return {"embedder": found.pop("current"), "next": found.pop("target"), **found}


def reembed_sentence(status: dict[str, Any]) -> str:
    """The status as sentences."""
    current, coming = status["embedder"], status["next"]
    if current is None:
        return "No vectors are stored yet."
    items = counted(status["items"], "item")
    sentence = f"The vectors of {items} were made by {current['name']} ({current['width']} dimensions)"
    if coming is None:
        return f"{sentence}; no re-embedding is running."
    state = "is running" if status["running"] else "has stopped: run nexus reembed again to continue"
    share = f"{status['prepared']:,} of {status['items']:,} are done"
    return f"{sentence}. For {coming['name']} ({coming['width']}) {share}; nexus reembed {state}."


async def restore(settings: Settings, file: Path, *, trust: bool = False) -> dict[str, Any]:
    """Restore a backup into an empty data folder or database; returns its figures."""
    manifest = await upkeep.restore(settings, file, trust=trust)
    return {"file": str(file), "taken_at": manifest.taken_at, "rows": manifest.rows, "schema": manifest.schema}


async def set_admin(app: App, workspace: str, user: str, admin: bool) -> str:
    """Make a user an admin of a workspace's tenant, or an ordinary user again; returns their name. Raises NotFound."""
    place = app.directory.workspace(CONSOLE, workspace)
    async with app.database.transaction(place.tenant_id) as tx:
        found = await tx.people.find_user(CONSOLE, place.name, external(user))
        if found is None:
            raise NotFound(f"There is no user '{user}' in the workspace {workspace}.")
        await tx.people.set_admin(found.id, admin)
    return found.name


async def export_user(app: App, platform: str, workspace: str, user: str) -> ExportFile:
    """All that is a user's, on their behalf. `user` is a name in the terminal, an id on another platform. Recorded in
    the audit log. Raises NotFound."""
    place = app.directory.workspace(platform, workspace)
    name = external(user) if platform == CONSOLE else user
    async with app.database.transaction(place.tenant_id, "read") as tx:
        found = await tx.people.find_user(platform, place.name, name)
        if found is None:
            raise NotFound(f"There is no user '{user}' in the workspace {workspace}.")
        linked = (await tx.people.linked_users([found.id])).get(found.id, ())
        owned = visibility.owned_by_user(place.tenant_id, found.id, linked)
        document = await export_file(tx, owned, place.tenant, app.clock.now(), Trust.MEMBER, NOWHERE)
    async with app.database.transaction(place.tenant_id) as tx:
        await tx.audit.record(AuditAct.EXPORTED, users=owned.users, details=document.counts)
    return document


async def replay_turn(app: App, text: str) -> Replay:
    """Compose the prompt of a turn again, and compare. Raises BadInput for what is no id, and NotFound."""
    try:
        turn = uuid.UUID(text)
    except ValueError:
        raise BadInput(f"'{text}' is not the id of a turn; /nexus why shows it.") from None
    for tenant, _ in await app.database.tenants():
        async with app.database.transaction(tenant, "read") as tx:
            known = await tx.turns.get(turn)
        if known is not None:
            agents = app.directory.agents_by_id(tenant)
            return await replay(app.database, app.composer, app.memberships, agents, turn, tenant)
    raise NotFound(f"There is no answered turn {turn}; /nexus why shows the id of an answer's turn.")


def replay_sentences(found: Replay) -> str:
    """The result of a replay, for a person."""
    if found.result == SAME:
        return "The same prompt, composed again as of then."
    if found.result != DIFFERENT:
        return f"It can't be compared. {found.note}"
    lines = ["It differs in:"]
    for each in found.differences:
        lines.append(f"  {each.section}: " + "; ".join(f"{why} ({count})" for why, count in each.reasons))
    return "\n".join(lines)
