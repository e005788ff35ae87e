"""Deliveries: where answers are posted on their platforms, and which have to be retracted there."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.model import ConversationKind
from composer.ports.database import Row, Statements
from composer.repositories.erasure import Source, source_parameters


@dataclass(frozen=True, slots=True)
class Destination:
    """Where on its platform an answer is posted: `name` is the room's id there (the agent's slug in a DM), `message`
    the id of the message to answer, `user` its author's id. What an agent posts of itself, such as a reminder, answers
    none: `message` is "" then, and it can't be posted before `since`."""

    platform: str
    workspace: str
    kind: ConversationKind
    name: str
    thread: str | None
    private: bool
    message: str
    user: str | None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Retractable:
    """A posted part of an answer that has to be retracted, and where it is."""

    turn_id: uuid.UUID
    external_id: str
    to: Destination


class Deliveries:
    """Posted parts of answers, and the queue of retractions."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def destination(self, turn: uuid.UUID) -> Destination | None:
        """Where an answer is posted; None when its question was erased."""
        row = await self._sql.fetch_one("turn_destination", turn_id=turn)
        return None if row is None else destination_from_row(row)

    async def may_show(self, turn: uuid.UUID, sources: Sequence[Source], derived: Sequence[uuid.UUID]) -> bool:
        """Whether an answer may be shown where it was asked for: its question was not erased, nor its room made public
        since, nor was anything that it is made from erased or edited (see `Erasure.changed_sources`)."""
        return bool(await self._sql.fetch_value("turn_may_show", turn_id=turn, **source_parameters(sources, derived)))

    async def parts(self, turn: uuid.UUID) -> dict[int, str]:
        """The external ids of an answer's posted parts, by number."""
        rows = await self._sql.fetch("deliveries_of_turn", turn_id=turn)
        return {row["part"]: row["external_id"] for row in rows}

    async def record_part(self, turn: uuid.UUID, part: int, external_id: str, now: datetime) -> bool:
        """Record that a part of an answer is posted. False when its question was erased: then it must be retracted."""
        recorded = await self._sql.fetch_value(
            "delivery_record", turn_id=turn, part=part, external_id=external_id, now=now
        )
        return recorded is not None

    async def is_ours(self, external_id: str) -> bool:
        """Whether a message on the platform is a posted answer or a privacy notice."""
        return bool(await self._sql.fetch_value("delivered_by_us", external_id=external_id))

    async def posted(self, conversation: uuid.UUID, since: datetime, limit: int) -> dict[str, datetime]:
        """When the parts of a conversation's answers were posted since a time, by their external ids, latest first."""
        rows = await self._sql.fetch("deliveries_since", conversation_id=conversation, since=since, limit=limit)
        return {row["external_id"]: row["sent_at"] for row in rows}

    async def take_deleted_part(
        self, container: uuid.UUID, external_id: str, platform: str, workspace: str, *, direct: bool
    ) -> uuid.UUID | None:
        """The stored reply of which this is a posted part, in a room with its threads or a session, or (`direct`) in
        any DM of the workspace; the part is no longer recorded as posted. None when it is no part of a reply."""
        reply: uuid.UUID | None = await self._sql.fetch_value(
            "delivery_take_deleted",
            container_id=container,
            external_id=external_id,
            platform=platform,
            workspace=workspace,
            direct=direct,
        )
        return reply

    async def queue_retractions(
        self,
        replies: Sequence[uuid.UUID],
        questions: Sequence[uuid.UUID] = (),
        *,
        excluded_conversations: Collection[uuid.UUID] = (),
    ) -> None:
        """Queue the posted parts of these replies for retraction, and of unfinished replies to these questions; what is
        posted in the `excluded_conversations` stays.

        Call it before anything of them is erased.
        """
        await self._sql.execute(
            "retractions_queue",
            reply_ids=list(replies),
            question_ids=list(questions),
            excluded_conversations=list(excluded_conversations),
        )

    async def pending_retractions(self, served: str, limit: int) -> list[Retractable]:
        """Queued retractions of a platform, or of one workspace of it (`slack:T123`)."""
        return [
            Retractable(row["turn_id"], row["external_id"], destination_from_row(row))
            for row in await self._sql.fetch("retractions_pending", served=served, limit=limit)
        ]

    async def complete_retraction(self, retraction: Retractable) -> None:
        """Remove a retraction from the queue: the platform carried it out, or never will."""
        await self._sql.execute("retraction_done", turn_id=retraction.turn_id, external_id=retraction.external_id)


def destination_from_row(row: Row) -> Destination:
    """A destination from its row."""
    return Destination(
        row["platform"],
        row["workspace"],
        ConversationKind(row["kind"]),
        row["name"],
        row["thread"],
        row["private"],
        row["message"],
        row["user_external_id"],
        row["since"],
    )
