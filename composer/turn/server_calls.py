"""Judge, before each call of a tool server, whether anything of a turn may still be sent to it.

A turn can take minutes, and its prompt was composed at its beginning. Meanwhile people forget and opt out, and rooms
are closed or shared with others.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from composer import visibility
from composer.errors import Refused
from composer.ingest.recording import Recording, decide_recording
from composer.model import Item, Message, Turn
from composer.prompt.sections import TOOLS, Prompt, Section
from composer.repositories.database import Database
from composer.turn.sources import derived_ids, message_and_memory_texts
from composer.visibility import AccessContext

NOT_SENT: Final = "Nothing was sent: since the question was asked, "
ERASED: Final = f"{NOT_SENT}it or something that the prompt shows was erased or edited."
NOT_STORED: Final = f"{NOT_SENT}its author has opted out of being stored, or this room stores nothing any more."
NOT_HERE: Final = f"{NOT_SENT}it has changed who reads this conversation, and the server may not be asked in it now."


class ServerCalls:
    """Judges the calls of one turn."""

    def __init__(self, database: Database, turn: Turn, question: Message) -> None:
        self._database, self._turn, self._question = database, turn, question

    async def judge(self, prompt: Prompt, brought: Sequence[Item], used_in: Callable[[AccessContext], bool]) -> None:
        """Judge a call as of this moment. `brought` is what tools added to the prompt; `used_in` says whether the
        server may be asked by who has such an access. Raises Refused with the sentence for the model, and
        Unavailable."""
        question = self._question
        assert question.user_id is not None
        whole = replace(prompt, sections=(*prompt.sections, Section(TOOLS, "", 0, tuple(brought))))
        async with self._database.transaction(self._turn.tenant_id, snapshot=True) as tx:
            turn, stored = await tx.turns.get(self._turn.id), await tx.messages.get(question.id)
            if turn is None or stored is None or stored.text != question.text:
                raise Refused(ERASED)
            policy, opted_out = await tx.messages.recording_of(question.id)
            if decide_recording(policy, opted_out=opted_out, wants_answer=True) is not Recording.STORE:
                raise Refused(NOT_STORED)
            access = await tx.conversations.access_context(self._turn.conversation_id, question.user_id, question.trust)
            if access is None or not visibility.may_participate(access) or not used_in(access):
                raise Refused(NOT_HERE)
            if await tx.erasure.changed_sources(message_and_memory_texts(whole), derived_ids(whole)):
                raise Refused(ERASED)
