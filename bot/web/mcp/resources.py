"""What a client may attach to a conversation by its address: an entry, a project's landmarks, what a day brought."""

import functools
from collections.abc import Awaitable, Callable
from datetime import date, datetime, time, timedelta
from typing import Any, Final, ParamSpec

import structlog
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from bot.web.entry_pages import names_for
from bot.web.mcp.answers import DATA, entry_id, listed_values, text_of, whole_values
from bot.web.mcp.caller import ToolCaller
from bot.web.problems import RequestRefused
from composer import visibility
from composer.entries import listing
from composer.entries.namesakes import told_apart
from composer.entries.projects import named_project
from composer.errors import BadInput, NexusError, NotFound, where_raised
from composer.layers import structured
from composer.model import project_namespace
from composer.repositories.entries import EntryFilter
from composer.repositories.operations import Operation

P = ParamSpec("P")
logger = structlog.get_logger()

JSON_TYPE: Final = "application/json"
MAX_OF_DAY: Final = 100


def in_sentences(read: Callable[P, Awaitable[str]]) -> Callable[P, Awaitable[str]]:
    """Let a read fail with the sentence of our error, and what may not be read as what does not exist."""

    @functools.wraps(read)
    async def reading(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return await read(*args, **kwargs)
        except NotFound as error:
            raise ResourceNotFoundError(str(error)) from error
        except RequestRefused as error:
            raise ResourceError(error.detail) from error
        except NexusError as error:
            raise ResourceError(str(error)) from error
        except Exception as error:
            logger.error("mcp.failed", resource=read.__name__, **where_raised(error))
            raise

    return reading


def add_resources(server: "MCPServer[Any]", caller: ToolCaller) -> None:
    """Add the resources to a server."""
    memory = MemoryResources(caller)
    server.resource("nexus://entries/{id}", name="entry", title="An entry", mime_type=JSON_TYPE)(memory.entry)
    server.resource(
        "nexus://projects/{project}/landmarks", name="landmarks", title="A project's landmarks", mime_type=JSON_TYPE
    )(memory.landmarks)
    server.resource("nexus://days/{day}", name="day", title="What was remembered on a day", mime_type=JSON_TYPE)(
        memory.day
    )


class MemoryResources:
    """Reads resources for whoever asks."""

    def __init__(self, caller: ToolCaller) -> None:
        self._caller = caller

    @in_sentences
    async def entry(self, id: str, context: Context[Any, Any]) -> str:
        """One entry, whole."""
        async with self._caller.call(context, Operation.READS) as call:
            async with call.reading() as (tx, access):
                entry = await listing.get(tx, access, entry_id(id), call.now)
                shown = whole_values(entry, await names_for(tx, access, [entry]))
            call.note_read([entry.id])
            return text_of({"note": DATA, **shown})

    @in_sentences
    async def landmarks(self, project: str, context: Context[Any, Any]) -> str:
        """What a project has settled: its landmarks, oldest first. `project`: its id or name."""
        async with self._caller.call(context, Operation.READS) as call:
            async with call.reading(project) as (tx, access):
                found = named_project(access, project)
                readable = visibility.readable_entries(access).within([project_namespace(found.id)])
                stored = await structured.read(tx.structured, readable, call.now)
            call.note_read(mark.id for mark in stored.landmarks)
            shown = [
                {
                    "date": f"{mark.decided_at:%Y-%m-%d}",
                    "author": mark.author,
                    "state": str(mark.state),
                    "text": mark.text,
                }
                for mark in told_apart(access, stored.landmarks)
            ]
            return text_of({"note": DATA, "project": found.slug, "landmarks": shown})

    @in_sentences
    async def day(self, day: str, context: Context[Any, Any]) -> str:
        """What was remembered on a day, such as 2026-11-23, in the workspace's time zone: the beginning of each entry,
        newest first."""
        async with self._caller.call(context, Operation.READS) as call:
            zone = call.app.directory.zone(call.principal.tenant_id)
            since = datetime.combine(_date(day), time(), zone)
            until = datetime.combine(_date(day) + timedelta(days=1), time(), zone)
            async with call.reading() as (tx, access):
                found = await listing.page(
                    tx, access, EntryFilter(since=since, until=until), call.now, limit=MAX_OF_DAY
                )
                names = await names_for(tx, access, found.entries)
            call.note_read(entry.id for entry in found.entries)
            shown = [listed_values(entry, names) for entry in found.entries]
            return text_of({"note": DATA, "day": day, "entries": shown, "more": found.cursor is not None})


def _date(text: str) -> date:
    """A day. Raises BadInput for a text that is none, or one at the end of time."""
    try:
        found = date.fromisoformat(text)
        found + timedelta(days=1)
    except (ValueError, OverflowError):
        raise BadInput("A day is written as 2026-11-23.") from None
    return found
