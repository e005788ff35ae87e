"""The work of `nexus import --list` and `nexus import --undo`."""

import uuid
from typing import Any

from composer.ingest.imports import FoundRun, UndoResult, short_id
from composer.text.counts import counted


def to_undo(id: uuid.UUID) -> str:
    """The sentence that ends the report of an import."""
    return f"This is import {short_id(id)}. To undo it: nexus import --undo {short_id(id)}"


def line(run: FoundRun) -> str:
    """An import as a line of text."""
    first = run.parts[0][1]
    state = f"undone {run.undone_at:%Y-%m-%d %H:%M} UTC" if run.undone_at else ""
    if not state and any(part.ended_at is None for _, part in run.parts):
        state = "interrupted"
    where = ", ".join(f"{part.platform} {part.workspace}" for _, part in run.parts)
    stored = "" if run.undone_at else f"{counted(run.messages, 'message')} in {counted(run.rooms, 'room')}"
    what = ", ".join(filter(None, (stored, state)))
    return f"{short_id(run.id)}  {first.begun_at:%Y-%m-%d %H:%M} UTC  {first.source} → {where}: {what}"


def as_json(run: FoundRun) -> dict[str, Any]:
    """An import as JSON."""
    first = run.parts[0][1]
    return {
        "run": short_id(run.id),
        "at": first.begun_at.isoformat(),
        "source": first.source,
        "workspaces": [f"{part.platform}:{part.workspace}" for _, part in run.parts],
        "rooms": run.rooms,
        "messages": run.messages,
        "complete": all(part.ended_at is not None for _, part in run.parts),
        "undone_at": run.undone_at and run.undone_at.isoformat(),
    }


def warning(run: FoundRun) -> str:
    """What undoing an import will do."""
    first = run.parts[0][1]
    return (
        f"Import {short_id(run.id)} ({first.source}, {first.begun_at:%Y-%m-%d %H:%M} UTC) brought "
        f"{counted(run.messages, 'message')} in {counted(run.rooms, 'room')} that are still stored. Undoing it erases "
        "them for good, with all that was made from them, and the rooms and people that nothing else uses."
    )


def undone_text(run: FoundRun, done: UndoResult | None) -> str:
    """What was erased, as a sentence."""
    if not run.brought:
        return f"Import {short_id(run.id)} brought nothing that is stored: there is nothing to undo."
    if done is None:
        return f"Import {short_id(run.id)} was undone on {run.undone_at:%Y-%m-%d %H:%M} UTC: nothing of it is left."
    people = "1 person" if done.people == 1 else f"{done.people:,} people"
    were = "was" if done.answers == 1 else "were"
    answers = f" {counted(done.answers, 'answer')} that used them {were} taken back." if done.answers else ""
    receipt = f" Receipt: {', '.join(done.receipts)}." if done.receipts else ""
    return (
        f"Import {short_id(run.id)} is undone: {counted(done.messages, 'message')}, "
        f"{counted(done.rooms, 'conversation')} and {people} are erased.{answers}{receipt}"
    )


def undone_json(run: FoundRun, done: UndoResult | None) -> dict[str, Any]:
    """What was erased, as JSON."""
    found = done or UndoResult()
    counts = {"messages": found.messages, "answers": found.answers, "rooms": found.rooms, "people": found.people}
    return {"run": short_id(run.id), **counts, "receipts": list(found.receipts)}
