"""Landmarks: decisions that are pinned in every prompt of their scope."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from composer.model import Trust, Visibility
from composer.ports.database import Row, Statements
from composer.repositories.explanations import MessageAddress, address_from_row
from composer.repositories.lineage import insert_lineage
from composer.repositories.readable import pattern_of, readable_parameters
from composer.visibility import Readable

MAX_PROPOSED: Final = 5  # unconfirmed landmarks of a namespace, the latest
PROPOSAL_LIFETIME: Final = timedelta(days=14)  # of a proposed landmark that nobody accepts


class LandmarkState(StrEnum):
    """Extracted from messages, confirmed by a person, or no longer pinned. The first two are pinned."""

    PROPOSED = "proposed"
    PINNED = "pinned"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Landmark:
    """A decision that is pinned until a person retires it.

    `messages` are the external ids of the messages that it was found in, as read; `sources` are what it was made
    from, to be stored. `replaces` is the version before this one; `settled_by` is who pinned or retired it.
    `lapsed`: it was proposed and nobody accepted it in time, so it is pinned no more.
    """

    id: uuid.UUID
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    text: str
    author: str
    decided_at: datetime
    state: LandmarkState = LandmarkState.PINNED
    settled_by: str | None = None
    replaces: uuid.UUID | None = None
    messages: tuple[str, ...] = ()
    sources: tuple[tuple[str, uuid.UUID], ...] = ()
    lapsed: bool = False
    trust: Trust = Trust.MEMBER

    @property
    def vendors(self) -> tuple[str, ...]:
        """Landmarks are not restricted by vendor."""
        return ("*",)


@dataclass(frozen=True, slots=True)
class LandmarkMessage:
    """A message that a landmark was found in, as whoever may read it sees it, and its `address` on the platform.
    `uploaded_by`: the admin from whose file it came, by name."""

    landmark_id: uuid.UUID
    id: uuid.UUID
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    author: str
    text: str
    at: datetime
    address: MessageAddress
    uploaded_by: str = ""

    @property
    def vendors(self) -> tuple[str, ...]:
        """Messages are not restricted by vendor."""
        return ("*",)


class Landmarks:
    """Stored landmarks."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def find(self, readable: Readable, at: datetime, *, retired: bool = False) -> list[Landmark]:
        """The landmarks decided by a time, oldest first; `retired` includes those that are retired or have lapsed."""
        rows = await self._sql.fetch(
            "landmarks_readable",
            **readable_parameters(readable.without_pool()),
            at=at,
            retired=retired,
            max_proposed=MAX_PROPOSED,
            lifetime=PROPOSAL_LIFETIME,
        )
        return [landmark_from_row(row) for row in rows]

    async def with_words(
        self, readable: Readable, words: Sequence[str], without: Sequence[uuid.UUID], at: datetime, limit: int
    ) -> list[Landmark]:
        """The latest that hold or are proposed and have all of these words in their text, in any case, and are of
        nobody of `without`."""
        rows = await self._sql.fetch(
            "landmarks_found",
            **readable_parameters(readable.without_pool()),
            patterns=[pattern_of(word) for word in words],
            without=list(without),
            at=at,
            lifetime=PROPOSAL_LIFETIME,
            limit=limit,
        )
        return [each for each in map(landmark_from_row, rows) if readable.admits(each)]

    async def messages(self, readable: Readable, landmarks: Sequence[uuid.UUID]) -> list[LandmarkMessage]:
        """The readable messages of people that landmarks were found in, oldest first; without those of people who
        opted out."""
        if not landmarks:
            return []
        rows = await self._sql.fetch("landmark_messages", landmark_ids=list(landmarks), **readable_parameters(readable))
        found = [
            LandmarkMessage(
                row["landmark_id"],
                row["id"],
                row["namespace"],
                Visibility(row["visibility"]),
                row["user_id"],
                row["author"],
                row["text"],
                row["at"],
                address_from_row(row),
            )
            for row in rows
        ]
        return [message for message in found if readable.admits(message)]

    async def add(self, landmarks: Sequence[Landmark]) -> None:
        """Store landmarks with their lineage. Existing ones stay unchanged."""
        rows = await self._sql.fetch(
            "landmarks_insert",
            ids=[landmark.id for landmark in landmarks],
            namespaces=[landmark.namespace for landmark in landmarks],
            user_ids=[landmark.user_id for landmark in landmarks],
            agent_ids=[None for _ in landmarks],
            visibilities=[str(landmark.visibility) for landmark in landmarks],
            texts=[landmark.text for landmark in landmarks],
            authors=[landmark.author for landmark in landmarks],
            decided_at=[landmark.decided_at for landmark in landmarks],
            states=[str(landmark.state) for landmark in landmarks],
            replaces=[landmark.replaces for landmark in landmarks],
            trusts=[str(landmark.trust) for landmark in landmarks],
        )
        new = {row["id"] for row in rows}
        await insert_lineage(
            self._sql,
            [
                ("landmark", landmark.id, *source)
                for landmark in landmarks
                if landmark.id in new
                for source in landmark.sources
            ],
        )

    async def set_state(self, id: uuid.UUID, state: LandmarkState, by: str, now: datetime) -> bool:
        """Pin or retire a landmark; False when it has that state already or is retired."""
        row = await self._sql.fetch_one("landmark_set_state", id=id, state=str(state), user_name=by, now=now)
        return row is not None

    async def find_confirmed(self) -> list[uuid.UUID]:
        """The landmarks that a person pinned, accepted or amended, and the versions before them."""
        return [row["id"] for row in await self._sql.fetch("landmarks_confirmed")]

    async def find_settled(self, messages: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, uuid.UUID, str]]:
        """(message, id, text) of the landmarks found in these messages that a person accepted, amended or retired."""
        rows = await self._sql.fetch("landmarks_settled", message_ids=list(messages))
        return [(row["source_id"], row["id"], row["text"]) for row in rows]

    async def add_sources(self, id: uuid.UUID, sources: Sequence[tuple[str, uuid.UUID]]) -> None:
        """Record further messages in which a landmark was found; nothing when there is no such landmark."""
        kinds, ids = [kind for kind, _ in sources], [source for _, source in sources]
        await self._sql.execute("landmark_add_sources", id=id, source_kinds=kinds, source_ids=ids)

    async def correct(self, id: uuid.UUID, text: str) -> None:
        """Correct the text of a landmark."""
        await self._sql.execute("landmark_correct", id=id, text=text)


def landmark_from_row(row: Row) -> Landmark:
    """A landmark as `landmarks_readable` returns it."""
    return Landmark(
        row["id"],
        row["namespace"],
        Visibility(row["visibility"]),
        row["user_id"],
        row["text"],
        row["author"],
        row["decided_at"],
        LandmarkState(row["state"]),
        row["settled_by"],
        row["replaces"],
        tuple(row["messages"]),
        lapsed=row["lapsed"],
    )
