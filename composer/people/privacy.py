"""What is stored of one person, who reads it, and who was answered from it, in words for that person."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from composer.model import Trust
from composer.people.places import NamedPlace, named, room_ids
from composer.people.rooms import least_trust
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.own_data import Asker, Count
from composer.text.counts import counted
from composer.text.names import speaker_label, title_label
from composer.visibility import Owned

_PENDING: Final = "What is pending waits for approval: nobody is answered from it yet."
_MAX_ASKERS: Final = 50  # lines
_OF_ACCOUNTS: Final = ("dm:", "profile:", "entries:")  # namespaces that each linked account has; in words they are one


async def privacy_report(tx: Transaction, owned: Owned, now: datetime, presence: Presence) -> str:
    """The report, as lines of text. Of what others did where the person may not read, it says and counts nothing.
    `presence`: in which private rooms they are."""
    counts, joined = await tx.own_data.counts(owned), await tx.conversations.joined_ids(owned.users, presence)
    places = await tx.own_data.places(owned, room_ids(count.namespace for count in counts), joined)
    projects = await tx.own_data.projects(owned)
    public = await least_trust(tx, owned.users) is Trust.MEMBER
    askers = await tx.own_data.askers(owned, joined, public=public)
    by_place: defaultdict[tuple[str, NamedPlace], list[Count]] = defaultdict(list)
    for count in counts:
        of_accounts = count.namespace.startswith(_OF_ACCOUNTS)
        place = named(count.namespace, places, projects, owned.users)
        by_place["" if of_accounts else count.namespace, place].append(count)
    lines = [f"  {place.name}: {_counted(found)}. Readers: {place.readers}." for (_, place), found in by_place.items()]
    stored = ["What is stored of you, and who is answered from it:", *sorted(lines)] if lines else [_NOTHING]
    waits = [_PENDING] if any(count.kind.startswith("pending ") for count in counts) else []
    totals = await tx.own_data.items(owned, ("usage", "operations"))
    used = _usage_lines(
        sum(each["calls"] for each in totals["usage"]), sum(each["count"] for each in totals["operations"])
    )
    opened = _opened_lines(
        sum(not key.ended(now) for key in await tx.api_keys.of(owned.users)),
        len(await tx.web_sessions.of(owned.users, now)),
        len(await tx.openid_logins.of(owned.users)),
    )
    return "\n".join((*stored, *waits, *used, *opened, *_asker_lines(askers)))


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


def _counted(counts: Sequence[Count]) -> str:
    totals: defaultdict[str, int] = defaultdict(int)
    for count in counts:
        totals[count.kind] += count.count
    return ", ".join(counted(total, kind) for kind, total in totals.items())


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
