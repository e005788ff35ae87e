"""What an import will cost: the calls for extraction and summaries that its messages lead to, before it is made."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from composer.ingest.tenants import configured_agent, configured_budget, configured_prices
from composer.memory.extraction import LINE_TOKENS, MAX_BATCH_SIZE
from composer.model import ConversationKind, Incoming, Usage
from composer.ports.extraction import Extraction
from composer.ports.models import WorkKind
from composer.repositories.usage import INSTALLATION, Amount
from composer.settings import Settings
from composer.stores.models.configured import configured_extraction, extraction_agent, extraction_model
from composer.stores.models.mem0_extraction import EXTRACTION_PROMPT_VERSION, MAX_KNOWN_TOKENS
from composer.stores.models.tokens import tokenizer_for
from composer.summaries.summariser import REPLY_SHARE, summary_prompt
from composer.summaries.tiers import MAX_SUMMARY_TOKENS, MIN_MESSAGES, MIN_SUMMARY_TOKENS, TIER_SHARE, activity_sessions
from composer.text.counts import counted
from composer.text.instructions import template

EXTRACTION: Final = "extraction"
ANSWER_SHARE: Final = 0.25  # of the messages' tokens, that the statements found in them have; an assumption
CONFIRM_ABOVE_TOKENS: Final = 1_000_000  # an import that is expected to use more is confirmed first
CONFIRM_ABOVE_MONEY: Final = Decimal(1)  # in the currency of the settings


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """Calls of one model for one kind of work. `cost` is None when the model has no price."""

    kind: str
    model: str
    calls: int
    usage: Usage
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class ImportEstimate:
    """What an import of so many messages is expected to use, if none of them is stored already."""

    messages: int
    parts: tuple[ExpectedCalls, ...]

    @property
    def tokens(self) -> int:
        """The tokens of all calls, of prompts and answers."""
        return sum(part.usage.prompt_tokens + part.usage.completion_tokens for part in self.parts)

    @property
    def cost(self) -> Decimal:
        """What all calls cost, as far as prices are set."""
        return sum((part.cost or Decimal(0) for part in self.parts), Decimal(0))

    @property
    def needs_confirmation(self) -> bool:
        """Whether a person should confirm it first."""
        unpriced = any(part.cost is None for part in self.parts)
        return self.cost > CONFIRM_ABOVE_MONEY or (unpriced and self.tokens > CONFIRM_ABOVE_TOKENS)

    def sentence(self, settings: Settings) -> str:
        """The estimate for a person."""
        prices = configured_prices(settings)
        parts = []
        for part in self.parts:
            cost = "without a price" if part.cost is None else f"about {prices.format(part.cost)}"
            tokens = f"{part.usage.prompt_tokens:,} + {part.usage.completion_tokens:,} tokens"
            parts.append(f"{part.kind} with {part.model}: {counted(part.calls, 'call')}, {tokens}, {cost}")
        return (
            f"The background work on {counted(self.messages, 'message')} is expected to use, if none is stored yet: "
            f"{'; '.join(parts)}. NEXUS_EXTRACTION=pattern extracts without a model."
            f"{''.join(f' {each}' for each in self.budget_warnings(settings))}"
        )

    def budget_warnings(self, settings: Settings) -> list[str]:
        """A sentence for each budget that can't hold the extraction, even if nothing of it is used yet."""
        extracted = [part for part in self.parts if part.kind == EXTRACTION]
        agent = extraction_agent(settings).slug
        found = []
        for entry in settings.budgets:
            budget = configured_budget(entry)
            parts = self.parts if budget.kind is None else extracted
            if not extracted or not budget.counts(WorkKind.EXTRACTION, agent) or budget.holds(_amount(parts)):
                continue
            where = f" of the tenant {entry.tenant}" if entry.tenant else ""
            found.append(
                f"The budget{where} ({budget.describe(configured_prices(settings))}) can't hold that: what no longer "
                "fits is extracted by patterns, and not by the model later. To have the model extract all of it, raise "
                f"the budget first, or load less at a time, the rest in another {budget.period}."
            )
        return found

    def as_json(self, settings: Settings) -> dict[str, Any]:
        """The estimate as JSON."""
        parts = [
            {
                "kind": part.kind,
                "model": part.model,
                "calls": part.calls,
                "prompt_tokens": part.usage.prompt_tokens,
                "completion_tokens": part.usage.completion_tokens,
                "cost": None if part.cost is None else float(part.cost),
            }
            for part in self.parts
        ]
        found = {"messages": self.messages, "tokens": self.tokens, "currency": settings.currency, "parts": parts}
        return found | {"warnings": self.budget_warnings(settings)}


