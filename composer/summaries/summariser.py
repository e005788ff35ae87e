"""The summariser: has a model choose the excerpts of a summary, or chooses them itself where there is no model, or it
fails or is too slow.

A summary consists of messages as they were said, or the beginnings of long ones, each after whose it is. A model reads
the words of many at once, and may obey one of them: it is shown the excerpts with numbers and answers with numbers, so
it can put no word into anybody's mouth.
"""

import asyncio
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from itertools import pairwise
from typing import Final

import structlog

from composer.errors import BudgetUsedUp, Unavailable, for_operator
from composer.memory.index import embedding_text
from composer.model import Agent
from composer.ports.models import (
    ChatMessage,
    MeteredEmbedder,
    MeteredModel,
    Tokenizer,
    UsageAccount,
    Vectors,
    Work,
    WorkKind,
    whole_text,
)
from composer.summaries.extractive import (
    MAX_EXCERPTS,
    Excerpt,
    candidate_excerpts,
    extractive_summary,
    in_order,
    line_cost,
    mark_cost,
    shortened,
    whole_summary,
    worth_choosing,
)
from composer.summaries.texts import SummaryInput, SummaryText, attributed_line
from composer.text.instructions import template
from composer.text.work import in_thread

logger = structlog.get_logger()

SUMMARY_PROMPT_VERSION: Final = "summary.v4"
MODEL_TIMEOUT_SECONDS: Final = 60.0  # for one part, hidden reasoning included
WORDS_PER_TOKEN: Final = 0.7
PART_SHARE: Final = 0.5  # of a model's window, that one part of a long text may take
MIN_SUMMARY_PART_TOKENS: Final = 500
REPLY_SHARE: Final = 0.25  # of a summary's tokens, that the numbers of its excerpts may take
MIN_REPLY_TOKENS: Final = 16
MIN_PROMPTED_WORDS: Final = 10

_NUMBERS: Final = re.compile(r"[\s\d,;.()*\[\]\u2013-]*")  # a line of an answer that chooses
_SPAN: Final = re.compile(r"(\d{1,6})(?:\s*[\u2013-]\s*(\d{1,6}))?")


