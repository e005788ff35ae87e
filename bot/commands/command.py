"""What a command is, and what every one needs: who calls it, where, and what they may do there."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from composer import visibility
from composer.app import App
from composer.errors import BadInput, NotFound
from composer.model import Agent, Conversation, ConversationKind, Incoming, derived_id
from composer.prompt.explain import ExplainedSection
from composer.repositories.database import Transaction
from composer.visibility import AccessContext, WriteScope
from composer.workspace import Workspace

WRITE_SCOPE_FLAGS: Final = (WriteScope.EVERYWHERE, WriteScope.PROJECT, WriteScope.GLOBAL)


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What a command says. `sections` is the prompt that `why` explains, for doors that can draw a table."""

    text: str
    sections: tuple[ExplainedSection, ...] = ()


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

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[Transaction]:
        """The one transaction that a command changes something in. With it the command counts as done, so that it is
        not run again after a crash (bot/commands/idempotency.py)."""
        async with self.app.database.transaction(self.workspace.tenant_id) as tx:
            yield tx
            await tx.commands.mark_done(command_id(self.workspace, self.incoming))


def command_id(workspace: Workspace, incoming: Incoming) -> uuid.UUID:
    """The id of a command's run: the same for every event that brings it."""
    place = incoming.place
    where = (place.kind.value, place.name, place.thread or "")
    return derived_id("command", workspace.platform, workspace.name, *where, incoming.user, incoming.id)


Run = Callable[[Call], Awaitable[CommandAnswer]]


class Names(StrEnum):
    """What a parameter names, where doors can help to find it (bot/commands/suggestions.py)."""

    AGENT = "agent"
    FACT = "fact"
    FORGETTABLE = "forgettable"
    LANDMARK = "landmark"
    PERSON = "person"
    PROJECT = "project"
    SETTING = "setting"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a command: a word, or for the last one all the words that are left. `shown` is what help calls
    it, else its name in capitals; `choices` are all that it may be, `names` what it names."""

    name: str
    shown: str = ""
    required: bool = True
    choices: tuple[str, ...] = ()
    names: Names | None = None

    @property
    def usage(self) -> str:
        """As help shows it."""
        shown = self.shown or "|".join(self.choices) or self.name.upper()
        return shown if self.required else f"[{shown}]"


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its name (one or two words), what it does, its parameters in their order, the required ones first,
    and its flags. `hidden` flags work and are not listed in its usage."""

    name: str
    parameters: tuple[Parameter, ...]
    help: str
    run: Run
    flags: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def arguments(self) -> str:
        """Its parameters and flags, as help shows them."""
        shown = "|".join(f"--{flag}" for flag in self.flags if flag not in self.hidden)
        return " ".join((*(parameter.usage for parameter in self.parameters), *((f"[{shown}]",) if shown else ())))

    @property
    def usage(self) -> str:
        """How it is written."""
        return f"/nexus {self.name} {self.arguments}".rstrip()


async def access_context(tx: Transaction, call: Call) -> AccessContext:
    """What is so where the command was called. Raises NotFound when the caller may not be there."""
    access = await tx.conversations.access_context(call.conversation.id, call.user)
    if access is None or not visibility.may_participate(access):
        raise NotFound(visibility.unknown_conversation(call.conversation.kind, call.conversation.name))
    return replace(access, asker_admin=access.asker_admin or call.incoming.sender_is_admin)


async def is_room_admin(tx: Transaction, call: Call) -> bool:
    """Whether the caller may speak for this room: an admin of it, or of the platform it is on."""
    room = call.conversation.room_id or call.conversation.id
    return call.incoming.sender_is_admin or await tx.conversations.is_room_admin(room, call.user)


def write_scope_of(call: Call) -> str:
    """How far what is written reaches: the one flag that says so, else `here`. Raises BadInput for two of them."""
    chosen = sorted(call.flags.intersection((WriteScope.EVERYWHERE, WriteScope.PROJECT, WriteScope.GLOBAL)))
    if len(chosen) > 1:
        raise BadInput(f"Choose one of {' and '.join(f'--{flag}' for flag in chosen)}.")
    return chosen[0] if chosen else WriteScope.HERE


def whereabouts(call: Call, reach: str) -> str:
    """The same in words, for an answer."""
    if reach != WriteScope.HERE:
        everywhere = "about you, for all to know"
        return {WriteScope.PROJECT: "for this project", WriteScope.GLOBAL: "for everyone"}.get(reach, everywhere)
    room = call.conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD)
    return f"in #{call.conversation.name}" if room else "between us"
