"""Where a tool server is offered by its settings, and what these name that is not known here."""

from dataclasses import dataclass

from composer.ingest.tenants import TenantDirectory
from composer.repositories.database import Database
from composer.settings import McpSettings, Settings
from composer.workspace import room_id


@dataclass(frozen=True, slots=True)
class ServerPlaces:
    """Where a server is offered, in words ("" for nowhere), and what is wrong with the names of its settings.

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
    for name in server.rooms:
        found = await _about_room(name, server, directory, database)
        waiting += [found] if found else []
    return ServerPlaces(_offered(server), tuple(mistaken), tuple(waiting))


async def _about_room(name: str, server: McpSettings, directory: TenantDirectory, database: Database) -> str:
    """Why a server is not offered in a room that its settings name; "" if it is."""
    platform, _, rest = name.partition(":")
    workspace_name, _, room_name = rest.partition("/")
    workspace = directory.workspace(platform, workspace_name)
    async with database.transaction(workspace.tenant_id, snapshot=True) as tx:
        room = await tx.conversations.get(room_id(workspace, room_name))
    if room is None:
        return f"nothing was said yet in the room {name}: is that its id?"
    return f"the room {name} is private: set private = true" if room.private and not server.private else ""


def _offered(server: McpSettings) -> str:
    places = []
    if server.tenants:
        rooms = "all rooms, DMs and sessions" if server.private else "the public rooms"
        places.append(f"in {rooms} of {', '.join(server.tenants)}")
    places += [f"in {', '.join(server.rooms)}"] if server.rooms else []
    return f"offered {' and '.join(places)}" if places else ""
