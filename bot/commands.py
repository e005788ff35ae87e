"""Every `/nexus …` command, defined once for every door: its words, its help, and what it does.

A door hands in the text and where it was said; what comes back is for the person who asked alone.
"""

import hashlib
import json
import re
import secrets
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from composer import forget as forgetting
from composer import remember as remembering
from composer import visibility
from composer.app import App
from composer.compose import Question
from composer.consent import Memory
from composer.errors import BadInput, NotFound, Refused
from composer.explain import Explained, explain
from composer.layers.structured import about
from composer.model import Agent, Conversation, ConversationKind, Incoming, Message, Role, derived_id
from composer.ports import Project, Transaction
from composer.prompt import remembered
from composer.receive import Workspace, enter
from composer.visibility import Circumstances, Reach

PREFIX: Final = "/nexus"
MOST_UNASKED: Final = 3  # entries that are erased without asking back
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_FLAG = re.compile(r"(?:^|\s)--([a-z]+)(?=\s|$)")


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What a command says. `sections` is the prompt that `why` explains, for doors that can draw a table."""

    text: str
    sections: tuple[Explained, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A command on its way: who called it, where, with what words and flags."""

    app: App
    workspace: Workspace
    incoming: Incoming
    user: uuid.UUID
    conversation: Conversation
    agents: tuple[Agent, ...]
    name: str
    words: str
    flags: frozenset[str]
    now: datetime

    @property
    def event(self) -> str:
        """A name for this very call: the same event delivered twice is the same call."""
        return f"{self.conversation.id}:{self.incoming.id}"


