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
    """A posted part of an answer that has to be retracted, and where it is. One with a `part`, its number, may be
    posted without its id being recorded: its `external_id` is "". `refused_since`: since when its platform refuses it.
    """

    turn_id: uuid.UUID
    external_id: str
    to: Destination
    part: int | None = None
    refused_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class RefusedRetractions:
    """How many posts ("answer") or files ("file") in a workspace the platform refuses to retract, and since when the
    first."""

    what: str
    platform: str
    workspace: str
    count: int
    since: datetime


class Deliveries:
    """Posted parts of answers, and the queue of retractions."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def destination(self, turn: uuid.UUID) -> Destination | None:
        """Where an answer is posted; None when its question was erased."""
        found = await self.posted(turn)
        return None if found is None else found[0]

    async def posted(self, turn: uuid.UUID) -> tuple[Destination, dict[int, str]] | None:
        """Where an answer is posted, with the external ids of its posted parts, by number; None when its question was
        erased."""
        row = await self._sql.fetch_one("turn_destination", turn_id=turn)
        return None if row is None else (destination_from_row(row), dict(row["parts"]))

    async def may_show(self, turn: uuid.UUID, sources: Sequence[Source], derived: Sequence[uuid.UUID]) -> bool:
        """Whether an answer may be shown where it was asked for: its question was not erased, nor its room made public
        since, nor was anything that it is made from erased or edited (see `Erasure.changed_sources`)."""
        return bool(await self._sql.fetch_value("turn_may_show", turn_id=turn, **source_parameters(sources, derived)))

    async def record_part(self, turn: uuid.UUID, part: int, external_id: str, now: datetime) -> bool:
        """Record that a part of an answer is posted. False when its question was erased: then it must be retracted."""
        recorded = await self._sql.fetch_value(
            "delivery_record", turn_id=turn, part=part, external_id=external_id, now=now
        )
        return recorded is not None

    async def is_ours(self, external_id: str) -> bool:
        """Whether a message on the platform is a posted answer or a privacy notice."""
        return bool(await self._sql.fetch_value("delivered_by_us", external_id=external_id))

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
        """Queue the posted parts of these replies for retraction, and of unfinished replies to these questions, also
        the one that may be posted and is not recorded; what is posted in the `excluded_conversations` stays.

        Call it before anything of them is erased.
        """
        await self._sql.execute(
            "retractions_queue",
            reply_ids=list(replies),
            question_ids=list(questions),
            excluded_conversations=list(excluded_conversations),
        )

    async def queue_retraction(
        self, turn: uuid.UUID, to: Destination, external_id: str, part: int | None = None
    ) -> None:
        """Queue one post for retraction, by its id, or by its `part` if it may be posted without its id being known
        (`external_id` is "" then). Its turn may be gone."""
        await self._sql.execute(
            "retraction_queue_post",
            platform=to.platform,
            workspace=to.workspace,
            external_id=external_id,
            turn_id=turn,
            kind=to.kind.value,
            name=to.name,
            thread=to.thread,
            private=to.private,
            message=to.message,
            user_external_id=to.user,
            part=part,
            since=to.since,
        )

    async def pending_retractions(self, served: str, limit: int, now: datetime) -> list[Retractable]:
        """Queued retractions of a platform, or of one workspace of it (`slack:T123`), that are to be tried now; last
        those that failed before."""
        return [
            Retractable(
                row["turn_id"], row["external_id"], destination_from_row(row), row["part"], row["refused_since"]
            )
            for row in await self._sql.fetch("retractions_pending", served=served, limit=limit, now=now)
        ]

    async def postpone_retraction(
        self, retraction: Retractable, retry_at: datetime, refused_since: datetime | None
    ) -> None:
        """Try a retraction again from a time on. `refused_since`: since when the platform refuses it."""
        await self._sql.execute(
            "retraction_postpone",
            turn_id=retraction.turn_id,
            external_id=retraction.external_id,
            retry_at=retry_at,
            refused_since=refused_since,
        )

    async def retry_retractions(self, served: str) -> None:
        """Try the posts and files that a platform, or one workspace of it, has refused again now."""
        await self._sql.execute("retractions_retry", served=served)

    async def refused_retractions(self) -> list[RefusedRetractions]:
        """The posts, then the files, that their platform refuses to retract, by workspace."""
        return await self._sql.fetch_as(RefusedRetractions, "retractions_refused")

    async def drop_retractions(self, conversations: Collection[uuid.UUID]) -> None:
        """Remove the retractions in rooms and threads that were deleted on their platform."""
        await self._sql.execute("retractions_drop", conversation_ids=list(conversations))

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
