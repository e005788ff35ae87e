"""A turn, from a stored message to a delivered answer. Start reading here.

    resolve the viewer → read the layers → pack the prompt → ask the model → store the answer → deliver it

`Drafter` (composer/turn/drafting.py) writes a draft of the answer. For that, `Composer` (compose.py) resolves the
viewer, reads the layers of memory and packs the prompt; `ModelAsker` (asking.py) asks the model, which may search and
write memory while it answers. `AnswerStore` (answers.py) stores the draft. `Delivery` (delivery.py) shows the answer to
people: each adapter implements that interface.

An *answer* is either a *reply*, which is a message of the log, or a *failure*: the sentence that tells the person why
there is no reply. A failure is stored with the turn, and is no message of the log.

A turn is QUEUED when its question is stored, ANSWERED when its answer is stored, and SENT when the adapter has shown
the answer, or when the platform has refused it permanently. A conversation has one owner at a time: the process that
holds the lock of it, which the database frees when the process dies, or its connection breaks. Whoever owns it next
goes on from the state that the turn has reached (worker.py). A process that has lost the lock and does not know it yet
may answer a turn beside the next owner: then the answer that is stored first counts.

What an agent posts on its own initiative, such as a reminder, is a turn too. It is stored as ANSWERED, and only
delivered here. Nobody asked: the only message of the turn is the text to post, which stands in the place of the
question as well as in that of the reply.

Between the question and the delivery, people may take back what the answer is made of:

- What is *erased* is gone. An edit erases the words that it takes out of a message, and is judged as follows by them.
- A reply that is *retracted* stays a message, but a notice that something was forgotten takes the place of its text, in
  the log and where it was shown. This is done when its question is erased, or a source that it is made of, or one of
  whose rare words it repeats; also while it is being delivered.
- If the question or the reply is erased before the delivery begins, the turn is *withdrawn*: nobody sees an answer any
  more, and the turn becomes SENT without one. While the turn is QUEUED, it is deleted with its question instead.
- If the reply is erased later, its post is deleted. One question's erasure leaves the reply as it is: Nexus itself
  erases what somebody asks who has opted out, soon after the delivery.
- A private room may be *opened*: made public. A reply to what was asked before that would show to everybody what only
  the room's members may read. So the asker gets the sentence ROOM_OPENED, as a failure. A reply that is stored already
  stays in the log, marked as said while the room was private: nobody is shown it any more. What an agent posts on its
  own initiative is withdrawn.

Until the answer is whole, people see the pieces of it that the model has written. These are hidden once anything that
the answer is made of is erased or edited, or the room is opened (`Drafter.may_show`). The whole answer is judged when
it is stored: it is retracted if it is made of a source that was erased or edited meanwhile.
"""

from dataclasses import replace

import structlog

from composer.errors import Refused, Unavailable, for_operator
from composer.model import Agent, Message, Turn, TurnState, Visibility
from composer.ports.clock import Clock
from composer.ports.memberships import NOWHERE
from composer.ports.observer import TurnOutcome, TurnReport
from composer.repositories.database import Database
from composer.repositories.turns import Answer, StoredTurn
from composer.turn.answers import ROOM_OPENED, AnswerStore, DraftAnswer
from composer.turn.citations import cited_messages, cites
from composer.turn.delivery import Delivery
from composer.turn.drafting import Drafter
from composer.turn.memberships import Memberships
from composer.turn.timing import timed

logger = structlog.get_logger()


