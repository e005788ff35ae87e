"""forget and erase: erase for good what a person said and stored; admins erase a room, a person or a project."""

import secrets
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context, find_user, unknown_user
from bot.commands.command import CONFIRM, PREFIX, ROOM_PLACES, Call, Choice, Command, CommandAnswer, Flag, valued
from bot.commands.days import named_day, with_dates
from bot.commands.forget_preview import (
    LEAVE_LABEL,
    Replaced,
    find_recalled,
    find_replaced,
    recalled_choices,
    recalled_lines,
)
from bot.commands.parameters import ForgetScope, ForgetTarget
from composer.errors import BadInput, NotFound
from composer.memory import forget as forgetting
from composer.memory import names as blanking
from composer.memory.affected import ItemRef
from composer.memory.exported import authors_of
from composer.memory.matching import find_matching
from composer.memory.portions import erase_ahead
from composer.people.erasing import erase, exported_files
from composer.repositories.database import Transaction
from composer.repositories.erasure import OwnText, Selection
from composer.rights.project_names import full_name, slug_of
from composer.rights.table import Act
from composer.text.cleaning import shorten
from composer.text.counts import counted
from composer.text.dates.local_days import end_of_day, start_of_day
from composer.visibility import unknown_project_sentence

MAX_SHOWN_ERASED: Final = 10  # texts that are shown before they are erased
MAX_ERASED_TEXT_CHARS: Final = 100  # of each
CHARS_BEFORE: Final = 30  # that are shown before the words, and the word that these stand in

_TARGET: Final = parameters.forget_target(
    "what",
    "whole words to match in all that you said or stored; message and its id; item and the ids of messages, memories, "
    f"facts or landmarks ({PREFIX} share lists yours); here (all of yours in this conversation); everything (all you "
    "ever said or stored)",
)
_USER: Final = parameters.user("user", "the person whose messages and other items are erased")
_PROJECT: Final = parameters.project("name", "the project whose messages and other items are erased")
_SINCE: Final = parameters.day("since", "only from this day on, such as 2026-05-01 or yesterday")
_UNTIL: Final = parameters.day("until", "only until the end of this day")
LEAVE: Final = Flag("leave", "leave the answers that say it as they are")
_SPAN: Final = (CONFIRM, valued(_SINCE), valued(_UNTIL))


@dataclass(frozen=True, slots=True)
class _ToErase:
    """What is to be erased: messages, other items, and the beginnings of their texts where these are shown first."""

    messages: Sequence[uuid.UUID] = ()
    items: Sequence[ItemRef] = ()
    shown: Sequence[str] = ()

    @property
    def count(self) -> int:
        return len(self.messages) + len(self.items)

    def without(self, gone: Collection[uuid.UUID]) -> "_ToErase":
        """What is left of it."""
        return _ToErase(
            [id for id in self.messages if id not in gone], [item for item in self.items if item[1] not in gone]
        )

    @classmethod
    def of(cls, texts: Sequence[OwnText], words: str = "") -> "_ToErase":
        """Texts of one's own, which have these words. Where messages are among other items, each says what it is: a
        memory often has the words of the message that it was made from."""
        mixed = len({text.kind == "message" for text in texts}) > 1
        return cls(
            [text.id for text in texts if text.kind == "message"],
            [(text.kind, text.id) for text in texts if text.kind != "message"],
            [
                f"{text.kind}: {_shown(text, words)}" if mixed else _shown(text, words)
                for text in texts[:MAX_SHOWN_ERASED]
            ],
        )


def _shown(text: OwnText, words: str) -> str:
    """A text on one line: its beginning, or of a long one the part in which these words stand."""
    parts = {"memory": text.parts[:1], "fact": text.parts[:2]}.get(text.kind, text.parts)
    line = " ".join((" = " if text.kind == "fact" else " ").join(parts).split())
    at = line.lower().find(" ".join(words.lower().split()))
    start = line.rfind(" ", 0, max(at - CHARS_BEFORE, 0))
    if start < 0 or at + len(words) < MAX_ERASED_TEXT_CHARS:
        return shorten(line, MAX_ERASED_TEXT_CHARS)
    return f"\N{HORIZONTAL ELLIPSIS} {shorten(line[start:], MAX_ERASED_TEXT_CHARS - 2)}"


