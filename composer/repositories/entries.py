"""Entries: memories that people and tools write and read over the API. Every read takes a Readable, as recall does."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final

from composer.model import Trust, Visibility
from composer.ports.database import Row, Statements
from composer.repositories.audit import Audit, AuditAct
from composer.repositories.ordering import Order
from composer.repositories.readable import readable_parameters
from composer.text.cleaning import shorten
from composer.visibility import AccessTag, Owned, Readable

ANY_VENDOR: Final = ("*",)
MAX_DERIVED_TITLE_CHARS: Final = 80
MAX_VENDORS_WORD: Final = 200  # characters of a word in the audit log
PERSON: Final = "api"  # the origin of what a person writes themselves
SHARED: Final = "shared"
UNSHARED: Final = "unshared"
BYTES_PER_TOKEN: Final = 4  # of an estimate: what tokenizers make of English prose


@dataclass(frozen=True, slots=True)
class EntryValues:
    """What an entry says, and all that its writer chose about it.

    `content` is what was sent; None where that is the `text`, which recall shows. `title` None: the first line of the
    text. `vendors` may read it besides the person themselves: `*` means every tool. `metadata` is JSON's object.
    """

    text: str
    content: str | None = None
    title: str | None = None
    kind: str = "note"
    key: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    session: str | None = None
    vendors: tuple[str, ...] = ANY_VENDOR
    expires_at: datetime | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """All of its texts, as forgetting compares them (erasure_texts)."""
        metadata = json.dumps(dict(self.metadata), ensure_ascii=False)
        found = (self.text, self.title, self.content, self.key, self.session, metadata, *self.tags)
        return tuple(text for text in found if text)

    def equals(self, other: "EntryValues") -> bool:
        """Whether it is the same to the letter: true, 1 and 1.0 are equal in Python, and three things in JSON."""
        return self == other and self.as_json() == other.as_json()

    def changed(self, other: "EntryValues") -> list[str]:
        """Which of its fields `other` has otherwise, by their names over the API."""
        names = [each.name for each in fields(self) if each.name not in ("text", "content", "vendors")]
        found = [name for name in names if getattr(self, name) != getattr(other, name)]
        found += ["content"] if self.whole != other.whole else []
        found += ["allowed_vendors"] if self.vendors != other.vendors else []
        return sorted(found or ["metadata"])  # of which 1 and true are equal in Python

    @property
    def whole(self) -> str:
        """What was sent, exactly."""
        return self.text if self.content is None else self.content

    def plain(self) -> dict[str, Any]:
        """All of it by name, of what JSON knows, but for the expiry."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**found, "tags": list(self.tags), "metadata": dict(self.metadata), "vendors": list(self.vendors)}

    def as_json(self) -> str:
        """The values but the text and the kind, as JSON text, for what waits for approval."""
        rest = {name: value for name, value in self.plain().items() if name not in ("text", "kind")}
        return json.dumps(rest, ensure_ascii=False, default=datetime.isoformat)


def values_from_json(text: str, kind: str, entry: str) -> EntryValues:
    """The values of what waited for approval, with its text and kind."""
    found = {**json.loads(entry), "text": text, "kind": kind}
    expires = found["expires_at"]
    found["expires_at"] = None if expires is None else datetime.fromisoformat(expires)
    return _values(found, found["metadata"])


