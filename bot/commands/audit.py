"""audit: what the audit log holds of this workspace, for its admins. It shows ids and counts, and nobody's words."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from bot.commands.command import Call, Command, CommandAnswer
from composer.repositories import audit
from composer.repositories.audit import AuditEvent
from composer.rights.table import Act
from composer.text.counts import counted

SHOWN_DAYS: Final = 30
SHOWN_ROWS: Final = 20


async def _audit(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        counts = await tx.audit.counts(call.now - timedelta(days=SHOWN_DAYS))
        events = await tx.audit.find(limit=SHOWN_ROWS)
        await tx.audit.record(audit.AuditAct.READ_AUDIT)
    lines = [f"Audit log of the last {SHOWN_DAYS} days, by act:"]
    lines += [f"  {act}: {counted(rows, 'row')} by {counted(actors, 'person')}" for act, rows, actors in counts]
    lines += ["The latest rows:", *(f"  {line(event)}" for event in events)]
    return CommandAnswer("\n".join(lines) if events else "Nothing has been recorded yet.")


def line(event: AuditEvent) -> str:
    """A row as a line of text."""
    parts = [f"{event.at:%Y-%m-%d %H:%M:%S} UTC", str(event.act)]
    parts += [f"by {event.actor}"] if event.actor else []
    parts += [f"about {', '.join(map(str, event.users))}"] if event.users else []
    parts += [f"in {event.conversation}"] if event.conversation else []
    parts += [f"project {event.project}"] if event.project else []
    return "  ".join([*parts, *(f"{name}={value}" for name, value in sorted(event.details.items()))])


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "audit",
        (),
        "Show who changed rights and settings, and whose memories were read, by ids",
        _audit,
        "audit",
        act=Act.SEE_AUDIT,
    ),
)
