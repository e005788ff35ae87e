"""`/v1/chat` and `/v1/episodes`: talking with agents in sessions, and what was said there. For people, not tools."""

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import Base64Bytes, BaseModel, ConfigDict, Field
from pydantic_core import to_json

from bot.web.call import IS_REPLAYED, ONCE, Calling
from bot.web.credentials import CHALLENGE, credential_check
from bot.web.dependencies import Nexus
from bot.web.event_stream import EVENT_STREAM, HEARTBEAT, event, streamed
from bot.web.json_answer import json_answer
from bot.web.links import message_link
from bot.web.metering import counts_as, metered_of
from bot.web.principal import Bearer, KeyedRoute
from bot.web.problems import RequestRefused, documented
from bot.web.router import Router
from bot.web.session_files import MAX_FILES, MAX_FILES_BYTES, SentFile
from bot.web.sessions import REVOKED, EventKind, StoredQuestion, TurnEvent, TurnView
from bot.web.shapes.entries import TeamOrProject
from bot.web.shapes.tokens import TokenUsage
from bot.web.state import WebState
from composer.entries.projects import project_id
from composer.errors import Refused
from composer.memory.forget import Receipt
from composer.model import TurnState
from composer.people.credentials.issuing import require_valid
from composer.people.credentials.principal import KeyPermission, Principal
from composer.people.sessions.forgetting import forget_session
from composer.people.sessions.history import (
    DEFAULT_SESSION_MESSAGES,
    MAX_SESSION_MESSAGES,
    get_session,
    list_exchanges,
    list_sessions,
    session_summaries,
)
from composer.people.sessions.history import get_turn as find_turn
from composer.people.sessions.opening import DEFAULT_SESSION, ID_PREFIX, NewSessionMessage, agent_of
from composer.people.sessions.owner import SessionOwner
from composer.repositories.database import Transaction
from composer.repositories.operations import Operation
from composer.repositories.sessions import AnswerRating, SessionExchange, SessionName, StoredSession
from composer.visibility import EntryAccess

router = Router("/v1", tags=["chat"])
asking = Router("/v1", tags=["chat"], route_class=KeyedRoute)
CHAT_PATH: Final = "/v1/chat"
# In Base64 files are a third longer; what is said is beside them.
MAX_CHAT_BYTES: Final = MAX_FILES_BYTES * 4 // 3 + 2**20
MAX_SAID_CHARS: Final = 1_000_000  # as much as a body without files has room for


class TurnStatus(StrEnum):
    """How far an answer has come."""

    QUEUED = "queued"
    ANSWERED = "answered"
    FAILED = "failed"