def _values(of: Row, metadata: Mapping[str, Any]) -> EntryValues:
    """The values that stand by their names in something, which may hold more."""
    found = {each.name: of[each.name] for each in fields(EntryValues)}
    return EntryValues(**{**found, "tags": tuple(of["tags"]), "metadata": metadata, "vendors": tuple(of["vendors"])})


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored entry. `origin`: "api" for the person themselves, else the tool that wrote it. `former`: it is shared
    with a team that its owner has left. `size` is that of its content, in bytes. In lists the text may be cut and
    the content left out."""

    id: uuid.UUID
    tag: AccessTag
    values: EntryValues
    author: str
    origin: str
    trust: Trust
    created_at: datetime
    updated_at: datetime | None = None
    trashed_at: datetime | None = None
    version: int = 1
    former: bool = False
    size: int = 0

    @property
    def namespace(self) -> str:
        """The namespace that it is filed under."""
        return self.tag.namespace

    @property
    def visibility(self) -> Visibility:
        """Its visibility."""
        return self.tag.visibility

    @property
    def user_id(self) -> uuid.UUID:
        """Its owner."""
        return self.tag.user_id

    @property
    def vendors(self) -> tuple[str, ...]:
        """The tools that may read it."""
        return self.values.vendors

    @property
    def title(self) -> str:
        """Its title, or else its first line, shortened."""
        first = self.values.text.lstrip().partition("\n")[0]
        return self.values.title or shorten(first, MAX_DERIVED_TITLE_CHARS)

    @property
    def content(self) -> str:
        """What was sent, exactly."""
        return self.values.whole

    def has_expired(self, now: datetime) -> bool:
        """Whether it is recalled no more, because of its time."""
        return self.values.expires_at is not None and self.values.expires_at <= now

    @property
    def tokens(self) -> int:
        """An estimate of the tokens of its content."""
        return tokens_of(self.size)


@dataclass(frozen=True, slots=True)
class EntryVersion:
    """A version of an entry: when and `by` whom it was made ("api": the person; "": who ended that it was shared), and
    which fields changed (of the first: created). What they said before is not kept: an edit erases what it takes
    out."""

    version: int
    at: datetime
    by: str
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which entries to list: those that fit all of it; what is None or empty fits every one. `tags` must all be
    there. `words` stand somewhere in its text, title or key, in any case. `since` is included and `until` is not.
    `trashed`: those in the trash, of `owners`, instead of the others; `expired`: those that have expired, likewise.
    `authors`: those of these people alone. `order`: of `find_sorted`."""

    kinds: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    session: str | None = None
    words: str = ""
    since: datetime | None = None
    until: datetime | None = None
    trashed: bool = False
    expired: bool = False
    owners: tuple[uuid.UUID, ...] = ()
    authors: tuple[uuid.UUID, ...] = ()
    order: Order = Order.NEWEST


@dataclass(frozen=True, slots=True)
class EntryCount:
    """How many entries of a kind there are, and an estimate of their tokens."""

    kind: str
    count: int
    tokens: int


@dataclass(frozen=True, slots=True)
class EntryWriter:
    """Who changes an entry, as the audit log shows it. `vendor`: the tool, or `person`."""

    user: uuid.UUID
    vendor: str


