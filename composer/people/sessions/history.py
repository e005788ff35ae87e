"""What a person said in their sessions, what was answered, and from what."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from composer import visibility
from composer.entries.namesakes import told_apart
from composer.errors import BadInput, NotFound
from composer.model import TurnState
from composer.people.sessions.owner import SessionOwner
from composer.prompt.cited import cited, marked
from composer.prompt.explain import ExplainedSource
from composer.prompt.sections import FACTS, LANDMARKS, RECALL, SUMMARIES, TOOLS
from composer.repositories.database import Transaction
from composer.repositories.explanations import MessageAddress
from composer.repositories.sessions import (
    ProjectSession,
    SessionExchange,
    SessionSummary,
    SessionTurn,
    StoredSession,
)
from composer.text.cleaning import clean_line
from composer.text.cursors import cursor_of, read_cursor
from composer.turn.explanation import explain_stored
from composer.visibility import EntryAccess

DEFAULT_SESSION_MESSAGES: Final = 50
MAX_SESSION_MESSAGES: Final = 200
UNKNOWN_SESSION: Final = "There is no such conversation of yours: it was forgotten, or was never there."
UNKNOWN_TURN: Final = "There is no such turn."
_MAX_SAME_NAME: Final = 1_000
_USED: Final = (FACTS, LANDMARKS, SUMMARIES, RECALL, TOOLS)  # what a prompt holds besides the conversation itself


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some of a person's sessions, and the cursor with which the next ones are listed; None after the last."""

    sessions: Sequence[StoredSession]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ProjectSessionPage:
    """Some of the sessions of a project, and the cursor with which the next ones are listed; None after the last."""

    sessions: Sequence[ProjectSession]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ExchangePage:
    """Some of what a person said, and the cursor with which the next ones are listed; None after the last."""

    exchanges: Sequence[SessionExchange]
    cursor: str | None


async def list_sessions(
    tx: Transaction,
    owner: SessionOwner,
    *,
    limit: int = DEFAULT_SESSION_MESSAGES,
    before: str | None = None,
    words: str = "",
) -> SessionPage:
    """The person's sessions, the one with the latest message first: all, or those whose names hold some words. Raises
    BadInput."""
    access, after = await owner.access(tx), None if before is None else read_cursor(before)
    found = await tx.sessions.find(
        visibility.owned_by_bearer(access),
        visibility.projects_of_sessions(access),
        words=clean_line(words).lower() or None,
        limit=_checked(limit) + 1,
        after=after,
    )
    shown = found[:limit]
    more = cursor_of(shown[-1].last_at, shown[-1].session.id) if len(found) > limit else None
    return SessionPage(shown, more)


async def list_project_sessions(
    tx: Transaction,
    access: EntryAccess,
    project: uuid.UUID,
    *,
    limit: int = DEFAULT_SESSION_MESSAGES,
    before: str | None = None,
) -> ProjectSessionPage:
    """The sessions of a project of the person's that they or the project read, the one with the latest message first:
    their own by name, and whose the others are. Raises NotFound for any other project, Refused for a tool, and
    BadInput."""
    after = None if before is None else read_cursor(before)
    readable = visibility.pooled_sessions(access, project, await tx.sessions.pool(project))
    owned = visibility.owned_by_bearer(access)
    found = await tx.sessions.of_project(owned, readable, project, limit=_checked(limit) + 1, after=after)
    shown = told_apart(access, found[:limit])
    return ProjectSessionPage(shown, cursor_of(shown[-1].last_at, shown[-1].session.id) if len(found) > limit else None)


async def get_session(tx: Transaction, owner: SessionOwner, id: uuid.UUID) -> StoredSession:
    """One of the person's sessions. Raises NotFound."""
    access = await owner.access(tx)
    found = await tx.sessions.find(
        visibility.owned_by_bearer(access), visibility.projects_of_sessions(access), id=id, limit=1
    )
    if not found:
        raise NotFound(UNKNOWN_SESSION)
    return found[0]