class ChatFile(BaseModel):
    """A file to say something with: a picture (PNG, JPEG, WebP or GIF), PDF, Word, Excel, PowerPoint, HTML, a mail or a
    text. `type` is its media type, `content` what is in it, in Base64."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=1_000)]
    type: Annotated[str, Field(max_length=200)] = ""
    content: Base64Bytes


class ChatRequest(BaseModel):
    """Something to say to an agent. Without `agent` it is the first, without `session` the session `default`. A session
    made with a `project` (its id or name) belongs to it. `id` names the message: sent again, it changes nothing; the
    header Idempotency-Key does the same. `files`: at most four, of 10 MB together, a picture of 5 MiB; with any,
    `content` may be empty. Their texts are stored with the message, what is in them is kept only until the answer is
    there."""

    model_config = ConfigDict(extra="forbid")

    content: Annotated[str, Field(max_length=MAX_SAID_CHARS)]
    files: Annotated[list[ChatFile], Field(max_length=MAX_FILES)] = Field(default_factory=list)
    agent: str | None = None
    session: str = DEFAULT_SESSION
    project: str | None = None
    id: str | None = None


class NewAnswerRating(BaseModel):
    """What the person thinks of an answer; none takes it back."""

    model_config = ConfigDict(extra="forbid")

    rating: AnswerRating


class AnswerSource(BaseModel):
    """Something that an answer was made from. `mark` stands for it in the answer (such as s1; empty: it has none),
    `came_from` says from where it is, unless from the session itself. `cited`: the answer cites or quotes it. `link`
    leads to its latest message on Discord or Slack; null where it has none, or where that may not be named."""

    id: uuid.UUID | None
    mark: str
    layer: str
    kind: str
    text: str
    came_from: str
    score: float | None
    cited: bool
    link: str | None


class ChatAnswer(BaseModel):
    """A turn. `text` is the answer, or the sentence that says why there is none (failed); null while it is queued.
    `opens` says what is read by whom from now on, where a session was made in a project. `turn` finds it again."""

    turn: uuid.UUID
    state: TurnStatus
    session: str
    agent: str
    project: TeamOrProject | None
    opens: str = ""
    text: str | None
    sources: list[AnswerSource]
    usage: TokenUsage | None
    answered_at: datetime | None


class ChatSession(BaseModel):
    """A session: its name, its agent, the project that it is in, and when the last message was sent."""

    id: uuid.UUID
    session: str
    agent: str
    project: TeamOrProject | None
    last_at: datetime


class ChatSummary(BaseModel):
    """A summary of a part of a session: of what was said without a pause of an hour (`session`), or of a day or a week
    of it."""

    tier: Literal["session", "day", "week"]
    starts_at: datetime
    ends_at: datetime
    text: str


class ChatSessionDetails(ChatSession):
    """A session, and what was summed up of it so far, the earliest first."""

    summaries: list[ChatSummary]


class ChatSessionList(BaseModel):
    """Sessions, the one with the latest message first. `next` is the cursor of the next page; null after the last."""

    items: list[ChatSession]
    next: str | None


class EpisodeFile(BaseModel):
    """A file that came with what was said: its size in bytes (0: unknown), and what was not read of it."""

    name: str
    type: str
    size: int
    note: str


class Episode(BaseModel):
    """What the person said, and the answer. `id` is what it was sent with. `posted`: the agent said it of itself, such
    as a reminder. `files` came with it. `answer` is null where there is none; `failure` says why."""

    id: str
    said_at: datetime
    session: str
    agent: str
    project: TeamOrProject | None
    content: str
    files: list[EpisodeFile]
    posted: bool
    turn: uuid.UUID | None
    state: TurnStatus | None
    answer: str | None
    failure: str | None
    answered_at: datetime | None


class EpisodeList(BaseModel):
    """What was said, newest first. `next` is the cursor of the next page; null after the last."""

    items: list[Episode]
    next: str | None


class ForgottenSession(BaseModel):
    """What was erased, by kind; `receipt` names the stored receipt (null: there was nothing to erase)."""

    receipt: str | None
    erased: dict[str, int]
    text: str


Limit = Annotated[int, Query(ge=1, le=MAX_SESSION_MESSAGES)]
_READ_ALONG: dict[int | str, dict[str, Any]] = {
    **streamed("start, chunk, delay, reply or failed, and done", ChatAnswer),
    **documented(404, 409, 422, 429),
}
IdempotencyKey = Annotated[str | None, Header()]


@asking.post("/chat", summary="Ask an agent", response_model=ChatAnswer, responses=documented(404, 409, 422, 429))
@counts_as(Operation.CHATS)
async def chat(
    request: Request, message: ChatRequest, nexus: Nexus, principal: Bearer, idempotency_key: IdempotencyKey = None
) -> Response:
    """Say something to an agent, and wait for its answer. Whoever leaves before loses nothing: the turn is answered
    all the same, and `GET /v1/chat/turns/{turn}` and `GET /v1/episodes` show it."""
    question = await _asked(request, message, nexus, principal, idempotency_key)
    is_valid = credential_check(request, nexus.app, principal, KeyPermission.CHAT)
    ended = [turn_event async for turn_event in nexus.sessions.follow(question, is_valid)][-1]
    if ended.kind is EventKind.REVOKED:
        raise RequestRefused(401, REVOKED, {"WWW-Authenticate": "Bearer"})
    return json_answer(_ended(question, ended))


@asking.post(
    "/chat/stream",
    summary="Ask an agent, and read along",
    response_class=Response,
    responses={
        **streamed("start, chunk, delay, reply or failed, and done", ChatAnswer),
        **documented(404, 409, 422, 429),
    },
)
@counts_as(Operation.CHATS)
async def chat_stream(
    request: Request, message: ChatRequest, nexus: Nexus, principal: Bearer, idempotency_key: IdempotencyKey = None
) -> Response:
    """The same, with the answer as it is written. The data of `start` and `reply` is what POST /v1/chat answers, as
    it is then; that of `chunk` has the next part of the `text`, and that of `failed` a `text` that says why."""
    question = await _asked(request, message, nexus, principal, idempotency_key)
    is_valid = credential_check(request, nexus.app, principal, KeyPermission.CHAT)
    return StreamingResponse(_stream(nexus, question, is_valid), media_type=EVENT_STREAM)


async def _asked(
    request: Request, message: ChatRequest, nexus: WebState, principal: Principal, key: str | None
) -> StoredQuestion:
    owner = await _owner(nexus, principal)
    id = message.id or key or uuid.uuid4().hex
    said = NewSessionMessage(message.content, message.agent, message.session, message.project, id)
    files = [SentFile(each.name, each.type, each.content) for each in message.files]
    question = await nexus.sessions.ask(owner, said, partial(_require_valid, nexus, principal), files)
    if (metered := metered_of(request)) is not None:
        metered.is_counted = not question.new
    return question


@router.get("/chat/turns/{turn}", summary="Get a turn", response_model=ChatAnswer, responses=documented(404))
@counts_as(Operation.READS)
async def get_turn(turn: uuid.UUID, nexus: Nexus, principal: Bearer) -> Response:
    """A turn of one's own sessions: the answer, once it is there."""
    owner = await _owner(nexus, principal)
    return json_answer(_answer(await nexus.sessions.view(owner, turn)))


