"""The sample workspace: a few days of a small team's messages."""

import json
from datetime import datetime
from pathlib import Path
from typing import Final

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.app import App
from composer.model import CONSOLE, Workspace

SAMPLE: Final = "sample"  # the name of its workspace
PROPOSAL: Final = "We'll go with feature flags for the new checkout, so we can turn it off without a release."


async def load_sample(app: App, workspace: Workspace) -> None:
    """Load a few days of a small team's messages, once, through the same pipeline as every adapter."""
    async with app.database.transaction(workspace.tenant_id, "read") as tx:
        if await tx.people.find_user(CONSOLE, workspace.name, "alice") is not None:
            return
    for line in Path(__file__).with_name("sample.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        place = place_of(entry.get("room"), entry.get("dm"), None, private=entry.get("private"))
        at = datetime.fromisoformat(entry["at"])
        message = incoming(workspace, place, entry["user"], entry["text"], at, id=entry["id"], name=entry["user"])
        if entry["type"] == "command":
            await run_command(app, workspace, message, recorded=False)
        else:
            await app.receive(workspace, [message], answer=False)
    await app.indexer.catch_up(workspace.tenant_id)


async def load_proposal(app: App, workspace: Workspace) -> None:
    """Have somebody say just now, and once, what sounds like a decision, so that something waits on the pages: what was
    proposed in the messages of the sample has lapsed by now."""
    place = place_of("general", None, None)
    message = incoming(workspace, place, "bob", PROPOSAL, app.clock.now(), id="sample-17", name="bob")
    await app.receive(workspace, [message], answer=False)
    await app.indexer.catch_up(workspace.tenant_id)