class Responder:
    """Answers turns."""

    def __init__(
        self, database: Database, drafter: Drafter, answers: AnswerStore, clock: Clock, memberships: Memberships
    ) -> None:
        self._database = database
        self._memberships = memberships
        self._drafter = drafter
        self._answers = answers
        self._clock = clock

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery, asked: Message | None = None) -> TurnReport:
        """Answer a turn, deliver the answer, and return how that ended. A turn that an earlier attempt has answered, in
        this process or another, is only delivered. `asked` is the question of a turn that this process has stored just
        now: then the turn is QUEUED, and is not read first.

        If drafting fails, the answer is a failure. Raises Unavailable when the answer cannot be stored or delivered
        because the database or the platform does not answer: the worker then tries again.
        """
        found = await self._read(turn) if asked is None else StoredTurn(turn, TurnState.QUEUED, asked)
        if found is not None and found.state is TurnState.SENT:
            return TurnReport(turn, TurnOutcome.ANSWERED_ELSEWHERE)  # or by an earlier attempt of this process
        if found is None or (question := found.question_unless_withdrawn) is None:
            return await self._end_withdrawn(turn, delivery)
        draft = DraftAnswer()
        if found.state is TurnState.QUEUED:
            # If the room was opened, no draft is needed: `AnswerStore.store` sees that too, and stores ROOM_OPENED.
            if not found.room_opened:
                draft = await self._drafter.draft(turn, agent, question, delivery)
            new_answer = await self._answers.store(turn, agent, question, draft)
            if new_answer is None:
                return await self._end_unstored(turn, draft, delivery)
            answer = new_answer
        else:
            answer = _stored_answer(found, question)
            if found.room_opened:
                answer = replace(answer, message=None, failure=ROOM_OPENED, prompt=None)
        with timed(draft.timings_ms, "deliver"):
            outcome = await self._deliver(await self._with_citations(answer, question), delivery)
        return TurnReport(turn, outcome, draft.timings_ms, draft.usage, draft.model)

    async def _read(self, turn: Turn) -> StoredTurn | None:
        async with self._database.statement(turn.tenant_id) as tx:
            return await tx.turns.get(turn.id)

    async def _with_citations(self, answer: Answer, question: Message) -> Answer:
        """Add to a reply the messages that it cites by their references, such as (s2): an adapter may link to them. A
        source that the asker may not read there any more is left out. Without the database, nothing is added."""
        if answer.failed or not cites(answer.text):
            return answer
        turn, presence = answer.turn, NOWHERE
        try:
            if question.visibility is Visibility.PRIVATE and question.user_id is not None:
                presence = await self._memberships.of(turn.tenant_id, question.user_id, dm=turn.conversation_id)
            async with self._database.transaction(turn.tenant_id, "read") as tx:
                cited = await cited_messages(tx, turn, question, answer.prompt, answer.text, presence)
        except Unavailable as error:
            logger.warning("turn.citations_unavailable", turn=str(answer.turn.id), error=for_operator(error))
            return answer
        return replace(answer, cited=cited)

    async def _deliver(self, answer: Answer, delivery: Delivery) -> TurnOutcome:
        """Deliver an answer and mark its turn as sent; returns how the turn ended.

        A reply that is retracted while it is delivered is delivered once more, with the notice as its text; until that
        is done, the turn is not SENT. For a failure, such as ROOM_OPENED, the text of a stored reply does not matter.
        Once the turn is SENT, whatever erases or retracts something also removes or replaces what was posted. An answer
        that the platform is receiving just when the room is opened is not stopped, and stays posted.
        """
        turn = answer.turn
        while True:
            try:
                await delivery.deliver(answer)
            except Refused as error:  # the platform will never take it
                logger.warning("turn.refused", turn=str(turn.id), reason=str(error))
                async with self._database.transaction(turn.tenant_id) as tx:
                    await tx.turns.give_up(turn.id, str(error))  # it is SENT
                    await tx.reminders.mark_refused(turn.id)  # if the turn posts a reminder
                return TurnOutcome.REFUSED
            found = await self._answers.mark_delivered(answer)
            # Where ERASED is returned below, the post is removed too: the adapter stores the post's id, which the
            # erasure finds; if the erasure came first, the adapter sees that and removes the post itself.
            if found is None:  # the turn was erased, with its whole conversation
                return TurnOutcome.ERASED
            if found.sent:
                if answer.failed:
                    return TurnOutcome.FAILED
                return TurnOutcome.ERASED if found.message is None else TurnOutcome.DELIVERED
            answer = found  # with the notice in place of its text

    async def _mark_sent(self, turn: Turn) -> None:
        async with self._database.transaction(turn.tenant_id) as tx:
            await tx.turns.mark_sent(turn.id, self._clock.now())

    async def _end_withdrawn(self, turn: Turn, delivery: Delivery) -> TurnReport:
        """End a turn that is withdrawn. What an earlier attempt may have shown of its answer is removed. A turn that is
        still stored becomes SENT: else the next process would take it up again."""
        await delivery.abandon(turn)
        await self._mark_sent(turn)
        return TurnReport(turn, TurnOutcome.ERASED)

    async def _end_unstored(self, turn: Turn, draft: DraftAnswer, delivery: Delivery) -> TurnReport:
        """End a turn whose draft was not stored. If the turn was erased meanwhile, what was shown of the draft is
        removed. Otherwise another process has stored an answer, and delivers it. Adapters find what is shown of a turn
        by the turn's id, so that answer takes the place of what was shown of this draft."""
        erased = await self._read(turn) is None
        if erased:
            await delivery.abandon(turn)
        outcome = TurnOutcome.ERASED if erased else TurnOutcome.ANSWERED_ELSEWHERE
        return TurnReport(turn, outcome, draft.timings_ms, draft.usage, draft.model)


def _stored_answer(stored: StoredTurn, question: Message) -> Answer:
    """The answer of a turn that is ANSWERED. A failure has no reply: its text is stored with the turn."""
    return Answer(
        stored.turn,
        message=stored.reply,
        failure=stored.failure,
        prompt=stored.prompt,
        in_reply_to="" if question.by_agent else question.external_id,  # what an agent posts answers nobody
    )
