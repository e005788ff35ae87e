"""Whether the DMs of a person's accounts recall the rooms that they are in, as `/nexus rooms` sets it in a DM."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from composer.errors import NotFound
from composer.model import API
from composer.repositories.database import Transaction
from composer.visibility import EntryAccess, owned_by_bearer

UNKNOWN_ACCOUNT = "You have no such account."


@dataclass(frozen=True, slots=True)
class DmRooms:
    """An account of a person, the chat platforms that it is on, and whether its DMs with agents recall their rooms."""

    user: uuid.UUID
    name: str
    platforms: Sequence[str]
    on: bool


async def dm_rooms(tx: Transaction, access: EntryAccess) -> list[DmRooms]:
    """The accounts of the person. Raises Refused for a tool."""
    found = await tx.own_data.items(owned_by_bearer(access), ("accounts", "identities"))
    accounts = {uuid.UUID(str(each["id"])): each for each in found["accounts"]}
    return [
        DmRooms(
            id,
            each["name"],
            sorted({i["platform"] for i in found["identities"] if uuid.UUID(str(i["user"])) == id} - {API}),
            each["reads_rooms"],
        )
        for id, each in accounts.items()
    ]


async def set_dm_rooms(tx: Transaction, access: EntryAccess, account: uuid.UUID, *, on: bool) -> None:
    """Set it for one account of the person; their other ones keep their own. Nobody else sees more by it. Raises
    NotFound for an account of anybody else, Refused for a tool."""
    if not owned_by_bearer(access).admits(account):
        raise NotFound(UNKNOWN_ACCOUNT)
    tx.audit.act_for(access.user)
    await tx.people.set_reads_rooms(account, on)
