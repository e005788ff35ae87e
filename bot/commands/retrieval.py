"""settings, history: how recall is done for this workspace, and what was remembered before."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from bot.commands.command import Call, Command, CommandAnswer, Names, Parameter, access_context
from composer import visibility
from composer.errors import BadInput, Refused
from composer.layers.retrieval_settings import (
    KEEP_DAYS,
    KEEP_DAYS_HELP,
    KEYS,
    STORED_PREFIX,
    find_key,
    parse_value,
    with_overrides,
)
from composer.layers.semantic import Retrieval
from composer.text.terms import terms

RESET: Final = "default"
MOST_SHOWN: Final = 20


async def _settings(call: Call) -> CommandAnswer:
    """`settings`, `settings KEY`, `settings KEY VALUE`, `settings KEY default`."""
    words = call.words.split()
    configured = call.app.directory.retrieval(call.workspace.tenant_id)
    async with call.changing() as tx:
        access = await access_context(tx, call)
        if not access.asker_admin:
            raise Refused("Only an admin of this workspace may see and change its settings.")
        if len(words) > 2:
            raise BadInput("One key and one value; for example: /nexus settings top_k 20")
        if len(words) == 2:
            key = find_key(words[0])
            if words[1].lower() == RESET:
                await tx.settings.reset(STORED_PREFIX + key.name)
            else:
                await tx.settings.set(STORED_PREFIX + key.name, parse_value(key.name, words[1]), call.now)
        chosen = with_overrides(configured, await tx.settings.all())
    keys = [find_key(words[0]).name] if words else list(KEYS)
    lines = [_line(key, chosen, configured) for key in keys]
    if len(words) == 2:
        lines.append("It holds from the next question on.")
    elif not words:
        days = call.app.settings.keep_days_of(call.workspace.tenant)
        kept = "for ever" if days is None else days
        lines.append(f"{KEEP_DAYS} = {kept}  (in nexus.toml)  {KEEP_DAYS_HELP}")
        lines.append(f"Change one: /nexus settings top_k 20. Back to what is configured: /nexus settings top_k {RESET}")
    return CommandAnswer("\n".join(lines))


def _line(key: str, chosen: Retrieval, configured: Retrieval) -> str:
    value, given = asdict(chosen)[key], asdict(configured)[key]
    origin = "as configured" if value == given else f"configured: {given}"
    return f"{key} = {value}  ({origin})  {KEYS[key].help}"


async def _history(call: Call) -> CommandAnswer:
    wanted = terms(call.words)
    if not wanted:
        raise BadInput("The history of what? For example: /nexus history deploy day")
    async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        readable = visibility.readable(await access_context(tx, call), [])
        found = await tx.memories.find_superseded(readable, sorted(set(wanted)), MOST_SHOWN, call.now)
    lines = [
        f"{old.at:%Y-%m-%d} to {old.until:%Y-%m-%d}, {old.author}: {' '.join(old.text.split())}"
        + (f"  (then: {' '.join(old.newer.text.split())})" if old.newer and readable.admits(old.newer) else "")
        for old in found
        if readable.admits(old)
    ]
    return CommandAnswer("\n".join(lines) or "Nothing that I remember here about that was ever replaced.")


COMMANDS: Final[Sequence[Command]] = (
    Command("history", (Parameter("words"),), "what I remembered about something before it was replaced", _history),
    Command(
        "settings",
        (
            Parameter("key", required=False, choices=tuple(KEYS)),
            Parameter("value", f"VALUE|{RESET}", required=False, names=Names.SETTING),
        ),
        "how much is recalled, and how (admins)",
        _settings,
    ),
)
