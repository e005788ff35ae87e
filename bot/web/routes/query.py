"""`/v1/query`: what is remembered that fits a question, with an answer if wanted. For people and for tools."""

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, FailFast
from pydantic_core import to_json

from bot.web.call import InProject
from bot.web.credentials import CHALLENGE, credential_check
from bot.web.dependencies import Nexus
from bot.web.entry_pages import Words
from bot.web.event_stream import EVENT_STREAM, HEARTBEAT, CredentialEnded, event, streamed, watched
from bot.web.json_answer import json_answer
from bot.web.metering import counts_as, metered_of
from bot.web.principal import Bearer
from bot.web.problems import RequestRefused, documented
from bot.web.router import Router
from bot.web.sessions import REVOKED
from bot.web.shapes.entries import Kind
from bot.web.shapes.tokens import TokenUsage
from bot.web.shapes.values import Count, Flag, told
from bot.web.state import WebState
from composer.entries.access import access_for_reading
from composer.entries.answering import SourceMark, sources_of
from composer.entries.projects import named_project
from composer.entries.search import (
    DEFAULT_FOUND_ENTRIES,
    MAX_ANSWER_TOKENS,
    MAX_FILTERS,
    MAX_FOUND_ENTRIES,
    EntryQuestion,
    EntryReader,
    Hit,
    SearchResult,
)
from composer.errors import Conflict, NexusError, Unavailable
from composer.model import Agent, Usage
from composer.people.credentials.principal import Principal
from composer.ports.models import Chunk
from composer.prompt.lines import named_label, numbers_in
from composer.prompt.sections import Prompt
from composer.repositories.operations import Operation
from composer.text.marks import marks_in

router = Router("/v1", tags=["query"])
MADE_OF_TAKEN: Final = "What this answer was made from was changed or taken away meanwhile: ask again."


class SearchStrategy(StrEnum):
    """How to search: by meaning and words, by meaning alone, or the latest of what fits first."""

    HYBRID = "hybrid"
    SEMANTIC = "semantic"
    RECENT = "recent"


class QueryRequest(BaseModel):
    """What to search for: at most `limit` items of at most `budget` tokens together; only of `kinds`, and with all of
    `tags`. Without `budget` or `strategy` the person's own setting counts. `project` (its id or name): that project's
    entries besides one's own, or alone, if it is isolated. `answer`: a model answers from these items alone."""

    model_config = ConfigDict(extra="forbid")

    question: str
    project: str | None = None
    limit: Annotated[Count, told(minimum=1, maximum=MAX_FOUND_ENTRIES)] = DEFAULT_FOUND_ENTRIES
    budget: Annotated[Count, told(minimum=0, maximum=MAX_ANSWER_TOKENS)] | None = None
    strategy: SearchStrategy | None = None
    kinds: Annotated[list[str], FailFast(), told(maxItems=MAX_FILTERS)] = []
    tags: Annotated[list[str], FailFast(), told(maxItems=MAX_FILTERS)] = []
    answer: Flag = False


class Audience(StrEnum):
    """Who may read an item besides the person: nobody, a team, a project, or everyone where the person takes part."""

    NOBODY = "nobody"
    TEAM = "team"
    PROJECT = "project"
    EVERYONE = "everyone"


class SharedWith(BaseModel):
    """With whom an item is shared. `id` is that of the team or the project."""

    who: Audience
    id: uuid.UUID | None


class QueryItem(BaseModel):
    """Something that fits. `text` is `cut` where it is a part of the whole; `tokens` are an estimate of it. `origin` is
    the tool that wrote it, or api. `yours`: whoever asks wrote it, and nobody else of the same name. `mark` stands for
    it in the answer; `cited`: the answer names that."""

    id: uuid.UUID
    kind: str
    title: str
    text: str
    cut: bool
    tags: list[str]
    score: float | None
    origin: str
    author: str
    yours: bool
    created_at: datetime
    shared_with: SharedWith
    tokens: int
    mark: str = ""
    cited: bool = False


class QueryResult(BaseModel):
    """What was found, facts and landmarks first, then entries, best first. `tokens` are those of all items. `answer` is
    null where none was asked for."""

    items: list[QueryItem]
    tokens: int
    answer: str | None = None
    usage: TokenUsage | None = None


@dataclass(frozen=True, slots=True)
class _AskedQuery:
    """A question with what was found, and the prompt of its answer (None: no answer is wanted)."""

    reader: EntryReader
    agent: Agent
    found: SearchResult
    prompt: Prompt | None

    @property
    def shown(self) -> Sequence[SourceMark]:
        """The sources of the answer."""
        return () if self.prompt is None else sources_of(self.prompt)


