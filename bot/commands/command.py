"""The declaration of a command, and one call of it."""

import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any, Final

from bot.commands.parameters import Arguments, Parameter, ParameterKind
from composer.app import App
from composer.errors import BadInput, NotFound, Refused
from composer.model import Agent, Conversation, ConversationKind, Incoming, Workspace, derived_id, message_id
from composer.ports.database import Mode
from composer.ports.memberships import NOWHERE, Presence
from composer.prompt.explain import ExplainedSection
from composer.repositories.database import Transaction
from composer.repositories.explanations import MessageAddress
from composer.repositories.requests import COMMAND_CALLER, COMMAND_RETENTION, NamedRequest, RequestState
from composer.rights import table as rights
from composer.rights.project_names import full_name
from composer.rights.relations import ActorFacts
from composer.rights.table import Act
from composer.text.cleaning import shorten
from composer.visibility import unknown_conversation_sentence

PREFIX: Final = "/nexus"
GIVEN_AND_DELETED: Final = "The message that gave this command was deleted before it was done, so nothing was done."
DONE_BEFORE: Final = "This command was done before, so nothing was done again."
TAKEN: Final = "I lost the database while I did this command, so nothing was done. Give the command again."
OUTDATED: Final = "What it is made from has changed meanwhile: ask for it again."
MAX_CLOCK_DIFFERENCE: Final = timedelta(seconds=5)  # between the clocks of platforms and ours
MAX_SHOWN_CHARS: Final = 60  # of words that are refused
_FLAG: Final = re.compile(r"(?:^|\s)--([a-z]+)(?=[\s=]|$)")
# The value of a flag that takes one: --on 2026-05-01 or --on=2026-05-01.
_VALUE: Final = re.compile(r"(?:=|(?<!\s)\s++)(?!--)(\S+)")


class PlaceKind(StrEnum):
    """Where a command may be given. A thread counts as its room."""

    ROOM = "room"
    DM = "DM"
    SESSION = "session"

    @classmethod
    def of(cls, conversation: Conversation) -> "PlaceKind":
        """The kind of place that a conversation is."""
        kinds = {ConversationKind.DM: cls.DM, ConversationKind.SESSION: cls.SESSION}
        return kinds.get(conversation.kind, cls.ROOM)


ALL_PLACES: Final = frozenset(PlaceKind)
ROOM_PLACES: Final = frozenset({PlaceKind.ROOM})
DM_PLACES: Final = frozenset({PlaceKind.DM})


@dataclass(frozen=True, slots=True)
class Flag:
    """A `--name` of a command. `act`: what it does beyond the command, which needs rights of its own
    (composer/rights/table.py). A flag that is not `listed` works, but is left out of the usage line. Of the flags of
    one `choice`, one may be set. A flag with a `value` is followed by one word, which the parameter reads; its name is
    the parameter's."""

    name: str
    help: str
    act: Act | None = None
    listed: bool = True
    choice: str = ""
    value: Parameter[Any] | None = None

    @property
    def usage(self) -> str:
        """The flag as a usage line shows it."""
        return f"--{self.name}" if self.value is None else f"--{self.name} {self.value.usage}"


def valued(parameter: Parameter[Any]) -> Flag:
    """A flag that is followed by a value of `parameter`."""
    return Flag(parameter.name, parameter.help, value=parameter)


CONFIRM: Final = Flag("yes", "do it without showing first what it does", listed=False)


@dataclass(frozen=True, slots=True)
class Case:
    """Calls of a command that do something else than its `act`: `when` says which, `words` says so in help texts."""

    act: Act
    when: Callable[[Arguments], bool]
    words: str


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file that belongs to an answer, for its caller `user` alone. Its name says its type. `erasures`: how many
    erasures there were when its text was read; with more, it may hold what is forgotten."""

    name: str
    text: str
    user: uuid.UUID
    erasures: int


async def require_current(tx: Transaction, file: AnswerFile) -> None:
    """Return if nothing was erased since the text of a file was read; then no erasure ends before the transaction does.
    Raises Refused."""
    if await tx.erasure.count() != file.erasures:
        raise Refused(OUTDATED)


@dataclass(frozen=True, slots=True)
class Choice:
    """Another command that an answer offers, and what a button for it says."""

    label: str
    command: str


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The answer to a command. `sections` is the prompt that `why` explains, for adapters that can draw a table: in
    place of what stands between `head` and `tail` in the text.

    `confirm`: nothing is done yet; this command does it. Adapters with buttons show one. It stands for `acts`, and
    `opens` says what it opens to whom; `touches` is what that is about, by id: a name may come to mean another thing.
    `choices` are what may be done in place of it.
    """

    text: str
    sections: tuple[ExplainedSection, ...] = ()
    confirm: str = ""
    acts: tuple[Act, ...] = ()
    opens: str = ""
    touches: tuple[object, ...] = ()
    choices: tuple[Choice, ...] = ()
    file: AnswerFile | None = None
    head: str = ""
    tail: str = ""


