"""Compaction: when a talk fills an agent's window, the oldest part of its view becomes a summary.

Only the view shrinks: the messages stay in the log. What decides, and what goes in, is the conversation's own
run and nothing else, so that what only some may read can't be told from when it happens. From over 70% of the
window it goes down to about 40%, so that it does not happen again at the next message.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.model import Agent, Conversation, Item, Message, derived_id
from composer.ports.models import Tokenizer
from composer.prompt.budget import COMPACT_AT, COMPACT_TO, RULES, budget_of, frame_tokens, view_tokens
from composer.prompt.sections import COMPACTION, EXTRACTIVE
from composer.prompt.token_estimate import MAX_FACTOR
from composer.repositories.compactions import Compaction
from composer.repositories.database import Database
from composer.summaries.summariser import Said, Summariser, said

EVERY: Final = 10  # messages at least from one compaction to the next
FEWEST: Final = 2  # messages that are worth a summary
RECALL_SHARE: Final = 0.25  # of the budget, kept free for what is recalled
ASKED_SHARE: Final = 0.1  # and for the message to answer
SUMMARY_SHARE: Final = 0.125  # of the budget that the summary may take
MOST_SUMMARY: Final = 4_000  # tokens
LEFT_TO_TALK: Final = 1 - RECALL_SHARE - ASKED_SHARE
LINE: Final = 120  # bytes that stand around a message in the prompt, rather too many
LEAST_VIEW: Final = 6  # the part of the budget that the view keeps, as a divisor


@dataclass(frozen=True, slots=True)
class View:
    """What one agent sees of a conversation: the summary of its oldest part, if it was compacted, and the messages
    after that."""

    standing: Compaction | None
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be compacted: `covered` (oldest first) goes into the summary, `kept` stays. `before` and `rest` are
    tokens: of the prompt as it would be, and of all but the view in it."""

    conversation: Conversation
    agent: Agent
    standing: Compaction | None
    covered: tuple[Message, ...]
    kept: tuple[Message, ...]
    kept_tokens: int
    before: int
    rest: int
    summary_tokens: int
    requested: bool
    at: datetime
    counted: tuple[Item, ...]


def seen(window: Sequence[Message], standing: Compaction | None) -> View:
    """The view of a window of messages. A compaction stands as long as the window still reaches into what it covers;
    once the window has moved on, there is nothing in it that was replaced."""
    if standing is None or not any((m.at, m.seq) <= standing.through for m in window):
        return View(None, tuple(window))
    return View(standing, tuple(m for m in window if (m.at, m.seq) > standing.through))