def tokens_of(size: int) -> int:
    """An estimate of the tokens of a text of `size` bytes, rounded up."""
    return -(-size // BYTES_PER_TOKEN)


class Entries:
    """Stored entries."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def add(self, entry: Entry) -> bool:
        """Store an entry; False when it is stored already."""
        row = await self._sql.fetch_one(
            "entry_insert",
            id=entry.id,
            namespace=entry.namespace,
            user_id=entry.user_id,
            visibility=str(entry.visibility),
            author=entry.author,
            origin=entry.origin,
            trust=str(entry.trust),
            now=entry.created_at,
            **_parameters(entry.values),
        )
        return row is not None

    async def update(
        self,
        entry: Entry,
        values: EntryValues,
        now: datetime,
        by: EntryWriter | None = None,
        *,
        said_at: datetime | None = None,
    ) -> Entry | None:
        """Give an entry new values. `said_at` is when all of them were written; None where some were before. Which
        tools may read it is recorded in the audit log where that changes, with whom it is changed `by` (None: whom the
        transaction acts for). Returns the entry as it is then; None when it was changed, trashed or erased
        meanwhile."""
        version = await self._sql.fetch_value(
            "entry_update",
            id=entry.id,
            version=entry.version,
            now=now,
            said_at=said_at,
            by=entry.origin if by is None else _wrote(by.vendor),
            changed=entry.values.changed(values),
            **_parameters(values),
        )
        if version is None:
            return None
        if values.vendors != entry.values.vendors:
            details = {"from": _vendors_word(entry.values.vendors), "to": _vendors_word(values.vendors)}
            who = {} if by is None else {"vendor": by.vendor}
            await self._audit.record(
                AuditAct.ENTRY_VENDORS,
                actor=None if by is None else by.user,
                users=[entry.user_id],
                details={**who, **details},
            )
        size = len(values.whole.encode())
        return replace(entry, values=values, updated_at=now, version=version, size=size)

    async def say_again(self, id: uuid.UUID, now: datetime) -> None:
        """Note that all that an entry says was written again: that is said now."""
        await self._sql.execute("entry_say_again", id=id, now=now)

    async def file(self, entry: Entry, tag: AccessTag, by: uuid.UUID, vendor: str, now: datetime) -> Entry | None:
        """File an entry under another tag, for a user or, with the word `vendor`, a tool of theirs; that is recorded in
        the audit log. Returns it as it is then; None when it was changed meanwhile."""
        row = await self._sql.fetch_one(
            "entry_file",
            id=entry.id,
            version=entry.version,
            namespace=tag.namespace,
            visibility=str(tag.visibility),
            user_id=tag.user_id,
            now=now,
            by=_wrote(vendor),
            changed=[SHARED if tag.namespace.startswith("team:") else UNSHARED],
        )
        if row is None:
            return None
        details = {"vendor": vendor, "from": entry.namespace, "to": tag.namespace}
        await self._audit.record(AuditAct.MEMORY_REACH, actor=by, users=[entry.user_id], details=details)
        return replace(entry, tag=tag, updated_at=now, version=entry.version + 1, former=False)

    async def return_to_owners(self, namespace: str, by: uuid.UUID, now: datetime) -> dict[uuid.UUID, int]:
        """File everything that a team or a project holds of people under their own entries, for a user; that is
        recorded in the audit log. Returns how many entries came back to whom."""
        rows = await self._sql.fetch("entries_return", namespace=namespace, now=now, by="", changed=[UNSHARED])
        found = {row["user_id"]: int(row["count"]) for row in rows}
        for owner, count in found.items():
            details: dict[str, str | int] = {"vendor": "person", "from": namespace, "to": f"entries:{owner}"}
            details["entries"] = count
            await self._audit.record(AuditAct.MEMORY_REACH, actor=by, users=[owner], details=details)
        return found

    async def set_trashed(self, entry: Entry, trashed_at: datetime | None, now: datetime) -> Entry | None:
        """Put an entry into the trash, or take it out (None). Returns it as it is then; None when it was changed
        meanwhile, or is there already."""
        version = await self._sql.fetch_value(
            "entry_trash",
            id=entry.id,
            version=entry.version,
            trashed_at=trashed_at,
            now=now,
            by=PERSON,
            changed=["restored" if trashed_at is None else "trashed"],
        )
        return None if version is None else replace(entry, trashed_at=trashed_at, updated_at=now, version=version)

    async def find_by_key(
        self, readable: Readable, users: Sequence[uuid.UUID], origin: str, key: str, now: datetime
    ) -> uuid.UUID | None:
        """The entry that one writer made with a key for a person. One that the writer may not read any more is not
        found: for them it does not exist."""
        found: uuid.UUID | None = await self._sql.fetch_value(
            "entry_by_key",
            **readable_parameters(readable),
            user_ids=list(users),
            origin=origin,
            key=key,
            now=now,
        )
        return found

    async def get(
        self, readable: Readable, id: uuid.UUID, now: datetime, owners: Sequence[uuid.UUID] = ()
    ) -> Entry | None:
        """An entry that a viewer may read; one that is in the trash or has expired only if it is of `owners`."""
        return next(iter(await self.find_by_ids(readable, [id], now, owners)), None)

    async def versions(
        self, readable: Readable, id: uuid.UUID, now: datetime, owners: Sequence[uuid.UUID] = ()
    ) -> list[EntryVersion]:
        """The versions of an entry that a viewer may read, as `get` says, the latest first: at most the latest 50, and
        the first one. Empty where there is no such entry."""
        rows = await self._sql.fetch(
            "entries_get", **readable_parameters(readable), ids=[id], owners=list(owners), now=now
        )
        for row in rows:
            entry = _entry(row)
            if readable.admits(entry):
                first = EntryVersion(1, entry.created_at, entry.origin, ("created",))
                return [*reversed([_version(each) for each in json.loads(row["history"])]), first]
        return []

    async def find_by_ids(
        self, readable: Readable, ids: Sequence[uuid.UUID], now: datetime, owners: Sequence[uuid.UUID] = ()
    ) -> list[Entry]:
        """Those of some entries that a viewer may read, whole, in no order; those in the trash and expired ones only if
        they are of `owners`."""
        rows = await self._sql.fetch(
            "entries_get", **readable_parameters(readable), ids=list(ids), owners=list(owners), now=now
        )
        return [entry for entry in (_entry(row) for row in rows) if readable.admits(entry)]

    async def find_own_ids(self, readable: Readable, owned: Owned) -> list[uuid.UUID]:
        """The ids of all entries that a person owns, of what they may read, newest first; those in the trash and
        expired ones too."""
        rows = await self._sql.fetch("entries_own_ids", **readable_parameters(readable), user_ids=list(owned.users))
        return [row["id"] for row in rows]

    async def find_own(
        self, readable: Readable, owned: Owned, ids: Sequence[uuid.UUID], keys: Sequence[str]
    ) -> list[Entry]:
        """The entries that a person owns, of what they may read, that have one of these ids or keys, whole and in no
        order; those in the trash and expired ones too."""
        rows = await self._sql.fetch(
            "entries_own",
            **readable_parameters(readable),
            user_ids=list(owned.users),
            ids=list(ids),
            keys=list(keys),
        )
        found = [_entry(row) for row in rows]
        return [entry for entry in found if readable.admits(entry) and owned.admits(entry.user_id)]

    async def find_to_replace(
        self, id: uuid.UUID, tag: AccessTag, origin: str, key: str | None, now: datetime
    ) -> Entry | None:
        """The entry whose next version was approved; only to replace it: the one of this id, or the one that the same
        writer stored with this key in the same place."""
        row = await self._sql.fetch_one(
            "entry_to_replace",
            id=id,
            user_id=tag.user_id,
            namespace=tag.namespace,
            origin=origin,
            key=key,
            now=now,
        )
        return None if row is None else _entry(row)

    async def find(
        self, readable: Readable, wanted: EntryFilter, now: datetime, *, limit: int, chars: int | None = None
    ) -> list[Entry]:
        """The entries that `find_sorted` finds, without the times."""
        return [each for _, each in await self.find_sorted(readable, wanted, now, limit=limit, chars=chars)]

    async def find_sorted(
        self,
        readable: Readable,
        wanted: EntryFilter,
        now: datetime,
        *,
        limit: int,
        offset: int = 0,
        after: tuple[datetime, uuid.UUID] | None = None,
        chars: int | None = None,
    ) -> list[tuple[datetime, Entry]]:
        """The entries that a viewer may read and that are wanted, in the order that is wanted, each with the time that
        it is sorted by: at most `limit`, from the `offset`-th on of those that come `after` (time, id) of another one.
        `chars`: how much of each text is read (None: all). Only answers to `owners` count as uses."""
        query, place = "entries_sorted", wanted.order.parameters(after) | {"user_ids": list(wanted.owners)}
        if wanted.order is Order.NEWEST:
            before_at, before_id = after or (None, None)
            query, place = "entries_list", {"before_at": before_at, "before_id": before_id}
        rows = await self._sql.fetch(
            query,
            **readable_parameters(readable),
            **_filter_parameters(wanted, now),
            **place,
            limit=limit,
            offset=offset,
            chars=chars,
        )
        entries = [(row["sorted_at"], _entry(row)) for row in rows]
        return [(at, entry) for at, entry in entries if readable.admits(entry)]

    async def count(self, readable: Readable, wanted: EntryFilter, now: datetime) -> list[EntryCount]:
        """How many entries `find` would find in all, by kind."""
        rows = await self._sql.fetch(
            "entries_count", **readable_parameters(readable), **_filter_parameters(wanted, now)
        )
        return [EntryCount(row["kind"], row["count"], tokens_of(int(row["bytes"]))) for row in rows]


def _vendors_word(vendors: Sequence[str]) -> str:
    """The tools that may read something, as one word of the audit log."""
    word = "all" if tuple(vendors) == ANY_VENDOR else ":".join(vendors)
    return word if len(word) <= MAX_VENDORS_WORD else f"{len(vendors)}:tools"


def _wrote(vendor: str) -> str:
    """Who made a version, by the word of the audit log."""
    return PERSON if vendor == "person" else vendor


def _version(of: Mapping[str, Any]) -> EntryVersion:
    return EntryVersion(of["version"], datetime.fromisoformat(of["at"]), of["by"], tuple(of["changed"]))


def _parameters(values: EntryValues) -> dict[str, Any]:
    return {**values.plain(), "metadata": json.dumps(dict(values.metadata), ensure_ascii=False)}


def _filter_parameters(wanted: EntryFilter, now: datetime) -> dict[str, Any]:
    pattern = wanted.words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return {
        "authors": list(wanted.authors) or None,
        "kinds": list(wanted.kinds) or None,
        "origins": list(wanted.origins) or None,
        "tags": list(wanted.tags) or None,
        "session": wanted.session,
        "words": f"%{pattern}%" if pattern else None,
        "since": wanted.since,
        "until": wanted.until,
        "trashed": wanted.trashed,
        "expired": wanted.expired,
        "owners": list(wanted.owners),
        "now": now,
    }


def _entry(row: Row) -> Entry:
    return Entry(
        id=row["id"],
        tag=AccessTag(row["namespace"], Visibility(row["visibility"]), row["user_id"]),
        values=_values(row, json.loads(row["metadata"])),
        author=row["author"],
        origin=row["origin"],
        trust=Trust(row["trust"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        trashed_at=row["trashed_at"],
        version=row["version"],
        former=row["former"],
        size=row["bytes"],
    )
