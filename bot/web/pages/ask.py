"""`/ask`: talking with an agent in conversations of one's own, with what each answer was made of beside it."""

import re
import uuid
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated, Any, Final

from fastapi import File, Form, Query, Request, Response, UploadFile
from fastapi.responses import RedirectResponse, StreamingResponse

from bot.web.call import ApiCall
from bot.web.credentials import credential_check
from bot.web.dependencies import Nexus
from bot.web.event_stream import EVENT_STREAM, HEARTBEAT
from bot.web.metering import counts_as, metered_of
from bot.web.pages.rendering import PAGE_HEADERS, page, render
from bot.web.pages.viewer import LongFormRoute, PageRouter, Reading, SignedIn, Viewer, is_script
from bot.web.session_files import MAX_FILES_BYTES, SentFile
from bot.web.sessions import EventKind, StoredQuestion
from bot.web.state import WebState
from composer.entries import listing, teams
from composer.model import IMAGE_TYPES, entries_namespace, profile_namespace
from composer.people import remembered
from composer.people.credentials.issuing import require_valid
from composer.people.credentials.principal import KeyPermission
from composer.people.known_people import admins_to_ask
from composer.people.own_memory import PlacedItem, own_items
from composer.people.sessions.history import free_name, get_session, get_turn, list_exchanges, list_sessions
from composer.people.sessions.opening import NewSessionMessage
from composer.people.sessions.owner import SessionOwner
from composer.repositories.database import Transaction
from composer.repositories.entries import EntryFilter
from composer.repositories.operations import Operation
from composer.repositories.own_data import OwnFilter
from composer.repositories.sessions import AnswerRating, SessionExchange, StoredSession
from composer.repositories.teams import Team
from composer.text.cleaning import clean_line, shorten
from composer.text.file_kinds import READ_SUFFIXES

ASK: Final = "/ask"
MAX_QUESTION_CHARS: Final = 20_000
MAX_TITLE_CHARS: Final = 60
SHOWN_SESSIONS: Final = 12
SHOWN_EXCHANGES: Final = 50
LISTED_SESSIONS: Final = 40  # on a page of all of them
SUGGESTED_PROJECTS: Final = 2
SUGGESTED_CHARS: Final = 90
SHOWN_ELSEWHERE: Final = 3
MAX_CARRIED_CHARS: Final = 1_000  # of a question that a link takes to a project
TRIED_WORDS: Final = 4
TRIED_TEAMS: Final = 3
_WORD: Final = re.compile(r"\w{4,}")
_AS_WORDS: Final = str.maketrans("_-", "  ")
_NEW: Final[dict[str, Any]] = {"earlier": None, "before": None}  # of a conversation that is not there yet
ACCEPTED: Final = ",".join((*sorted(IMAGE_TYPES), *(f".{suffix}" for suffix in READ_SUFFIXES)))
_NO_HELP: Final[dict[str, Any]] = {
    "suggestions": (),
    "elsewhere": None,
    "unanswered": "",
    "chosen": "",
    "is_new": False,
    "to_ask": (),
}
router = PageRouter(ASK)
asking = PageRouter(ASK, LongFormRoute)
MAX_ASK_BYTES: Final = MAX_FILES_BYTES + 2**20  # a form: its files, and what is said


