"""privacy, export: what is stored of the caller, who is answered from it, and all of it as one file."""

from collections.abc import Sequence
from typing import Final

from bot.commands.access import access_context
from bot.commands.command import PREFIX, AnswerFile, Call, Command, CommandAnswer
from composer import visibility
from composer.people.export import export_file
from composer.people.privacy import privacy_report
from composer.repositories import audit
from composer.rights.table import Act
from composer.text.counts import counted_all

EXPORT_FILE: Final = "nexus-export.json"


async def _privacy(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        owned = visibility.owned_by(await access_context(tx, call))
        report = await privacy_report(tx, owned, call.now, call.presence)
    return CommandAnswer(
        f"{report}\nAll of it as a file: {PREFIX} export. To change who reads one item: {PREFIX} share. "
        f"To erase: {PREFIX} forget. To stop storing: {PREFIX} opt-out."
    )


async def _export(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        owned = visibility.owned_by(await access_context(tx, call))
        document = await export_file(
            tx, owned, call.workspace.tenant, call.now, call.incoming.sender_trust, call.presence
        )
        erasures = await tx.erasure.count()
    async with call.changing() as tx:
        await tx.audit.record(audit.AuditAct.EXPORTED, actor=call.user, users=owned.users, details=document.counts)
    counts = counted_all(document.counts)
    file = AnswerFile(EXPORT_FILE, document.text, call.user, erasures)
    return CommandAnswer(f"All that is yours: {counts}.", file=file)


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "privacy",
        (),
        "Show what is stored of you, and who is answered from it",
        _privacy,
        "privacy",
        act=Act.SEE_OWN,
        names_rooms=True,
    ),
    Command(
        "export",
        (),
        "Get all that is yours as one JSON file",
        _export,
        "export",
        act=Act.SEE_OWN,
        names_rooms=True,
    ),
)
