"""Compaction: when a conversation fills an agent's window, the oldest part of its view is replaced by a summary.

Only the view shrinks: the messages stay in the log. Only the conversation's own namespace decides when it happens and
what goes into the summary, so that its timing reveals nothing that only some may read. A view over 70% of the window
is brought down to about 40%, so that the next message does not cause another compaction.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.model import Agent, Conversation, Item, Message, derived_id
from composer.ports.models import Tokenizer, UsageAccount, WorkKind
from composer.prompt.budget import COMPACT_TO, MAX_PROMPT_SHARE, budget_of, frame_tokens, view_size, view_tokens
from composer.prompt.rendering import PROMPT_RULES
from composer.prompt.sections import COMPACTION
from composer.prompt.token_estimate import MAX_FACTOR
from composer.repositories.compactions import Compaction
from composer.repositories.database import Database
from composer.summaries.summariser import Summariser
from composer.summaries.texts import SummaryInput, SummaryText, summary_inputs

MIN_MESSAGES_BETWEEN: Final = 10  # from one compaction of a view to the next
MIN_COVERED: Final = 2  # messages that are worth a summary
RECALL_SHARE: Final = 0.25  # of the budget, kept free for recall
RESERVED_QUESTION_SHARE: Final = 0.1  # and for the message to answer
REMAINING_SHARE: Final = 1 - RECALL_SHARE - RESERVED_QUESTION_SHARE
COMPACTION_SHARE: Final = 0.125  # of the budget, that the summary may take
MAX_COMPACTION_TOKENS: Final = 4_000
LINE_OVERHEAD_BYTES: Final = 120  # around a message in the prompt; an upper estimate
MIN_VIEW_DIVISOR: Final = 6  # the view keeps at least this fraction of the budget


@dataclass(frozen=True, slots=True)
class View:
    """What one agent sees of a conversation: the compaction of its oldest part, if any, and the messages after it."""

    compaction: Compaction | None
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A compaction to carry out: `covered` (oldest first) goes into the summary, `remaining` stays in the view.

    `previous` is the compaction that this one replaces, and `counted` are the items that decided that it is due.
    `before` and `outside` are tokens, with room for recall: of the whole prompt without this compaction, and of all but
    the view in it. `view_before` and `view_after` are those of the view alone, as WORKING has them.
    """

    conversation: Conversation
    agent: Agent
    previous: Compaction | None
    covered: tuple[Message, ...]
    remaining: tuple[Message, ...]
    remaining_tokens: int
    before: int
    outside: int
    summary_tokens: int
    requested: bool
    at: datetime
    counted: tuple[Item, ...]
    view_before: int
    view_after: int


def current_view(window: Sequence[Message], compaction: Compaction | None) -> View:
    """The view of a window of messages. The compaction applies while the window reaches into what it covers; after
    that there is nothing left in the window that it replaces."""
    if compaction is None or not any((m.at, m.seq) <= compaction.through for m in window):
        return View(None, tuple(window))
    return View(compaction, tuple(m for m in window if (m.at, m.seq) > compaction.through))


