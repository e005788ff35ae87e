"""The table of all `/nexus …` commands, for every adapter, and what runs them.

An adapter passes a command's text with its sender and place; the answer is for that sender alone.
"""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bot.commands import (
    asking,
    audit,
    catching_up,
    compact,
    digests,
    explaining,
    forget,
    invitations,
    keys,
    memories,
    own_data,
    people,
    projects,
    reminders,
    retrieval,
    review,
    rooms,
    sharing,
    structured,
    usage,
)
from bot.commands.access import access_context
from bot.commands.command import (
    ALL_PLACES,
    CONFIRM,
    PREFIX,
    Call,
    Command,
    CommandAnswer,
    Permalink,
    PlaceKind,
    no_permalink,
)
from bot.commands.parameters import Parameter, ParameterKind
from composer.app import App
from composer.errors import AdminNeeded, BadInput, NexusError
from composer.ingest.resolution import resolve_sender
from composer.ingest.validation import validate_command
from composer.model import ConversationKind, Incoming, Workspace
from composer.repositories.database import Transaction
from composer.rights import table as rights
from composer.rights.relations import ActorFacts
from composer.rights.table import Act
from composer.tasks.shares import acting_for

__all__ = ["COMMANDS", "PREFIX", "in_columns", "names_user", "parse", "run_command"]

MAX_TYPO_CHARS: Final = 40  # of an unknown name, with the names that there are


async def run_command(
    app: App,
    workspace: Workspace,
    incoming: Incoming,
    *,
    permalink: Permalink = no_permalink,
    preview: bool = False,
    recorded: bool = True,
    late: bool = False,
) -> CommandAnswer:
    """Run the command in `incoming.text`. `permalink` gives links to messages of the adapter's platform. With
    `preview` it changes nothing: it shows what it would do, or is refused. `recorded`: it runs once, since it was
    recorded before (bot/commands/idempotency.py). `late`: an earlier process was interrupted while it
    ran, and this one finishes it.

    Raises a NexusError with a sentence for the sender: an unknown command (with those there are), wrong arguments
    (with the usage), a wrong place, or something that the sender may not do. What the sender may not see looks like
    what does not exist. A command that opens something says what, and does nothing until it is given with --yes.
    """
    agents, now = app.directory.agents(workspace.tenant_id), incoming.at
    incoming = validate_command(incoming, agents)
    command, text = parse(incoming.text)
    arguments = command.arguments(text)
    async with app.database.transaction(workspace.tenant_id) as tx:
        user, conversation, incoming = await resolve_sender(tx, workspace, agents, incoming, now)
        if incoming.place.kind is ConversationKind.ROOM and incoming.place.title:  # stored with its first message only
            conversation = replace(conversation, name=incoming.place.title)
        call = Call(
            app,
            workspace,
            incoming,
            user,
            conversation,
            agents,
            command,
            arguments,
            now,
            permalink,
            preview=preview,
            recorded=recorded,
            late=late,
        )
        facts = await _judged(tx, call)
    if isinstance(facts, NexusError):
        raise facts
    with acting_for(workspace.tenant_id, user):
        return await _run(replace(call, own_zone=facts.access.zone), facts)


async def _run(call: Call, facts: ActorFacts) -> CommandAnswer:
    """Do what a call asks for, or say what it would open."""
    opened = rights.opening(call.acts, facts)
    if opened and CONFIRM.name not in call.flags:
        if facts.named is not None:
            call = call.naming(facts.named.slug, facts.named.id)
        answer = call.unconfirmed(opened, opened)
    else:
        if call.command.names_rooms:
            call = replace(call, presence=await call.app.memberships.of(call.workspace.tenant_id, call.user))
        answer = await call.command.run(call)
    return replace(answer, touches=(*facts.projects, *answer.touches)) if answer.confirm else answer


async def _judged(tx: Transaction, call: Call) -> ActorFacts | NexusError:
    """The facts that a call is judged by, or why it may not be given. That is returned and not raised: the transaction
    goes on, since its sender is stored in any case."""
    command = call.command
    try:
        if PlaceKind.of(call.conversation) not in command.places:
            raise BadInput(f"{PREFIX} {command.name} works only in {_places(command)}. {command.elsewhere}".rstrip())
        return await call.judge(tx)
    except NexusError as error:
        return error


