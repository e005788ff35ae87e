"""The summariser: has a model choose the excerpts of a summary, or shows the last ones where there is no model, or it
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

from composer.errors import BudgetUsedUp, for_operator
from composer.model import Agent
from composer.ports.models import (
    ChatMessage,
    MeteredModel,
    Tokenizer,
    UsageAccount,
    Work,
    WorkKind,
    whole_text,
)
from composer.prompt.sections import EXTRACTIVE
from composer.summaries.extractive import (
    MAX_EXCERPTS,
    Excerpt,
    candidate_excerpts,
    in_order,
    last_excerpts,
    named_excerpts,
    since_last_gap,
)
from composer.summaries.texts import SummaryInput, SummaryText, attributed_line
from composer.text.instructions import template
from composer.text.work import in_thread

logger = structlog.get_logger()

SUMMARY_PROMPT_VERSION: Final = "summary.v4"
MODEL_TIMEOUT_SECONDS: Final = 60.0  # for one part, hidden reasoning included
WORDS_PER_TOKEN: Final = 0.3  # that a model may name: the rest is for what may correct it, and for names
PART_SHARE: Final = 0.5  # of a model's window, that one part of a long text may take
MIN_SUMMARY_PART_TOKENS: Final = 500
REPLY_SHARE: Final = 0.25  # of a summary's tokens, that the numbers of its excerpts may take
MIN_REPLY_TOKENS: Final = 16
MIN_PROMPTED_WORDS: Final = 10

_NUMBERS: Final = re.compile(r"[\s\d,;.()*\[\]\u2013-]*")  # a line of an answer that chooses
_SPAN: Final = re.compile(r"(\d{1,6})(?:\s*[\u2013-]\s*(\d{1,6}))?")


class Summariser:
    """Writes summaries. Has no state beside its model."""

    def __init__(self, model: MeteredModel | None, zone: Callable[[uuid.UUID], tzinfo] = lambda _: UTC) -> None:
        """`zone` gives a tenant's time zone: a model copies the times that it is shown, and people read them in
        digests. Without a `model` a summary is the end of what it sums up."""
        self._model = model
        self._zone = zone

    async def summarise(
        self,
        inputs: Sequence[SummaryInput],
        budget: int,
        tokenizer: Tokenizer,
        account: UsageAccount,
        agent: Agent | None = None,
    ) -> SummaryText:
        """Summarise inputs, oldest first, in at most `budget` tokens, under the name of `account`. Never fails.

        Where all excerpts fit, all are shown. Else the model of `agent` chooses them. Without it, when it fails or
        chooses none, or when its budget is used up, the summary is the end of the inputs. Without inputs, or without
        a budget, the text is empty.
        """
        candidates = await in_thread(candidate_excerpts, inputs)
        last = await in_thread(last_excerpts, since_last_gap(inputs, candidates), budget, tokenizer)
        if self._model is not None and agent is not None and len(last) < len(candidates) and budget > 0:
            for_summaries, whom = agent.for_summaries, (account.conversation_id, account.user_id)
            work = Work(account.tenant_id, WorkKind.SUMMARY, for_summaries, *whom)
            model = work.agent.model
            try:
                if model:
                    chosen, chosen_by = await self._choose(self._model, candidates, budget, tokenizer, work)
                    if chosen:
                        return _text_of(chosen, chosen_by or model, tokenizer)
                    logger.warning("summary.model_chose_nothing", model=model)
            except BudgetUsedUp:
                logger.info("summary.without_model", model=model)  # the meter says so loudly, once
            except Exception as error:  # whatever a model does, there is a summary
                logger.warning("summary.model_failed", model=model, error=for_operator(error) or type(error).__name__)
        return _text_of(last, EXTRACTIVE, tokenizer)

    async def _choose(
        self,
        asked: MeteredModel,
        candidates: Sequence[Excerpt],
        budget: int,
        tokenizer: Tokenizer,
        work: Work,
    ) -> tuple[list[Excerpt], str]:
        """The excerpts that a model chooses, with what may correct them as far as there is room; and the model that
        chose the last of them."""
        agent, chosen_by, zone = work.agent, "", self._zone(work.tenant_id)
        moments = (candidate.at.astimezone(zone) for candidate in candidates)
        lines = [
            f"{number}. {attributed_line(candidate.author, candidate.text, f' ({at:%Y-%m-%d %H:%M})')}"
            for number, (candidate, at) in enumerate(zip(candidates, moments, strict=True), start=1)
        ]
        parts = await in_thread(_parts, lines, max(int(agent.window * PART_SHARE), MIN_SUMMARY_PART_TOKENS), tokenizer)
        part_budget = max(budget // len(parts), 1)
        chooser = replace(agent, reply_tokens=max(int(part_budget * REPLY_SHARE), MIN_REPLY_TOKENS))
        chosen: list[Excerpt] = []
        for nth, part in enumerate(parts):
            request = [
                ChatMessage("system" if agent.system_role else "user", summary_prompt(part_budget)),
                ChatMessage("user", "\n".join(lines[part.start : part.stop])),
            ]
            async with asyncio.timeout(MODEL_TIMEOUT_SECONDS):
                chunks = [chunk async for chunk in asked.stream(replace(work, agent=chooser), request)]
            named = dict.fromkeys(number - 1 for number in numbers_in(whole_text(chunks)) if number - 1 in part)
            until = budget * (nth + 1) // len(parts)
            chosen = await in_thread(named_excerpts, candidates, list(named), until, tokenizer, chosen)
            chosen_by = next((chunk.model for chunk in chunks if chunk.model), chosen_by)
        return chosen, chosen_by


def _text_of(shown: Sequence[Excerpt], model: str, tokenizer: Tokenizer) -> SummaryText:
    text = in_order(shown)
    return SummaryText(text, model, tokenizer.count(text) if text else 0)


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
