"""Store what an agent posts of itself as its message, with a turn that is answered already.

From there on it is an answer without a question: delivered once whatever is interrupted, retracted where it was posted
when something that it was made from is forgotten, deleted with what is deleted on the platform.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.ingest.receive import unnumbered_seq
from composer.ingest.recording import Recording, decide_recording
from composer.memory.reminding import new_dm
from composer.model import QUOTING_POST_PREFIX, Agent, Message, Turn, derived_id
from composer.repositories.conversations import ConversationRow
from composer.repositories.database import Transaction
from composer.repositories.turns import Answer

POST_PREFIX: Final = "post:"  # begins the external id of an agent's own post


@dataclass(frozen=True, slots=True)
class Post:
    """What an agent posts. `name` tells it from every other post of the conversation; the same one is stored once.
    `sources` are (kind, id) of what it was made from. `quoting`: it repeats what a person wrote, so no prompt shows it
    as the agent's own words."""

    name: str
    text: str
    adapter: str
    sources: tuple[tuple[str, uuid.UUID], ...]
    quoting: bool = False


async def store_dm_post(
    tx: Transaction,
    tenant: uuid.UUID,
    user: uuid.UUID,
    workspace: str,
    agent: Agent,
    post: Post,
    now: datetime,
) -> Turn:
    """Store a post in somebody's DM with an agent, in a workspace of the platform of `post.adapter`; the rest is as for
    `store_post`."""
    dm = new_dm(tenant, user, agent)
    await tx.conversations.ensure(post.adapter, workspace, [dm], now)
    row = (await tx.conversations.lock([dm.id]))[dm.id]
    return await store_post(tx, row, agent, post, now)


async def store_post(tx: Transaction, row: ConversationRow, agent: Agent, post: Post, now: datetime) -> Turn:
    """Store a post in a conversation, and return the turn that delivers it.

    Erasure must be blocked in the transaction, and then the conversation locked (`row`). In a room that stores nothing
    the post is ephemeral, as an answer is.
    """
    conversation = row.conversation
    turn = Turn(
        derived_id("post turn", str(conversation.id), post.name),
        conversation.tenant_id,
        conversation.id,
        derived_id("post", str(conversation.id), post.name),
        agent.id,
        post.adapter,
    )
    ephemeral = decide_recording(row.recording, opted_out=False, wants_answer=True) is Recording.EPHEMERAL
    message = Message(
        id=turn.message_id,
        external_id=f"{QUOTING_POST_PREFIX if post.quoting else POST_PREFIX}{post.name}",
        seq=unnumbered_seq(turn.message_id) if ephemeral else row.last_seq + 1,
        at=now,
        user_id=conversation.user_id,
        agent_id=agent.id,
        author=agent.name,
        text=post.text,
        namespace=conversation.namespace,
        visibility=conversation.visibility,
        ephemeral=ephemeral,
    )
    if await tx.messages.find_known_ids([message.id]):
        return turn
    await tx.messages.append([(conversation.id, message)], indexed=True, turns=[(turn, now)])
    await tx.turns.store_answer(Answer(turn, message=message, sources=post.sources), now)
    return turn
