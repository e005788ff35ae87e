"""settings, history: show and set how recall works in a workspace, and show replaced memories."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import PREFIX, Call, Command, CommandAnswer
from bot.commands.parameters import Parameter, ParameterKind
from composer import visibility
from composer.ingest.retention_settings import RETENTION, configured_retention
from composer.layers.retrieval_settings import (
    KEEP_DAYS,
    KEEP_DAYS_HELP,
    RETRIEVAL,
    find_setting,
)
from composer.layers.semantic import Retrieval
from composer.layers.tenant_settings import AS_CONFIGURED, Setting, change, chosen
from composer.rights.table import Act
from composer.text.terms import terms

MAX_SHOWN_HISTORY: Final = 20  # replaced memories in one answer

_KEY: Final[Parameter[Setting]] = Parameter(
    "key",
    ParameterKind.CHOICE,
    find_setting,
    "which setting; leave it out to see all",
    required=False,
    choices=tuple(RETRIEVAL.settings),
)
_VALUE: Final = parameters.word(
    "value",
    f"its new value; {AS_CONFIGURED} restores the value from nexus.toml",
    str,
    required=False,
    kind=ParameterKind.SETTING_VALUE,
    label=f"VALUE|{AS_CONFIGURED}",
)
_WORDS: Final = parameters.text("words", "words to search for in replaced memories")


async def _settings(call: Call) -> CommandAnswer:
    """`settings`, `settings KEY`, `settings KEY VALUE`, `settings KEY default`."""
    key, value = call.arguments.get(_KEY), call.arguments.get(_VALUE)
    configured = call.app.directory.retrieval(call.workspace.tenant_id)
    async with call.changing() as tx:
        if key is not None and value is not None:
            await change(
                tx, RETRIEVAL, {key.name: None if value.lower() == AS_CONFIGURED else value}, configured, call.now
            )
        found = await chosen(tx, RETRIEVAL, configured)
        as_configured = configured_retention(call.app.settings, call.workspace.tenant)
        kept = await chosen(tx, RETENTION, as_configured)
    lines = [_line(name, found, configured) for name in ([key.name] if key else RETRIEVAL.settings)]
    if value is not None:
        lines.append("It applies from the next question on.")
    elif key is None:
        where = "in nexus.toml" if kept.keep_days == as_configured.keep_days else "on the web page Admin"
        lines.append(f"{KEEP_DAYS} = {kept.keep_days or 'for ever'}  ({where})  {KEEP_DAYS_HELP}")
        lines.append(
            f"To change one: {PREFIX} settings top_k 20. To undo that: {PREFIX} settings top_k {AS_CONFIGURED}"
        )
    return CommandAnswer("\n".join(lines))


def _line(key: str, found: Retrieval, configured: Retrieval) -> str:
    value, default = asdict(found)[key], asdict(configured)[key]
    origin = "as configured" if value == default else f"configured: {default}"
    return f"{key} = {value}  ({origin})  {RETRIEVAL.settings[key].help}"


async def _history(call: Call) -> CommandAnswer:
    wanted = terms(call.arguments[_WORDS])
    if not wanted:
        raise call.command.usage_error("There is no word to search for.")
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        readable = visibility.readable(await access_context(tx, call), [])
        found = await tx.memories.find_superseded(readable, sorted(set(wanted)), MAX_SHOWN_HISTORY, call.now)
    lines = [
        f"{old.at:%Y-%m-%d} to {old.until:%Y-%m-%d}, {old.author}: {' '.join(old.text.split())}"
        + (f"  (then: {' '.join(old.newer.text.split())})" if old.newer and readable.admits(old.newer) else "")
        for old in found
        if readable.admits(old)
    ]
    return CommandAnswer(
        "\n".join(lines) or "No memory about that has been replaced here. To see the present ones: /nexus recall WORDS"
    )


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "history",
        (_WORDS,),
        "Show memories that were replaced by newer ones",
        _history,
        "history deploy day",
        act=Act.READ,
        names_rooms=True,
    ),
    Command(
        "settings",
        (_KEY, _VALUE),
        "Show or set how much is recalled, and how",
        _settings,
        "settings top_k 20",
        act=Act.CHANGE_SETTINGS,
    ),
)