async def _forget(call: Call) -> CommandAnswer:
    call = with_dates(call, _SINCE, _UNTIL)
    target = call.arguments[_TARGET]
    since, until = _span(call)
    if target.scope not in (ForgetScope.HERE, ForgetScope.EVERYTHING) and (since or until):
        raise BadInput(f"--since and --until go with here and everything: {PREFIX} forget here --since 2026-05-01")
    everything = target.scope is ForgetScope.EVERYTHING
    whole = everything and not (since or until)
    if CONFIRM.name not in call.flags and (shown := await _shown_first(call, target, whole=whole)) is not None:
        return shown
    by_words = target.scope is ForgetScope.MATCHING  # these are looked for in all that somebody has said: not alone
    if by_words:
        async with call.changing("alone", more=True) as tx:  # what was being stored is by now, and is found
            people = await _identities(tx, call.user)
            await tx.gateway_exchanges.drop(people, call.app.clock.now())  # nor is more learnt while it is looked for
    found = _ToErase()
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        if by_words or target.scope in (ForgetScope.HERE, ForgetScope.EVERYTHING):
            found = await _own(tx, call, target)
        people = await _identities(tx, call.user)
    erasing = await _erase_ahead(call, found, people if whole else ())
    async with call.changing("alone") as tx:
        people = await _identities(tx, call.user)
        if everything:
            await tx.usage.blank(people, *_blanked_days(call))
        found = found.without(erasing.ahead.erased) if by_words else await _own(tx, call, target)
        receipt = await erasing.rest(tx, found, people if whole else (), people)
        if everything:
            await tx.operations.blank(people, *_blanked_days(call))
    await call.app.forgotten(call.workspace.tenant_id, receipt)
    return CommandAnswer(str(receipt))


async def _shown_first(call: Call, target: ForgetTarget, *, whole: bool) -> CommandAnswer | None:
    """What would be erased and replaced, with what may be chosen; None for one message that no other answer says. It
    changes nothing, so it does not count as done (bot/commands/idempotency.py)."""
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        found = await _own(tx, call, target)
        people = await _identities(tx, call.user)
        others = await _other_names(tx, people)
        posted, waiting = await tx.erasure.count_withdrawn(people)
        names = await blanking.names_of(tx, people if whole else ())
        stay = LEAVE.name in call.flags
        replaced = Replaced() if stay else await find_replaced(tx, call, found.messages, found.items, people, names)
    if not target.shown_first and not replaced:
        return None
    recalled = []
    if target.scope is ForgetScope.MATCHING:
        known = {*found.messages, *(id for _, id in found.items)}
        recalled = await find_recalled(call, target.text, people, known)
        if not (found.count or waiting):
            await _learn_nothing(call, people)
            if not recalled:
                return CommandAnswer(str(forgetting.Receipt()))
            none = f"Nothing of yours has exactly the words '{target.text}'. In other words or forms:"
            return CommandAnswer("\n".join((none, *recalled_lines(recalled))), choices=recalled_choices(recalled))
    exported = exported_files(call.app.settings.home, people)
    lines = [_confirmation(target, found, others, exported + posted, waiting, _days(call)), *replaced.lines()]
    if recalled:
        lines += ["It does not erase these of yours, which have the words in another form:", *recalled_lines(recalled)]
    asked = call.unconfirmed("\n".join(lines))
    leave = [Choice(LEAVE_LABEL, f"{call.line} --{LEAVE.name} --{CONFIRM.name}")] if replaced else []
    hint = f"\nTo leave the answers: {leave[0].command}" if leave else ""
    return replace(asked, text=asked.text + hint, choices=(*leave, *recalled_choices(recalled)))


async def _learn_nothing(call: Call, people: Sequence[uuid.UUID]) -> None:
    """Have nothing learnt from what is being asked through the gateway just now: it may say what was to be forgotten,
    of which nothing is stored yet."""
    if not call.preview:
        async with call.changing("alone") as tx:
            await tx.gateway_exchanges.drop(people, call.app.clock.now())


def _confirmation(
    target: ForgetTarget,
    found: _ToErase,
    others: Sequence[str],
    exported: int,
    waiting: int,
    days: str,
) -> str:
    """What would be erased. `exported`: how many files with exports go with it; `waiting`: how many requests to models
    that nothing was learnt from yet; `days`: those that the call names."""
    count = f"{counted(len(found.messages), 'message')} and {counted(len(found.items), 'other item')} of yours"
    also = f" It covers your other accounts too: {', '.join(others)}." if others else ""
    also += f" It deletes {counted(exported, 'exported file')} of yours too." if exported else ""
    also += f" Nothing will be learnt from {counted(waiting, 'request')} to models that wait." if waiting else ""
    match target.scope:
        case ForgetScope.HERE:
            what = "all that you said and stored here"
        case ForgetScope.EVERYTHING:
            what = "all your messages, memories and facts, everywhere"
        case _:
            more = [f"… and {found.count - MAX_SHOWN_ERASED:,} more"] if found.count > MAX_SHOWN_ERASED else []
            total = f"This erases {count}, for good, with all that was made from them.{also}"
            return "\n".join((*found.shown, *more, total))
    return f"This erases {what}{days}, for good: {count}.{also}"