async def session_summaries(tx: Transaction, owner: SessionOwner, session: StoredSession) -> Sequence[SessionSummary]:
    """The summaries of one of the person's sessions, the earliest first."""
    access = await owner.access(tx)
    return await tx.sessions.summaries(
        visibility.owned_by_bearer(access), visibility.projects_of_sessions(access), session.session.id
    )


async def free_name(tx: Transaction, owner: SessionOwner, title: str) -> str:
    """A name for a new session: the title, with a number where the person has sessions that are called so."""
    access = await owner.access(tx)
    found = await tx.sessions.find(
        visibility.owned_by_bearer(access), visibility.projects_of_sessions(access), named=title, limit=_MAX_SAME_NAME
    )
    taken = {each.session.name for each in found}
    numbered = (title if n == 1 else f"{title} ({n})" for n in range(1, len(taken) + 2))
    return next(name for name in numbered if name not in taken)


async def list_exchanges(
    tx: Transaction,
    owner: SessionOwner,
    *,
    agent: str | None = None,
    session: str | None = None,
    project: uuid.UUID | None = None,
    limit: int = DEFAULT_SESSION_MESSAGES,
    before: str | None = None,
) -> ExchangePage:
    """What the person said in their sessions, newest first: with one agent (a slug), in the sessions of one name, in
    one project. Raises BadInput."""
    access, after = await owner.access(tx), None if before is None else read_cursor(before)
    found = await tx.sessions.messages(
        visibility.owned_by_bearer(access),
        visibility.projects_of_sessions(access),
        agent=agent,
        session=session,
        project=project,
        limit=_checked(limit) + 1,
        after=after,
    )
    shown = found[:limit]
    return ExchangePage(shown, cursor_of(shown[-1].at, shown[-1].id) if len(found) > limit else None)


async def get_turn(tx: Transaction, owner: SessionOwner, id: uuid.UUID) -> SessionTurn:
    """A turn of the person's sessions. Raises NotFound for any other, and for one whose question was erased."""
    access = await owner.access(tx)
    turn = await tx.sessions.turn(visibility.owned_by_bearer(access), visibility.projects_of_sessions(access), id)
    if turn is None:
        raise NotFound(UNKNOWN_TURN)
    return turn


@dataclass(frozen=True, slots=True)
class MadeOf:
    """What an answer was made of: its `sources` besides the conversation itself, as far as its person may read them
    now, with the `addresses` of their messages, latest first, as far as they may be named to them; and the tokens of
    the sections of its prompt, in their order, and of all of it, of those that a model takes."""

    sources: Sequence[ExplainedSource] = ()
    addresses: Mapping[uuid.UUID, Sequence[MessageAddress]] = field(default_factory=dict)
    sections: Sequence[tuple[str, int]] = ()
    tokens: int = 0
    window: int = 0

    def address(self, source: ExplainedSource) -> MessageAddress | None:
        """Where the latest message is that a source was made from; None where that may not be named."""
        return next(iter(self.addresses.get(source.id, ())), None) if source.id is not None else None


NOTHING: Final = MadeOf()


async def made_of(tx: Transaction, turn: SessionTurn) -> MadeOf:
    """What an answer was made of. Nothing of one that is not there, that was taken back, or whose prompt is not stored
    any more."""
    if turn.prompt is None or turn.answer is None or turn.state is TurnState.QUEUED:
        return NOTHING
    access = await tx.conversations.access_context(turn.session.id, turn.user_id, turn.trust)
    if access is None:
        return NOTHING
    explained = await explain_stored(tx, access, turn.prompt)
    shown = marked(explained.sections, cited(explained.sections, turn.answer))
    sources = [source for section in shown if section.name in _USED for source in section.sources]
    sections = [(section.name, section.tokens) for section in shown if section.tokens]
    return MadeOf(sources, explained.addresses, sections, explained.tokens, explained.window)


def _checked(limit: int) -> int:
    if not 1 <= limit <= MAX_SESSION_MESSAGES:
        raise BadInput(f"The limit of a page is a number from 1 to {MAX_SESSION_MESSAGES}.")
    return limit