class Summariser:
    """Writes summaries. Has no state beside its embedder and model."""

    def __init__(
        self,
        embedder: MeteredEmbedder,
        model: MeteredModel | None,
        zone: Callable[[uuid.UUID], tzinfo] = lambda _: UTC,
    ) -> None:
        """`zone` gives a tenant's time zone: a model copies the times that it is shown, and people read them in
        digests. Without a `model` all summaries are extractive."""
        self._embedder = embedder
        self._model = model
        self._zone = zone

    async def summarise(
        self,
        inputs: Sequence[SummaryInput],
        budget: int,
        tokenizer: Tokenizer,
        account: UsageAccount,
        agent: Agent | None = None,
        *,
        by_meaning: bool = True,
    ) -> SummaryText:
        """Summarise inputs, oldest first, in at most `budget` tokens, under the name of `account`. Never fails.
        `by_meaning`: an extractive summary compares excerpts by their meaning, which takes seconds for hundreds.

        Where all excerpts fit, all are shown. Else the model of `agent` chooses them. Without it, when it fails or
        chooses none, or when its budget is used up, the summary is extractive. Without inputs, or without a budget,
        the text is empty.
        """
        candidates = await in_thread(candidate_excerpts, inputs)
        if whole := await in_thread(whole_summary, candidates, budget, tokenizer):
            return whole
        if self._model is not None and agent is not None and candidates and budget > 0:
            for_summaries, whom = agent.for_summaries, (account.conversation_id, account.user_id)
            work = Work(account.tenant_id, WorkKind.SUMMARY, for_summaries, *whom)
            model = work.agent.model
            try:
                if model:
                    chosen, chosen_by = await self._choose(self._model, candidates, budget, tokenizer, work)
                    if chosen:
                        text = in_order(chosen)
                        return SummaryText(text, chosen_by or model, tokenizer.count(text))
                    logger.warning("summary.model_chose_nothing", model=model)
            except BudgetUsedUp:
                logger.info("summary.without_model", model=model)  # the meter says so loudly, once
            except Exception as error:  # whatever a model does, there is a summary
                logger.warning("summary.model_failed", model=model, error=for_operator(error) or type(error).__name__)
        return await self._extract(candidates, budget, tokenizer, account, by_meaning=by_meaning)

    async def _extract(
        self,
        candidates: Sequence[Excerpt],
        budget: int,
        tokenizer: Tokenizer,
        account: UsageAccount,
        *,
        by_meaning: bool = True,
    ) -> SummaryText:
        """Choose without a model. Excerpts are compared by their terms unless `by_meaning`, when the embedder does
        not answer, or when its budget is used up."""
        candidates = worth_choosing(candidates)
        vectors: Vectors | None = None
        try:
            if candidates and by_meaning:
                texts = [embedding_text(each.text) for each in candidates]
                account = replace(account, kind=WorkKind.EMBEDDING)
                vectors = await self._embedder.embed(texts, account, compared=True)
        except BudgetUsedUp:
            pass  # the ledger has said so, once
        except Unavailable as error:
            logger.warning("embedder.unavailable", error=for_operator(error))
        return await in_thread(extractive_summary, candidates, vectors, budget, tokenizer, self._embedder.scale)

    async def _choose(
        self,
        asked: MeteredModel,
        candidates: Sequence[Excerpt],
        budget: int,
        tokenizer: Tokenizer,
        work: Work,
    ) -> tuple[list[Excerpt], str]:
        """The excerpts that a model chooses, of one that is too long its beginning, each with what goes with it, or
        not at all; and the model that chose the last of them."""
        agent, chosen_by, zone = work.agent, "", self._zone(work.tenant_id)
        moments = (candidate.at.astimezone(zone) for candidate in candidates)
        lines = [
            f"{number}. {attributed_line(candidate.author, candidate.text, f' ({at:%Y-%m-%d %H:%M})')}"
            for number, (candidate, at) in enumerate(zip(candidates, moments, strict=True), start=1)
        ]
        parts = await in_thread(_parts, lines, max(int(agent.window * PART_SHARE), MIN_SUMMARY_PART_TOKENS), tokenizer)
        part_budget = max(budget // len(parts), 1)
        most = part_budget - mark_cost(tokenizer)
        chooser = replace(agent, reply_tokens=max(int(part_budget * REPLY_SHARE), MIN_REPLY_TOKENS))
        chosen: dict[tuple[int, int], Excerpt] = {}
        by_order = {each.order: each for each in candidates}
        for part in parts:
            request = [
                ChatMessage("system" if agent.system_role else "user", summary_prompt(part_budget)),
                ChatMessage("user", "\n".join(lines[part.start : part.stop])),
            ]
            async with asyncio.timeout(MODEL_TIMEOUT_SECONDS):
                chunks = [chunk async for chunk in asked.stream(replace(work, agent=chooser), request)]
            named = dict.fromkeys(number - 1 for number in numbers_in(whole_text(chunks)) if number - 1 in part)
            left = most
            for n in named:
                excerpt = candidates[n] if left < most else shortened(candidates[n], most, tokenizer)
                if excerpt is None or excerpt.order in chosen:
                    continue
                both = [excerpt, *(by_order[order] for order in excerpt.later if order not in chosen)]
                if (cost := sum(line_cost(each, tokenizer) for each in both)) <= left:
                    chosen.update((each.order, each) for each in both)
                    left -= cost
            chosen_by = next((chunk.model for chunk in chunks if chunk.model), chosen_by)
        return list(chosen.values()), chosen_by


def summary_prompt(budget: int) -> str:
    """The instruction to choose the excerpts of a summary of `budget` tokens."""
    return template(SUMMARY_PROMPT_VERSION).format(words=max(int(budget * WORDS_PER_TOKEN), MIN_PROMPTED_WORDS))


def numbers_in(answer: str) -> Iterator[int]:
    """The numbers of an answer that chooses excerpts, in its order: of its lines that hold numbers and spans of
    numbers alone, after a colon or without one."""
    for line in answer.splitlines():
        numbers = line.rpartition(":")[2]
        if _NUMBERS.fullmatch(numbers):
            for first, last in _SPAN.findall(numbers):
                yield from range(int(first), min(int(last or first), int(first) + MAX_EXCERPTS) + 1)


def _parts(lines: Sequence[str], max_tokens: int, tokenizer: Tokenizer) -> list[range]:
    """The indices of lines, in parts of about `max_tokens` each at most."""
    borders, filled = [0], 0
    for n, line in enumerate(lines):
        cost = tokenizer.count(line) + 1
        if n > borders[-1] and filled + cost > max_tokens:
            borders.append(n)
            filled = 0
        filled += cost
    return [range(*pair) for pair in pairwise([*borders, len(lines)])]