def _amount(parts: Sequence[ExpectedCalls]) -> Amount:
    tokens = sum(part.usage.prompt_tokens + part.usage.completion_tokens for part in parts)
    return Amount(tokens, sum((part.cost or Decimal(0) for part in parts), Decimal(0)))


class ImportEstimator:
    """Adds up what messages will cost, conversation by conversation. Without a model its result is None."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        writers = [configured_agent(agent, INSTALLATION).for_summaries.model for agent in settings.agents]
        extracts = settings.has_model_api and configured_extraction(settings) is Extraction.MEM0
        self._extraction_model = extraction_model(settings) if extracts else ""
        self._summary_model = next((model for model in writers if model), "") if settings.has_model_api else ""
        self._tokenizer = tokenizer_for(self._extraction_model or self._summary_model)
        self._messages: defaultdict[Hashable, list[tuple[datetime, int]]] = defaultdict(list)
        self._own: defaultdict[Hashable, list[tuple[datetime, int]]] = defaultdict(list)  # of each author in each place

    def add(self, place: Hashable, author: str, at: datetime, text: str) -> None:
        """Add a message of a conversation."""
        if self._extraction_model or self._summary_model:
            message = (at, self._tokenizer.count(text) + LINE_TOKENS)
            self._messages[place].append(message)
            self._own[place, author].append(message)

    def add_message(self, message: Incoming) -> None:
        """Add a message of an export."""
        place = message.place
        who = message.user if place.kind is ConversationKind.DM else ""
        self.add((message.workspace, place.name, place.thread, who), message.user, message.at, message.text)

    def result(self) -> ImportEstimate | None:
        """The estimate for all that was added; None when no model will be asked."""
        conversations = [sorted(messages) for messages in self._messages.values()]
        parts = []
        if self._extraction_model:
            parts.append(self._expected_calls(EXTRACTION, self._extraction_model, self._extractions()))
        if self._summary_model:
            parts.append(self._expected_calls("summaries", self._summary_model, self._summaries(conversations)))
        found = tuple(part for part in parts if part.calls)
        return ImportEstimate(sum(map(len, conversations)), found) if found else None

    def _expected_calls(self, kind: str, model: str, calls: Sequence[Usage]) -> ExpectedCalls:
        usage = sum(calls, Usage())
        return ExpectedCalls(kind, model, len(calls), usage, configured_prices(self._settings).cost(model, usage))

    def _extractions(self) -> list[Usage]:
        """One call for each batch of an author's messages, each with all the memories that it may be shown."""
        overhead = self._tokenizer.count(template(EXTRACTION_PROMPT_VERSION)) + MAX_KNOWN_TOKENS
        calls = []
        for messages in map(sorted, self._own.values()):
            batches: list[list[int]] = [[]]
            for _, tokens in messages:
                full = sum(batches[-1]) + tokens > self._settings.extraction_batch or len(batches[-1]) == MAX_BATCH_SIZE
                if batches[-1] and full:
                    batches.append([])
                batches[-1].append(tokens)
            calls += [Usage(overhead + sum(batch), int(sum(batch) * ANSWER_SHARE)) for batch in batches]
        return calls

    def _summaries(self, conversations: Sequence[Sequence[tuple[datetime, int]]]) -> list[Usage]:
        """One call for each session of at least three messages and for each day, and one for each week of its days."""
        zone, calls = self._settings.zone_of(""), list[Usage]()
        for messages in conversations:
            times = [at for at, _ in messages]
            for first, last in activity_sessions(times):
                own = [tokens for _, tokens in messages[bisect_left(times, first) : bisect_right(times, last)]]
                if len(own) >= MIN_MESSAGES:
                    calls.append(self._summary("session", sum(own)))
            days: defaultdict[date, int] = defaultdict(int)
            for at, tokens in messages:
                days[at.astimezone(zone).date()] += tokens
            of_days = {day: self._summary("day", tokens) for day, tokens in days.items()}
            weeks: defaultdict[date, int] = defaultdict(int)
            for day, call in of_days.items():
                weeks[day - timedelta(days=day.weekday())] += call.completion_tokens
            calls += [*of_days.values(), *(self._summary("week", tokens) for tokens in weeks.values())]
        return calls

    def _summary(self, tier: str, tokens: int) -> Usage:
        budget = min(max(int(tokens * TIER_SHARE), MIN_SUMMARY_TOKENS), MAX_SUMMARY_TOKENS[tier])
        return Usage(self._tokenizer.count(summary_prompt(budget)) + tokens, int(budget * REPLY_SHARE))