@router.post(
    "/query",
    summary="Search by a question",
    response_model=QueryResult,
    responses=documented(403, 404, 409, 422, 429),
)
@counts_as(Operation.SEARCHES)
async def query(request: Request, body: QueryRequest, nexus: Nexus, principal: Bearer) -> Response:
    """Search what one may read: one's own entries, those of one's teams and projects. Nothing of rooms, DMs and
    sessions. Nothing of the question is stored."""
    asked, is_valid = await _asked(request, body, nexus, principal)
    usage = _Used()
    if asked.prompt is not None:
        try:
            async for part in _parts(nexus, asked, asked.prompt, is_valid):
                if part is not None:
                    usage.add(part)
        except CredentialEnded as error:
            raise RequestRefused(401, REVOKED, CHALLENGE) from error
    return json_answer(_result(asked, usage.text, usage))


_READ_ALONG: dict[int | str, dict[str, Any]] = {
    **streamed("start, chunk, reply or failed, and done", QueryResult),
    **documented(403, 404, 409, 422, 429),
}


@router.post(
    "/query/stream",
    summary="Search by a question, and read along",
    response_class=Response,
    responses={
        **streamed("start, chunk, reply or failed, and done", QueryResult),
        **documented(403, 404, 409, 422, 429),
    },
)
@counts_as(Operation.SEARCHES)
async def query_stream(request: Request, body: QueryRequest, nexus: Nexus, principal: Bearer) -> Response:
    """The same, with the answer as it is written. The data of `start` and `reply` is what POST /v1/query answers: first
    what was found, at the end with the answer; that of `chunk` has the next part of the
    `text`, and that of `failed` a `text` that says why."""
    asked, is_valid = await _asked(request, body, nexus, principal)
    return StreamingResponse(_stream(nexus, asked, is_valid), media_type=EVENT_STREAM)


async def _asked(
    request: Request, body: QueryRequest, nexus: WebState, principal: Principal
) -> tuple[_AskedQuery, Callable[[], Awaitable[bool]]]:
    """What was found and is to be answered, and what says whether the credential is still valid."""
    asked = await _ask(nexus, principal, body)
    if (metered := metered_of(request)) is not None:
        metered.note_found(asked.found)
    is_valid = credential_check(request, nexus.app, principal)
    return asked, is_valid


@router.get(
    "/agent/search",
    summary="Search by a question",
    response_model=QueryResult,
    tags=["agent"],
    responses=documented(403, 404, 422, 429),
)
@counts_as(Operation.SEARCHES)
async def agent_search(
    request: Request,
    nexus: Nexus,
    principal: Bearer,
    q: Annotated[str, Query(min_length=1, max_length=2_000, description="A question, or words.")],
    limit: Annotated[int, Query(ge=1, le=MAX_FOUND_ENTRIES)] = DEFAULT_FOUND_ENTRIES,
    budget: Annotated[
        int | None, Query(ge=0, le=MAX_ANSWER_TOKENS, description="Tokens of all items together.")
    ] = None,
    strategy: SearchStrategy | None = None,
    kind: Annotated[list[Kind] | None, Query(description="Any of these kinds.", max_length=MAX_FILTERS)] = None,
    tag: Annotated[Words | None, Query(description="All of these tags.")] = None,
    project: InProject = None,
) -> Response:
    """The same search by an address alone, without an answer: what fits, best first."""
    body = QueryRequest(
        question=q,
        project=project,
        limit=limit,
        budget=budget,
        strategy=strategy,
        kinds=list(kind or ()),
        tags=list(tag or ()),
    )
    asked = await _ask(nexus, principal, body)
    if (metered := metered_of(request)) is not None:
        metered.note_found(asked.found)
    return json_answer(_result(asked, None, _Used()))


async def _ask(nexus: WebState, principal: Principal, body: QueryRequest) -> _AskedQuery:
    app, tenant, user = nexus.app, principal.tenant_id, principal.user
    project, name, zone = None, "", app.directory.zone(tenant)
    if body.project is not None or body.answer:  # else the search gathers all that it needs
        async with app.database.transaction(tenant, "read") as tx:
            access = await access_for_reading(tx, tenant, user, principal.reads_as, principal.permissions)
            project = None if body.project is None else named_project(access, body.project).id
            name, zone = access.name, access.zone or zone
    reader = EntryReader(tenant, user, principal.reads_as, principal.permissions, project)
    question = EntryQuestion(
        body.question,
        body.limit,
        body.budget,
        None if body.strategy is None else body.strategy.value,
        tuple(body.kinds),
        tuple(body.tags),
    )
    found, agent = await app.entry_search.search(reader, question), app.directory.agents(tenant)[0]
    if not body.answer:
        return _AskedQuery(reader, agent, found, None)
    now = app.clock.now().astimezone(zone)
    prompt = await app.entry_answerer.prepare(agent, reader, name, body.question, found, now)
    return _AskedQuery(reader, agent, found, prompt)


