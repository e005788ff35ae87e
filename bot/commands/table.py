"""Every `/nexus …` command, defined once for every door: its words, its help, and what it does.

A door hands in the text and where it was said; what comes back is for the person who asked alone.
"""

import re
from collections.abc import Sequence
from typing import Final

from bot.commands import compact, memories, people, projects, retrieval, structured
from bot.commands.command import Call, Command, CommandAnswer
from composer.app import App
from composer.errors import BadInput
from composer.ingest.resolution import resolve_sender
from composer.model import Incoming
from composer.workspace import Workspace

PREFIX: Final = "/nexus"
_FLAG = re.compile(r"(?:^|\s)--([a-z]+)(?=\s|$)")


async def run_command(app: App, workspace: Workspace, incoming: Incoming) -> CommandAnswer:
    """Run the command that `incoming.text` is.

    Raises a NexusError with one sentence: an unknown command (with the nearest ones), bad arguments, something
    that may not be done, or may not be seen, which looks like what is not there.
    """
    command, words = parse(incoming.text)
    flags = frozenset(_FLAG.findall(words)) if command.flags else frozenset()
    unknown = sorted(flags.difference(command.flags))
    if unknown:
        known = " ".join(f"--{flag}" for flag in command.flags)
        raise BadInput(f"/nexus {command.name} has no --{unknown[0]}; it has {known}.")
    if command.flags:
        words = _FLAG.sub(" ", words)
    agents, now = app.directory.agents(workspace.tenant_id), incoming.at
    async with app.database.transaction(workspace.tenant_id) as tx:
        user, conversation = await resolve_sender(tx, workspace, agents, incoming, now)
    call = Call(app, workspace, incoming, user, conversation, agents, command.name, words.strip(), flags, now)
    return await command.run(call)


def parse(text: str) -> tuple[Command, str]:
    """The command that a text calls, and the words after its name. `/nexus recall x` and `/recall x` are the same."""
    words = text.strip()
    if words.lower().startswith(PREFIX) and words[len(PREFIX) : len(PREFIX) + 1].strip() == "":
        words = words[len(PREFIX) :]
    words = words.strip().removeprefix("/")
    head = words.split(maxsplit=2)
    for size in (2, 1):
        name = " ".join(head[:size]).lower()
        if name in COMMANDS and len(head) >= size:
            rest = words
            for part in head[:size]:
                rest = rest[rest.index(part) + len(part) :]
            return COMMANDS[name], rest.strip()
    if not head:
        return COMMANDS["help"], ""
    group = [command.name for command in COMMANDS.values() if command.name.split()[0] == head[0].lower()]
    known = ", ".join(group or sorted({name.split()[0] for name in COMMANDS}))
    raise BadInput(f"There is no command /nexus {' '.join(head[: 2 if group else 1])}; there is {known}.")


async def _help(call: Call) -> CommandAnswer:
    rows = [(command.usage, command.help) for command in COMMANDS.values()]
    width = max(len(usage) for usage, _ in rows)
    slug = call.agents[0].slug
    lines = [f"{usage.ljust(width)}  {text}" for usage, text in rows]
    return CommandAnswer("\n".join((f"Ask by @{slug} in a room, or write to {slug} directly.", *lines)))


async def _agents(call: Call) -> CommandAnswer:
    lines = [
        f"@{agent.slug}  {agent.name}, {agent.model or 'offline (no model configured)'}, window {agent.window:,} tokens"
        for agent in call.agents
    ]
    return CommandAnswer("\n".join(lines))


_DEFINED: Sequence[Command] = (
    Command("help", (), "this list", _help),
    *memories.COMMANDS,
    *structured.COMMANDS,
    *projects.COMMANDS,
    *compact.COMMANDS,
    Command("agents", (), "whom you can ask", _agents),
    *people.COMMANDS,
    *retrieval.COMMANDS,
)
COMMANDS: Final = {command.name: command for command in _DEFINED}
