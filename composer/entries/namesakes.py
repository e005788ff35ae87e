"""What somebody is called where they are shown alone, as who invites is: told from others of nearly that name whom the
reader may know of."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from composer.model import Trust
from composer.prompt.lines import numbers_of_namesakes
from composer.repositories.database import Transaction
from composer.text.names import looks_within, speaker_label
from composer.text.work import in_thread
from composer.visibility import EntryAccess, may_see_teams, readable_project

MAX_COMPARED: Final = 20_000  # people that one is told from: 10,000 take 0.1 s of a processor, in a thread

Named = tuple[str, uuid.UUID]


async def called(tx: Transaction, access: EntryAccess, people: Mapping[uuid.UUID, str]) -> Mapping[uuid.UUID, str]:
    """What people are called, by user, from their names. A number follows (`numbers_of_namesakes`) where the reader, or
    somebody whom they may know of from public rooms, teams and projects, is called nearly so. Of others it tells
    nothing."""
    if not people:
        return {}
    themselves = {*people}.union(*(await tx.people.linked_users(list(people))).values())
    known = await tx.people.find_known(
        "",
        list(themselves),
        rooms=(),
        teams=access.teams if may_see_teams(access) else (),
        projects=[each.id for each in access.projects if readable_project(access, each.id) is not None],
        public=await tx.people.least_trust(access.users) is Trust.MEMBER,
        limit=MAX_COMPARED,
    )
    others = [(each.name, each.id) for each in known]
    others += [] if access.user in themselves else [(access.name, access.user)]
    numbers = await in_thread(_numbers, [(name, id) for id, name in people.items()], others)
    return {id: speaker_label(name) + numbers.get(id, "") for id, name in people.items()}


def _numbers(people: Sequence[Named], others: Sequence[Named]) -> Mapping[uuid.UUID, str]:
    looks = [looks_within(speaker_label(name)) for name, _ in people]
    whole, within = {each[0] for each in looks}, {look for each in looks for look in each}
    near = [each for each in others if _is_near(looks_within(speaker_label(each[0])), whole, within)]
    return numbers_of_namesakes([*people, *near])


def _is_near(looks: Sequence[str], whole: set[str], within: set[str]) -> bool:
    """Whether a name has that of one of the others within, or the other way round."""
    return looks[0] in within or not whole.isdisjoint(looks)