def parse(text: str) -> tuple[Command, str]:
    """The command that a text calls, and the text after its name. `/nexus recall x` and `/recall x` are the same. The
    first word of several commands, alone, asks for help with these.

    Several words that begin with no command are a question. Raises BadInput for an unknown command.
    """
    line = text.strip()
    if line.lower().startswith(PREFIX) and line[len(PREFIX) : len(PREFIX) + 1].strip() == "":
        line = line[len(PREFIX) :]
    line = line.strip().removeprefix("/")
    head = line.split(maxsplit=2)
    for size in (2, 1):
        name = " ".join(head[:size]).lower()
        if name in COMMANDS and len(head) >= size:
            rest = line
            for word in head[:size]:
                rest = rest[rest.index(word) + len(word) :]
            return COMMANDS[name], rest.strip()
    if not head:
        return COMMANDS["help"], ""
    group = _group(head[0])
    if group and len(head) == 1:
        return COMMANDS["help"], head[0]
    known = group or sorted({name.split()[0] for name in COMMANDS})
    given = " ".join(head[: 2 if group else 1])
    near = difflib.get_close_matches(given[:MAX_TYPO_CHARS].lower(), known, n=1, cutoff=0.75)
    if not near and not group and len(head) > 1:  # no command is meant, but something is asked
        return COMMANDS[asking.ASK], line
    if near:
        raise BadInput(f"There is no command {PREFIX} {given}; did you mean {PREFIX} {near[0]}?")
    listed = f"Commands: {', '.join(known)}." if group else f"{PREFIX} help shows what there is."
    raise BadInput(f"There is no command {PREFIX} {given}. {listed}")


def names_user(text: str) -> bool:
    """Whether a text calls a command that takes a user, so that its mentions must stay ids."""
    try:
        command, _ = parse(text)
    except BadInput:
        return False
    return any(parameter.kind is ParameterKind.USER for parameter in command.parameters)


def _group(word: str) -> list[str]:
    """The names of the commands that begin with a word."""
    return [name for name in COMMANDS if name.split()[0] == word.lower()]


def _places(command: Command) -> str:
    return " and ".join(f"a {place}" for place in PlaceKind if place in command.places)


_COMMAND: Final[Parameter[str]] = Parameter(
    "command", ParameterKind.COMMAND, str, "the command to explain, or more: all that there are", required=False
)
_MORE: Final = "more"
_FURTHER: Final = (f"All commands: {PREFIX} help {_MORE}", f"One command: {PREFIX} help COMMAND, such as help forget")


async def _help(call: Call) -> CommandAnswer:
    wanted = call.arguments.get(_COMMAND)
    if wanted is None:
        return CommandAnswer("\n".join((*in_columns(_common(call)), *_FURTHER)))
    if wanted.strip().lower() != _MORE:
        return CommandAnswer("\n\n".join(map(_explained, _meant(wanted))))
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        facts = await call.facts(tx)
    parts = []
    for subject, commands in _SUBJECTS:
        rows = [(command.usage, command.help) for command in commands if _may_call(command, call, facts)]
        parts += [f"{subject}:", *in_columns(rows)] if rows else []
    return CommandAnswer("\n".join((*parts, _FURTHER[-1])))


def _common(call: Call) -> list[tuple[str, str]]:
    """What people do most here: what to write, and what it does."""
    slug, place = call.agents[0].slug, PlaceKind.of(call.conversation)
    here = {
        PlaceKind.ROOM: (f"{PREFIX} catch-up", "Sum up what you missed in this room, for you alone"),
        PlaceKind.DM: (f"{PREFIX} rooms on", "Let me use the rooms that you are in, here in our DM"),
        PlaceKind.SESSION: (f"{PREFIX} project list", "List your projects"),
    }[place]
    ask = f"@{slug} when do we launch?" if place is PlaceKind.ROOM else "when do we launch?"
    return [
        (ask, "Ask anything"),
        (f"{PREFIX} recall launch", "Search what I remember"),
        (f"{PREFIX} remember we ship on Fridays", "Have me remember something"),
        (f"{PREFIX} forget walnut", "Erase something of yours, for good; it shows first what"),
        (f"{PREFIX} remind me in 2 hours call Tom", "Get reminded of something"),
        here,
        (f"{PREFIX} why", "See what my last answer to you was made from"),
        (f"{PREFIX} privacy", "See what is stored of you, and who is answered from it"),
    ]


