"""What people are called on pages and in answers: those who stand there together are told apart, and who is shown
alone, as who invites is, from others of nearly that name whom the reader may know of."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Protocol, TypeVar

from composer.model import Trust
from composer.prompt.lines import named_label, numbers_of_namesakes
from composer.repositories.database import Transaction
from composer.repositories.invites import Invite
from composer.repositories.projects import ProjectMember
from composer.repositories.teams import TeamMember
from composer.text.names import looks_within, speaker_label
from composer.text.work import in_thread
from composer.visibility import EntryAccess, may_see_teams, readable_project

MAX_COMPARED: Final = 20_000  # people that one is told from: 10,000 take 0.1 s of a processor, in a thread

Named = tuple[str, uuid.UUID]


class _Authored(Protocol):
    """Something that somebody wrote or did."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def author(self) -> str: ...

    @property
    def user_id(self) -> uuid.UUID | None: ...


Row = TypeVar("Row", bound=_Authored)
Member = TypeVar("Member", ProjectMember, TeamMember)


class Labels:
    """What the people of one page or answer are called there, from their names and users: told from each other, and
    from the reader."""

    def __init__(self, access: EntryAccess, people: Iterable[tuple[str, uuid.UUID | None]]) -> None:
        self.numbers = numbers_of_namesakes([(access.name, access.user), *people])

    def __call__(self, name: str, user: uuid.UUID | None) -> str:
        return named_label(name, user, self.numbers)


def told_apart(access: EntryAccess, rows: Sequence[Row]) -> list[Row]:
    """What is shown of people's to a reader, with what they are called there as its authors (`Labels`)."""
    labels = Labels(access, ((each.author, each.user_id) for each in rows))
    return [replace(each, author=labels(each.author, each.user_id)) for each in rows]


def members_told_apart(access: EntryAccess, members: Sequence[Member]) -> list[Member]:
    """The people of a project or a team, as `told_apart`."""
    labels = Labels(access, ((name, each.id) for each in members for name in each.names))
    return [replace(each, names=tuple(labels(name, each.id) for name in each.names)) for each in members]


def invitations_told_apart(access: EntryAccess, invites: Sequence[Invite]) -> list[Invite]:
    """Invitations, as `told_apart`: who is invited, and who invited them."""
    labels = Labels(access, [named for each in invites for named in ((each.name, each.user), (each.by, each.by_id))])
    return [replace(each, name=labels(each.name, each.user), by=labels(each.by, each.by_id)) for each in invites]


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
    whole, within = (frozenset[str]().union(*each) for each in zip(*looks, strict=True))
    near = [each for each in others if _is_near(looks_within(speaker_label(each[0])), whole, within)]
    return numbers_of_namesakes([*people, *near])


def _is_near(looks: tuple[frozenset[str], frozenset[str]], whole: frozenset[str], within: frozenset[str]) -> bool:
    """Whether a name has that of one of the others within, or the other way round."""
    return not (looks[0].isdisjoint(within) and looks[1].isdisjoint(whole))
