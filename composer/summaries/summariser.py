"""The summariser: has a model write a summary, or extracts one when there is no model, or it fails or is too slow."""

import asyncio
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import partial
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
from composer.summaries.evidence import evidence_of, supported_text
from composer.summaries.extractive import candidate_sentences, extractive_summary
from composer.summaries.texts import IN_FILE, SummaryInput, SummaryText, attributed_line
from composer.text.instructions import template
from composer.text.terms import sentences
from composer.text.work import COUNTED_PER_READ, in_thread, off_loop

logger = structlog.get_logger()

SUMMARY_PROMPT_VERSION: Final = "summary.v1"
MODEL_TIMEOUT_SECONDS: Final = 60.0  # for one part, hidden reasoning included
WORDS_PER_TOKEN: Final = 0.7
PART_SHARE: Final = 0.5  # of a model's window, that one part of a long text may take
MIN_SUMMARY_PART_TOKENS: Final = 500
MIN_REPLY_TOKENS: Final = 16
MIN_PROMPTED_WORDS: Final = 10


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
        people: Collection[str] = (),
        by_meaning: bool = True,
    ) -> SummaryText:
        """Summarise inputs, oldest first, in at most `budget` tokens, under the name of `account`. Never fails.
        `people`: whom earlier summaries among the inputs name. `by_meaning`: an extractive summary compares sentences
        by their meaning, which takes seconds for hundreds.

        The model of `agent` writes; what nobody said of it is left out (composer/summaries/evidence.py). Without it,
        when it fails or says little that somebody did, or when its budget is used up, the summary is extractive.
        Without inputs, or without a budget, the text is empty.
        """
        if self._model is not None and agent is not None and inputs and budget > 0:
            for_summaries, whom = agent.for_summaries, (account.conversation_id, account.user_id)
            work = Work(account.tenant_id, WorkKind.SUMMARY, for_summaries, *whom)
            model = work.agent.model
            try:
                written = self._write(self._model, inputs, budget, tokenizer, work, people) if model else None
                text, writer = await written if written else ("", "")
                if text:
                    return SummaryText(text, writer or model, tokenizer.count(text))
                if model:
                    logger.warning("summary.model_said_nothing", model=model)
            except BudgetUsedUp:
                logger.info("summary.without_model", model=model)  # the meter says so loudly, once
            except Exception as error:  # whatever a model does, there is a summary
                logger.warning("summary.model_failed", model=model, error=for_operator(error) or type(error).__name__)
        return await self.extract(inputs, budget, tokenizer, account, by_meaning=by_meaning)

    async def extract(
        self,
        inputs: Sequence[SummaryInput],
        budget: int,
        tokenizer: Tokenizer,
        account: UsageAccount,
        *,
        by_meaning: bool = True,
    ) -> SummaryText:
        """Summarise without a model. Sentences are compared by their terms unless `by_meaning`, when the embedder does
        not answer, or when its budget is used up."""
        candidates = await in_thread(candidate_sentences, inputs)
        vectors: Vectors | None = None
        try:
            if candidates and by_meaning:
                texts = [embedding_text(sentence.text) for sentence in candidates]
                account = replace(account, kind=WorkKind.EMBEDDING)
                vectors = await self._embedder.embed(texts, account, compared=True)
        except BudgetUsedUp:
            pass  # the ledger has said so, once
        except Unavailable as error:
            logger.warning("embedder.unavailable", error=for_operator(error))
        return await in_thread(extractive_summary, candidates, vectors, budget, tokenizer, self._embedder.scale)

    async def _write(
        self,
        asked: MeteredModel,
        inputs: Sequence[SummaryInput],
        budget: int,
        tokenizer: Tokenizer,
        work: Work,
        people: Collection[str],
    ) -> tuple[str, str]:
        """The text, and the model that wrote its last part."""
        agent, written_by, zone = work.agent, "", self._zone(work.tenant_id)
        lines = [
            attributed_line(author, text, f" ({source.at.astimezone(zone):%Y-%m-%d %H:%M})")
            for source in inputs
            for author, text in ((source.author, source.text), *((source.author + IN_FILE, f) for f in source.files))
        ]
        max_tokens = max(int(agent.window * PART_SHARE), MIN_SUMMARY_PART_TOKENS)
        parts = await off_loop(sum(map(len, lines)) // COUNTED_PER_READ, partial(_parts, lines, max_tokens, tokenizer))
        part_budget = max(budget // len(parts), 1)
        writer = replace(agent, reply_tokens=max(part_budget, MIN_REPLY_TOKENS))
        texts = []
        for part in parts:
            request = [
                ChatMessage("system" if agent.system_role else "user", summary_prompt(part_budget)),
                ChatMessage("user", part),
            ]
            async with asyncio.timeout(MODEL_TIMEOUT_SECONDS):
                chunks = [chunk async for chunk in asked.stream(replace(work, agent=writer), request)]
            texts.append(whole_text(chunks).strip())
            written_by = next((chunk.model for chunk in chunks if chunk.model), written_by)
        written = "\n".join(texts)
        chars = len(written) + sum(len(text) for source in inputs for text in (source.text, *source.files))
        said = await off_loop(chars, lambda: supported_text(written, evidence_of(inputs, zone, people)))
        return _fitting(said.splitlines(), budget, tokenizer), written_by


def summary_prompt(budget: int) -> str:
    """The instruction to write a summary of `budget` tokens."""
    return template(SUMMARY_PROMPT_VERSION).format(words=max(int(budget * WORDS_PER_TOKEN), MIN_PROMPTED_WORDS))


def _parts(lines: Sequence[str], max_tokens: int, tokenizer: Tokenizer) -> list[str]:
    """Lines joined to texts of about `max_tokens` each at most; a longer line is cut in its middle."""
    parts: list[list[str]] = [[]]
    filled = 0
    for line in lines:
        shown = line
        if len(line) > max_tokens * 2:
            shown = f"{line[: max_tokens * 3 // 2]} … {line[-max_tokens // 4 :]}"
        cost = tokenizer.count(shown) + 1
        if parts[-1] and filled + cost > max_tokens:
            parts.append([])
            filled = 0
        parts[-1].append(shown)
        filled += cost
    return ["\n".join(part) for part in parts]


def _fitting(lines: Sequence[str], budget: int, tokenizer: Tokenizer) -> str:
    """As many lines from the beginning as fit; when the first one alone is too long, as many of its sentences."""
    fitting: list[str] = []
    left = budget
    for line in lines:
        cost = tokenizer.count(line) + 1
        if cost > left:
            units = sentences(line)
            if not fitting and len(units) > 1:
                return _fitting(units, budget, tokenizer)
            break
        fitting.append(line)
        left -= cost
    return "\n".join(fitting)