def plan(
    conversation: Conversation,
    agent: Agent,
    view: View,
    items: Sequence[Item],
    recall_tokens: int,
    at: datetime,
    tokenizer: Tokenizer,
    *,
    requested: bool = False,
) -> Plan | None:
    """What is to be compacted now; None when nothing is. Pure.

    `items` are facts, landmarks and summaries of the prompt; those of the conversation's own run count. It is due when
    the prompt would have over 70% of the window, with a share kept for recall and for the question, but never within
    ten messages of the last time. `requested`: a person wants it, however full the window is.
    """
    since = view.messages
    if view.standing is not None:
        since = tuple(m for m in view.messages if (m.at, m.seq) > view.standing.made)
    if not view.messages or len(since) < (EVERY if view.standing is not None else FEWEST):
        return None
    budget, own = budget_of(agent), tuple(item for item in items if item.namespace == conversation.namespace)
    if not requested and _most_tokens(view, own, agent, 1.0 if tokenizer.exact else MAX_FACTOR) < budget * LEFT_TO_TALK:
        return None
    costs = view_tokens(agent, view.messages, tokenizer)
    frame = frame_tokens(agent, own, tokenizer)
    recall = min(recall_tokens, int(budget * RECALL_SHARE))
    standing = 0 if view.standing is None else view.standing.tokens
    before = frame + recall + int(budget * ASKED_SHARE) + standing + sum(costs)
    if before <= budget and not requested:
        return None
    summary = min(int(budget * SUMMARY_SHARE), MOST_SUMMARY)
    room = max(int(budget * COMPACT_TO / COMPACT_AT) - frame - recall // 2 - summary, budget // LEAST_VIEW)
    keep = _newest(costs, room, most=EVERY if requested and before <= budget else len(costs))
    covered, kept = view.messages[: len(costs) - keep], view.messages[len(costs) - keep :]
    if len(covered) < FEWEST or (sum(costs[: len(covered)]) <= summary and not requested):
        return None  # a summary would save nothing
    left = sum(costs[len(covered) :])
    rest = before - standing - sum(costs)
    return Plan(conversation, agent, view.standing, covered, kept, left, before, rest, summary, requested, at, own)


def _most_tokens(view: View, items: Sequence[Item], agent: Agent, factor: float) -> float:
    """More tokens than these can have, without counting them: none has less than a byte."""
    texts = [message.text for message in view.messages] + [item.text for item in items] + [agent.persona]
    texts += [a.text for message in view.messages for a in message.attachments]
    size = sum(len(text.encode("utf-8", "replace")) + LINE for text in texts) + len(RULES)
    return factor * size + (0 if view.standing is None else view.standing.tokens)


def _newest(costs: Sequence[int], room: int, most: int) -> int:
    """How many of the newest messages fit, at least one."""
    keep = 0
    for cost in reversed(costs[-most:]):
        if keep and cost > room:
            break
        room -= cost
        keep += 1
    return keep


class Compactor:
    """Carries plans out. Holds what it works with, and no state of its own."""

    def __init__(self, store: Database, summariser: Summariser) -> None:
        self._store = store
        self._summariser = summariser

    async def compact(self, plan: Plan, tokenizer: Tokenizer, *, keep: bool) -> Compaction | None:
        """The summary of what a plan covers; None when what it covers changed meanwhile, or another process was first.

        With `keep` it is stored, and the next turns use it; without, no model is asked and nothing is stored.
        """
        pieces = [*_again(plan.standing), *(said(message) for message in plan.covered)]
        writer = plan.agent if keep else None
        written = await self._summariser.summarise(pieces, plan.summary_tokens, tokenizer, writer)
        newest, last = (plan.kept or plan.covered)[-1], plan.covered[-1]
        conversation, earlier = plan.conversation, plan.standing
        sources = [("message", message.id) for message in (*plan.covered, *plan.kept)]
        sources += [(item.kind, uuid.UUID(item.id)) for item in plan.counted]
        if earlier is not None:
            sources.append((COMPACTION, earlier.id))
        compaction = Compaction(
            derived_id(COMPACTION, str(conversation.id), str(plan.agent.id), conversation.namespace, str(newest.id)),
            conversation.id,
            plan.agent.id,
            conversation.namespace,
            conversation.visibility,
            conversation.user_id,
            (last.at, last.seq),
            (newest.at, newest.seq),
            len(plan.covered) + (0 if earlier is None else earlier.messages),
            written.text,
            written.tokens,
            written.model,
            plan.before,
            plan.rest + written.tokens + plan.kept_tokens,
            plan.requested,
            plan.at,
            tuple(dict.fromkeys(sources)),
        )
        return compaction if not keep or await self._kept(compaction, plan) else None

    async def _kept(self, compaction: Compaction, plan: Plan) -> bool:
        """Store it, unless a message of it was forgotten, edited or moved to another run while it was written."""
        async with self._store.transaction(plan.conversation.tenant_id) as tx:
            row = (await tx.conversations.lock([compaction.conversation_id])).get(compaction.conversation_id)
            if row is None or row.conversation.namespace != compaction.namespace:
                return False
            if not await tx.compactions.sources_unchanged([*plan.covered, *plan.kept]):
                return False
            return await tx.compactions.add(compaction)


def _again(standing: Compaction | None) -> list[Said]:
    """An earlier summary as something to summarise once more: its sentences keep their speakers."""
    if standing is None:
        return []
    if standing.model != EXTRACTIVE:
        return [Said("", standing.through[0], standing.text)]
    lines = [line.partition(": ") for line in standing.text.split("\n")]
    return [Said(author if text else "", standing.through[0], text or author) for author, _, text in lines]


def as_item(compaction: Compaction, agent: Agent) -> Item:
    """A compaction as it stands in the prompt. Its `reasons` are what `why` explains it by."""
    return Item(
        "working",
        COMPACTION,
        str(compaction.id),
        compaction.text,
        compaction.through[0],
        compaction.namespace,
        compaction.visibility,
        compaction.user_id,
        author=compaction.model,
        reasons={
            "messages": float(compaction.messages),
            "before": float(compaction.before),
            "after": float(compaction.after),
            "window": float(agent.window),
            "requested": float(compaction.requested),
        },
    )