async def _own(tx: Transaction, call: Call, target: ForgetTarget) -> _ToErase:
    """The caller's own messages and items that a target names. What is one's own may be erased from anywhere that one
    is in. Raises NotFound."""
    access, people = await access_context(tx, call), await _identities(tx, call.user)
    since, until = _reach(call)
    match target.scope:
        case ForgetScope.HERE:
            return _ToErase(
                *await tx.erasure.select(Selection(people, access.conversation.id, since=since, until=until))
            )
        case ForgetScope.EVERYTHING:
            return _ToErase(*await tx.erasure.select(Selection(people, since=since, until=until)))
        case ForgetScope.MESSAGE:
            return _ToErase(await _own_message(tx, call, people, target.text))
        case ForgetScope.ITEM:
            return _ToErase.of([await _own_item(tx, people, beginning) for beginning in target.text.split()])
        case ForgetScope.MATCHING:
            found = await find_matching(tx, people, target.text)
            if until is not None:
                messages, items = await tx.erasure.select(Selection(people, until=until))
                then = {*messages, *(id for _, id in items)}
                found = [text for text in found if text.id in then]
            return _ToErase.of(found, target.text)


async def _own_item(tx: Transaction, people: Sequence[uuid.UUID], beginning: str) -> OwnText:
    """The message, memory, fact or landmark whose id begins so, current or not."""
    items = [text async for page in tx.erasure.own_texts(people, beginning) for text in page]
    if not items:
        raise NotFound(
            f"You have no message, memory, fact or landmark '{beginning}'; {PREFIX} share lists what is yours."
        )
    if len(items) > 1:
        raise BadInput(f"Several of yours begin with '{beginning}'; write more of the id: {items[0].id.hex}")
    return items[0]


async def _own_message(tx: Transaction, call: Call, people: Sequence[uuid.UUID], external_id: str) -> list[uuid.UUID]:
    found = await tx.messages.find_by_external_id(call.workspace.platform, call.workspace.name, external_id)
    own = [message for message, _, author in found if author in people]
    if not own:
        raise NotFound(f"You have no message '{external_id}' here.")
    return own


async def _identities(tx: Transaction, user: uuid.UUID) -> tuple[uuid.UUID, ...]:
    """All users that are the same person, this one first."""
    return (user, *(await tx.people.linked_users([user])).get(user, ()))


async def _other_names(tx: Transaction, people: Sequence[uuid.UUID]) -> list[str]:
    return sorted((await tx.people.names(people[1:])).values())


async def _erase_room(call: Call) -> CommandAnswer:
    since, until = _reach(call)
    return await _erase_selected(
        call, Selection(None, call.room, since=since, until=until), f"of #{call.conversation.name}"
    )


async def _erase_user(call: Call) -> CommandAnswer:
    reference = call.arguments[_USER]
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        user = await find_user(tx, call, reference)
        if user is None:
            raise unknown_user(reference)
        people = await _identities(tx, user.id)
    since, until = _reach(call)
    selection = Selection(people, since=since, until=until)
    names = () if any(_span(call)) else people
    return await _erase_selected(call, selection, f"of {user.name}", names_of=names, of_people=people)


async def _erase_project(call: Call) -> CommandAnswer:
    name = call.arguments[_PROJECT]
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        found = await tx.projects.named(name)
    if not found:
        raise NotFound(unknown_project_sentence(name))
    if len(found) > 1:
        names = " or ".join(full_name(slug_of(name), id) for id in found)
        raise BadInput(f"There are {len(found)} projects called {name}; name one as {names}.")
    since, until = _reach(call)
    selection = Selection(None, project=found[0], since=since, until=until)
    return await _erase_selected(call.naming(slug_of(name), found[0]), selection, f"of {name}")


async def _erase_selected(
    call: Call,
    selection: Selection,
    whose: str,
    *,
    names_of: tuple[uuid.UUID, ...] = (),
    of_people: tuple[uuid.UUID, ...] = (),
) -> CommandAnswer:
    """Erase what is selected, once --yes confirms how much it is, with the names and the exported files of people, and
    their names in the figures of usage."""
    call = with_dates(call, _SINCE, _UNTIL)
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        found = _ToErase(*await tx.erasure.select(selection))
        exports_of = of_people or await authors_of(tx, found.messages, found.items)
    if "yes" not in call.flags:
        count = f"{counted(len(found.messages), 'message')} and {counted(len(found.items), 'other item')}"
        count += f" {whose}{_days(call)}"
        return call.unconfirmed(f"This erases {count}, for good, with all that was made from them.")
    erasing = await _erase_ahead(call, found, names_of)
    async with call.changing("alone") as tx:
        await tx.usage.blank(of_people, *_blanked_days(call))
        found = _ToErase(*await tx.erasure.select(selection))
        exports_of = of_people or tuple({*exports_of, *await authors_of(tx, found.messages, found.items)})
        receipt = await erasing.rest(tx, found, names_of, exports_of)
        await tx.operations.blank(of_people, *_blanked_days(call))
    await call.app.forgotten(call.workspace.tenant_id, receipt)
    return CommandAnswer(str(receipt))


