"""What `forget` shows before it erases: the answers that it replaces, and what else of one's own recall finds."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from bot.commands.command import PREFIX, Call, Choice
from bot.commands.memories import EPISODE, SUMMARY_WORD, unstored_question
from composer.memory.affected import ItemRef
from composer.memory.forget import RETRACTED, find_reach
from composer.model import Message
from composer.repositories.database import Transaction
from composer.repositories.erasure import OwnText
from composer.repositories.recall import episode_id_of
from composer.text.cleaning import shorten
from composer.text.counts import counted
from composer.text.notices import SHORT_ID_CHARS
from composer.text.terms import terms

MAX_SHOWN_ANSWERS: Final = 10
MAX_ANSWER_CHARS: Final = 100  # of each
MAX_BUTTONS: Final = 5
LEAVE_LABEL: Final = "Erase, leave the answers"
_ELSEWHERE: Final = "Answers in other people's conversations that say it are replaced too."


@dataclass(frozen=True, slots=True)
class Replaced:
    """The answers that an erasure replaces: those that whoever erases may see, with where they are, and how many others
    there are in the same places."""

    shown: Sequence[tuple[str, str]] = field(default=())
    others: int = 0

    def __bool__(self) -> bool:
        return bool(self.shown or self.others)

    def lines(self) -> list[str]:
        """What to say of them; nothing where there are none."""
        if not self:
            return []
        head = f"{counted(len(self.shown) + self.others, 'answer')} that say it will be replaced by a notice:"
        if len(self.shown) + self.others == 1:
            head = "1 answer that says it will be replaced by a notice:"
        more = len(self.shown) - MAX_SHOWN_ANSWERS
        return [
            head,
            *(f"- {where}: {shorten(text, MAX_ANSWER_CHARS)}" for where, text in self.shown[:MAX_SHOWN_ANSWERS]),
            *([f"\N{HORIZONTAL ELLIPSIS} and {more:,} more"] if more > 0 else []),
            *([f"- {self.others:,} that you can't see"] if self.others else []),
            _ELSEWHERE,
        ]


async def find_replaced(
    tx: Transaction,
    call: Call,
    messages: Sequence[uuid.UUID],
    items: Sequence[ItemRef],
    people: Sequence[uuid.UUID],
    names: Collection[str],
) -> Replaced:
    """The answers that erasing these replaces. As in a receipt, only those in this conversation, in those of the
    messages and in one's own count: else it would reveal how often others asked elsewhere."""
    reach = await find_reach(tx, messages, items, call.conversation.id, names=names)
    shown, others = list[tuple[str, str]](), 0
    for reply in reach.found.replies:
        message = None if reply.text == RETRACTED else await tx.messages.get(reply.id)
        if message is None:
            continue
        if message.namespace == call.conversation.namespace:
            shown.append(("here", message.text))
        elif message.user_id in people:
            shown.append((_where(message), message.text))
        elif reply.conversation_id in reach.counted_in:
            others += 1
    return Replaced(shown, others)


def _where(reply: Message) -> str:
    kind = "session" if reply.namespace.startswith("session:") else "DM"
    return f"in your {kind} with {reply.author}"


async def find_recalled(
    call: Call, words: str, people: Sequence[uuid.UUID], found: Collection[uuid.UUID]
) -> list[OwnText]:
    """What of one's own `recall` shows for these words, without what was `found`: it has them in another form, or means
    the same. Where something was found, only what has some of them in another form."""
    items = await call.app.composer.recall(unstored_question(call, words))
    own = [item for item in items if item.user_id in people and not item.by_agent and item.kind != SUMMARY_WORD]
    recalled: list[OwnText] = []
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        for item in own:
            id, kind = uuid.UUID(item.id), item.kind
            if kind == EPISODE:
                at = call.workspace.platform, call.workspace.name
                said = [each for name in item.messages for each, *_ in await tx.messages.find_by_external_id(*at, name)]
                id, kind = next((each for each in said if episode_id_of(each) == id), id), "message"
            if id not in found and not (found and set(terms(words)).isdisjoint(terms(item.text))):
                recalled.append(OwnText(kind, id, (item.text,)))
    return recalled


def recalled_lines(recalled: Sequence[OwnText]) -> list[str]:
    """What else was recalled, numbered, and how to erase it."""
    lines = [
        f"{number}. {shorten(' '.join(text.parts[0].split()), MAX_ANSWER_CHARS)} [item {short_id(text)}]"
        for number, text in enumerate(recalled, 1)
    ]
    ids = " ".join(short_id(text) for text in recalled[:2])
    return [*lines, f"To erase some of these: {PREFIX} forget item {ids}"]


def recalled_choices(recalled: Sequence[OwnText]) -> tuple[Choice, ...]:
    """A choice for each of the first of them, which shows what erasing it does."""
    return tuple(
        Choice(f"Erase {number}", f"{PREFIX} forget item {short_id(text)}")
        for number, text in enumerate(recalled[:MAX_BUTTONS], 1)
    )


def short_id(text: OwnText) -> str:
    """The beginning of an id, which names it."""
    return text.id.hex[:SHORT_ID_CHARS]