Permalink = Callable[[MessageAddress], str | None]


def no_permalink(address: MessageAddress) -> str | None:
    """For adapters whose platform has no links to messages."""
    return None


@dataclass(frozen=True, slots=True)
class Command:
    """The one declaration of a command.

    `name` is one or two words. Required parameters come before optional ones. `example` is a call that works. `act` is
    what it does, or what in each kind of place: who may, and what that opens, is in composer/rights/table.py. `cases`:
    calls that do something else, of which the first that fits counts. `gather` adds to the facts that acting is judged
    by; a project that is named is among them already. `finishes`: it erases, so the next process finishes it when
    this one dies. `names_rooms`: it reads or names rooms that the caller is in, so their platforms are asked.
    """

    name: str
    parameters: tuple[Parameter[Any], ...]
    help: str
    run: "Handler"
    example: str = ""
    options: tuple[Flag, ...] = ()
    places: frozenset[PlaceKind] = ALL_PLACES
    act: Act | Mapping[PlaceKind, Act] = field(kw_only=True)
    cases: tuple[Case, ...] = ()
    gather: "Gather | None" = None
    finishes: bool = False
    names_rooms: bool = False
    elsewhere: str = ""  # what to do instead where the command may not be given

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of its flags."""
        return tuple(flag.name for flag in self.options)

    def act_in(self, place: PlaceKind) -> Act:
        """What it does in a kind of place."""
        return self.act if isinstance(self.act, Act) else self.act[place]

    def acts(self, place: PlaceKind, arguments: Arguments) -> tuple[Act, ...]:
        """All that a call does: its own act, and those of its flags."""
        own = next((case.act for case in self.cases if case.when(arguments)), None) or self.act_in(place)
        return own, *(flag.act for flag in self.options if flag.act is not None and flag.name in arguments.flags)

    @property
    def usage(self) -> str:
        """How the command is written."""
        listed = "|".join(flag.usage for flag in self.options if flag.listed and flag.value is None)
        with_values = [f"[{flag.usage}]" for flag in self.options if flag.listed and flag.value is not None]
        parts = (
            *(parameter.usage for parameter in self.parameters),
            *((f"[{listed}]",) if listed else ()),
            *with_values,
        )
        return " ".join((PREFIX, self.name, *parts))

    def usage_error(self, problem: str) -> BadInput:
        """The error for a wrong call: what is wrong, how the command is written, and an example."""
        example = f" Example: {PREFIX} {self.example}" if self.example else ""
        return BadInput(f"{problem} Usage: {self.usage}.{example}")

    def missing(self, parameter: Parameter[Any]) -> BadInput:
        """The error for a call that leaves out a parameter it needs."""
        return self.usage_error(parameter.missing or f"{parameter.label or parameter.name.upper()} is missing.")

    def arguments(self, text: str) -> Arguments:
        """The typed values in the text that follows the command's name. Raises BadInput, with the usage; also for words
        that belong to no parameter, since whoever wrote them meant something else."""
        flags, flag_values, rest = self._split_flags(text)
        if rest and not self.parameters:
            raise self.usage_error(f"'{shorten(rest, MAX_SHOWN_CHARS)}' is too much: this command takes no words.")
        values: dict[str, Any] = {}
        texts: dict[str, str] = {}
        for parameter, given in (*flag_values, *self._words(rest)):
            if not given and parameter.required:
                raise self.missing(parameter)
            if given:
                try:
                    values[parameter.name] = parameter.read(given)
                except BadInput as error:
                    raise self.usage_error(str(error)) from None
                texts[parameter.name] = given
        return Arguments(values, texts, flags)

    def typing(self, text: str) -> tuple[Parameter[Any], list[str], str] | None:
        """What somebody is typing in the text after the command's name: the parameter, the arguments before it, and
        its own text so far. None for a command without parameters."""
        if not self.parameters:
            return None
        words = text.split(" ")
        index = min(len(words), len(self.parameters)) - 1
        return self.parameters[index], words[:index], " ".join(words[index:])

    def _split_flags(self, text: str) -> tuple[frozenset[str], list[tuple[Parameter[Any], str]], str]:
        """The names of the flags in a text, the parameters of those that have values with their texts, and what is left
        of the text. Who always confirms may do so where nothing is to be confirmed."""
        flags, values, rest = set[str](), list[tuple[Parameter[Any], str]](), list[str]()
        known, end = {flag.name: flag for flag in (CONFIRM, *self.options)}, 0
        for found in _FLAG.finditer(text):
            name = found[1]
            if text[found.end() : found.end() + 1] == "=" and (name not in known or known[name].value is None):
                continue  # a word of the text, such as --jobs=4
            if name not in known and not self.options:
                continue
            if name not in known:
                names = " ".join(f"--{flag}" for flag in self.flags)
                raise BadInput(f"{PREFIX} {self.name} has no --{name}; it has {names}.")
            rest.append(text[end : found.start()])
            end, parameter = found.end(), known[name].value
            if parameter is not None:
                value = _VALUE.match(text, end)
                values.append((parameter, "" if value is None else value[1]))
                end = end if value is None else value.end()
            flags.add(name)
        for choice in {flag.choice for flag in self.options if flag.choice}:
            chosen = sorted(flag.name for flag in self.options if flag.choice == choice and flag.name in flags)
            if len(chosen) > 1:
                raise BadInput(f"Choose one of {' and '.join(f'--{flag}' for flag in chosen)}.")
        return frozenset(flags), values, " ".join((*rest, text[end:])).strip()

    def _words(self, text: str) -> list[tuple[Parameter[Any], str]]:
        """Each parameter with its text; parameters that are left out before others are not in it."""
        found = []
        for parameter in self.parameters:
            last = parameter is self.parameters[-1]
            given, rest = (text, "") if last else _first_word(text)
            if not (parameter.omittable and not parameter.accepts(given)):
                found.append((parameter, given))
                text = rest
        return found


def _first_word(text: str) -> tuple[str, str]:
    words = text.split(maxsplit=1)
    head = words[0] if words else ""
    return head, text[len(head) :].strip()


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a command: who called it, where, and with which values. `permalink` gives the link to a message on
    its platform, where there is one. `recorded`: its adapter has recorded it (bot/commands/idempotency.py). `late`: an
    earlier process was interrupted while it ran, and this one finishes it. `presence`: in which private rooms its
    caller is, for a command that names rooms. `own_zone`: the caller's own time zone, if it is known."""

    app: App
    workspace: Workspace
    incoming: Incoming
    user: uuid.UUID
    conversation: Conversation
    agents: tuple[Agent, ...]
    command: Command
    arguments: Arguments
    now: datetime
    permalink: Permalink = no_permalink
    preview: bool = False
    recorded: bool = True
    late: bool = False
    presence: Presence = NOWHERE
    own_zone: tzinfo | None = None

    @property
    def zone(self) -> tzinfo:
        """The time zone in which the caller's days and hours are read."""
        return self.own_zone or self.app.directory.zone(self.workspace.tenant_id)

    @property
    def latest(self) -> datetime | None:
        """The latest date of what a late call erases: it was there when the call was given, as the clocks of platforms
        may tell it. None: any."""
        return self.now + MAX_CLOCK_DIFFERENCE if self.late else None

    @property
    def flags(self) -> frozenset[str]:
        """The names of the flags that were set."""
        return self.arguments.flags

    @property
    def event_id(self) -> str:
        """The name of this call: the same event delivered twice is the same call."""
        return f"{self.conversation.id}:{self.incoming.id}"

    @property
    def room(self) -> uuid.UUID:
        """The room of a room or a thread; the conversation itself elsewhere."""
        return self.conversation.room_id or self.conversation.id

    @property
    def acts(self) -> tuple[Act, ...]:
        """All that this call does."""
        return self.command.acts(PlaceKind.of(self.conversation), self.arguments)

    @property
    def line(self) -> str:
        """The call as it is typed, without --yes."""
        given, texts = self.flags - {CONFIRM.name}, self.arguments.texts
        words = [texts.get(parameter.name, "") for parameter in self.command.parameters]
        for flag in self.command.options:
            if flag.name in given:
                words += [f"--{flag.name}", "" if flag.value is None else texts.get(flag.value.name, "")]
        return " ".join(word for word in (PREFIX, self.command.name, *words) if word)

    def naming(self, slug: str, id: uuid.UUID) -> "Call":
        """The same call with its project written so that it can mean no other."""
        own = {p.name: full_name(slug, id) for p in self.command.parameters if p.kind is ParameterKind.PROJECT}
        return replace(self, arguments=replace(self.arguments, texts={**self.arguments.texts, **own}))

    def unconfirmed(self, sentence: str, opens: str = "", touches: tuple[object, ...] = ()) -> CommandAnswer:
        """An answer that says what would happen, and what it opens to whom, and asks for the yes. Nothing is done yet.
        `touches`: the ids of what that is about, besides the projects that the call was judged by."""
        confirm = f"{self.line} --{CONFIRM.name}"
        text = f"{sentence}\nTo confirm: {confirm}"
        return CommandAnswer(text, confirm=confirm, acts=self.acts, opens=opens, touches=touches)

    async def facts(self, tx: Transaction) -> ActorFacts:
        """The facts that this call is judged by, as of now."""
        values, incoming = self.arguments.values, self.incoming
        named = [values.get(p.name) for kind in _NAMING for p in self.command.parameters if p.kind is kind]
        slugs = [str(getattr(value, "text", value)).lower() for value in named if value is not None]
        facts = await tx.permissions.facts(self.conversation, self.user, slugs if _names_project(self.command) else ())
        access = replace(facts.access, asker_admin=facts.access.asker_admin or incoming.sender_is_admin)
        access = replace(access, trust=incoming.sender_trust)
        room_admin = facts.room_admin or incoming.sender_is_room_admin
        needs_approval = incoming.sender_trust in self.app.directory.quarantine(self.workspace.tenant_id)
        facts = replace(facts, access=access, room_admin=room_admin, needs_approval=needs_approval)
        return facts if self.command.gather is None else await self.command.gather(tx, self, facts)

    async def judge(self, tx: Transaction) -> ActorFacts:
        """The same facts, if its sender may do all that this call does. Raises NotFound and Refused."""
        facts = await self.facts(tx)
        rights.judge(self.acts, facts)
        return facts

    @asynccontextmanager
    async def changing(self, mode: Mode = "share", *, more: bool = False) -> AsyncIterator[Transaction]:
        """The one transaction in which a command changes something, after it was judged in it. The same transaction
        records that the command is done, so that it is not run again after a crash (bot/commands/idempotency.py);
        except for one after which `more` is to be done, so that it is.
        Raises as `judge`, NotFound where its room was deleted since it was given, and Refused for a call that only
        shows, that is done already or that another process has taken over."""
        if self.preview:
            raise Refused("That does something else by now: nothing was done. Give the command again.")
        async with self.app.database.transaction(self.workspace.tenant_id, mode) as tx:
            if self.recorded:
                await self._hold(tx)
            if not self.command.finishes:
                await self._require_standing(tx)
            await self.judge(tx)
            tx.audit.act_for(self.user, self.conversation.id)
            yield tx
            if self.recorded and not more:
                request = named_request(self.workspace, self.incoming)
                await tx.requests.note_made(request, uuid.UUID(request.key))

    async def _require_standing(self, tx: Transaction) -> None:
        """Return if neither the message that gave this call was deleted on its platform, nor since then its room or
        thread: what it stored would stay for good. Raises Refused and NotFound."""
        given = message_id(self.room, self.incoming.id)
        places = [id for id in (self.conversation.id, self.conversation.room_id) if id is not None]
        deleted = (await tx.messages.find_known([], [], [given, *places])).deleted
        if deleted.pop(given, None) is not None:
            raise Refused(GIVEN_AND_DELETED)
        sent_at = self.incoming.sent_at or self.incoming.at
        if any(sent_at <= deleted_at for deleted_at in deleted.values()):
            raise NotFound(unknown_conversation_sentence(ConversationKind.ROOM, self.incoming.place.name))

    async def _hold(self, tx: Transaction) -> None:
        """Let no other process take this call over before the transaction ends: while the database was down, none could
        see that this one lives."""
        match await tx.requests.hold(named_request(self.workspace, self.incoming), self.app.locks.number):
            case RequestState.DONE:
                raise Refused(DONE_BEFORE)
            case RequestState.TAKEN:
                raise Refused(TAKEN)


Handler = Callable[[Call], Awaitable[CommandAnswer]]
Gather = Callable[[Transaction, Call, ActorFacts], Awaitable[ActorFacts]]
_NAMING: Final = (ParameterKind.PROJECT, ParameterKind.USER)  # a project and a user may stand in either order


def _names_project(command: Command) -> bool:
    return any(parameter.kind is ParameterKind.PROJECT for parameter in command.parameters)


def named_request(workspace: Workspace, incoming: Incoming) -> NamedRequest:
    """A command call as a request: its key is the same for every delivery of its event."""
    place = incoming.place
    where = (place.kind.value, place.name, place.thread or "")
    id = derived_id("command", workspace.platform, workspace.name, *where, incoming.user, incoming.id)
    return NamedRequest(COMMAND_CALLER, None, str(id), b"", COMMAND_RETENTION)