@dataclass(frozen=True, slots=True)
class SuggestedQuestion:
    """Something that a question could be about, and where it would be answered: in a project, or alone (empty). `about`
    is what it is: `decision`, `fact` or `own`."""

    about: str
    said: str
    project: str = ""
    project_name: str = ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What fits a question and was not read for its answer: of the person's own, or of what is shared with a team of
    theirs."""

    own: Sequence[PlacedItem] = ()
    of_team: Sequence[tuple[Team, str]] = ()


@router.get("")
async def new_conversation(
    request: Request,
    viewer: SignedIn,
    nexus: Nexus,
    project: Annotated[str, Query(max_length=200)] = "",
    text: Annotated[str, Query(max_length=MAX_QUESTION_CHARS)] = "",
) -> Response:
    """A place for a new question, beside the conversations that there are, with questions that could be asked.
    `project`, `text`: what the form holds at first."""
    async with viewer.reading() as reading:
        values = await _frame(viewer, reading, await _owner(viewer, nexus), None)
        values["suggestions"] = await _suggestions(viewer, reading, values["projects"])
        values["is_new"] = not (values["suggestions"] or values["sessions"])
        values["to_ask"] = await admins_to_ask(reading.tx, reading.access) if values["is_new"] else ()
    values |= {"asked": text, "chosen": project}
    return page(request, "ask.html", viewer.language, now=viewer.call.now, exchanges=[], view=None, **values, **_NEW)


@router.get("/conversations")
async def conversations(
    request: Request,
    viewer: SignedIn,
    nexus: Nexus,
    q: Annotated[str, Query(max_length=200)] = "",
    before: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """All conversations, or those whose titles hold some words, page by page."""
    owner = await _owner(viewer, nexus)
    async with viewer.reading() as reading:
        found = await list_sessions(reading.tx, owner, limit=LISTED_SESSIONS, before=before, words=q)
    template = "parts/ask_conversations.html" if is_script(request) else "ask_conversations.html"
    values: dict[str, Any] = {"chrome": reading.chrome, "found": found, "q": q, "now": viewer.call.now}
    return page(request, template, viewer.language, **values)


@router.get("/{session}")
async def conversation(
    request: Request,
    viewer: SignedIn,
    nexus: Nexus,
    session: uuid.UUID,
    turn: uuid.UUID | None = None,
    again: uuid.UUID | None = None,
    before: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """One conversation, with the sources of one of its answers: the latest, or the one that was chosen. `before`: its
    earlier part. `again`: the question of that turn stands in the box, to be changed and asked again."""
    owner = await _owner(viewer, nexus)
    async with viewer.reading() as reading:
        values = await _frame(viewer, reading, owner, session)
        exchanges, earlier = await _exchanges(reading.tx, owner, values["session"], before)
    asked = next((each.text for each in exchanges if each.turn == again), "") if again is not None else ""
    values |= {"earlier": earlier, "before": before, "asked": asked}
    if is_script(request) and before is not None:
        now = viewer.call.now
        return page(request, "parts/ask_earlier.html", viewer.language, now=now, exchanges=exchanges, **values)
    shown = turn or next((each.turn for each in reversed(exchanges) if each.answer is not None), None)
    view = None if shown is None else await nexus.sessions.view(owner, shown)
    if view is not None and not view.sources:
        about = next((each.text for each in exchanges if each.turn == shown and not each.posted), "")
        values["elsewhere"] = await _elsewhere(viewer, about)
        values["unanswered"] = "" if values["session"].session.project else about[:MAX_CARRIED_CHARS]
    now = viewer.call.now
    if is_script(request) and turn is not None:
        return page(request, "parts/ask_sources.html", viewer.language, now=now, view=view, **values)
    return page(request, "ask.html", viewer.language, now=now, exchanges=exchanges, view=view, **values)


@router.post("/turns/{turn}/stop")
async def stop(
    request: Request, viewer: SignedIn, nexus: Nexus, turn: uuid.UUID, csrf: Annotated[str, Form()]
) -> Response:
    """Stop an answer that is being written."""
    viewer.require_form(csrf)
    owner = await _owner(viewer, nexus)
    await nexus.sessions.stop(owner, turn)
    if is_script(request):
        return Response(status_code=204)
    return RedirectResponse(f"{ASK}/{(await nexus.sessions.view(owner, turn)).turn.session.id}", 303)


@router.post("/turns/{turn}/rating")
async def rate(
    request: Request,
    viewer: SignedIn,
    nexus: Nexus,
    turn: uuid.UUID,
    csrf: Annotated[str, Form()],
    rating: Annotated[AnswerRating, Form()],
) -> Response:
    """Say what one thinks of an answer, or take that back."""
    viewer.require_form(csrf)
    owner = await _owner(viewer, nexus)
    async with viewer.call.writing() as (tx, _):
        stored = await get_turn(tx, owner, turn)
        await tx.sessions.rate(stored, rating)
    if not is_script(request):
        return RedirectResponse(f"{ASK}/{stored.session.id}", 303)
    return page(
        request, "parts/ask_rating.html", viewer.language, chrome=None, csrf=csrf, turn=turn, rating=rating, moved=True
    )


@asking.post("")
@counts_as(Operation.CHATS)
async def ask(
    request: Request,
    viewer: SignedIn,
    nexus: Nexus,
    csrf: Annotated[str, Form()],
    text: Annotated[str, Form(max_length=MAX_QUESTION_CHARS)] = "",
    session: Annotated[uuid.UUID | None, Form()] = None,
    project: Annotated[str, Form(max_length=200)] = "",
    files: Annotated[list[UploadFile] | None, File()] = None,
) -> Response:
    """Ask in a conversation, or begin one, with files. A script gets the answer as it is written; without one, the page
    comes when the answer is there."""
    viewer.require_form(csrf)
    owner = await _owner(viewer, nexus)
    named = [(each.filename, each) for each in files or () if each.filename]  # where none is chosen, one has no name
    sent = [SentFile(name, each.content_type or "", await each.read()) for name, each in named]
    async with viewer.reading() as reading:
        chrome, projects = reading.chrome, _projects(reading)
        said = await _said(reading.tx, owner, text, sent, session, project or None)
    question = await nexus.sessions.ask(owner, said, partial(_require_valid, viewer.call), sent)
    if (metered := metered_of(request)) is not None:
        metered.is_counted = not question.new
    is_valid = credential_check(request, nexus.app, viewer.principal, KeyPermission.CHAT)
    address = f"{ASK}/{question.session.conversation.id}"
    if not is_script(request):
        async for _ in nexus.sessions.follow(question, is_valid):
            pass
        return RedirectResponse(address, 303)
    values = {"chrome": chrome, "now": viewer.call.now, "question": question, "asked": text, "address": address}
    values |= {"files": question.session.incoming.attachments, "projects": projects}
    parts = _stream(viewer, nexus, question, values, is_new=session is None)
    headers = PAGE_HEADERS | {"Content-Type": EVENT_STREAM} | ({"HX-Push-Url": address} if session is None else {})
    return StreamingResponse(parts, headers=headers)


async def _stream(
    viewer: Viewer, nexus: WebState, question: StoredQuestion, values: dict[str, Any], *, is_new: bool
) -> AsyncGenerator[bytes, None]:
    is_valid = credential_check(viewer.request, nexus.app, viewer.principal, KeyPermission.CHAT)

    def part(template: str, **more: Any) -> bytes:
        html = render(template, viewer.language, **values, **more)
        return b"".join(b"data: %b\n" % line.encode() for line in html.splitlines()) + b"\n"

    async for event in nexus.sessions.follow(question, is_valid):
        match event.kind:
            case EventKind.START:
                yield part("parts/ask_begun.html", is_new=is_new)
            case EventKind.CHUNK:
                yield part("parts/ask_chunk.html", chunk=event.text)
            case EventKind.DELAY:
                yield part("parts/ask_delay.html", sentence=event.text)
            case EventKind.WAIT:
                yield HEARTBEAT
            case EventKind.ANSWER | EventKind.FAILED | EventKind.REVOKED:
                found = event.kind is not EventKind.ANSWER or (event.view is not None and event.view.sources)
                elsewhere = None if found else await _elsewhere(viewer, values["asked"])
                unanswered = "" if found or question.session.project else values["asked"][:MAX_CARRIED_CHARS]
                more = {"elsewhere": elsewhere, "unanswered": unanswered}
                yield part("parts/ask_ended.html", event=event, view=event.view, **more)


async def _frame(viewer: Viewer, reading: Reading, owner: SessionOwner, chosen: uuid.UUID | None) -> dict[str, Any]:
    """What the page shows besides the transcript. Raises NotFound where there is no such conversation."""
    sessions = (await list_sessions(reading.tx, owner, limit=SHOWN_SESSIONS)).sessions
    session = None if chosen is None else await get_session(reading.tx, owner, chosen)
    projects = _projects(reading)
    app = viewer.call.app
    spoken, agents = app.file_texts.transcribes, app.directory.agents(viewer.principal.tenant_id)
    shown = {"chrome": reading.chrome, "sessions": sessions, "session": session, "projects": projects, "spoken": spoken}
    shown["agents"] = {each.slug: each.name for each in agents}
    shown["has_model"] = app.settings.has_model_api and any(each.model for each in agents)
    return _NO_HELP | shown | {"accepted": f"{ACCEPTED},audio/*" if spoken else ACCEPTED}


def _projects(reading: Reading) -> list[tuple[str, str]]:
    """The projects that the person is in: id and name."""
    return [(str(each.id), each.slug) for each in reading.access.projects if each.role is not None]


async def _suggestions(
    viewer: Viewer, reading: Reading, projects: Sequence[tuple[str, str]]
) -> Sequence[SuggestedQuestion]:
    """Questions about what is there to answer them: the latest decision and fact of the first projects, and the latest
    of what the person has stored for themselves."""
    now, found = viewer.call.now, list[SuggestedQuestion]()
    for id, name in projects[:SUGGESTED_PROJECTS]:
        readable = remembered.readable_of_project(reading.access, uuid.UUID(id))
        decided = (await remembered.decisions_of(reading.tx, reading.access, readable, now)).current
        held = await remembered.facts_of(reading.tx, reading.access, readable, now)
        facts = sorted(held, key=lambda each: each.valid_from)
        if decided:
            text = shorten(decided[0].landmark.text, SUGGESTED_CHARS)
            found.append(SuggestedQuestion("decision", text, id, name))
        if facts:
            key = shorten(clean_line(facts[-1].key.translate(_AS_WORDS), MAX_TITLE_CHARS), MAX_TITLE_CHARS)
            found.append(SuggestedQuestion("fact", key, id, name))
    users = reading.owned.users
    alone = OwnFilter(namespaces=(*map(entries_namespace, users), *map(profile_namespace, users)))
    own = await own_items(reading.tx, reading.owned, alone, None, 1, now, reading.presence)
    return [*found, *(SuggestedQuestion("own", shorten(each.item.text, SUGGESTED_CHARS)) for each in own.items)]


async def _elsewhere(viewer: Viewer, question: str) -> Elsewhere:
    """What of the person's own, else of what is shared with a team of theirs, has the longest word of their question
    that any of it has: shown beside an answer that was made of nothing, to them alone."""
    words = sorted(set(_WORD.findall(question[: MAX_TITLE_CHARS * 4].casefold())), key=lambda word: (-len(word), word))
    async with viewer.reading() as reading:
        tx, access, owned, now = reading.tx, reading.access, reading.owned, viewer.call.now
        for word in words[:TRIED_WORDS]:
            own = await own_items(tx, owned, OwnFilter(words=(word,)), None, SHOWN_ELSEWHERE, now, reading.presence)
            if own.items:
                return Elsewhere(own.items)
        found = (await teams.teams(tx, access))[:TRIED_TEAMS]
        for word, team in product(words[:TRIED_WORDS], found):
            wanted = EntryFilter(words=word)
            shared = await listing.page(tx, access, wanted, now, team=team.id, limit=SHOWN_ELSEWHERE)
            if shared.entries:
                return Elsewhere(of_team=[(team, each.values.text) for each in shared.entries])
    return Elsewhere()


async def _exchanges(
    tx: Transaction, owner: SessionOwner, stored: StoredSession, before: str | None
) -> tuple[Sequence[SessionExchange], str | None]:
    """A part of a conversation, oldest first, and by which the part before it is found; None where there is none."""
    name = stored.session
    found = await list_exchanges(
        tx, owner, agent=name.agent, session=name.name, project=name.project_id, limit=SHOWN_EXCHANGES, before=before
    )
    return [each for each in reversed(found.exchanges) if each.session.id == name.id], found.cursor


async def _said(
    tx: Transaction,
    owner: SessionOwner,
    text: str,
    files: Sequence[SentFile],
    chosen: uuid.UUID | None,
    project: str | None,
) -> NewSessionMessage:
    """What is said, in the conversation that was chosen, or in a new one, which is named by how it begins, else by its
    first file, and may be in a project."""
    id = uuid.uuid4().hex
    if chosen is None:
        begins = text.strip() or next((each.name for each in files), "")
        title = shorten(clean_line(begins, MAX_TITLE_CHARS * 2), MAX_TITLE_CHARS) or "…"
        return NewSessionMessage(text, None, await free_name(tx, owner, title), project, id)
    stored = (await get_session(tx, owner, chosen)).session
    project = None if stored.project_id is None else str(stored.project_id)
    return NewSessionMessage(text, stored.agent, stored.name, project, id)


async def _owner(viewer: Viewer, nexus: WebState) -> SessionOwner:
    who = viewer.principal
    who.require(KeyPermission.CHAT)
    return await nexus.sessions.owner(who.tenant_id, who.user, who.permissions)


async def _require_valid(call: ApiCall, tx: Transaction) -> None:
    await require_valid(tx, call.principal, call.now)
