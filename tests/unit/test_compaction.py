"""Compaction over whole conversations: prompts within their budget, compactions ten messages apart, none repeated."""

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from composer.layers.working import latest_window
from composer.model import Agent, Conversation, ConversationKind, Item, Message, Visibility
from composer.ports.models import Tokenizer
from composer.prompt.budget import budget_of, pack
from composer.prompt.sections import COMPACTION, EXTRACTIVE, PromptInput
from composer.repositories.compactions import Compaction
from composer.stores.models.tokens import tokenizer_for
from composer.summaries.compaction import (
    MIN_MESSAGES_BETWEEN,
    CompactionPlan,
    View,
    compaction_item,
    current_view,
    plan_compaction,
)

START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
NAMESPACE = "room:here"
ROOM = Conversation(uuid.UUID(int=7), uuid.UUID(int=8), ConversationKind.ROOM, "general", NAMESPACE)
AGENT = Agent(uuid.UUID(int=1), "nexus", "Nexus", "You are Nexus.", "", 8_000)
WORD = "abc "  # a token


@dataclass(frozen=True)
class Quarters:
    """Count four characters as one token, which is fast for texts of millions of characters."""

    exact: bool = True

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


@dataclass(frozen=True)
class LongConversation:
    """A conversation in an agent's window. `sizes`: tokens of its messages. `addressed_agents`: numbers of the messages
    with which a person requests a compaction. `written`: how much of its budget each summary takes, in percent."""

    window: int
    sizes: tuple[int, ...]
    pinned: tuple[int, ...] = ()
    summaries: tuple[int, ...] = ()
    recalled: tuple[int, ...] = ()
    recall_tokens: int = 2_000
    addressed_agents: frozenset[int] = frozenset()
    written: int = 100
    replies: int = 3
    reply_tokens: int = 1_024
    tokenizer: Tokenizer = Quarters()


