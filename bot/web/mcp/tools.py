"""The tools: what an AI client may do with the memory of the person whose key it has. Their order is fixed, since
clients and models cache the list."""

import functools
import secrets
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, ParamSpec

import structlog
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent
from pydantic import Field
from pydantic_core import from_json

from bot.web.call import ApiCall
from bot.web.entry_pages import names_for
from bot.web.mcp.answers import (
    DATA,
    entry_id,
    hit_values,
    listed_values,
    text_of,
    url_of,
    whole_values,
)
from bot.web.mcp.caller import ToolCaller
from bot.web.problems import SENTENCES, RequestRefused
from bot.web.routes.entries import write
from bot.web.routes.forgetting import receipt_values
from bot.web.shapes.entries import Content, Kind, Metadata, NewEntry, Tags, Title, Vendors
from bot.web.shapes.values import Moment
from composer import visibility
from composer.entries import entries, listing, teams
from composer.entries.draft import MAX_ENTRY_KEY_CHARS, MAX_SESSION_CHARS
from composer.entries.namesakes import told_apart
from composer.entries.projects import named_project
from composer.entries.search import DEFAULT_FOUND_ENTRIES, MAX_FILTERS, MAX_FOUND_ENTRIES, EntryQuestion, EntryReader
from composer.errors import BadInput, NexusError, NotFound, where_raised
from composer.layers import structured
from composer.memory.forget import RECEIPT_KEY_BYTES
from composer.model import project_namespace
from composer.people.erasing import entries_of_tool, erase_entries
from composer.repositories.entries import EntryFilter
from composer.repositories.facts import Fact
from composer.repositories.operations import Operation
from composer.repositories.teams import Team
from composer.visibility import UNKNOWN_ENTRY, UNKNOWN_TEAM

P = ParamSpec("P")
logger = structlog.get_logger()

MAX_TOOL_PAGE: Final = 50
MAX_TOOL_FACTS: Final = 100
Project = Annotated[
    str | None, Field(max_length=200, description="A project's id or name. An isolated project is read by naming it.")
]
Page = Annotated[int, Field(ge=1, le=MAX_TOOL_PAGE, description="How many at most.")]
Cursor = Annotated[str | None, Field(max_length=200, description="`next` of the page before.")]
Id = Annotated[str, Field(max_length=64, description="The `id` of an entry, from search or a list.")]
Tag = Annotated[str, Field(min_length=1, max_length=64)]
# Of more, none is looked at: of very many wrong ones each would be an error of its own.
KindFilter = Annotated[list[Kind], Field(max_length=MAX_FILTERS)]
TagFilter = Annotated[list[Tag], Field(max_length=MAX_FILTERS)]


def in_sentences(tool: Callable[P, Awaitable[str]]) -> Callable[P, Awaitable[str | CallToolResult]]:
    """Let a tool fail with the sentence of our error alone, which a model reads. Of a bug it hears nothing else."""

    @functools.wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> str | CallToolResult:
        try:
            return await tool(*args, **kwargs)
        except RequestRefused as error:
            said = error.detail
        except NexusError as error:
            said = str(error)
        except Exception as error:
            logger.error("mcp.failed", tool=tool.__name__, **where_raised(error))
            said = SENTENCES[500]
        return CallToolResult(content=[TextContent(type="text", text=said)], is_error=True)

    return call


