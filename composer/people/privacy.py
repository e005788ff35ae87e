"""What is stored of one person, who reads it, and who was answered from it, for that person."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.model import Trust
from composer.people.places import NamedPlace, named, room_ids
from composer.ports.memberships import Presence
from composer.repositories.audit import AuditAct
from composer.repositories.database import Transaction
from composer.repositories.own_data import Asker
from composer.text.counts import counted
from composer.text.names import speaker_label, title_label
from composer.visibility import Owned

_WAITS: Final = "pending "  # begins the kind of what waits for approval
_PENDING: Final = "What is pending waits for approval: nobody is answered from it yet."
_MAX_ASKERS: Final = 50  # lines
_OF_ACCOUNTS: Final = ("dm:", "profile:", "entries:")  # namespaces that each linked account has; in words they are one


@dataclass(frozen=True, slots=True)
class StoredAt:
    """How much of each kind a person has in one place. Kinds are those of the database: a decision is a landmark, and
    what waits for approval is `pending` with what it is."""

    place: NamedPlace
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LastVerification:
    """When the audit log was last verified, and whether all of it was as it was written. No figures: they would tell
    what others do."""

    at: datetime
    whole: bool


@dataclass(frozen=True, slots=True)
class OwnPrivacy:
    """What is stored of a person by place, how often models (`calls`) and the API (`operations`) were used in their
    name, how many keys, browsers and accounts open it, who was answered from it in rooms that they may read,
    whether they have opted out of being stored, and when the audit log was last verified (None: never)."""

    stored: Sequence[StoredAt]
    calls: int
    operations: int
    keys: int
    sessions: int
    logins: int
    askers: Sequence[Asker]
    opted_out: bool
    verified: LastVerification | None

    @property
    def waits(self) -> bool:
        """Whether any of it waits for approval."""
        return any(kind.startswith(_WAITS) for each in self.stored for kind in each.counts)


async def own_privacy(tx: Transaction, owned: Owned, now: datetime, presence: Presence) -> OwnPrivacy:
    """Of what others did where the person may not read, it says and counts nothing. `presence`: in which private rooms
    they are."""
    counts, joined = await tx.own_data.counts(owned), await tx.conversations.joined_ids(owned.users, presence)
    places = await tx.own_data.places(owned, room_ids(count.namespace for count in counts), joined)
    projects = await tx.own_data.projects(owned)
    public = await tx.people.least_trust(owned.users) is Trust.MEMBER
    askers = await tx.own_data.askers(owned, joined, public=public)
    by_place: defaultdict[tuple[str, NamedPlace], Counter[str]] = defaultdict(Counter)
    for count in counts:
        of_accounts = count.namespace.startswith(_OF_ACCOUNTS)
        place = named(count.namespace, places, projects, owned.users)
        by_place["" if of_accounts else count.namespace, place][count.kind] += count.count
    stored = [StoredAt(place, found) for (_, place), found in by_place.items()]
    totals = await tx.own_data.items(owned, ("usage", "operations"))
    return OwnPrivacy(
        sorted(stored, key=lambda each: (each.place.name, str(each.counts))),
        sum(each["calls"] for each in totals["usage"]),
        sum(each["count"] for each in totals["operations"]),
        sum(not key.ended(now) for key in await tx.api_keys.of(owned.users)),
        len(await tx.web_sessions.of(owned.users, now)),
        len(await tx.openid_logins.of(owned.users)),
        askers,
        await tx.people.has_opted_out(sorted(owned.users)),
        await _last_verification(tx),
    )


async def _last_verification(tx: Transaction) -> LastVerification | None:
    for row in await tx.audit.find(act=AuditAct.AUDIT_VERIFIED, limit=1):
        return LastVerification(row.at, row.details["broken"] == 0)
    return None


async def privacy_report(tx: Transaction, owned: Owned, now: datetime, presence: Presence) -> str:
    """The same as lines of text."""
    found = await own_privacy(tx, owned, now, presence)
    lines = [f"  {each.place.name}: {_counted(each.counts)}. Readers: {each.place.readers}." for each in found.stored]
    stored = ["What is stored of you, and who is answered from it:", *sorted(lines)] if lines else [_NOTHING]
    waits = [_PENDING] if found.waits else []
    used = _usage_lines(found.calls, found.operations)
    opened = _opened_lines(found.keys, found.sessions, found.logins)
    return "\n".join((*stored, *waits, *used, *opened, *_asker_lines(found.askers)))


_NOTHING: Final = "Nothing of yours is stored here."


def _usage_lines(calls: int, operations: int) -> list[str]:
    readers = "Readers: you, and the admins of this workspace."
    found = (
        [f"Counted, with tokens and cost: {counted(calls, 'call')} of a model in your name. {readers}"] if calls else []
    )
    done = f"{counted(operations, 'operation')} over the API, by month, kind and tool"
    return found + ([f"Counted: {done}. {readers}"] if operations else [])


def _opened_lines(keys: int, sessions: int, logins: int) -> list[str]:
    numbers = ((keys, "key"), (sessions, "web session"), (logins, "login"))
    found = [counted(number, what) for number, what in numbers if number]
    return [f"What opens it from outside: {' and '.join(found)}. /nexus keys list shows them."] if found else []


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(counted(total, kind) for kind, total in counts.items())


def _asker_lines(askers: Sequence[Asker]) -> list[str]:
    if not askers:
        return ["In the rooms that you may read, nobody else was answered from it."]
    lines = ["Who was answered from it, in the rooms that you may read:"]
    for asker in askers[:_MAX_ASKERS]:
        last = "" if asker.last_at is None else f", last on {asker.last_at:%Y-%m-%d}"
        answers = f"{asker.answers:,} answer{'' if asker.answers == 1 else 's'}"
        lines.append(f"  #{title_label(asker.room_name)}: {speaker_label(asker.name)} ({answers}{last})")
    if len(askers) > _MAX_ASKERS:
        lines.append(f"  and {len(askers) - _MAX_ASKERS:,} more")
    return lines