@st.composite
def conversations(draw: st.DrawFn) -> LongConversation:
    """Draw a conversation: its messages and pinned items are small, large, or larger than the window."""
    size = draw(st.one_of(st.sampled_from([4_000, 8_000, 128_000, 1_000_000]), st.integers(4_000, 1_000_000)))
    # In thousandths of the window. A few messages larger than the window are enough: megabytes are slow.
    some = st.sampled_from([0, 0, 1, 2, 5, 10, 10, 15, 20, 30, 100])
    shares = draw(st.lists(some, min_size=1, max_size=70))
    for _ in range(draw(st.integers(0, 3))):
        shares[draw(st.integers(0, len(shares) - 1))] = draw(st.sampled_from([300, 700, 1_000, 2_000]))
    usual = draw(st.sampled_from([0, 0, 1, 5, 15]))

    def many(shares: list[int], most: int) -> st.SearchStrategy[tuple[int, ...]]:
        entries = st.lists(st.sampled_from(shares), max_size=most)
        return entries.map(lambda found: tuple(share * size // 1_000 for share in found))

    return LongConversation(
        size,
        tuple((share + usual) * size // 1_000 + draw(st.integers(0, 9)) for share in shares),
        draw(st.one_of(many([0, 1, 2, 3], 30), many([0, 5, 50, 400, 1_500], 6))),
        draw(many([0, 1, 10, 60], 8)),
        draw(many([0, 1, 10, 300], 12)),
        draw(st.sampled_from([0, 2_000, 100_000])),
        frozenset(draw(st.lists(st.integers(0, 90), max_size=6))),
        draw(st.sampled_from([0, 10, 100])),
        draw(st.sampled_from([1, 2, 3, 5])),
        draw(st.sampled_from([1, 1_024, 60_000])),
        Quarters(draw(st.booleans())),
    )


def words(tokens: int) -> str:
    return WORD * tokens


def message(seq: int, tokens: int, by_agent: bool) -> Message:
    person, agent, name = (None, AGENT.id, "Nexus") if by_agent else (uuid.UUID(int=3), None, "alice")
    id, at = uuid.UUID(int=1_000 + seq), START + timedelta(minutes=seq)
    return Message(id, f"m{seq}", seq, at, person, agent, name, words(tokens), NAMESPACE, Visibility.PUBLIC)


def items(layer: str, kind: str, sizes: tuple[int, ...]) -> list[Item]:
    return [
        Item(layer, kind, str(uuid.UUID(int=90_000 + n)), words(size), START, NAMESPACE, Visibility.PUBLIC, score=1.0)
        for n, size in enumerate(sizes)
    ]


def carried_out(made: CompactionPlan, conversation: LongConversation) -> Compaction:
    """Carry out a plan, with a summary of the length that the conversation specifies."""
    through, newest = made.covered[-1], (made.remaining or made.covered)[-1]
    tokens = made.summary_tokens * conversation.written // 100
    text, id = words(tokens), uuid.UUID(int=50_000 + newest.seq)
    return Compaction(
        id, ROOM.id, AGENT.id, NAMESPACE, Visibility.PUBLIC, None, (through.at, through.seq), (newest.at, newest.seq),
        len(made.covered), text, tokens, EXTRACTIVE, made.before, 0, made.requested, newest.at,
    )  # fmt: skip


@given(conversations())
@example(LongConversation(8_000, (90,) * 90))
@example(LongConversation(4_000, (8_000,) * 40))
@example(LongConversation(4_000, (100,) * 80, pinned=(2_000, 3_000, 9_000)))
@example(LongConversation(8_000, (90,) * 90, addressed_agents=frozenset(range(90))))
@example(LongConversation(8_000, tuple(range(10, 400, 5)), tokenizer=tokenizer_for("")))
@example(LongConversation(8_000, tuple(range(10, 400, 5)), tokenizer=tokenizer_for("a model that nobody knows")))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_prompts_stay_within_budget_and_compactions_are_ten_messages_apart(conversation: LongConversation) -> None:
    agent = replace(AGENT, window=conversation.window, reply_tokens=conversation.reply_tokens)
    budget, current, log, made_at = budget_of(agent), None, list[Message](), list[int]()
    pinned, summaries = (
        items("structured", "fact", conversation.pinned),
        items("episodic", "day", conversation.summaries),
    )
    recall = items("semantic", "episode", conversation.recalled)
    for seq, size in enumerate(conversation.sizes, 1):
        log.append(message(seq, size, by_agent=seq % conversation.replies == 0))
        asked = replace(
            message(100_000, conversation.sizes[-seq], by_agent=False), at=log[-1].at + timedelta(seconds=1)
        )
        shown = current_view(latest_window(log).recent, current)
        counted = (*pinned, *summaries)
        by_hand = seq in conversation.addressed_agents
        due = plan_compaction(
            ROOM, agent, shown, counted, conversation.recall_tokens, asked.at, conversation.tokenizer, requested=by_hand
        )
        if due is not None:
            check_plan(due, shown)
            current = carried_out(due, conversation)
            made_at.append(due.remaining[-1].seq)
            shown = current_view(latest_window(log).recent, current)
            assert shown.messages == due.remaining, "the next view has exactly the remaining messages"
            for again in (False, True):
                assert (
                    plan_compaction(
                        ROOM, agent, shown, counted, 2_000, asked.at, conversation.tokenizer, requested=again
                    )
                    is None
                ), "a compaction follows at once"
        earlier = None if shown.compaction is None else compaction_item(shown.compaction, agent)
        prompt_input = PromptInput(
            agent, "You are in the room #general.", asked, pinned, (), summaries, shown.messages, recall,
            conversation.recall_tokens, earlier,
        )  # fmt: skip
        prompt = pack(prompt_input, conversation.tokenizer)
        assert prompt.tokens <= budget
        assert sum(conversation.tokenizer.count(role.content) for role in prompt.role_messages) <= budget
    assert all(later - first >= MIN_MESSAGES_BETWEEN for first, later in pairwise(made_at))


def check_plan(due: CompactionPlan, shown: View) -> None:
    """Check that each message is either summarised or remains in the view, and that there are some of both."""
    assert due.covered + due.remaining == shown.messages
    assert len(due.covered) >= 2
    assert due.remaining


def test_a_long_conversation_is_compacted_well_below_the_budget() -> None:
    conversation = LongConversation(8_000, (90,) * 60)
    log = [message(seq, 120, by_agent=False) for seq in range(1, 60)]
    agent = replace(AGENT, window=conversation.window)
    due = plan_compaction(
        ROOM, agent, current_view(latest_window(log).recent, None), (), 2_000, START, conversation.tokenizer
    )
    assert due is not None
    assert due.before > budget_of(agent)
    assert due.outside + due.summary_tokens + due.remaining_tokens < 0.6 * agent.window
    assert compaction_item(carried_out(due, conversation), agent).kind == COMPACTION
