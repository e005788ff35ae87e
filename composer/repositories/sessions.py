"""Sessions: what a person said to agents over the API and in the terminal, and what was answered."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from composer.model import Attachment, ConversationKind, Role, Trust, TurnState, Usage
from composer.ports.database import Row, Statements
from composer.visibility import Owned, PoolMember, Readable

Place = tuple[datetime, uuid.UUID]  # in a list: of the last row that was seen


class AnswerRating(StrEnum):
    """What a person thinks of an answer."""

    GOOD = "good"
    BAD = "bad"
    NONE = "none"  # they said nothing, or took it back


_RATINGS: Final = {AnswerRating.GOOD: 1, AnswerRating.BAD: -1, AnswerRating.NONE: None}
_RATED: Final = {stored: rating for rating, stored in _RATINGS.items()}


@dataclass(frozen=True, slots=True)
class SessionName:
    """Which session: our own id, its name, the slug of its agent, and the project that it is in now."""

    id: uuid.UUID
    name: str
    agent: str
    project_id: uuid.UUID | None
    project: str | None


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session of a person, and when the last message in it was sent."""

    session: SessionName
    last_at: datetime


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A summary of a part of a session: of what was said without a long pause (`tier` session), or of a day or week in
    it."""

    tier: str
    starts_at: datetime
    ends_at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class ProjectSession:
    """A session of a project, whose it is, and when the last message in it was sent. `own`: the viewer's; only theirs
    has a name."""

    session: SessionName
    author: str
    user_id: uuid.UUID
    own: bool
    last_at: datetime


@dataclass(frozen=True, slots=True)
class SessionExchange:
    """What a person said in a session, and its answer. `id` is the message's, `sent_with` the one that it was sent
    with. `files` came with it, here without their texts. `posted`: the agent said it of itself; then `text` is its own.
    `turn` None: nobody was to answer, or the answer was erased. `rating`: what the person thinks of the answer.
    `answer` None: there is none yet, or there is the sentence `failure` in its place."""

    id: uuid.UUID
    at: datetime
    sent_with: str
    text: str
    session: SessionName
    posted: bool
    turn: uuid.UUID | None
    state: TurnState | None
    answer: str | None
    failure: str | None
    answered_at: datetime | None
    rating: AnswerRating = AnswerRating.NONE
    files: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """A turn of a session. `user_id` is its person, `trust` how far they were trusted when they asked. `prompt` is
    JSON text, None where it has expired or was erased; `took_ms` how long the answer took in all, None where it is not
    stored."""

    id: uuid.UUID
    state: TurnState
    session: SessionName
    user_id: uuid.UUID
    trust: Trust
    external_id: str
    at: datetime
    answer: str | None
    failure: str | None
    answered_at: datetime | None
    prompt: str | None
    model: str
    usage: Usage
    took_ms: float | None = None


class Sessions:
    """Reads of a person's own sessions, and of those that their projects read. Each takes an `Owned`, which only
    composer/visibility.py makes; `projects` are those whose sessions a credential may know of (None: all)."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def find(
        self,
        owned: Owned,
        projects: Sequence[uuid.UUID] | None,
        *,
        id: uuid.UUID | None = None,
        named: str | None = None,
        words: str | None = None,
        limit: int,
        after: Place | None = None,
    ) -> list[StoredSession]:
        """The sessions that hold a message, the one with the latest message first: at most `limit`, from those on that
        come `after` (last_at, id) of another one. `id` lists that one alone, `named` those of a name and of the same
        name with a number, `words` those whose name holds them (in lower case)."""
        rows = await self._own(
            "sessions_list", owned, projects, **_after(after), id=id, named=named, words=words, limit=limit
        )
        return [StoredSession(_session(row, row["id"]), row["last_at"]) for row in rows]

    async def pool(self, project: uuid.UUID) -> list[PoolMember]:
        """The sessions that were put into a project, for `composer.visibility.pooled_sessions`."""
        return [
            PoolMember(
                row["namespace"],
                ConversationKind.SESSION,
                private=True,
                pooled=True,
                owner_role=None if row["role"] is None else Role(row["role"]),
            )
            for row in await self._sql.fetch("project_sessions_pooled", project_id=project)
        ]

    async def of_project(
        self, owned: Owned, readable: Readable, project: uuid.UUID, *, limit: int, after: Place | None = None
    ) -> list[ProjectSession]:
        """The sessions of a project that hold a message, the one with the latest message first: the person's own, and
        those that are readable; at most `limit`, from those on that come `after` (last_at, id) of another one."""
        rows = await self._sql.fetch(
            "project_sessions",
            user_ids=list(owned.users),
            pooled=list(readable.pooled),
            project_id=project,
            limit=limit,
            **_after(after),
        )
        return [
            ProjectSession(
                _session(row, row["id"]), row["author"], row["user_id"], owned.admits(row["user_id"]), row["last_at"]
            )
            for row in rows
            if owned.admits(row["user_id"]) or row["namespace"] in readable.pooled
        ]

    async def messages(
        self,
        owned: Owned,
        projects: Sequence[uuid.UUID] | None,
        *,
        agent: str | None = None,
        session: str | None = None,
        project: uuid.UUID | None = None,
        limit: int,
        after: Place | None = None,
    ) -> list[SessionExchange]:
        """What the person said in their sessions, newest first: at most `limit`, from those on that come `after` (at,
        id) of another one. `agent` (a slug), `session` (a name) and `project` list only what was said there."""
        rows = await self._own(
            "session_messages",
            owned,
            projects,
            **_after(after),
            agent=agent,
            session=session,
            project=project,
            limit=limit,
        )
        return [_exchange(row) for row in rows]

    async def summaries(
        self, owned: Owned, projects: Sequence[uuid.UUID] | None, id: uuid.UUID
    ) -> list[SessionSummary]:
        """The summaries of a session of the person's, the earliest first."""
        rows = await self._own("session_summaries", owned, projects, id=id)
        return [SessionSummary(row["tier"], row["starts_at"], row["ends_at"], row["text"]) for row in rows]

    async def turn(self, owned: Owned, projects: Sequence[uuid.UUID] | None, id: uuid.UUID) -> SessionTurn | None:
        """A turn of the person's sessions."""
        rows = await self._own("session_turn", owned, projects, id=id)
        return _turn(rows[0]) if rows else None

    async def rate(self, turn: SessionTurn, rating: AnswerRating) -> None:
        """Record what the person of a turn thinks of its answer; of one without an answer nothing."""
        await self._sql.execute("session_turn_rate", id=turn.id, rating=_RATINGS[rating])

    async def _own(self, query: str, owned: Owned, projects: Sequence[uuid.UUID] | None, **values: Any) -> list[Row]:
        """The rows of a query, each checked again."""
        known = None if projects is None else list(projects)
        rows = await self._sql.fetch(query, user_ids=list(owned.users), projects=known, **values)
        return [row for row in rows if owned.admits(row["user_id"])]