@dataclass(frozen=True, slots=True)
class _Erasing:
    """An erasure that has begun: what went in portions, under the `key` of its receipt, and the names that people were
    stored under before that."""

    call: Call
    key: bytes
    names: frozenset[str]
    ahead: forgetting.Receipt

    async def rest(
        self,
        tx: Transaction,
        found: _ToErase,
        names_of: tuple[uuid.UUID, ...],
        exports_of: tuple[uuid.UUID, ...],
    ) -> forgetting.Receipt:
        """Erase the rest, with the names and the exported files of people, as of now: a command that a restart
        interrupted was given earlier."""
        call = self.call
        return await erase(
            tx,
            call.app.settings.home,
            found.messages,
            found.items,
            call.app.clock.now(),
            call.conversation.id,
            key=self.key,
            names_of=names_of,
            exports_of=exports_of,
            ahead=self.ahead,
            names=self.names,
            answers_stay=LEAVE.name in call.flags,
        )


async def _erase_ahead(call: Call, found: _ToErase, names_of: tuple[uuid.UUID, ...]) -> _Erasing:
    """Begin an erasure, and erase what is too much for one transaction."""
    key = secrets.token_bytes(forgetting.RECEIPT_KEY_BYTES)
    read = partial(call.app.database.transaction, call.workspace.tenant_id, "read")
    async with read() as tx:
        names = await blanking.names_of(tx, names_of)
    alone = partial(call.changing, "alone", more=True)
    now, here = call.app.clock.now(), call.conversation.id
    stay = LEAVE.name in call.flags
    ahead = await erase_ahead(
        read, alone, found.messages, found.items, now, here, names=names, key=key, answers_stay=stay
    )
    return _Erasing(call, key, frozenset(names), ahead)


def _span(call: Call) -> tuple[datetime | None, datetime | None]:
    """The moments between which something is erased; None where the call names no day."""
    since, until = named_day(call, _SINCE), named_day(call, _UNTIL)
    if since is not None and until is not None and until < since:
        raise BadInput(f"--until {until} is before --since {since}: exchange them.")
    zone = call.zone
    return (
        None if since is None else start_of_day(since, zone),
        None if until is None else end_of_day(until, zone),
    )


def _reach(call: Call) -> tuple[datetime | None, datetime | None]:
    """The moments between which something is erased. A call that is late takes what there was when it was given, and
    nothing of what its sender has said since."""
    since, until = _span(call)
    bounds = [bound for bound in (until, call.latest) if bound is not None]
    return since, min(bounds, default=None)


def _days(call: Call) -> str:
    """The days that a call names, for a confirmation: " from 2026-05-01 until 2026-05-03", or nothing for all."""
    since, until = named_day(call, _SINCE), named_day(call, _UNTIL)
    if since is None:
        return "" if until is None else f" until {until}"
    return f" from {since} on" if until is None else f" from {since} until {until}"


def _blanked_days(call: Call) -> tuple[date | None, date | None]:
    """The days from which people are taken out of the figures of usage; None for all before, or after."""
    return named_day(call, _SINCE), named_day(call, _UNTIL)


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "forget",
        (_TARGET,),
        "Erase your own messages and other items, for good, after showing what they are",
        _forget,
        "forget message 1094817263",
        (*_SPAN, LEAVE),
        act=Act.FORGET_OWN,
        finishes=True,
    ),
    Command(
        "erase room",
        (),
        "Erase everyone's messages and other items of this room, or of some days, for good",
        _erase_room,
        "erase room --since 2026-05-01 --until 2026-05-03",
        _SPAN,
        places=ROOM_PLACES,
        act=Act.ERASE_ROOM,
        finishes=True,
        elsewhere=f"To erase your own: {PREFIX} forget here.",
    ),
    Command(
        "erase user",
        (_USER,),
        "Erase everything that a person said and stored, for good",
        _erase_user,
        "erase user bob",
        _SPAN,
        act=Act.ERASE_USER,
        finishes=True,
    ),
    Command(
        "erase project",
        (_PROJECT,),
        "Erase everything that was said and stored in a project, for good",
        _erase_project,
        "erase project apollo",
        _SPAN,
        act=Act.ERASE_PROJECT,
        finishes=True,
    ),
)