def _may_call(command: Command, call: Call, facts: ActorFacts) -> bool:
    """Whether the caller may give a command here, in any of its forms, as far as that does not depend on what it
    names."""
    place = PlaceKind.of(call.conversation)
    if place not in command.places:
        return False
    names_something = bool(command.parameters) and command.parameters[0].required
    try:
        rights.judge((command.act_in(place),), facts)
    except AdminNeeded:
        return bool(command.cases)
    except NexusError:
        return names_something or bool(command.cases)
    return True


def in_columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of usage and help, one under the other."""
    width = max(len(usage) for usage, _ in rows)
    return [f"{usage.ljust(width)}  {text}" for usage, text in rows]


def _meant(wanted: str) -> list[Command]:
    return [COMMANDS[name] for name in _group(wanted.removeprefix("/"))] or [parse(wanted)[0]]


def _explained(command: Command) -> str:
    """All that is declared of a command, for people."""
    lines = [f"{command.usage}", f"{command.help}."]
    lines += [f"  {parameter.usage}: {parameter.help}" for parameter in command.parameters]
    for flag in command.options:
        lines.append(f"  {flag.usage}: {flag.help}{f' ({rights.who(flag.act)})' if flag.act else ''}")
    where = "anywhere" if command.places == ALL_PLACES else f"in {_places(command)}"
    lines += [f"Where: {where}. Who: {_who(command)}.", f"Example: {PREFIX} {command.example}"]
    return "\n".join(lines)


def _who(command: Command) -> str:
    """Who may give the command: in each kind of place, where that makes a difference."""
    places = [place for place in PlaceKind if place in command.places]
    acts = {place: command.act_in(place) for place in places}
    if len(set(acts.values())) == 1:
        found = rights.who(acts[places[0]])
    else:
        alike: dict[str, list[str]] = {}
        for place, act in acts.items():
            alike.setdefault(rights.who(act), []).append(f"a {place}")
        found = "; ".join(f"in {' or '.join(places)}: {words}" for words, places in alike.items())
    return "; ".join((found, *(f"{case.words}: {rights.who(case.act)}" for case in command.cases)))


async def _agents(call: Call) -> CommandAnswer:
    servers = await _tool_servers(call)
    lines = [
        f"@{agent.slug}  {agent.name}, {agent.model or 'offline (no model configured)'}, window {agent.window:,} tokens"
        f"{servers.get(agent.slug, '')}"
        for agent in call.agents
    ]
    return CommandAnswer("\n".join(lines))


async def _tool_servers(call: Call) -> dict[str, str]:
    """What to know of the agents, by slug, that may send what they read here to tool servers."""
    if not call.app.settings.mcp:
        return {}
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        access = await access_context(tx, call)
    used = {agent.slug: call.app.tool_servers.used_in(agent, access) for agent in call.agents if agent.tools}
    return {slug: f", may ask the tool servers {', '.join(names)} here" for slug, names in used.items() if names}


_HELP: Final[Sequence[Command]] = (
    Command("help", (_COMMAND,), "Show what I can do, or explain one command", _help, "help fact set", act=Act.READ),
    Command("agents", (), "List the agents that you can ask", _agents, "agents", act=Act.READ),
)
# The commands by subject, in the order in which they are listed.
_SUBJECTS: Final[Sequence[tuple[str, Sequence[Command]]]] = (
    ("Ask and search", (*asking.COMMANDS, *memories.COMMANDS, *explaining.COMMANDS, *catching_up.COMMANDS, *_HELP)),
    ("Forget", forget.COMMANDS),
    ("Facts and decisions", structured.COMMANDS),
    ("Reminders and digests", (*reminders.COMMANDS, *digests.COMMANDS)),
    ("Projects", (*projects.COMMANDS, *invitations.COMMANDS)),
    ("You and your data", (*people.COMMANDS, *rooms.COMMANDS, *own_data.COMMANDS, *sharing.COMMANDS)),
    ("AI tools", keys.COMMANDS),
    ("Look after memory", (*review.COMMANDS, *retrieval.COMMANDS, *compact.COMMANDS, *audit.COMMANDS, *usage.COMMANDS)),
)
COMMANDS: Final = {command.name: command for _, commands in _SUBJECTS for command in commands}
