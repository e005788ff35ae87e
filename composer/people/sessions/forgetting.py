"""Forget a session: everything that its person said and stored there, with all that was made of it."""

import uuid
from datetime import datetime
from pathlib import Path

from composer import visibility
from composer.errors import NotFound
from composer.memory.forget import Receipt
from composer.model import Agent, ConversationKind
from composer.people.erasing import erase
from composer.people.sessions.opening import session_id
from composer.people.sessions.owner import SessionOwner
from composer.repositories.database import Transaction
from composer.repositories.erasure import Selection
from composer.rights.table import Act, judge


async def forget_session(
    tx: Transaction,
    home: Path,
    owner: SessionOwner,
    agent: Agent,
    session: str,
    project: uuid.UUID | None,
    now: datetime,
    key: bytes,
) -> Receipt:
    """Erase a session with one agent; sessions of the same name with others, and in other projects, stay. `project` is
    the id of the one that it was made in, also if the person has left that; `key` is that of the receipt (see `erase`).
    Raises NotFound and Unavailable."""
    access = await owner.access(tx)
    for user in access.users:
        conversation = await tx.conversations.get(session_id(owner, user, agent, session, project))
        if conversation is not None and visibility.may_know_session(access, conversation):
            tx.audit.act_for(owner.user, conversation.id)
            judge([Act.FORGET_OWN], await tx.permissions.facts(conversation, user, []))
            messages, items = await tx.erasure.select(Selection(access.users, conversation.id))
            return await erase(tx, home, messages, items, now, conversation.id, key=key, exports_of=access.users)
    raise NotFound(visibility.unknown_conversation_sentence(ConversationKind.SESSION, session))