class EntryTools:
    """The tools of one server, for whoever calls them."""

    def __init__(self, caller: ToolCaller) -> None:
        self._caller = caller
        self._public_url = caller.app.settings.public_url

    @in_sentences
    async def search(
        self,
        query: Annotated[str, Field(description="A question or words, in any language.")],
        context: Context[Any, Any],
        limit: Annotated[
            int, Field(ge=1, le=MAX_FOUND_ENTRIES, description="How many results at most.")
        ] = DEFAULT_FOUND_ENTRIES,
        kinds: Annotated[KindFilter | None, Field(description="Only these kinds.")] = None,
        tags: Annotated[TagFilter | None, Field(description="Only with all of these tags.")] = None,
        project: Project = None,
    ) -> str:
        """Search what the person and their teams and projects remember, by meaning and by words. Use it before you
        answer anything that may depend on earlier decisions, preferences or facts. Gives beginnings of texts, best
        first; get a whole text with fetch. What has an `owner` is somebody else's: their preference, not the
        person's."""
        async with self._caller.call(context, Operation.SEARCHES) as call:
            question = EntryQuestion(query, limit, None, None, tuple(kinds or ()), tuple(tags or ()))
            found = await call.app.entry_search.search(await _reader(call, project), question)
            if call.metered is not None:
                call.metered.note_found(found)
            if not found.hits:
                return text_of({"results": []})
            async with call.reading(project) as (tx, access):
                names = await names_for(tx, access, [hit.entry or hit.item for hit in found.hits])
            shown = [hit_values(hit, names, self._public_url) for hit in found.hits]
            whole = sum(0 if hit.entry is None else hit.entry.tokens for hit in found.hits)
            return text_of({"note": DATA, "results": shown, "total_tokens": whole})

    @in_sentences
    async def fetch(self, id: Id, context: Context[Any, Any], project: Project = None) -> str:
        """Get the whole text of one entry that search or a list has shown."""
        async with self._caller.call(context, Operation.READS) as call:
            async with call.reading(project) as (tx, access):
                entry = await listing.get(tx, access, entry_id(id), call.now)
                values = whole_values(entry, await names_for(tx, access, [entry]))
            call.note_read([entry.id], entry.tokens)
            shown = {name: values.pop(name) for name in ("id", "title", "text")}
            if entry.values.metadata:  # apart from what we say of it
                values["metadata"] = entry.values.metadata
            return text_of({"note": DATA, **shown, "url": url_of(self._public_url, entry.id), "metadata": values})

    @in_sentences
    async def write_entry(
        self,
        content: Content,
        context: Context[Any, Any],
        title: Title | None = None,
        kind: Kind = "note",
        tags: Tags | None = None,
        key: Annotated[
            str | None,
            Field(
                min_length=1, max_length=MAX_ENTRY_KEY_CHARS, description="Writing again with the same key replaces it."
            ),
        ] = None,
        session: Annotated[str | None, Field(min_length=1, max_length=MAX_SESSION_CHARS)] = None,
        metadata: Metadata | None = None,
        allowed_vendors: Vendors | None = None,
        expires_at: Annotated[Moment | None, Field(description="From then on it is recalled no more.")] = None,
        project: Project = None,
    ) -> str:
        """Remember something for the person: a decision, a preference, a fact, how something is done. Write one thing
        per entry, so that it is understood without this conversation. Never write passwords or keys. For a project it
        may wait until one of its admins approves it."""
        async with self._caller.call(context, Operation.WRITES) as call:
            sent = NewEntry(
                content=content,
                title=title,
                kind=kind,
                tags=tags or [],
                key=key,
                session=session,
                metadata=metadata or {},
                allowed_vendors=allowed_vendors,
                expires_at=expires_at,
                project=project,
            )
            answer = await write(call, sent, project)
            made = from_json(bytes(answer.body))
            done = "waits for approval" if made["pending"] else "written" if answer.status_code == 201 else "replaced"
            return text_of({"id": made["id"], "title": made["title"], "state": done})

    @in_sentences
    async def browse_entries(
        self,
        context: Context[Any, Any],
        kind: Annotated[Kind | None, Field(description="Only this kind.")] = None,
        session: Annotated[str | None, Field(max_length=MAX_SESSION_CHARS, description="Only of this session.")] = None,
        words: Annotated[str, Field(max_length=200, description="Only with these words, exactly so.")] = "",
        project: Project = None,
        limit: Page = 20,
        cursor: Cursor = None,
    ) -> str:
        """List entries, newest first, with the beginning of each. To find something by its meaning, use search."""
        kinds = () if kind is None else (kind,)
        wanted = EntryFilter(kinds=kinds, session=session, words=words)
        async with self._caller.call(context, Operation.READS) as call:
            return await self._listed(call, wanted, project, limit, cursor)

    @in_sentences
    async def entries_by_tag(
        self, tag: Tag, context: Context[Any, Any], project: Project = None, limit: Page = 20, cursor: Cursor = None
    ) -> str:
        """List the entries that have a tag, newest first, with the beginning of each."""
        wanted = EntryFilter(tags=(tag,))
        async with self._caller.call(context, Operation.READS) as call:
            return await self._listed(call, wanted, project, limit, cursor)

    @in_sentences
    async def latest_entry(
        self,
        context: Context[Any, Any],
        kind: Annotated[Kind | None, Field(description="Only this kind.")] = None,
        project: Project = None,
    ) -> str:
        """Get the newest entry, whole: what was remembered last."""
        async with self._caller.call(context, Operation.READS) as call:
            wanted = EntryFilter(kinds=() if kind is None else (kind,))
            async with call.reading(project) as (tx, access):
                only = project is not None
                found = await listing.page(tx, access, wanted, call.now, only_project=only, limit=1, whole=True)
                if not found.entries:
                    raise NotFound(UNKNOWN_ENTRY)
                entry = found.entries[0]
                shown = whole_values(entry, await names_for(tx, access, [entry]))
            call.note_read([entry.id])
            return text_of({"note": DATA, **shown})

    @in_sentences
    async def team_entries(
        self,
        context: Context[Any, Any],
        team: Annotated[str | None, Field(max_length=200, description="A team's id or name; none: list teams.")] = None,
        limit: Page = 20,
        cursor: Cursor = None,
    ) -> str:
        """List what the members of one of the person's teams share with it. Without `team`: list the teams."""
        async with self._caller.call(context, Operation.READS) as call:
            if team is None:
                async with call.reading() as (tx, access):
                    found = await teams.teams(tx, access)
                return text_of({"teams": [{"id": str(each.id), "name": each.name} for each in found]})
            return await self._listed(call, EntryFilter(), None, limit, cursor, team=team)

    @in_sentences
    async def share_entry(
        self,
        id: Id,
        team: Annotated[str, Field(max_length=200, description="A team's id or name.")],
        context: Context[Any, Any],
    ) -> str:
        """Share one of the person's own entries with one of their teams, whose members read it then. Only when the
        person has asked for it."""
        async with self._caller.call(context, Operation.WRITES) as call:
            async with call.writing() as (tx, access):
                found = _team_named(await teams.teams(tx, access), team)
                entry = await entries.share(tx, access, entry_id(id), found, call.now)
            return text_of({"id": str(entry.id), "title": entry.title, "state": "shared"})

    @in_sentences
    async def forget_own(
        self,
        context: Context[Any, Any],
        kind: Annotated[Kind | None, Field(description="Only this kind.")] = None,
        older_than: Annotated[Moment | None, Field(description="Only written before this time.")] = None,
        everything: Annotated[bool, Field(description="All of it; say so where nothing narrows it down.")] = False,
    ) -> str:
        """Erase for good what this tool itself wrote and what is shared with nobody: of one kind, older than a time,
        or everything. It can't be undone. Only when the person has asked for it."""
        wanted = entries_of_tool(kind, older_than, everything=everything)
        async with self._caller.call(context, Operation.REMOVALS) as call:
            home, key = call.app.settings.home, secrets.token_bytes(RECEIPT_KEY_BYTES)
            async with call.writing(alone=True) as (tx, access):
                if access.is_person:
                    raise BadInput("This is for tools. A person forgets entries by /v1/entries/forget or in a chat.")
                receipt = await erase_entries(tx, access, home, wanted, call.now, key=key, confirmed=None)
                call.erased.append(receipt)
            return text_of(receipt_values(receipt))

    @in_sentences
    async def facts(
        self,
        context: Context[Any, Any],
        about: Annotated[str, Field(max_length=200, description="Only with these words in the name or value.")] = "",
        project: Project = None,
    ) -> str:
        """List exact facts that hold now, each with its name, value, since when, who set it and for which project: of
        the person, and of their teams and projects. Use it for things with a name, such as an address or a version."""
        async with self._caller.call(context, Operation.READS) as call:
            async with call.reading(project) as (tx, access):
                readable = visibility.readable_entries(access)
                stored = await structured.read(tx.structured, readable, call.now)
            wanted = [fact for fact in stored.facts if about.casefold() in _words_of(fact)]
            call.note_read(fact.id for fact in wanted[:MAX_TOOL_FACTS])
            of_project = {project_namespace(each.id): each.slug for each in access.projects}
            shown = [
                {
                    "name": fact.key,
                    "value": from_json(fact.value),
                    "about": fact.subject,
                    "since": f"{fact.valid_from:%Y-%m-%d}",
                    "author": fact.author,
                    "project": of_project.get(fact.namespace, ""),
                }
                for fact in told_apart(access, wanted)
            ]
            left = max(0, len(shown) - MAX_TOOL_FACTS)
            return text_of({"note": DATA, "facts": shown[:MAX_TOOL_FACTS], **({"not_shown": left} if left else {})})

    async def _listed(
        self,
        call: ApiCall,
        wanted: EntryFilter,
        project: str | None,
        limit: int,
        cursor: str | None,
        team: str | None = None,
    ) -> str:
        async with call.reading(project) as (tx, access):
            of_team = None if team is None else _team_named(await teams.teams(tx, access), team)
            only = project is not None
            found = await listing.page(
                tx, access, wanted, call.now, team=of_team, only_project=only, limit=limit, cursor=cursor
            )
            names = await names_for(tx, access, found.entries)
        call.note_read(entry.id for entry in found.entries)
        shown = [listed_values(entry, names) for entry in found.entries]
        answer = {"note": DATA, "entries": shown, "total_tokens": sum(entry.tokens for entry in found.entries)}
        return text_of({**answer, **({} if found.cursor is None else {"next": found.cursor})})


async def _reader(call: ApiCall, project: str | None) -> EntryReader:
    """Who searches, about which project. Raises NotFound for one that may not be read."""
    who, found = call.principal, None
    if project is not None:
        async with call.reading() as (_, access):
            found = named_project(access, project).id
    return EntryReader(who.tenant_id, who.user, who.reads_as, who.permissions, found)


def _words_of(fact: Fact) -> str:
    return f"{fact.key} {fact.value} {fact.subject or ''}".casefold()


def _team_named(of_person: Sequence[Team], text: str) -> uuid.UUID:
    """The team of this id or name, of those that the person is in. Raises NotFound, BadInput where several have it."""
    found = [team.id for team in of_person if text in (str(team.id), team.name)]
    if not found:
        raise NotFound(UNKNOWN_TEAM)
    if len(found) > 1:
        raise BadInput("Several of your teams have that name: give the id of one, from team_entries without a team.")
    return found[0]