def _after(after: Place | None) -> dict[str, Any]:
    at, id = (None, None) if after is None else after
    return {"before_at": at, "before_id": id}


def _session(row: Row, id: uuid.UUID) -> SessionName:
    return SessionName(id, row["name"], row["agent"], row["project_id"], row["project"])


def _exchange(row: Row) -> SessionExchange:
    posted = row["posted"]
    return SessionExchange(
        row["id"],
        row["at"],
        row["external_id"],
        row["text"],
        _session(row, row["conversation_id"]),
        posted,
        row["turn_id"],
        None if row["state"] is None else TurnState(row["state"]),
        None if posted else row["answer"],
        row["failure"],
        row["answered_at"],
        _RATED[row["rating"]],
        tuple(Attachment(**each) for each in json.loads(row["files"])),
    )


def _turn(row: Row) -> SessionTurn:
    usage = Usage(row["prompt_tokens"] or 0, row["completion_tokens"] or 0, row["cached_tokens"] or 0)
    return SessionTurn(
        row["id"],
        TurnState(row["state"]),
        _session(row, row["conversation_id"]),
        row["user_id"],
        Trust(row["trust"]),
        row["external_id"],
        row["at"],
        row["answer"],
        row["failure"],
        row["answered_at"],
        row["prompt"],
        row["model"] or "",
        usage,
        None if row["timings_ms"] is None else json.loads(row["timings_ms"]).get("total"),
    )