@router.post("/chat/turns/{turn}/stop", summary="Stop an answer", status_code=204, responses=documented(404))
async def stop_turn(turn: uuid.UUID, nexus: Nexus, principal: Bearer) -> None:
    """Stop an answer that is being written; its text is not stored, and the turn says that it was stopped. Where it is
    answered already, or is written by another process of Nexus, nothing changes."""
    await nexus.sessions.stop(await _owner(nexus, principal), turn)


@router.put("/chat/turns/{turn}/rating", summary="Rate an answer", status_code=204, responses=documented(404, 422))
async def rate_turn(turn: uuid.UUID, sent: NewAnswerRating, nexus: Nexus, principal: Bearer) -> None:
    """Say what one thinks of an answer. Admins see how many answers are called good and bad, and not which."""
    owner = await _owner(nexus, principal)
    async with nexus.app.database.transaction(principal.tenant_id) as tx:
        await tx.sessions.rate(await find_turn(tx, owner, turn), sent.rating)


@router.get("/chat/sessions", summary="List sessions", response_model=ChatSessionList, responses=documented(422))
@counts_as(Operation.READS)
async def list_chat_sessions(
    nexus: Nexus,
    principal: Bearer,
    limit: Limit = DEFAULT_SESSION_MESSAGES,
    cursor: str | None = None,
    q: Annotated[str, Query(max_length=200, description="Words of the name.")] = "",
) -> Response:
    """One's own sessions: all, or those whose name holds some words."""
    owner = await _owner(nexus, principal)
    async with nexus.app.database.transaction(principal.tenant_id, "read") as tx:
        page = await list_sessions(tx, owner, limit=limit, before=cursor, words=q)
    return json_answer({"items": [_session(each) for each in page.sessions], "next": page.cursor})


@router.get(
    "/chat/sessions/{id}",
    summary="Get a session",
    response_model=ChatSessionDetails,
    responses=documented(404, 422),
)
@counts_as(Operation.READS)
async def get_chat_session(id: uuid.UUID, nexus: Nexus, principal: Bearer) -> Response:
    """One of one's own sessions, with its summaries. `GET /v1/episodes` lists what was said in it."""
    owner = await _owner(nexus, principal)
    async with nexus.app.database.transaction(principal.tenant_id, "read") as tx:
        found = await get_session(tx, owner, id)
        summaries = await session_summaries(tx, owner, found)
    return json_answer(_session(found) | {"summaries": [asdict(each) for each in summaries]})


@router.get(
    "/episodes", summary="List what was said in sessions", response_model=EpisodeList, responses=documented(404, 422)
)
@counts_as(Operation.READS)
async def list_episodes(
    nexus: Nexus,
    principal: Bearer,
    project: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    cursor: str | None = None,
    limit: Limit = DEFAULT_SESSION_MESSAGES,
) -> Response:
    """What one said in one's sessions, and the answers, newest first: in the sessions of one project, with one agent,
    in sessions of one name."""
    owner = await _owner(nexus, principal)
    async with nexus.app.database.transaction(principal.tenant_id, "read") as tx:
        only = None if project is None else project_id(await owner.access(tx), project)
        page = await list_exchanges(tx, owner, agent=agent, session=session, project=only, limit=limit, before=cursor)
    return json_answer(EpisodeList(items=[_episode(each) for each in page.exchanges], next=page.cursor))


@router.delete(
    "/chat/session/{session:path}",
    summary="Forget a session",
    response_model=ForgottenSession,
    responses={200: {"headers": ONCE}, **documented(400, 404)},
)
@counts_as(Operation.REMOVALS)
async def forget_chat_session(
    session: str, call: Calling, nexus: Nexus, agent: str | None = None, project: str | None = None
) -> Response:
    """Forget a session with one agent, for good, and all that was made of it. Sessions of the same name with other
    agents, or in other projects, stay."""
    app, owner = call.app, await _owner(nexus, call.principal)

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        made_in = None if project is None else project_id(await owner.access(tx), project)
        named = agent_of(app.directory.agents(access.tenant_id), agent)
        return await forget_session(tx, app.settings.home, owner, named, session, made_in, call.now, key)

    receipt, repeated = await call.erase(erase)
    erased = {kind: count for kind, count in sorted(receipt.counts.items()) if count}
    forgotten = ForgottenSession(receipt=receipt.id or None, erased=erased, text=str(receipt))
    return json_answer(forgotten, headers=IS_REPLAYED if repeated else None)


