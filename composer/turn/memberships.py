"""Ask chat platforms who is in a private room, when that room would be read outside it.

Recorded membership does not say it: nobody tells later who left while Nexus was away."""

import asyncio
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from cachetools import LRUCache

from composer.errors import NexusError, for_operator
from composer.model import Workspace, room_id
from composer.ports.clock import Clock
from composer.ports.memberships import NOWHERE, MembershipSource, Presence, RoomsOnPlatform
from composer.repositories.database import Database

logger = structlog.get_logger()

MAX_AGE: Final = timedelta(minutes=1)  # of an answer that is used again
ASK_SECONDS: Final = 3.0  # after which a platform has not answered
MAX_KEPT: Final = 10_000  # answers

ChatAccount = tuple[str, str, str]  # platform, workspace, id there
_Answer = tuple[datetime, frozenset[uuid.UUID], frozenset[uuid.UUID]]  # asked at; private rooms, and managed ones


class Memberships:
    """What the platforms that this process is connected to say of a person. An answer is kept for a minute, and counts
    for the account that it was given for alone. Where a platform does not answer, nothing private of it is read."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._sources: dict[str, MembershipSource] = {}
        self._kept: LRUCache[tuple[uuid.UUID, ChatAccount], _Answer] = LRUCache(MAX_KEPT)

    def serve(self, platform: str, source: MembershipSource) -> None:
        """Ask this source about the people of a platform."""
        self._sources[platform] = source

    async def of(self, tenant: uuid.UUID, user: uuid.UUID, *, dm: uuid.UUID | None = None) -> Presence:
        """Where a person is, with all of their accounts. With a conversation as `dm` nobody is asked, unless it is a DM
        of theirs that reads rooms. No transaction may be open meanwhile. Raises Unavailable without the database."""
        if not self._sources:
            return NOWHERE
        async with self._database.transaction(tenant, "read") as tx:
            accounts = await tx.people.chat_accounts(user, dm)
        answers = await asyncio.gather(*(self._answer(tenant, account) for account in accounts))
        return _together(answers)

    async def _answer(self, tenant: uuid.UUID, account: ChatAccount) -> _Answer | None:
        now, kept = self._clock.now(), self._kept.get((tenant, account))
        if kept is not None and timedelta() <= now - kept[0] <= MAX_AGE:
            return kept
        said = await self._ask(account)
        if said is None:
            return None
        here = Workspace(tenant, "", account[0], account[1])  # the tenant's name is no part of an id
        private, managed = (frozenset(room_id(here, name) for name in names) for names in (said.private, said.managed))
        self._kept[tenant, account] = kept = now, private, managed
        return kept

    async def _ask(self, account: ChatAccount) -> RoomsOnPlatform | None:
        platform, workspace, person = account
        source = self._sources.get(platform)
        if source is None:
            return None
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await source.rooms_of(workspace, person)
        except (NexusError, TimeoutError) as error:
            logger.warning("memberships.unanswered", platform=platform, error=for_operator(error))
        except Exception:
            logger.exception("memberships.failed", platform=platform)
        return None


def _together(answers: Sequence[_Answer | None]) -> Presence:
    given = [answer for answer in answers if answer is not None]
    if not given:
        return Presence(complete=not answers)
    rooms = frozenset[uuid.UUID]().union(*(rooms for _, rooms, _ in given))
    managed = frozenset[uuid.UUID]().union(*(managed for _, _, managed in given))
    return Presence(rooms, managed, min(at for at, _, _ in given), complete=len(given) == len(answers))
