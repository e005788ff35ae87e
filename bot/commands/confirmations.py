"""Yes and Cancel below what a command would do: who was shown what, until they press, or write the word.

They live in memory: after a restart a press is refused, and the command can be given again. The command that a press
runs is recorded before as any other is (bot/commands/idempotency.py).
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from cachetools import LRUCache, TTLCache

from bot.commands.command import CommandAnswer
from composer.errors import Refused, Unavailable
from composer.model import ConversationKind, Incoming
from composer.text.yes_no import Answered, read_answer

LABEL: Final = "Yes"
CANCEL_LABEL: Final = "Cancel"
BUTTON_PREFIX: Final = "nexus-confirm:"  # of the id of a button on its platform
_CANCEL: Final = f"{BUTTON_PREFIX}cancel:"
CANCELLED: Final = "Cancelled: nothing was done."
LIFETIME: Final = timedelta(minutes=15)
_MAX_WAITING: Final = 10_000
USED: Final = "You have pressed this button before: this press did nothing. Its answer is the one to your first press."
BUTTON_EXPIRED: Final = "That button has expired, or is another person's: nothing was done. Give the command again."


class Run(Protocol):
    """Runs a command. With `preview` it changes nothing."""

    def __call__(self, incoming: Incoming, /, *, preview: bool = False) -> Awaitable[CommandAnswer]:
        """The answer, or the sentence that says why there is none."""
        ...


Begin = Callable[[Incoming], Awaitable[bool]]  # records a command before it runs; False: it was recorded before


@dataclass(frozen=True, slots=True)
class _Shown:
    """What was shown to somebody, the command that shows it, and the one that a button stands for. `was_last`: they
    have written nothing else since, so a word of theirs is about it."""

    incoming: Incoming
    answer: CommandAnswer
    command: str
    was_last: bool = True

    @property
    def confirms(self) -> bool:
        """Whether the button does what was shown, and not something else that may be chosen."""
        return bool(self.answer.confirm) and self.command == self.answer.confirm


@dataclass(frozen=True, slots=True)
class Button:
    """A button below an answer. `confirms`: it does what the answer shows."""

    id: str
    label: str
    confirms: bool = True


class Confirmations:
    """The confirmations that one adapter waits for. A button works once, for the person and in the place that it was
    shown to, and only while the command still does what was shown."""

    def __init__(self) -> None:
        self._waiting: TTLCache[str, _Shown] = TTLCache(_MAX_WAITING, LIFETIME.total_seconds())
        # By button, what it was shown with, without the words: they may be forgotten.
        self._used: LRUCache[str, Incoming] = LRUCache(_MAX_WAITING)

    def button(self, incoming: Incoming, answer: CommandAnswer) -> str | None:
        """The id of a button that confirms what an answer shows; None if it asks for no confirmation."""
        return self._add(incoming, answer, answer.confirm) if answer.confirm else None

    def buttons(self, incoming: Incoming, answer: CommandAnswer) -> list[Button]:
        """The button that confirms what an answer shows, if it asks for that, those of its choices, and Cancel."""
        confirm = self.button(incoming, answer)
        first = [] if confirm is None else [Button(confirm, LABEL)]
        choices = [Button(self._add(incoming, answer, each.command), each.label, False) for each in answer.choices]
        last = [] if confirm is None else [Button(self.cancel(confirm), CANCEL_LABEL, False)]
        return [*first, *choices, *last]

    def _add(self, incoming: Incoming, answer: CommandAnswer, command: str) -> str:
        id = BUTTON_PREFIX + secrets.token_hex(16)
        self._waiting[id] = _Shown(incoming, answer, command)
        return id

    def cancel(self, button: str) -> str:
        """The id of the button that takes back the question of a button."""
        return button.replace(BUTTON_PREFIX, _CANCEL, 1)

    def typed(self, written: Incoming) -> str | None:
        """The id of the button that a message presses: it is a yes or a no of somebody who was asked last in its place,
        and has written nothing else since. None for any other message."""
        answer = read_answer(written.text)
        if answer is None:
            self.pass_over(written.user)
            return None
        shown = [(id, each) for id, each in self._waiting.items() if each.confirms and each.was_last]
        waiting = [id for id, each in shown if _is_below(each.incoming, written)]
        if not waiting or written.at - self._waiting[waiting[-1]].incoming.at > LIFETIME:
            return None
        return waiting[-1] if answer is Answered.YES else self.cancel(waiting[-1])

    def pass_over(self, user: str) -> None:
        """Somebody wrote something else than a word below what they were asked: a later yes answers that, and only the
        buttons still work."""
        for id, shown in [each for each in self._waiting.items() if each[1].incoming.user == user]:
            self._waiting[id] = replace(shown, was_last=False)

    async def press(
        self, id: str, pressed: Incoming, now: datetime, run: Run, begin: Begin
    ) -> tuple[Incoming, CommandAnswer]:
        """Run the command of a button as whoever pressed it. Returns what was run, with its answer: mark that answered
        once it was shown. If the command would do something else by now, or open something else, that is shown instead;
        how much it reaches may have changed. Raises Refused for a press that does not count, and Unavailable for one
        that could not be recorded: then the button still works."""
        if id.startswith(_CANCEL):
            id = id.replace(_CANCEL, BUTTON_PREFIX, 1)
            if (taken_back := self._waiting.get(id)) is None or not _same(taken_back.incoming, pressed):
                raise Refused(BUTTON_EXPIRED)
            for other in [key for key, shown in self._waiting.items() if shown.incoming == taken_back.incoming]:
                del self._waiting[other]
            return pressed, CommandAnswer(CANCELLED)
        # Nothing is awaited until the button is used, so of two presses at once the second finds it used.
        if (used := self._used.get(id)) is not None and _same(used, pressed):
            raise Refused(USED)
        shown = self._waiting.get(id)
        if shown is None or now - shown.incoming.at > LIFETIME or not _same(shown.incoming, pressed):
            raise Refused(BUTTON_EXPIRED)
        del self._waiting[id]
        self._used[id] = replace(shown.incoming, text="", mentions=())
        asked = replace(pressed, text=shown.incoming.text, mentions=shown.incoming.mentions)
        again = await run(asked, preview=True)
        if _meaning(again) != _meaning(shown.answer):
            return asked, again
        confirmed = replace(asked, id=f"{pressed.id}:yes", text=shown.command)
        try:
            begun = await begin(confirmed)
        except Unavailable:
            self._waiting[id] = shown
            self._used.pop(id, None)
            raise
        if not begun:
            raise Refused(USED)
        return confirmed, await run(confirmed)


def _meaning(answer: CommandAnswer) -> tuple[object, ...]:
    """What somebody agrees to: the command, what it does, what it opens, and which projects and items that is about."""
    return answer.confirm, answer.choices, answer.acts, answer.opens, answer.touches


def _is_below(shown: Incoming, written: Incoming) -> bool:
    """Whether a message stands where its sender was asked. Whose workspace a DM belongs to need not be known yet."""
    if written.place.kind is ConversationKind.DM:
        written = replace(written, workspace=shown.workspace)
    return _same(shown, written)


def _same(one: Incoming, other: Incoming) -> bool:
    """Whether two commands are of one person in one place."""
    places = [(each.place.kind, each.place.name, each.place.thread) for each in (one, other)]
    return places[0] == places[1] and (one.workspace, one.user) == (other.workspace, other.user)