def _session(found: StoredSession) -> dict[str, Any]:
    session = found.session
    return {
        "id": session.id,
        "session": session.name,
        "agent": session.agent,
        "project": _project(session),
        "last_at": found.last_at,
    }


async def _owner(nexus: WebState, principal: Principal) -> SessionOwner:
    """The person who asks. Raises Refused for a credential without the permission."""
    principal.require(KeyPermission.CHAT)
    return await nexus.sessions.owner(principal.tenant_id, principal.user, principal.permissions)


async def _require_valid(nexus: WebState, principal: Principal, tx: Transaction) -> None:
    """Return if what a message was let in by has not ended while it waited for an erasure of all that its person has:
    nothing is to be stored after that. Erasure is blocked by now. Raises RequestRefused with 401."""
    try:
        await require_valid(tx, principal, nexus.app.clock.now())
    except Refused as error:
        raise RequestRefused(401, str(error), CHALLENGE) from error


async def _stream(
    nexus: WebState, question: StoredQuestion, is_valid: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[bytes, None]:
    """An answer as server-sent events."""
    async for turn_event in nexus.sessions.follow(question, is_valid):
        match turn_event.kind:
            case EventKind.START:
                yield event("start", to_json(_begun(question)))
            case EventKind.CHUNK | EventKind.DELAY:
                yield event(turn_event.kind, to_json({"text": turn_event.text}))
            case EventKind.WAIT:
                yield HEARTBEAT
            case EventKind.ANSWER:
                yield event("reply", to_json(_ended(question, turn_event)))
            case EventKind.FAILED:
                yield event("failed", to_json(_ended(question, turn_event)))
            case EventKind.REVOKED:
                yield event("failed", to_json({"turn": question.turn, "text": turn_event.text}))
    yield event("done", b"{}")


def _begun(question: StoredQuestion) -> ChatAnswer:
    session = question.session
    project = None if session.project is None else TeamOrProject(id=session.project.id, name=session.project.slug)
    return ChatAnswer(
        turn=question.turn,
        state=TurnStatus.QUEUED,
        session=session.conversation.name,
        agent=session.agent.slug,
        project=project,
        opens=session.opens,
        text=None,
        sources=[],
        usage=None,
        answered_at=None,
    )


def _ended(question: StoredQuestion, turn_event: TurnEvent) -> ChatAnswer:
    """The last of a turn that was waited for. Without a view it is not stored any more."""
    if turn_event.view is not None and turn_event.view.text is not None:
        return _answer(turn_event.view).model_copy(update={"opens": question.session.opens})
    state = TurnStatus.FAILED if turn_event.kind is EventKind.FAILED else TurnStatus.ANSWERED
    return _begun(question).model_copy(update={"state": state, "text": turn_event.text})


def _answer(view: TurnView) -> ChatAnswer:
    turn, answered = view.turn, view.turn.state is not TurnState.QUEUED
    used = turn.usage
    return ChatAnswer(
        turn=turn.id,
        state=_status(turn.state, failed=view.failed),
        session=turn.session.name,
        agent=turn.session.agent,
        project=_project(turn.session),
        text=view.text,
        sources=[
            AnswerSource(
                id=each.id,
                mark=each.mark,
                layer=each.layer,
                kind=each.kind,
                text=each.text,
                came_from=each.came_from,
                score=each.score,
                cited=each.cited,
                link=message_link(view.made.address(each)),
            )
            for each in view.sources
        ],
        usage=TokenUsage(
            model=turn.model,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            cached_tokens=used.cached_tokens,
        )
        if answered
        else None,
        answered_at=turn.answered_at,
    )


def _episode(said: SessionExchange) -> Episode:
    return Episode(
        id=said.sent_with.removeprefix(ID_PREFIX),
        said_at=said.at,
        session=said.session.name,
        agent=said.session.agent,
        project=_project(said.session),
        content=said.text,
        files=[EpisodeFile(name=each.name, type=each.type, size=each.size, note=each.note) for each in said.files],
        posted=said.posted,
        turn=said.turn,
        state=None if said.state is None else _status(said.state, failed=said.failure is not None),
        answer=said.answer,
        failure=said.failure,
        answered_at=said.answered_at,
    )


def _project(session: SessionName) -> TeamOrProject | None:
    if session.project_id is None or session.project is None:
        return None
    return TeamOrProject(id=session.project_id, name=session.project)


def _status(state: TurnState, *, failed: bool) -> TurnStatus:
    if state is TurnState.QUEUED:
        return TurnStatus.QUEUED
    return TurnStatus.FAILED if failed else TurnStatus.ANSWERED