async def _stream(
    nexus: WebState, asked: _AskedQuery, is_valid: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[bytes, None]:
    """What was found, and the answer, as server-sent events."""
    yield event("start", to_json(_result(asked, None, _Used())))
    usage = _Used()
    try:
        if asked.prompt is not None:
            async for part in _parts(nexus, asked, asked.prompt, is_valid):
                if part is None:
                    yield HEARTBEAT
                    continue
                usage.add(part)
                if part.text:
                    yield event("chunk", to_json({"text": part.text}))
        yield event("reply", to_json(_result(asked, usage.text, usage)))
    except CredentialEnded:
        yield event("failed", to_json({"text": REVOKED}))
    except NexusError as error:
        yield event("failed", to_json({"text": str(error)}))
    yield event("done", b"{}")


async def _parts(
    nexus: WebState, asked: _AskedQuery, prompt: Prompt, is_valid: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[Chunk | None, None]:
    """The parts of an answer, as `watched` gives them. Raises Conflict as soon as something of what was found was
    changed, or may not be read any more."""
    app, is_taken = nexus.app, False

    async def holds() -> bool:
        nonlocal is_taken
        with suppress(Unavailable):  # it is looked at again
            is_taken = not await app.entry_search.still_readable(asked.reader, asked.found)
        return not is_taken and await is_valid()

    try:
        async for part in watched(app.entry_answerer.answer(asked.agent, asked.reader, prompt), holds):
            yield part
    except CredentialEnded:
        if is_taken:
            raise Conflict(MADE_OF_TAKEN) from None
        raise
    if not await app.entry_search.still_readable(asked.reader, asked.found):
        raise Conflict(MADE_OF_TAKEN)


class _Used:
    """An answer so far: its text, and what it has used."""

    def __init__(self) -> None:
        self.model = self.text = ""
        self.tokens = Usage()

    def add(self, part: Chunk) -> None:
        """Add a part of the answer."""
        self.text = part.text if part.restarts else self.text + part.text
        self.model = part.model or self.model
        self.tokens += part.usage or Usage()


def _result(asked: _AskedQuery, answer: str | None, used: _Used) -> QueryResult:
    marks = {each.id: each.mark for each in asked.shown}
    cited = set(marks_in(answer or ""))
    numbers = numbers_in(hit.item for hit in asked.found.hits)
    items = [_found(hit, marks.get(hit.item.id, ""), cited, numbers) for hit in asked.found.hits]
    if asked.prompt is None or answer is None:
        return QueryResult(items=items, tokens=asked.found.tokens)
    usage = TokenUsage(
        model=used.model,
        prompt_tokens=used.tokens.prompt_tokens,
        completion_tokens=used.tokens.completion_tokens,
        cached_tokens=used.tokens.cached_tokens,
    )
    return QueryResult(items=items, tokens=asked.found.tokens, answer=answer, usage=usage)


def _found(hit: Hit, mark: str, cited: set[str], numbers: Mapping[uuid.UUID, str]) -> QueryItem:
    item, entry = hit.item, hit.entry
    return QueryItem(
        id=uuid.UUID(item.id),
        kind=item.kind,
        title=hit.title,
        text=item.text,
        cut=hit.cut,
        tags=[] if entry is None else list(entry.values.tags),
        score=item.score,
        origin="" if entry is None else entry.origin,
        author=named_label(item.author, item.user_id, numbers) if item.author else "",
        yours=hit.is_own,
        created_at=item.at,
        shared_with=_shared_with(item.namespace),
        tokens=hit.tokens,
        mark=mark,
        cited=bool(mark) and mark in cited,
    )


def _shared_with(namespace: str) -> SharedWith:
    kind, _, id = namespace.partition(":")
    if kind in (Audience.TEAM, Audience.PROJECT):
        return SharedWith(who=Audience(kind), id=uuid.UUID(id))
    return SharedWith(who=Audience.EVERYONE if kind == "profile" else Audience.NOBODY, id=None)
