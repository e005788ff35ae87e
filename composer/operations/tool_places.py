"""Where a tool server is offered by its settings, and what these name that is not known here."""

from collections.abc import Sequence
from dataclasses import dataclass

from composer.ingest.tenants import TenantDirectory
from composer.model import room_id
from composer.repositories.database import Database
from composer.settings import McpSettings, Settings


@dataclass(frozen=True, slots=True)
class ServerPlaces:
    """Where a server is offered, in words, and what is wrong with the names of its settings.

    `mistaken` are sentences about names that nothing here has; `waiting` about what may come yet, such as a room in
    which nothing was said.
    """

    offered: str
    mistaken: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


async def server_places(server: McpSettings, settings: Settings, database: Database) -> ServerPlaces:
    """Look up the tenants and rooms that the settings of a server name."""
    directory = await TenantDirectory.load(settings, database)
    known = {*settings.tenants, *(slug for _, slug in await database.tenants())}
    strangers = [slug for slug in server.tenants if slug not in known]
    listed = f"there is {', '.join(sorted(known))}" if known else "there is none yet"
    mistaken = [f"the tenant {slug} is not known ({listed})" for slug in strangers if ":" not in slug]
    waiting = [f"nothing was said yet in {slug}" for slug in strangers if ":" in slug]
    rooms = []
    for name in server.rooms:
        missing = await _missing(name, server, directory, database)
        if missing:
            waiting.append(missing)
        else:
            rooms.append(name)
    tenants = [slug for slug in server.tenants if slug not in strangers]
    return ServerPlaces(_offered(server, tenants, rooms), tuple(mistaken), tuple(waiting))


async def _missing(name: str, server: McpSettings, directory: TenantDirectory, database: Database) -> str:
    """Why a server is not offered in a room that its settings name; "" if it is."""
    platform, _, rest = name.partition(":")
    workspace_name, _, room_name = rest.partition("/")
    workspace = directory.workspace(platform, workspace_name)
    async with database.transaction(workspace.tenant_id, "read") as tx:
        room = await tx.conversations.get(room_id(workspace, room_name))
    if room is None:
        return f"nothing was said yet in the room {name}: is that its id?"
    return f"the room {name} is private: set private = true" if room.private and not server.private else ""


def _offered(server: McpSettings, tenants: Sequence[str], rooms: Sequence[str]) -> str:
    where = "all rooms, DMs and sessions" if server.private else "the public rooms"
    places = [f"in {where} of {', '.join(tenants)}"] if tenants else []
    places += [f"in {', '.join(rooms)}"] if rooms else []
    return f"offered {' and '.join(places)}" if places else "offered nowhere yet"
