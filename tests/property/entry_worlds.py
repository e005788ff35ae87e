"""Random histories of entries, teams, projects and sessions over the API, who may read what of them by simple rules,
and twins that differ only in what one viewer may not read.

The rules are written again here, from docs/api.md and docs/keys.md, and share no code with composer/visibility.py.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from tests.property.setting import TOPICS, Words

PEOPLE: Final = ("alice", "bob", "carol")
KINDS: Final = ("note", "decision", "factual")
TAGS: Final = ("ops", "home", "deep")
SESSIONS: Final = ("plans", "default")
TEAMS: Final = {
    "red": ("alice", "bob"),
    "blue": ("bob", "carol"),
    "green": ("alice", "carol"),
}
# Who is in a project, the first as its admin; the other one of READ_ONLY may only read.
PROJECTS: Final = {"apollo": ("alice", "bob"), "zeus": ("bob", "carol"), "vault": ("alice", "bob")}
ISOLATED: Final = "vault"
READ_ONLY: Final = "zeus"
EVERY_TOOL: Final = "*"
EXTRA: Final = 1_000  # the first number of events that only the twin has


@dataclass(frozen=True, slots=True)
class Asker:
    """A person, or a tool of theirs, with the permissions of its key (None: the usual ones)."""

    person: str
    tool: str = ""
    permissions: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.tool} of {self.person}" if self.tool else self.person

    def may(self, permission: str) -> bool:
        """Whether the key lets its bearer read this."""
        return self.permissions is None or permission in self.permissions


WRITERS: Final = tuple(Asker(person, tool) for person in PEOPLE for tool in ("", "claude", "cursor"))
VIEWERS: Final = (
    *(asker for asker in WRITERS if asker.person == "alice"),
    Asker("alice", "reader", ("entries:read",)),
    Asker("alice", "mate", ("teams:read",)),
    Asker("alice", "planner", ("projects:read",)),
)


@dataclass(frozen=True, slots=True)
class Written:
    """An entry that somebody writes; `lasts` seconds, or for ever. What happens to it then is said by number: it is
    shared with a `team`, changed to another text (`changed`), put into the trash and perhaps taken out again."""

    n: int
    by: Asker
    text: str
    kind: str = "note"
    tags: tuple[str, ...] = ()
    session: str | None = None
    vendors: tuple[str, ...] = (EVERY_TOOL,)
    project: str | None = None
    lasts: int | None = None
    team: str | None = None
    changed: str | None = None
    trashed: bool = False
    restored: bool = False

    @property
    def alive(self) -> bool:
        """Whether it is in use at the end."""
        return (not self.trashed or self.restored) and self.lasts is None


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody says in a session of theirs."""

    n: int
    by: Asker
    text: str
    session: str


@dataclass(frozen=True, slots=True)
class Grouped:
    """Another team or project of somebody."""

    n: int
    by: Asker
    kind: str

    text: str = ""


@dataclass(frozen=True, slots=True)
class Stated:
    """What somebody states in a chat: a fact, which is their own or a project's, or a landmark of a project."""

    n: int
    by: Asker
    text: str
    kind: str
    project: str | None = None


Event = Written | Said | Grouped


@dataclass(frozen=True)
class EntryWorld:
    """A history. Teams and projects are the same in all of them. What is `stated` comes last."""

    seed: int
    events: tuple[Event, ...]
    stated: tuple[Stated, ...] = ()
    entries: tuple[Written, ...] = field(init=False)

    def __post_init__(self) -> None:
        written = tuple(event for event in self.events if isinstance(event, Written))
        object.__setattr__(self, "entries", written)


def may_read(viewer: Asker, entry: Written, project: str | None = None, *, in_trash: bool = False) -> bool:
    """Whether a viewer is listed an entry by a request that names a project, or none; with `in_trash` also their own
    that are in the trash or have expired, which no list shows otherwise."""
    own = entry.by.person == viewer.person
    if not entry.alive and not (in_trash and own and not viewer.tool):
        return False
    if viewer.tool and EVERY_TOOL not in entry.vendors and viewer.tool not in entry.vendors:
        return False
    if entry.project is not None:
        member = viewer.person in PROJECTS[entry.project] and viewer.may("projects:read")
        return member and (project == entry.project if entry.project == ISOLATED else project in (None, entry.project))
    if project == ISOLATED:
        return False
    if own and viewer.may("entries:read"):
        return True
    return entry.team is not None and viewer.person in TEAMS[entry.team] and viewer.may("teams:read")


def ever_reads(viewer: Asker, event: Event) -> bool:
    """Whether a viewer may read something of an event by any request."""
    if isinstance(event, Said):
        return event.by.person == viewer.person and not viewer.tool
    if isinstance(event, Grouped):
        return event.by.person == viewer.person
    return any(may_read(viewer, event, project, in_trash=True) for project in (None, *PROJECTS))


def may_know(viewer: Asker, stated: Stated, project: str | None = None) -> bool:
    """Whether a viewer is shown what was stated, by a request that names a project, or none."""
    if stated.project is None:
        return stated.by.person == viewer.person and viewer.may("entries:read") and project != ISOLATED
    member = viewer.person in PROJECTS[stated.project] and viewer.may("projects:read")
    return member and project in ((stated.project,) if stated.project == ISOLATED else (None, stated.project))


def make(seed: int) -> EntryWorld:
    """The world of a seed."""
    rng = random.Random(f"entries {seed}")
    words = Words(rng)
    events: list[Event] = []
    for n in range(1, rng.randint(10, 18)):
        kind = rng.choices((_written, _said, _grouped), weights=(16, 4, 1))[0]
        events.append(kind(n, rng.choice(WRITERS), words, rng))
    return EntryWorld(seed, tuple(events), _stated(words, 501, random.Random(f"stated {seed}")))


