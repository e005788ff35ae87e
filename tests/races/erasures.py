"""Every way in which words are erased."""

import uuid
from datetime import timedelta
from typing import Final

from bot.console import schedule
from composer.ingest.changes import change_message
from composer.ingest.imports import find_import, undo_import
from composer.ingest.rooms import erase_room
from composer.memory.forget import RECEIPT_KEY_BYTES
from composer.repositories.imports import ImportRun
from tests.races.stage import ELSEWHERE, KEEP_DAYS, ROOM, SECRET, ErasureAct, Stage

# What an erasure takes away.
MESSAGE: Final = "the message 'said'"
EDITED: Final = "what that message no longer says"
WORDS: Final = "what alice said or stored that has the secret in it"
PERSON: Final = "all of alice's"
HERE: Final = "all of alice's in general"
ROOM_ALL: Final = "all of general"
ROOM_ITSELF: Final = "general, where nothing can be changed any more"
PROJECT: Final = "all of the project apollo"
IMPORTED: Final = "what an import brought"
OLD: Final = "messages that are old"
GUEST: Final = "what the guest mallory has contributed"
ENTRY: Final = "one entry"
ENTRY_WORDS: Final = "the words of one entry in use"
ENTRIES: Final = "alice's entries"
SESSION: Final = "a session"

FORGET: Final = "composer/people/erasing.py:erase"
# Functions that erase and need no race, and why.
APART: Final = {
    "composer/entries/probe.py:_probe": "an entry that nexus doctor has just written, with words of nobody's",
    "composer/ingest/changes.py:_erase_answer": "tests/deep/e2e/test_platform_deletions.py",
    "composer/memory/indexer.py:Indexer._erase_ephemeral": "tests/integration/test_privacy_statements.py",
    "composer/memory/names.py:blank_names": "part of composer/people/erasing.py:erase",
    "composer/memory/portions.py:erase_ahead": "the same for more than fits into one transaction",
    "jobs/work.py:_forget_memories": "tests/integration/test_erased_entries.py",
}


async def _change(stage: Stage, text: str | None) -> None:
    harness, at = stage.harness, stage.harness.workspace()
    agents, now = harness.app.directory.agents(at.tenant_id), harness.clock.tick()
    place = stage.place_of_said
    receipt = await change_message(
        harness.app.database, at, agents, place, "alice", "said", text, (), now, edited_at=now
    )
    if receipt is not None:
        await harness.app.forgotten(at.tenant_id, receipt)


async def _delete(stage: Stage) -> None:
    await _change(stage, None)


async def _edit(stage: Stage) -> None:
    await _change(stage, "That is for later.")


async def _forget_words(stage: Stage) -> None:
    await stage.command(f"forget {SECRET} --yes", dm="nexus")


async def _forget_everything(stage: Stage) -> None:
    await stage.command("forget everything --yes", dm="nexus")


async def _forget_here(stage: Stage) -> None:
    await stage.command("forget here --yes", **ROOM)


async def _erase_user(stage: Stage) -> None:
    await stage.command("erase user alice --yes", **ELSEWHERE)


async def _erase_room(stage: Stage) -> None:
    await stage.command("erase room --yes", **ROOM)


async def _erase_project(stage: Stage) -> None:
    await stage.command("erase project apollo --yes", **ELSEWHERE)


async def _delete_room(stage: Stage) -> None:
    harness, at = stage.harness, stage.harness.workspace()
    receipt = await erase_room(harness.app.database, at, "general", None, harness.clock.tick())
    if receipt is not None:
        await harness.app.forgotten(at.tenant_id, receipt)


async def _import(stage: Stage) -> None:
    stage.run = ImportRun(uuid.uuid4(), "export.zip")
    await stage.receive("alice", "good morning from long ago", id="imported", **ROOM)


async def _undo_import(stage: Stage) -> None:
    assert stage.run is not None
    harness = stage.harness
    found = await find_import(harness.app.database, stage.run.id.hex)
    undone = undo_import(harness.app.database, found, lambda: b"k" * RECEIPT_KEY_BYTES, harness.clock.now())
    async for tenant, receipt, _ in undone:
        await harness.app.forgotten(tenant, receipt)


async def _retain(stage: Stage) -> None:
    later = stage.harness.clock.now() + timedelta(days=KEEP_DAYS + 1)
    stage.harness.clock.set(later)
    assert (await schedule.run(stage.harness.app, "retention", later)).done


async def _take_back(stage: Stage) -> None:
    await stage.command("memory undo mallory --yes", **ROOM)


async def _forget_entry(stage: Stage) -> None:
    await stage.request("POST", f"/v1/entries/{stage.kept['entry']}/forget")


async def _change_entry(stage: Stage) -> None:
    await stage.request("PATCH", f"/v1/entries/{stage.kept['entry']}", content="it is gone")


async def _forget_entries(stage: Stage) -> None:
    for _ in range(3):  # it says how many there are, and a write may come between
        [[count]] = await stage.rows("SELECT count(*) FROM memories WHERE namespace LIKE 'entries:%'")
        if (await stage.request("POST", "/v1/entries/forget", confirm=count)).status_code == 200:
            return
    raise AssertionError("all entries could not be forgotten")


async def _forget_session(stage: Stage) -> None:
    await stage.request("DELETE", "/v1/chat/session/s1")


ERASURES: Final = (
    ErasureAct(
        "its message is deleted", _delete, MESSAGE, frozenset({"composer/ingest/changes.py:change_stored"}), by_id=True
    ),
    ErasureAct("its message is edited", _edit, EDITED, frozenset({"composer/ingest/changes.py:change_stored"})),
    ErasureAct("/nexus forget WORD", _forget_words, WORDS, frozenset({FORGET})),
    ErasureAct("/nexus forget everything", _forget_everything, PERSON, frozenset({FORGET})),
    ErasureAct("/nexus forget here", _forget_here, HERE, frozenset({FORGET})),
    ErasureAct("/nexus erase user", _erase_user, PERSON, frozenset({FORGET})),
    ErasureAct("/nexus erase room", _erase_room, ROOM_ALL, frozenset({FORGET})),
    ErasureAct("/nexus erase project", _erase_project, PROJECT, frozenset({FORGET})),
    ErasureAct("its room is deleted", _delete_room, ROOM_ITSELF, frozenset({"composer/ingest/rooms.py:erase_room"})),
    ErasureAct(
        "its import is undone", _undo_import, IMPORTED, frozenset({"composer/ingest/imports.py:undo_import"}), _import
    ),
    ErasureAct("it is older than messages are kept", _retain, OLD, frozenset({"jobs/work.py:retain.messages"})),
    ErasureAct("/nexus memory undo", _take_back, GUEST, frozenset({"composer/memory/review.py:undo"})),
    ErasureAct("its entry is forgotten", _forget_entry, ENTRY, frozenset({FORGET}), by_id=True),
    ErasureAct(
        "its entry is changed", _change_entry, ENTRY_WORDS, frozenset({"composer/memory/entry_index.py:replace_values"})
    ),
    ErasureAct("all entries are forgotten", _forget_entries, ENTRIES, frozenset({FORGET})),
    ErasureAct("its session is forgotten", _forget_session, SESSION, frozenset({FORGET})),
)
