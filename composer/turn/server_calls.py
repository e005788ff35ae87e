"""Judge, right before a request leaves for a tool server, whether anything of a turn may still be sent to it.

A turn can take minutes, and its prompt was composed at its beginning. Meanwhile people forget and opt out, rooms are
closed or shared with others, and what was read comes out of reach
(docs/decisions/0030-a-call-is-judged-when-it-leaves.md).
"""

import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from composer import visibility
from composer.errors import Refused
from composer.ingest.recording import Recording, decide_recording
from composer.model import Item, Turn
from composer.ports.memberships import Presence
from composer.prompt.borders import profile_owners
from composer.prompt.explain import can_be_refiled
from composer.prompt.sections import TOOLS, Prompt, Section
from composer.repositories.database import Database, Transaction
from composer.turn.memberships import Memberships
from composer.turn.reading import PromptRequest, presence_of_asker
from composer.turn.sources import derived_ids, message_and_memory_texts
from composer.visibility import AccessContext

NOT_SENT: Final = "Nothing was sent: since the question was asked, "
NOT_SENT_ERASED: Final = f"{NOT_SENT}it or something that the prompt shows was erased or edited."
NOT_SENT_UNSTORED: Final = f"{NOT_SENT}its author has opted out of being stored, or this room stores nothing any more."
NOT_HERE: Final = f"{NOT_SENT}it has changed who reads this conversation, and the server may not be asked in it now."
NOT_READ: Final = f"{NOT_SENT}something that the prompt shows may not be read here any more."


class ServerCalls:
    """Judges the calls of one turn."""

    def __init__(self, database: Database, memberships: Memberships, request: PromptRequest, turn: Turn) -> None:
        self._database, self._memberships, self._request, self._turn = database, memberships, request, turn
        self._question = request.message

    @asynccontextmanager
    async def sending(
        self, prompt: Prompt, brought: Sequence[Item], used_in: Callable[[AccessContext], bool]
    ) -> AsyncIterator[None]:
        """Judge a call as of this moment; then no erasure ends before the body does. So what somebody has forgotten is
        not sent from the moment on that they are told so.

        `brought` is what tools added to the prompt; `used_in` says whether the server may be asked by who has such an
        access. Raises Refused with the sentence for the model, and Unavailable."""
        whole = replace(prompt, sections=(*prompt.sections, Section(TOOLS, "", 0, tuple(brought))))
        presence = await presence_of_asker(self._memberships, self._request)
        async with self._database.transaction(self._turn.tenant_id) as tx:
            await self._judge(tx, whole, used_in, presence)
            yield

    async def _judge(
        self, tx: Transaction, prompt: Prompt, used_in: Callable[[AccessContext], bool], presence: Presence
    ) -> None:
        question = self._question
        assert question.user_id is not None
        stored = await tx.turns.get(self._turn.id)
        if stored is None or stored.question is None:
            raise Refused(NOT_SENT_ERASED)
        facts = await tx.messages.recording_of(question.id)
        if decide_recording(facts.policy, opted_out=facts.opted_out, wants_answer=True) is not Recording.STORE:
            raise Refused(NOT_SENT_UNSTORED)
        access = await tx.conversations.access_context(
            self._turn.conversation_id, question.user_id, question.trust, presence
        )
        if access is None or not visibility.may_participate(access) or not used_in(access):
            raise Refused(NOT_HERE)
        if await tx.erasure.changed_sources(message_and_memory_texts(prompt), derived_ids(prompt)):
            raise Refused(NOT_SENT_ERASED)
        if not await _may_read(tx, access, [item for section in prompt.sections for item in section.sources]):
            raise Refused(NOT_READ)


async def _may_read(tx: Transaction, access: AccessContext, items: Sequence[Item]) -> bool:
    """Whether all of the sources of a prompt may be read where its question was asked, as they are filed now. Whose
    profile is among them took part in the conversation."""
    owners = profile_owners(item.namespace for item in items)
    linked = await tx.people.linked_users(owners)
    people: list[uuid.UUID] = []
    for owner in owners:
        if not {owner, *linked.get(owner, ())} & {access.asker, *people}:
            people.append(owner)
    readable = visibility.readable(replace(access, linked={**linked, **access.linked}), people)
    filed = {uuid.UUID(item.id) for item in items if can_be_refiled(item.layer, item.kind)}
    found = await tx.explanations.find_readable(readable, list(filed))
    return all(readable.admits(item) for item in items) and filed <= found.keys()
