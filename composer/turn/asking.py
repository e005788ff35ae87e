"""Ask the model: stream its answer, and carry out the tools that it calls."""

from composer.errors import EmptyAnswer
from composer.model import Turn, Usage
from composer.ports.models import MeteredModel, ToolCall, Work, WorkKind
from composer.signals import InteractivePriority
from composer.turn.answers import DraftAnswer
from composer.turn.delivery import Delivery
from composer.turn.forget_offer import forget_offer
from composer.turn.reading import PromptRequest
from composer.turn.timing import timed
from composer.turn.tools import MemoryTools, ToolSession


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
        tools = await self._tools.open(request, turn, draft.composed)
        # The worker paused background indexing for this turn. From here on we mostly wait for the model: let it resume.
        # (If composing fails, the worker does.)
        self._priority.end(turn.id)
        # Set first, so that a model that says "I will remind you" is right.
        if tools is None:
            told, wordless = await self._tools.fulfil_wish(request, draft.composed)
            draft.notices, draft.notices_without_quotes = (
                told or draft.notices,
                wordless or draft.notices_without_quotes,
            )
        try:
            with timed(draft.timings_ms, "model"):
                while await self._ask_once(request, turn, draft, delivery, tools):
                    pass
        except EmptyAnswer:
            if not draft.text.strip() and not (draft.notices if tools is None else tools.notices):
                raise  # else it said all that it had to say before it called a tool, or the notices say it
        finally:
            if tools is not None:
                draft.notices, draft.notices_without_quotes = tools.notices, tools.notices_without_quotes
        # What was written; how to have forgotten what the message asks to forget; images that were not sent.
        offer = forget_offer(draft.composed, request.message)
        remarks = [*draft.notices, *filter(None, (offer,)), *draft.composed.prompt.image_notices]
        if remarks:
            text = ("\n\n" if draft.text else "") + "\n".join(remarks)
            await delivery.on_chunk(turn, text)
            draft.text += text

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
