"""Ask the model: stream its answer, and carry out the tools that it calls."""

from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from composer.errors import EmptyAnswer, NexusError, for_operator
from composer.memory.index import without_mentions
from composer.model import Offer, Turn, Usage
from composer.ports.models import ChatMessage, MeteredModel, ToolCall, Work, WorkKind, whole_text
from composer.prompt.lines import quote
from composer.prompt.sections import Prompt
from composer.tasks.signals import InteractivePriority
from composer.text.asked import Asked
from composer.text.claims import Claim, claim_notice, may_claim, read_verdict
from composer.text.instructions import template
from composer.text.work import off_loop
from composer.turn.answers import DraftAnswer
from composer.turn.citations import cites
from composer.turn.delivery import Delivery
from composer.turn.forget_offer import forget_offer
from composer.turn.proposals import REMEMBER_LABEL, ProposedWrite
from composer.turn.question import asked_text
from composer.turn.reading import PromptRequest
from composer.turn.timing import timed
from composer.turn.tools import MemoryTools, ToolSession

logger = structlog.get_logger()

CLAIMS_PROMPT: Final = "claims.v1"
MAX_CHECKED_CHARS: Final = 2_000  # of the message, and of the answer
MAX_OFFERED_CHARS: Final = 200  # of a message that a command repeats
VERDICT_TOKENS: Final = 16


class ModelAsker:
    """Asks the model with the prompt of a draft, and writes what it answers into the draft."""

    def __init__(self, model: MeteredModel, tools: MemoryTools, priority: InteractivePriority) -> None:
        self._model = model
        self._tools = tools
        self._priority = priority

    async def ask(self, request: PromptRequest, turn: Turn, draft: DraftAnswer, delivery: Delivery) -> None:
        """Ask the model with the draft's prompt, carry out the tools that it calls and ask it again. Each chunk of the
        answer goes to the delivery."""
        assert draft.composed is not None
        text = request.message.text
        asked = await off_loop(len(text), partial(Asked, text, request.agent.name))
        tools = await self._tools.open(request, turn, draft.composed, asked)
        # The worker paused background indexing for this turn. From here on we mostly wait for the model: let it resume.
        # (If composing fails, the worker does.)
        self._priority.end(turn.id)
        proposals = list[ProposedWrite]()
        # Set first, so that a model that says "I will remind you" is right.
        if tools is None:
            fulfilled = await self._tools.fulfil_wish(request, draft.composed, asked)
            if isinstance(fulfilled, ProposedWrite):
                proposals = [fulfilled]
            elif any(fulfilled):
                draft.notices, draft.notices_without_quotes = fulfilled
        try:
            with timed(draft.timings_ms, "model"):
                while await self._ask_once(request, turn, draft, delivery, tools):
                    pass
        except EmptyAnswer:
            said = [*draft.notices, *proposals] if tools is None else [*tools.notices, *tools.proposals]
            if not draft.text.strip() and not said:
                raise  # else it said all that it had to say before it called a tool, or the notices say it
        finally:
            if tools is not None:
                draft.notices, draft.notices_without_quotes = tools.notices, tools.notices_without_quotes
                proposals = tools.proposals
        draft.offers += [each.offer for each in proposals]
        # What was written; what waits for a yes; what was not done, though it says so; how to have forgotten what the
        # message asks to forget; images that were not sent.
        offer = forget_offer(draft.composed, request.message, asked)
        claim = await self._false_claim(request, turn, draft)
        questions = [each.question for each in proposals]
        remarks = [*draft.notices, *questions, *filter(None, (claim, offer)), *draft.composed.prompt.image_notices]
        if remarks:
            text = ("\n\n" if draft.text else "") + "\n".join(remarks)
            await delivery.on_chunk(turn, text)
            draft.text += text

    async def complete(self, request: PromptRequest, prompt: Prompt) -> str:
        """The whole answer to a prompt, without tools. It is stored nowhere. Raises as `MeteredModel.stream`."""
        work = Work(request.tenant_id, WorkKind.ANSWER, request.agent, request.conversation_id, request.asker)
        return whole_text([chunk async for chunk in self._model.stream(work, prompt.role_messages)])

    async def _false_claim(self, request: PromptRequest, turn: Turn, draft: DraftAnswer) -> str | None:
        """The sentence that what an answer says to have done was not done; None where it says nothing of that. The
        agent's model is asked about an answer that may say so, where nothing was written and no source is cited."""
        agent = request.agent
        if not agent.model or draft.notices or draft.offers or cites(draft.text) or not may_claim(draft.text):
            return None
        parts = (("MESSAGE", request.message.text), ("ANSWER", draft.text))
        shown = "\n".join(f"[{name}]\n{quote(text[:MAX_CHECKED_CHARS])}" for name, text in parts)
        messages = [ChatMessage("system", template(CLAIMS_PROMPT)), ChatMessage("user", shown)]
        asked = replace(agent, reply_tokens=VERDICT_TOKENS, reasoning_effort="", tools=False)
        work = Work(turn.tenant_id, WorkKind.ANSWER, asked, turn.conversation_id, request.asker)
        try:
            chunks = [chunk async for chunk in self._model.stream(work, messages)]
        except NexusError as error:
            logger.warning("turn.claim_unchecked", turn=str(turn.id), error=for_operator(error))
            return None
        draft.usage = sum((chunk.usage for chunk in chunks if chunk.usage), draft.usage)
        verdict = read_verdict(whole_text(chunks))
        if verdict is None:
            return None
        said = " ".join(without_mentions(asked_text(request.message)).split())
        words = said if verdict[0] is Claim.STORE and 0 < len(said) <= MAX_OFFERED_CHARS else "TEXT"
        command = f"/nexus remember {words}" if verdict[0] is Claim.STORE else "/nexus remind WHEN TEXT"
        if words is said and words:
            draft.offers.append(Offer(REMEMBER_LABEL, command))
        return claim_notice(*verdict, command)

    async def _ask_once(
        self, request: PromptRequest, turn: Turn, draft: DraftAnswer, delivery: Delivery, tools: ToolSession | None
    ) -> bool:
        """Ask the model once. Returns whether it called tools; then they were carried out, and the draft's prompt has
        what they brought."""
        assert draft.composed is not None
        offered = () if tools is None else tools.offered()
        messages = draft.composed.prompt.role_messages
        work = Work(turn.tenant_id, WorkKind.ANSWER, request.agent, turn.conversation_id, request.asker, offered)
        before, said, calls, used = draft.text, "", list[ToolCall](), Usage()
        try:
            async for chunk in self._model.stream(work, messages):
                if chunk.restarts:
                    said, draft.text = "", before
                if chunk.text:
                    if not said and draft.text:  # it said something before it called a tool
                        await delivery.on_chunk(turn, "\n\n")
                        draft.text += "\n\n"
                    await delivery.on_chunk(turn, chunk.text)
                said, draft.text = said + chunk.text, draft.text + chunk.text
                used, draft.model = chunk.usage or used, chunk.model or draft.model
                calls.extend(chunk.calls)
        finally:
            draft.usage = draft.usage + used
        if tools is None:
            return False
        try:
            if calls and offered:
                await tools.run(said, calls)
        finally:  # also if it was stopped: a call may have been sent
            draft.composed = tools.composed()
        return bool(calls and offered)