def plan_compaction(
    conversation: Conversation,
    agent: Agent,
    view: View,
    items: Sequence[Item],
    recall_tokens: int,
    at: datetime,
    tokenizer: Tokenizer,
    *,
    requested: bool = False,
) -> CompactionPlan | None:
    """Plan the compaction of a view; None when none is due. Pure.

    `items` are the facts, landmarks and summaries of the prompt; those of the conversation's own namespace count.
    Compaction is due when the prompt would have over 70% of the window, with a share kept free for recall and for the
    question, but never within ten messages of the last one. `requested`: a person wants it, however full the window.
    """
    if not view.messages or not _enough_new_messages(view):
        return None
    budget, own = budget_of(agent), tuple(item for item in items if item.namespace == conversation.namespace)
    factor = 1.0 if tokenizer.exact else MAX_FACTOR
    if not requested and _upper_bound(view, own, agent, factor) < budget * REMAINING_SHARE:
        return None
    costs = view_tokens(agent, view.messages, tokenizer)
    frame = frame_tokens(agent, own, tokenizer)
    recall = min(recall_tokens, int(budget * RECALL_SHARE))
    previous = 0 if view.compaction is None else view.compaction.tokens
    before = frame + recall + int(budget * RESERVED_QUESTION_SHARE) + previous + sum(costs)
    if before <= budget and not requested:
        return None
    summary = min(int(budget * COMPACTION_SHARE), MAX_COMPACTION_TOKENS)
    available = int(budget * COMPACT_TO / MAX_PROMPT_SHARE) - frame - recall // 2 - summary
    limit = MIN_MESSAGES_BETWEEN if requested and before <= budget else len(costs)
    newest = _newest_that_fit(costs, max(available, budget // MIN_VIEW_DIVISOR), limit)
    split = len(costs) - newest
    if split < MIN_COVERED or (sum(costs[:split]) <= summary and not requested):
        return None  # a summary would save nothing
    return CompactionPlan(
        conversation=conversation,
        agent=agent,
        previous=view.compaction,
        covered=view.messages[:split],
        remaining=view.messages[split:],
        remaining_tokens=sum(costs[split:]),
        before=before,
        outside=before - previous - sum(costs),
        summary_tokens=summary,
        requested=requested,
        at=at,
        counted=own,
        view_before=view_size(agent, view.messages, tokenizer),
        view_after=view_size(agent, view.messages[split:], tokenizer),
    )


def _enough_new_messages(view: View) -> bool:
    """Whether enough messages have come since the last compaction."""
    if view.compaction is None:
        return len(view.messages) >= MIN_COVERED
    made = view.compaction.made
    return sum((message.at, message.seq) > made for message in view.messages) >= MIN_MESSAGES_BETWEEN


def _upper_bound(view: View, items: Sequence[Item], agent: Agent, factor: float) -> float:
    """An upper bound of the tokens of a view and items, without counting: no token has less than a byte."""
    texts = [message.text for message in view.messages] + [item.text for item in items] + [agent.persona]
    texts += [a.text for message in view.messages for a in message.attachments]
    size = sum(len(text.encode("utf-8", "replace")) + LINE_OVERHEAD_BYTES for text in texts) + len(PROMPT_RULES)
    return factor * size + (0 if view.compaction is None else view.compaction.tokens)


def _newest_that_fit(costs: Sequence[int], available: int, limit: int) -> int:
    """How many of the newest messages fit: at least one, at most `limit`."""
    count = 0
    for cost in reversed(costs[-limit:]):
        if count and cost > available:
            break
        available -= cost
        count += 1
    return count


class Compactor:
    """Carries out compaction plans. Has no state."""

    def __init__(self, database: Database, summariser: Summariser) -> None:
        self._database = database
        self._summariser = summariser

    async def compact(self, plan: CompactionPlan, tokenizer: Tokenizer, *, persist: bool) -> Compaction | None:
        """Summarise what a plan covers. None when that changed meanwhile, or another process compacted it first.

        With `persist` the compaction is stored for the next turns. Without, no model is used and nothing is stored.
        """
        earlier = [] if plan.previous is None else [SummaryInput("", plan.previous.through[0], plan.previous.text)]
        inputs = [*earlier, *summary_inputs([(message, "") for message in plan.covered])]
        where = plan.conversation
        account = UsageAccount(where.tenant_id, WorkKind.SUMMARY, plan.agent, where.id, where.user_id)
        writer = plan.agent if persist else None
        written = await self._summariser.summarise(inputs, plan.summary_tokens, tokenizer, account, writer)
        compaction = _compaction(plan, written)
        return compaction if not persist or await self._store_compaction(compaction, plan) else None

    async def _store_compaction(self, compaction: Compaction, plan: CompactionPlan) -> bool:
        """Store it, unless one of its messages was erased or edited, or the namespace changed, while it was written."""
        async with self._database.transaction(plan.conversation.tenant_id) as tx:
            row = (await tx.conversations.lock([compaction.conversation_id])).get(compaction.conversation_id)
            if row is None or row.conversation.namespace != compaction.namespace:
                return False
            if not await tx.compactions.sources_unchanged([*plan.covered, *plan.remaining]):
                return False
            return await tx.compactions.add(compaction)


def _compaction(plan: CompactionPlan, written: SummaryText) -> Compaction:
    newest, last = (plan.remaining or plan.covered)[-1], plan.covered[-1]
    conversation, previous = plan.conversation, plan.previous
    sources = [("message", message.id) for message in (*plan.covered, *plan.remaining)]
    sources += [(item.kind, uuid.UUID(item.id)) for item in plan.counted]
    if previous is not None:
        sources.append((COMPACTION, previous.id))
    return Compaction(
        id=derived_id(COMPACTION, str(conversation.id), str(plan.agent.id), conversation.namespace, str(newest.id)),
        conversation_id=conversation.id,
        agent_id=plan.agent.id,
        namespace=conversation.namespace,
        visibility=conversation.visibility,
        user_id=conversation.user_id,
        through=(last.at, last.seq),
        made=(newest.at, newest.seq),
        messages=len(plan.covered) + (0 if previous is None else previous.messages),
        text=written.text,
        tokens=written.tokens,
        model=written.model,
        before=plan.view_before,
        after=plan.view_after,
        requested=plan.requested,
        created_at=plan.at,
        sources=tuple(dict.fromkeys(sources)),
    )


def compaction_item(compaction: Compaction, agent: Agent) -> Item:
    """The prompt item of a compaction. `why` explains it by its `reasons`."""
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