def _stated(words: Words, first: int, rng: random.Random) -> tuple[Stated, ...]:
    made = []
    for n in range(first, first + 6):
        project = rng.choice((None, *PROJECTS))
        by = Asker(rng.choice(PEOPLE) if project is None else PROJECTS[project][0])
        kind = "fact" if project is None else rng.choice(("fact", "landmark"))
        made.append(Stated(n, by, words.line().strip(), kind, project))
    return tuple(made)


def _written(n: int, by: Asker, words: Words, rng: random.Random) -> Written:
    # A tool writes among its person's own: what it writes for a project waits for approval.
    written = {name: people[:1] if name == READ_ONLY else people for name, people in PROJECTS.items()}
    projects = [name for name, people in written.items() if by.person in people and not by.tool]
    project = rng.choice(projects) if projects and rng.random() < 0.3 else None
    teams = [name for name, people in TEAMS.items() if by.person in people]
    vendors = rng.choice(((EVERY_TOOL,), (EVERY_TOOL,), ("claude",), ("cursor",), ("nexus", "claude")))
    entry = Written(
        n,
        by,
        words.line(),
        rng.choice(KINDS),
        tuple(sorted(rng.sample(TAGS, rng.choice((0, 1, 2))))),
        rng.choice((None, *SESSIONS)),
        (EVERY_TOOL,) if by.tool and by.tool not in vendors else vendors,
        project,
        rng.choice((None, None, None, None, 3_600)),
    )
    if entry.lasts is not None:
        return entry
    if project is None and rng.random() < 0.4:
        entry = replace(entry, team=rng.choice(teams))
    if rng.random() < 0.3:
        entry = replace(entry, changed=words.line())
    return replace(entry, trashed=(trashed := rng.random() < 0.25), restored=trashed and rng.random() < 0.4)


def twin_of(world: EntryWorld, viewer: Asker, counts: Counter[str]) -> EntryWorld:
    """The same for a viewer: what they may not read is reworded or left out, and there is more of it."""
    rng = random.Random(f"twin of entries {world.seed}")
    words, events = Words(rng, 50_000), list[Event]()
    for event in world.events:
        if ever_reads(viewer, event):
            events.append(event)
            counts["read"] += 1
            continue
        counts[f"secret: {why_secret(viewer, event)}"] += 1
        if rng.random() < 0.3 or isinstance(event, Grouped):
            continue
        if isinstance(event, Written) and event.changed:
            event = replace(event, changed=words.line())
        events.append(replace(event, text=words.line()))
    for n in range(EXTRA, EXTRA + rng.choice((3, 6, 18))):
        event = rng.choices((_written, _said, _grouped), weights=(16, 3, 2))[0](n, rng.choice(WRITERS), words, rng)
        if not ever_reads(viewer, event):
            counts[f"added: {why_secret(viewer, event)}"] += 1
            events.insert(rng.randint(0, len(events)), event)
    return replace(world, events=tuple(events), stated=_stated_in_twin(world, viewer, words, counts))


def _stated_in_twin(world: EntryWorld, viewer: Asker, words: Words, counts: Counter[str]) -> tuple[Stated, ...]:
    rng = random.Random(f"stated in twin {world.seed}")
    added = _stated(words, EXTRA + 501, rng)
    kept: list[Stated] = []
    for stated in (*world.stated, *added):
        if any(may_know(viewer, stated, project) for project in (None, *PROJECTS)):
            kept += [] if stated in added else [stated]
            continue
        counts[f"secret: a {stated.kind}"] += 1
        if rng.random() < 0.7:
            kept.append(replace(stated, text=words.line().strip()))
    return tuple(kept)


def _said(n: int, by: Asker, words: Words, rng: random.Random) -> Said:
    return Said(n, Asker(by.person), words.line(), rng.choice(SESSIONS))


def _grouped(n: int, by: Asker, words: Words, rng: random.Random) -> Grouped:
    return Grouped(n, Asker(by.person), rng.choice(("team", "project")))


def why_secret(viewer: Asker, event: Event) -> str:
    """Why a viewer may not read an event."""
    if isinstance(event, Said):
        return "a session"
    if isinstance(event, Grouped):
        return f"a {event.kind} of others"
    if not event.alive and event.by.person == viewer.person:
        return "in the trash, or expired"
    if not event.alive:
        return "another's, in the trash or expired"
    if event.project is not None:
        return "a project"
    if event.by.person == viewer.person:
        return "for another tool, or not in the key"
    return "a team" if event.team is not None else "another's"


def secret_words(world: EntryWorld, viewer: Asker) -> list[str]:
    """A word of each text that a viewer may not read."""
    texts = [event.text for event in world.events if event.text and not ever_reads(viewer, event)]
    texts += [each.text for each in world.stated if not any(may_know(viewer, each, p) for p in (None, *PROJECTS))]
    return [text.split()[-1] for text in texts]


def listed(world: EntryWorld, viewer: Asker, project: str | None = None) -> list[Written]:
    """What a viewer's list shows, newest first."""
    return [entry for entry in reversed(world.entries) if may_read(viewer, entry, project)]


def too_few(counts: Counter[str], least: int, kinds: Iterable[str] = ()) -> Collection[str]:
    """Kinds of secrets of which there were so few that nothing is shown."""
    every = ("a session", "another's", "a team", "a project", "for another tool, or not in the key")
    return [kind for kind in (*every, *kinds) if counts[f"secret: {kind}"] + counts[f"added: {kind}"] < least]


QUESTION: Final = f"what is known of {' and '.join(TOPICS[:3])}?"