Run = Callable[[Call], Awaitable[CommandAnswer]]


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its name (one or two words), its arguments as help shows them, what it does, its flags."""

    name: str
    arguments: str
    help: str
    run: Run
    flags: tuple[str, ...] = ()


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
    async with app.store.transaction(workspace.tenant_id) as tx:
        user, conversation = await enter(tx, workspace, agents, incoming, now)
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


async def _circumstances(tx: Transaction, call: Call) -> Circumstances:
    now = await tx.log.circumstances(call.conversation.id, call.user)
    if now is None or not visibility.may_be_here(now):
        raise NotFound(visibility.unknown_conversation(call.conversation.kind, call.conversation.name))
    return replace(now, asker_admin=now.asker_admin or call.incoming.by_admin)


async def _is_room_admin(tx: Transaction, call: Call) -> bool:
    """Whether the caller may speak for this room: an admin of it, or of the platform it is on."""
    room = call.conversation.room_id or call.conversation.id
    return call.incoming.by_admin or await tx.log.is_room_admin(room, call.user)


async def _help(call: Call) -> CommandAnswer:
    rows = [(f"/nexus {c.name} {c.arguments}".rstrip(), c.help) for c in COMMANDS.values()]
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


async def _remember(call: Call) -> CommandAnswer:
    reach = _reach(call)
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        mark = visibility.mark_for(await _circumstances(tx, call), reach)
        author = call.incoming.user_name
        await remembering.remember(tx, mark, call.words, author, call.incoming.door, call.event, call.now)
    call.app.indexer.due(call.workspace.tenant_id)
    return CommandAnswer(f"Remembered, {_whereabouts(call, reach)}.")


async def _recall(call: Call) -> CommandAnswer:
    if not call.words:
        raise BadInput("What is to be recalled? For example: /nexus recall what did we decide about backups")
    items = await call.app.composer.recall(_question(call))
    lines = [remembered(item, number) for number, item in enumerate(items, 1)]
    return CommandAnswer("\n".join(lines) or "I recall nothing about that here.")


def _question(call: Call) -> Question:
    """The words of a command as a question that is not stored."""
    message = Message(
        derived_id("unstored", call.event),
        call.incoming.id,
        2**62,
        call.incoming.at,
        call.user,
        None,
        call.incoming.user_name,
        call.words,
        call.conversation.run_id,
        call.conversation.visibility,
    )
    agent = next((a for a in call.agents if a.id == call.conversation.agent_id), call.agents[0])
    return Question(call.workspace.tenant_id, call.conversation.id, call.user, agent, message)


async def _forget(call: Call) -> CommandAnswer:
    """`forget WORDS`, `forget message ID`, `forget here --yes`, `forget everything --yes`."""
    kind, _, rest = call.words.partition(" ")
    whole = call.words in ("here", "everything")
    if not call.words:
        raise BadInput("What is to be forgotten? /nexus forget WORDS, or message ID, here, everything.")
    if whole and "yes" not in call.flags:
        what = "all that you said here" if call.words == "here" else "all that you ever said or had me remember"
        return CommandAnswer(f"This erases {what}, for good. Repeat it with --yes: /nexus forget {call.words} --yes")
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        now = await _circumstances(tx, call)
        items: list[tuple[str, uuid.UUID]] = []
        if call.words == "here":
            messages = await tx.log.said_by(call.user, call.conversation.id)
        elif call.words == "everything":
            messages = await tx.log.said_by(call.user, None)
            items = await tx.erasing.owned(call.user)
        elif kind == "message" and rest:
            messages = await _own_message(tx, call, rest.strip())
        else:
            runs = visibility.own_writing(now)
            messages, items = await tx.erasing.matching(call.user, runs, call.words)
            if len(messages) + len(items) > MOST_UNASKED and "yes" not in call.flags:
                found = f"{len(messages)} messages and {len(items)} other entries of yours hold these words"
                return CommandAnswer(f"{found}. Erase them for good: /nexus forget {call.words} --yes")
        receipt = await forgetting.forget(tx, messages, items, call.now, call.conversation.id)
    await call.app.forgotten(call.workspace, receipt)
    return CommandAnswer(str(receipt))


async def _own_message(tx: Transaction, call: Call, external_id: str) -> list[uuid.UUID]:
    found = await tx.log.find_message(call.workspace.platform, call.workspace.name, external_id)
    own = [message for message, _, author in found if author == call.user]
    if not own:
        raise NotFound(f"You have no message '{external_id}' here.")
    return own


async def _fact_set(call: Call) -> CommandAnswer:
    key, _, value = call.words.partition(" ")
    if not value.strip():
        raise BadInput('A fact needs a key and a JSON value; for example: /nexus fact set deploy_day "Friday"')
    reach = _reach(call)
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        mark = visibility.mark_for(await _circumstances(tx, call), reach)
        fact = await remembering.set_fact(
            tx, mark, key, value.strip(), call.incoming.user_name, call.incoming.door, call.event, call.now
        )
    return CommandAnswer(f"{fact.key} = {fact.value}, {_whereabouts(call, reach)}.")


async def _fact_get(call: Call) -> CommandAnswer:
    if not call.words:
        raise BadInput("Which fact? For example: /nexus fact get deploy_day")
    return await _facts(call, call.words)


async def _fact_list(call: Call) -> CommandAnswer:
    return await _facts(call, None)


async def _facts(call: Call, key: str | None) -> CommandAnswer:
    async with call.app.store.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        readable = visibility.readable(await _circumstances(tx, call), [])
        facts = [f for f in await tx.structured.facts(readable, call.now, key) if readable.admits(f)]
    people = {call.user: call.incoming.user_name}
    lines = [f"{f.key} = {f.value}  ({about(f.run_id, people)}; {f.author}, {f.valid_from:%Y-%m-%d})" for f in facts]
    return CommandAnswer("\n".join(lines) or (f"There is no fact '{key}' here." if key else "There are no facts here."))


async def _fact_history(call: Call) -> CommandAnswer:
    if not call.words:
        raise BadInput("Which fact? For example: /nexus fact history deploy_day")
    async with call.app.store.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        readable = visibility.readable(await _circumstances(tx, call), [])
        facts = [f for f in await tx.structured.history(readable, call.words) if readable.admits(f)]
    lines = [
        f"{f.valid_from:%Y-%m-%d %H:%M} to {f'{f.valid_to:%Y-%m-%d %H:%M}' if f.valid_to else 'now'}: {f.value}"
        f"  ({f.author})"
        for f in facts
    ]
    return CommandAnswer("\n".join(lines) or f"There is no fact '{call.words}' here.")


async def _landmark_add(call: Call) -> CommandAnswer:
    reach = _reach(call)
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        mark = visibility.mark_for(await _circumstances(tx, call), reach)
        await remembering.add_landmark(tx, mark, call.words, call.incoming.user_name, call.event, call.now)
    return CommandAnswer(f"Pinned, {_whereabouts(call, reach)}: {' '.join(call.words.split())}")


async def _landmark_list(call: Call) -> CommandAnswer:
    async with call.app.store.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        readable = visibility.readable(await _circumstances(tx, call), [])
        found = [mark for mark in await tx.structured.landmarks(readable, call.now) if readable.admits(mark)]
    lines = [f"{mark.decided_at:%Y-%m-%d} {mark.author}: {' '.join(mark.text.split())}" for mark in found]
    return CommandAnswer("\n".join(lines) or "There are no landmarks here.")


async def _project_create(call: Call) -> CommandAnswer:
    slug = call.words.lower()
    if not _SLUG.fullmatch(slug):
        raise BadInput("A project's name is 1 to 32 characters of a-z, 0-9, - and _; for example: apollo")
    id = derived_id("project", str(call.workspace.tenant_id), slug)
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        if not await tx.projects.create(id, slug, "isolated" in call.flags, call.user, call.now):
            raise BadInput(f"The name {slug} is taken; choose another.")
        await tx.projects.put_member(id, call.user, Role.ADMIN)
    kind = "isolated project" if "isolated" in call.flags else "project"
    return CommandAnswer(f"Made the {kind} {slug}, with you as its admin. Assign a room: /nexus project assign {slug}")


async def _project_assign(call: Call) -> CommandAnswer:
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        project = await _project(tx, call, call.words)
        now = await _circumstances(tx, call)
        room = call.conversation.room_id or call.conversation.id
        private_room = call.conversation.kind is ConversationKind.ROOM and now.conversation.private
        own_room = private_room and await _is_room_admin(tx, call)
        seen = replace(now, project=visibility.ProjectFacts(project.id, project.slug, project.isolated, project.role))
        pooled = "pool" in call.flags
        if call.conversation.kind is ConversationKind.DM:
            if project.role is None:
                raise NotFound(_no_project(project.slug))
        elif not visibility.can_write_project(seen):
            raise Refused(f"You may read {project.slug} but not add to it; ask one of its admins for the role write.")
        if pooled and not own_room:
            raise Refused("Only an admin of a private room may pool it with a project.")
        await tx.log.lock([room])
        await tx.log.assign(room, project.id, pooled)
    return CommandAnswer(_assigned(call, project, private_room, pooled))


def _assigned(call: Call, project: Project, private_room: bool, pooled: bool) -> str:
    undo = "Undo: /nexus project unassign"
    if call.conversation.kind is ConversationKind.DM:
        return f"I now read {project.slug} in this conversation; nothing that is said here goes into it. {undo}"
    if call.conversation.kind is ConversationKind.SESSION:
        return (
            f"Everyone in {project.slug} can now recall what is said in this session, "
            f"and this session what is said there. {undo}"
        )
    opens = f"Everyone in #{call.conversation.name} can now recall what {project.slug} remembers"
    if private_room and not pooled:
        return f"{opens}; what is said in this private room stays here (--pool would share it). {undo}"
    return f"{opens}, and {project.slug} what is said here. {undo}"


async def _project_unassign(call: Call) -> CommandAnswer:
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        now = await _circumstances(tx, call)
        if now.project is None:
            raise BadInput("This conversation is in no project.")
        room = call.conversation.room_id or call.conversation.id
        own = call.conversation.user_id == call.user or await _is_room_admin(tx, call)
        if not own and not visibility.can_write_project(now):
            raise Refused(f"Only who may write to {now.project.slug}, or an admin of this room, may take it out.")
        await tx.log.lock([room])
        await tx.log.assign(room, None, False)
    return CommandAnswer(f"Out of {now.project.slug}: from the next message on I recall only what belongs here.")


async def _project_member(call: Call) -> CommandAnswer:
    """`project member add|remove PROJECT USER [ROLE]`, `project member list PROJECT`; without a verb: add."""
    words = call.words.split()
    verb = words.pop(0).lower() if words and words[0].lower() in ("add", "remove", "list", "set") else ""
    if not words or (verb != "list" and len(words) == 1 and verb):
        raise BadInput("Who, and where? For example: /nexus project member add apollo bob write")
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        project = await _project_named(tx, call, words)
        if verb == "list" or len(words) == 1:
            rows = await tx.projects.members(project.id)
            return CommandAnswer("\n".join(f"{name}  {role}" for name, role in rows))
        person = words[1].lstrip("@").casefold()
        now = replace(
            await _circumstances(tx, call),
            project=visibility.ProjectFacts(project.id, project.slug, project.isolated, project.role),
        )
        known = await tx.log.user(call.workspace.platform, call.workspace.name, person)
        if not visibility.can_manage_project(now) and not (verb == "remove" and known and known.id == call.user):
            raise Refused(f"Only an admin of {project.slug} may change who is in it.")
        if known is None:
            raise NotFound(f"There is no user '{words[1].lstrip('@')}' here.")
        if verb == "remove":
            if not await tx.projects.remove_member(project.id, known.id):
                raise NotFound(f"{known.name} is not in {project.slug}.")
            return CommandAnswer(f"{known.name} is no longer in {project.slug}.")
        role = _role(words[2] if len(words) > 2 else "write")
        await tx.projects.put_member(project.id, known.id, role)
    return CommandAnswer(f"{known.name} is in {project.slug} with the role {role}.")


async def _project_list(call: Call) -> CommandAnswer:
    async with call.app.store.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        now = await _circumstances(tx, call)
        lines = []
        for project in await tx.projects.all(call.user, now.asker_admin):
            rooms = [f"#{name}" for name, _, _ in await tx.projects.rooms(project.id, call.user)]
            kind = " (isolated)" if project.isolated else ""
            lines.append(
                f"{project.slug}{kind}  your role: {project.role or 'none'}; {project.members} members; "
                f"rooms: {', '.join(rooms) or 'none'}"
            )
    return CommandAnswer("\n".join(lines) or "You are in no project. Make one: /nexus project create NAME")


async def _memory(call: Call) -> CommandAnswer:
    if call.conversation.user_id is not None:
        raise BadInput("This is for rooms; for yourself there is /nexus opt-out.")
    room = call.conversation.room_id or call.conversation.id
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        now = await _circumstances(tx, call)
        if not call.words:
            return CommandAnswer(
                f"Memory in #{now.conversation.name}: {_MEMORY[(await tx.log.lock([room]))[room].memory]}."
            )
        try:
            wanted = Memory(call.words.lower().removesuffix(" only"))
        except ValueError:
            raise BadInput(f"There is no '{call.words}'; there is on, mentions and off.") from None
        if not (now.asker_admin or await _is_room_admin(tx, call)):
            raise Refused(f"Only an admin of #{now.conversation.name} may change what is kept of it.")
        await tx.doors.set_memory(room, wanted)
    return CommandAnswer(f"Memory in #{now.conversation.name} from now on: {_MEMORY[wanted]}.")


async def _opt_out(call: Call) -> CommandAnswer:
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        await tx.doors.opt(call.user, True)
    return CommandAnswer(
        "From now on nothing that you say is kept beyond the answer that you ask for. What was kept before stays until "
        "/nexus forget everything --yes. Back again: /nexus opt-in"
    )


async def _opt_in(call: Call) -> CommandAnswer:
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        await tx.doors.opt(call.user, False)
    return CommandAnswer("From now on I keep what you say, as each room wants it.")


async def _link(call: Call) -> CommandAnswer:
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        if not call.words:
            code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(8))
            await tx.doors.put_code(_hash(code), call.user, call.now + CODE_LASTS)
            minutes = int(CODE_LASTS.total_seconds() // 60)
            return CommandAnswer(
                f"Within {minutes} minutes, enter this where else you are, in private: /nexus link {code}\n"
                "Whoever enters it becomes one person with you: show it to nobody."
            )
        other = await tx.doors.take_code(_hash(call.words.strip().upper()), call.now)
        if other is None:
            raise NotFound("That code is wrong or too old; /nexus link in the other place shows a new one.")
        if other == call.user:
            raise BadInput("That is your own code: enter it on the other platform.")
        await tx.doors.link(call.user, other)
        name = (await tx.log.names([other])).get(other, "")
    return CommandAnswer(f"You and {name} are one person now: what is yours follows you. Undo: /nexus unlink")


async def _unlink(call: Call) -> CommandAnswer:
    async with call.app.store.transaction(call.workspace.tenant_id) as tx:
        if not await tx.doors.linked([call.user]):
            raise NotFound("You are linked with nobody.")
        await tx.doors.unlink(call.user)
    return CommandAnswer("You are a person of your own again here; each keeps what was said as them.")


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


async def _why(call: Call) -> CommandAnswer:
    async with call.app.store.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        now = await _circumstances(tx, call)
        own = visibility.own_run(now)
        found = await tx.turns.last_prompt(own, now.conversation, call.user, call.words or None)
    if found is None:
        raise NotFound("There is no answer of yours here to explain, or it has been forgotten since.")
    prompt, timings = json.loads(found[0]), json.loads(found[1])
    speakers = [
        uuid.UUID(source["user_id"])
        for section in prompt["sections"]
        for source in section["sources"]
        if source["user_id"] is not None and section["name"] in ("WORKING", "MESSAGE", "FACTS")
    ]
    sections = tuple(explain(prompt, visibility.readable(now, speakers)))
    total = f"{prompt['tokens']:,} of {prompt['window']:,} tokens"
    spent = ", ".join(f"{name} {value:.1f} ms" for name, value in timings.items())
    lines = [f"That answer's prompt had {total}; {spent}."]
    for section in sections:
        lines.append(f"{section.name}: {section.tokens} tokens, {len(section.parts)} sources")
        if section.name in ("RECALL", "FACTS", "LANDMARKS", "SUMMARIES"):
            lines.extend(f"  {part.text}" + (f"  score {part.score}" if part.score else "") for part in section.parts)
    return CommandAnswer("\n".join(lines), sections)


async def _project(tx: Transaction, call: Call, name: str) -> Project:
    """A project that the caller may know of: its members, and admins of the tenant."""
    slug = name.strip().lower()
    if not slug:
        raise BadInput("Which project? For example: apollo")
    project = await tx.projects.find(slug, call.user)
    now = await _circumstances(tx, call)
    if project is None or (project.role is None and not now.asker_admin):
        raise NotFound(_no_project(slug))
    return project


async def _project_named(tx: Transaction, call: Call, words: list[str]) -> Project:
    """The project that is named before a person, or after them: then the words are put in order."""
    try:
        return await _project(tx, call, words[0])
    except NotFound:
        if len(words) == 1:
            raise
        with suppress(NotFound):
            project = await _project(tx, call, words[1])
            words[0], words[1] = words[1], words[0]
            return project
        raise


def _no_project(slug: str) -> str:
    return f"There is no project '{slug}' here."


def _role(text: str) -> Role:
    try:
        return Role(text.lower().removeprefix("--"))
    except ValueError:
        raise BadInput(f"There is no role '{text}'; there is read, write and admin.") from None


def _reach(call: Call) -> str:
    chosen = sorted(call.flags.intersection((Reach.EVERYWHERE, Reach.PROJECT, Reach.GLOBAL)))
    if len(chosen) > 1:
        raise BadInput(f"Choose one of {' and '.join(f'--{flag}' for flag in chosen)}.")
    return chosen[0] if chosen else Reach.HERE


def _whereabouts(call: Call, reach: str) -> str:
    if reach != Reach.HERE:
        everywhere = "about you, for all to know"
        return {Reach.PROJECT: "for this project", Reach.GLOBAL: "for everyone"}.get(reach, everywhere)
    room = call.conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD)
    return f"in #{call.conversation.name}" if room else "between us"


_MEMORY: Final = {
    Memory.ON: "on, what is said is remembered",
    Memory.MENTIONS: "mentions only, what is said to me is remembered",
    Memory.OFF: "off, nothing is remembered beyond an answer",
}
CODE_LASTS: Final = timedelta(minutes=10)
_CODE_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that look alike
_REACH_FLAGS: Final = (Reach.EVERYWHERE, Reach.PROJECT, Reach.GLOBAL)
_DEFINED: Sequence[Command] = (
    Command("help", "", "this list", _help),
    Command(
        "remember", "TEXT [--everywhere|--project]", "keep a statement, exactly as written", _remember, _REACH_FLAGS
    ),
    Command("recall", "TEXT", "what I remember about something here, with sources", _recall),
    Command("forget", "WORDS | message ID | here | everything", "erase what is yours, for good", _forget, ("yes",)),
    Command("fact set", "KEY JSON [--everywhere|--project|--global]", "let a fact hold", _fact_set, _REACH_FLAGS),
    Command("fact get", "KEY", "what holds now", _fact_get),
    Command("fact list", "", "all facts that hold here", _fact_list),
    Command("fact history", "KEY", "what held when", _fact_history),
    Command("landmark add", "TEXT [--project]", "pin a decision in every prompt here", _landmark_add, _REACH_FLAGS),
    Command("landmark list", "", "the decisions that are pinned here", _landmark_list),
    Command("project create", "NAME [--isolated]", "make a project", _project_create, ("isolated",)),
    Command("project assign", "NAME [--pool]", "put this conversation into a project", _project_assign, ("pool",)),
    Command("project unassign", "", "take it out again", _project_unassign),
    Command("project member", "add|remove|list NAME USER [read|write|admin]", "who is in a project", _project_member),
    Command("project list", "", "your projects", _project_list),
    Command("why", "[MESSAGE ID]", "what your last answer was made from", _why),
    Command("agents", "", "whom you can ask", _agents),
    Command("memory", "[on|mentions|off]", "what is kept of this room", _memory),
    Command("opt-out", "", "keep nothing that I say", _opt_out),
    Command("opt-in", "", "keep what I say again", _opt_in),
    Command("link", "[CODE]", "be one person on two platforms", _link),
    Command("unlink", "", "part them again", _unlink),
)
COMMANDS: Final = {command.name: command for command in _DEFINED}
