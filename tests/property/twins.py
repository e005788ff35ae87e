"""Two worlds that differ only in what one viewer may not read, and the check that the viewer sees no difference.

The reference determines what the viewer may not read. In the second world such entries are reworded, left
out, edited or erased, and more of their kind are added. Only pairs that are equal for the viewer by the
reference are played.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from composer.layers import semantic
from tests.property.checks import (
    STRANGER,
    Broken,
    Viewer,
    check_accepted,
    count_actions,
    everyone,
    probe,
    viewers_apart,
    viewers_in_projects,
    viewers_of_rooms,
    viewers_with_accounts,
)
from tests.property.product import Product, both
from tests.property.reference import Reference, Room, View
from tests.property.setting import EVERYTHING, KEYS, PROJECTS, PUBLIC, TOPICS, Words
from tests.property.trace import (
    MAIN,
    OTHER,
    TERMINAL,
    UNTRUSTED,
    Accept,
    Assign,
    Delete,
    Edit,
    Event,
    Keep,
    Leave,
    Link,
    Member,
    Move,
    NewProject,
    Pin,
    Remember,
    Say,
    SetFact,
    Spot,
    Summarise,
    Trace,
    Unassign,
    Unlink,
    canaries,
    platform_of,
)
from tests.property.worlds import World

EXTRA: Final = 10_000  # the first number of events that only the second world has
BUNKER: Final = Spot("room", "bunker")
OUTSIDERS: Final = ("mallory", "oscar")
FURTHER_ACCOUNT: Final = "xan"  # of an outsider, on another platform
TRIES: Final = 6
SMALL_SHARE: Final = 0.4  # of the additions to a large world, in a small one
OTHERS: Final = 5  # viewers who are asked besides, in a large world
_NEVER: Final = Room("", False)

Texted = Say | Remember | SetFact | Pin | Keep | Summarise


@dataclass(frozen=True, slots=True)
class Twins:
    """Two worlds that a viewer must not be able to distinguish. `secrets` are words that they may not read."""

    first: World
    second: World
    viewer: Viewer
    secrets: tuple[str, ...]
    others: tuple[str, ...]  # those of other people


def twins_of(world: World, counts: Counter[str], rng: random.Random) -> Twins | None:
    """Choose a viewer of a world and make its twin; None if there is no such viewer."""
    rules = Reference.after(world.events)
    inside, outside = everyone(world, rules)
    opened = [v for v in inside if rules.tenant(MAIN).rooms.get(v.spot.name, _NEVER).generation]
    outside = [v for v in outside if v.spot.kind in ("room", "thread") and v.spot.name in rules.tenant(MAIN).rooms]
    wanted = rng.choices((outside, opened, viewers_in_projects(rules, inside), inside), weights=(2, 2, 6, 6))[0]
    of_rooms, apart = viewers_of_rooms(rules, inside), random.Random(f"viewer of rooms {world.seed}")
    if of_rooms and apart.random() < 0.3:
        wanted = of_rooms
    with_accounts, apart = viewers_with_accounts(rules, inside), random.Random(f"viewer with accounts {world.seed}")
    if with_accounts and apart.random() < 0.4:
        wanted = with_accounts
    guests, apart = viewers_apart(rules, inside), random.Random(f"viewer apart {world.seed}")
    beside = [v for v in inside if _is_visited(rules, v)]
    if beside and apart.random() < 0.6:
        wanted = apart.choice((guests, beside))
    group = wanted or inside
    return twin_for(world, rules, rng.choice(group), counts, rng) if group else None


def _is_visited(rules: Reference, viewer: Viewer) -> bool:
    """Whether somebody is in a room with a guest of whose entries they approve none."""
    room = rules.tenant(MAIN).rooms.get(viewer.spot.name)
    return room is not None and bool(room.members.get("gus")) and viewer.user not in {*UNTRUSTED, *room.admins}


def twin_for(world: World, rules: Reference, viewer: Viewer, counts: Counter[str], rng: random.Random) -> Twins | None:
    """Make the twin of a world for a viewer: first with many differences, then with fewer."""
    before = list(surroundings(rules, world, viewer))
    fixed, secret = _known_words(rules, world, viewer)
    for attempt in range(TRIES):
        events, done = _varied(world, rules, viewer, fixed, rng, bold=attempt < TRIES // 2)
        after = Reference.after(events)
        twin = replace(world, events=events)
        if all(one == other for one, other in zip(before, surroundings(after, twin, viewer), strict=True)):
            counts.update(done)
            counts["viewers who read rooms in a dm"] += bool(viewers_of_rooms(rules, [viewer]))
            _count_secrets(rules, world, viewer, counts)
            accounts = rules.tenant(MAIN).accounts(viewer.user)
            counts["viewers who are guests, or among outsiders"] += bool(viewers_apart(rules, [viewer]))
            counts["viewers with several accounts"] += len(accounts) > 1
            own = {e.n: canaries(repr(e)) for e in world.events if e.user in accounts}
            others = secret.difference(*own.values())
            return Twins(world, twin, viewer, tuple(sorted(secret)), tuple(sorted(others)))
        counts["twins that could be told apart"] += 1
    return None


def _view(rules: Reference, world: World, viewer: Viewer, question: str = EVERYTHING) -> View | None:
    return rules.view(MAIN, viewer.user, viewer.spot, question, world.end)


def surroundings(rules: Reference, world: World, viewer: Viewer) -> Iterator[object]:
    """Yield everything that the viewer can find out by the reference, whomever of those in a probe they mention."""
    return (
        rules.surroundings(MAIN, viewer.user, viewer.spot, question, world.end)
        for question in (
            EVERYTHING,
            "@bob @nexus",
            "@carol @scout",
            "@stranger @nexus",
            "@stranger @scout",
            "@bob @scout",
        )
    )


def _known_words(rules: Reference, world: World, viewer: Viewer) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words that this viewer may read or took part in, and all the other ones."""
    conversation_key = rules.conversation_key(MAIN, viewer.user, viewer.spot)
    views = [_view(rules, world, viewer, f"@{p} @nexus {EVERYTHING}") for p in (*world.people, "stranger")]
    known = frozenset().union(*(view.canaries for view in views if view is not None))
    if views[0] is not None:
        waiting = rules.waiting(MAIN, viewer.user, conversation_key)
        known |= frozenset().union(*(entry.canaries for entry in waiting))
    if views[0] is not None:  # past values of facts can be listed, too
        known |= canaries(repr(rules.history(MAIN, viewer.user, viewer.spot, world.end)))
    every = frozenset().union(*(canaries(repr(event)) for event in world.events))
    answers = frozenset().union(
        *(answer.first_canaries for answer in rules.answers_to(MAIN, viewer.user, conversation_key))
    )
    return known | answers, every - known - answers


def _varied(
    world: World, rules: Reference, viewer: Viewer, fixed: frozenset[str], rng: random.Random, *, bold: bool
) -> tuple[Trace, Counter[str]]:
    """Return the events of the twin."""
    words, done = Words(rng, 50_000), Counter[str]()
    free = {e.n for e in world.events if isinstance(e, Texted) and not canaries(repr(e)) & fixed}
    edited = {e.target for e in world.events if isinstance(e, Edit) and canaries(e.text) & fixed}
    dead = {e.n for e in rules.tenant(MAIN).entries if not e.alive} | rules.of_opted_out
    free -= edited
    events: list[Event] = []
    founding = _founding(world)
    for event in world.events:
        if event.n in free and isinstance(event, Texted):
            dropped = bold and event.n not in dead and rng.random() < 0.25 and event.n not in founding
            if dropped:
                done[f"left out: {_what(event)}"] += 1
                continue
            if rng.random() < 0.75:
                event = _reworded(event, words, rng)
                done[f"reworded: {_what(event)}"] += 1
        elif isinstance(event, Edit) and event.target in free and not canaries(event.text) & fixed:
            if rng.random() < 0.5:
                event = replace(event, text=words.line())
                done["reworded: edit"] += 1
        elif (
            bold
            and isinstance(event, (Move, Member, Accept, Leave, Assign, Unassign, Link, Unlink))
            and rng.random() < 0.06
        ):
            done[f"left out: {_what(event)}"] += 1
            continue
        events.append(event)
        if event.n in free and event.n not in dead and isinstance(event, Say) and rng.random() < 0.08:
            at = event.at + 1
            n = EXTRA + len(events)
            more: Event = Delete(n=n, at=at, user=event.user, target=event.n, tenant=event.tenant)
            if rng.random() < 0.5:
                more = Edit(n=n, at=at, user=event.user, target=event.n, text=words.line(), tenant=event.tenant)
            events.append(more)
            done["erased or edited as well"] += 1
    extra = _more(world, rules, viewer, words, rng, done)
    whole = sorted([*events, *extra], key=lambda e: e.at)
    return tuple(whole), done


def _what(event: Event) -> str:
    return type(event).__name__.lower()


def _founding(world: World) -> set[int]:
    """Return the events that create a room, change it, or are repeated: they may only be reworded."""
    first: dict[str, int] = {}
    for event in world.events:
        if isinstance(event, Say) and event.tenant == MAIN and event.spot.kind in ("room", "thread"):
            first.setdefault(event.spot.name, event.n)
    said = [event for event in world.events if isinstance(event, Say)]
    repeated = {event.again for event in said if event.again is not None}
    return {*first.values(), *repeated, *(event.n for event in said if event.private is not None)}


def _reworded(event: Texted, words: Words, rng: random.Random) -> Event:
    text = words.line() if not isinstance(event, SetFact) else f"{rng.choice(TOPICS)} {words.canary()}"
    if isinstance(event, Say):
        if event.again is not None:
            return event
        called = event.text.split()[0] if event.answer and event.text.startswith("@") else ""
        known = "erin" if platform_of(event.user) == TERMINAL else "vic"
        someone = f"@{rng.choice((*OUTSIDERS, known))} " if rng.random() < 0.1 else ""
        attachment = f"{words.line()}" if rng.random() < 0.2 else ""
        return replace(event, text=f"{called} {someone}{text}".strip(), attachment=attachment)
    return replace(event, text=text)


@dataclass
class _Adder:
    """Events that only the second world has, in places that the viewer does not know of."""

    rules: Reference
    viewer: Viewer
    words: Words
    rng: random.Random
    last: int
    events: list[Event]
    done: Counter[str]

    def add(self, kind: type[Event], user: str, at: int | None = None, **fields: Any) -> int:
        when = self.rng.randrange(700, max(self.last, 701)) if at is None else at
        assert ":" not in fields.get("slug", ""), "that may be the beginning of a project's id"
        n = EXTRA + 1_000 + len(self.events)
        self.events.append(kind(n=n, at=when, user=user, **fields))
        return when

    @property
    def accounts(self) -> frozenset[str]:
        """The accounts of the viewer."""
        return self.rules.tenant(MAIN).accounts(self.viewer.user)

    def bunker(self) -> None:
        """A private room of others, perhaps in a project of the viewer's, but not pooled."""
        opened = self.add(Say, OUTSIDERS[0], spot=BUNKER, text=self.words.line(), private=True)
        other = "erin" if "erin" not in self.accounts else "dave"
        self.add(Say, other, opened + 1, spot=BUNKER, text=self.words.line())
        for _ in range(self.rng.choice((2, 6))):
            at = self.rng.randrange(opened + 1, max(self.last, opened + 2))
            self.add(Say, self.rng.choice(OUTSIDERS), at, spot=BUNKER, text=self.words.line())
        self.add(SetFact, OUTSIDERS[0], opened + 2, spot=BUNKER, key=KEYS[0], text=f"{TOPICS[0]} {self.words.canary()}")
        self.add(Pin, OUTSIDERS[0], opened + 3, spot=BUNKER, text=self.words.line())
        for project in self.rules.tenant(MAIN).projects.values():
            writers = [p for p, role in project.members.items() if role != "read" and p not in self.accounts]
            writers = [p for p in writers if BUNKER.may_be_named_by(p)]
            if writers:
                self.add(Assign, writers[0], self.last, spot=BUNKER, slug=project.slug)
                self.done["added: a private room in a project"] += 1
                break

    def direct(self) -> None:
        """DMs and sessions of others, in projects too: a DM is never pooled, nor is a session of a non-member."""
        others = [p for p in (*OUTSIDERS, "alice", "bob", "carol") if p not in self.accounts]
        spot = self.rng.choice((Spot("dm", "nexus"), Spot("dm", "scout"), Spot("session", "s9")))
        for _ in range(self.rng.choice((1, 4))):
            user = self.rng.choice(others)
            at = self.add(Say, user, spot=spot, text=self.words.line(), answer=self.rng.random() < 0.2)
            slugs = [p.slug for p in self.rules.tenant(MAIN).projects.values() if user in p.members]
            if slugs and spot.kind == "dm" and self.rng.random() < 0.6:
                self.add(Assign, user, max(at, self.last), spot=spot, slug=self.rng.choice(slugs))
                self.done["added: a DM in a project"] += 1

    def profile(self) -> None:
        """Private and restricted entries of people, whoever they are; shared ones of outsiders."""
        people = sorted(self.rules.tenant(MAIN).people)
        room = self.viewer.spot.kind in ("room", "thread")
        private = people if room else [p for p in people if p not in self.accounts]
        for _ in range(self.rng.choice((1, 5))):
            if private:
                self.add(
                    Keep,
                    self.rng.choice(private),
                    self.last,
                    where="profile",
                    text=self.words.line(),
                    visibility="private",
                )
            self.add(
                Keep, self.rng.choice(people), self.last, where=self.rng.choice(("profile", "global")),
                text=self.words.line(), visibility="shared", vendors=("claude",),
            )  # fmt: skip
        self.add(Remember, OUTSIDERS[1], spot=Spot("dm", "nexus"), text=self.words.line(), scope="everywhere")
        self.add(
            SetFact, OUTSIDERS[1], spot=Spot("dm", "nexus"), key=KEYS[1], text=f"cap {self.words.canary()}",
            scope="everywhere",
        )  # fmt: skip

    def restricted(self) -> None:
        """Entries in the viewer's own conversation that are for other vendors only."""
        for _ in range(self.rng.choice((1, 6))):
            self.add(
                Keep, self._known_here(), self.last, where="here", spot=self.viewer.spot, text=self.words.line(),
                visibility="shared", vendors=("claude",),
            )  # fmt: skip

    def elsewhere(self) -> None:
        """The same people in another tenant."""
        viewer = self.viewer.user if platform_of(self.viewer.user) == TERMINAL else "alice"
        for _ in range(self.rng.choice((2, 6))):
            user = self.rng.choice((viewer, "alice", "mallory"))
            spot = self.rng.choice((*PUBLIC, self._own_spot()))
            self.add(Say, user, tenant=OTHER, spot=spot, text=self.words.line(), answer=spot in PUBLIC)
        self.add(Remember, viewer, tenant=OTHER, spot=PUBLIC[0], text=self.words.line(), scope="everywhere")
        self.add(SetFact, "mallory", tenant=OTHER, spot=PUBLIC[0], key=KEYS[0], text=f"fact {self.words.canary()}")
        at = self.add(NewProject, "mallory", tenant=OTHER, spot=PUBLIC[0], slug=PROJECTS[0])
        self.add(Assign, "mallory", at + 1, tenant=OTHER, spot=PUBLIC[0], slug=PROJECTS[0])

    def _known_here(self) -> str:
        """The viewer, or somebody of their platform."""
        if self.viewer.user in self.rules.tenant(MAIN).people:
            return self.viewer.user
        return "alice" if self.viewer.spot.may_be_named_by("alice") else "uma"

    def _own_spot(self) -> Spot:
        there = self.viewer.spot.may_be_named_by("alice") and self.viewer.spot.kind != "thread"
        return self.viewer.spot if there else PUBLIC[0]

    def project(self) -> None:
        """A project of others, with rooms and words in it."""
        opened = self.add(Say, OUTSIDERS[0], spot=BUNKER, text=self.words.line(), private=True)
        self.add(NewProject, OUTSIDERS[0], opened + 1, spot=BUNKER, slug="xylo", isolated=self.rng.random() < 0.5)
        self.add(Assign, OUTSIDERS[0], opened + 2, spot=BUNKER, slug="xylo", pool=True)
        self.add(
            SetFact,
            OUTSIDERS[0],
            opened + 3,
            spot=BUNKER,
            key=KEYS[0],
            text=f"fact {self.words.canary()}",
            scope="project",
        )
        self.add(Pin, OUTSIDERS[0], opened + 4, spot=BUNKER, text=self.words.line(), scope="project")

    def another_account(self) -> None:
        """An outsider with two accounts, who has said and stored something with each."""
        outsider = OUTSIDERS[0]
        for user in (outsider, FURTHER_ACCOUNT):
            self.add(Say, user, spot=Spot("dm", "nexus"), text=self.words.line(), answer=False)
            self.add(Remember, user, spot=Spot("dm", "nexus"), text=self.words.line(), scope="everywhere")
        linked = self.add(Link, outsider, spot=Spot("dm", "nexus"), other=FURTHER_ACCOUNT)
        self.add(Say, outsider, linked + 1, spot=Spot("dm", "nexus"), text=self.words.line(), answer=True)
        if self.rng.random() < 0.5:
            self.add(Unlink, FURTHER_ACCOUNT, linked + 2, spot=Spot("dm", "nexus"))

    def waiting(self) -> None:
        """What a guest stores where the viewer is, and nobody has approved."""
        if not _is_visited(self.rules, self.viewer):
            return
        spot = self.viewer.spot
        self.add(Remember, "gus", self.last, spot=spot, text=f"{EVERYTHING} {self.words.canary()}")
        self.add(SetFact, "gus", self.last, spot=spot, key=KEYS[0], text=f"{TOPICS[0]} {self.words.canary()}")
        self.add(Pin, "gus", self.last, spot=spot, text=self.words.line())
        self.done["added: what waits"] += 1

    def flood(self) -> None:
        """So many entries that every limit is reached if it counts unreadable ones."""
        spot, mass = BUNKER, self.rng.choice((70, 230))
        opened = self.add(Say, OUTSIDERS[0], spot=spot, text=self.words.line(), private=True)
        for _ in range(mass):
            self.add(Say, OUTSIDERS[0], opened + 1, spot=spot, text=f"{EVERYTHING} {self.words.canary()}")
        for _ in range(mass // 3):
            text = f"{EVERYTHING} {self.words.canary()}"
            self.add(Keep, OUTSIDERS[0], self.last, where="global", text=text, visibility="private")

    def nearest(self) -> None:
        """Entries for other vendors where the viewer is, nearer to the question than what they may read."""
        for _ in range(14):
            text = f"{EVERYTHING} {self.words.canary()}"
            self.add(
                Keep, self._known_here(), self.last, where="here", spot=self.viewer.spot, text=text,
                visibility="shared", vendors=("claude",),
            )  # fmt: skip


_ADDITIONS: Final[tuple[tuple[Callable[[_Adder], None], float], ...]] = (
    (_Adder.bunker, 0.6),
    (_Adder.direct, 0.5),
    (_Adder.profile, 0.6),
    (_Adder.restricted, 0.4),
    (_Adder.elsewhere, 0.3),
    (_Adder.project, 0.15),
    (_Adder.flood, 0.02),
    (_Adder.nearest, 0.1),
)
_LATER_ADDITIONS: Final[tuple[tuple[Callable[[_Adder], None], float], ...]] = (
    (_Adder.another_account, 0.1),
    (_Adder.waiting, 2.5),
    (_Adder.flood, 0.01),
)


def _more(
    world: World, rules: Reference, viewer: Viewer, words: Words, rng: random.Random, done: Counter[str]
) -> list[Event]:
    adder = _Adder(rules, viewer, words, rng, world.events[-1].at, [], done)
    share = SMALL_SHARE if world.small else 1.0
    for addition, chance in _ADDITIONS:
        if rng.random() < chance * share:
            addition(adder)
            done[f"added: {addition.__name__}"] += 1
    apart = random.Random(f"additions {world.seed}")  # so that the others are as they are without
    adder.rng = words.rng = apart
    for addition, chance in _LATER_ADDITIONS:
        if apart.random() < chance * share:
            addition(adder)
            done[f"added: {addition.__name__}"] += 1
    words.rng = rng
    return adder.events


def _count_secrets(rules: Reference, world: World, viewer: Viewer, counts: Counter[str]) -> None:
    """Count the reasons why the viewer may not read entries that match their questions."""
    view, conversation_key = _view(rules, world, viewer), rules.conversation_key(MAIN, viewer.user, viewer.spot)
    readable = set() if view is None else {(e.kind, e.n) for e in (*view.possible, *view.log)}
    for tenant in rules.tenants:
        for entry in rules.tenant(tenant).entries:
            if tenant == MAIN and (entry.kind, entry.n) in readable:
                continue
            kind = _why_secret(rules, viewer, conversation_key, tenant, entry)
            counts[f"secret: {kind}"] += 1


def _why_secret(rules: Reference, viewer: Viewer, conversation_key: tuple[str, ...], tenant: str, entry: Any) -> str:
    here, home = rules.tenant(MAIN), entry.home
    if tenant != MAIN:
        return "another organisation"
    if not entry.alive:
        return "erased"
    if entry.pending:
        return "waiting for approval"
    if entry.closed:
        return "superseded"
    if "*" not in entry.vendors and "nexus" not in entry.vendors:
        return "for another vendor"
    if home[0] in ("profile", "global") and entry.visibility == "shared" and viewers_apart(rules, [viewer]):
        return "of the organisation"
    if entry.expires is not None and home == rules.home(MAIN, conversation_key):
        return "expired"
    if home[0] in ("dm", "session"):
        if home[1] == viewer.user:
            return f"own {home[0]}"
        return f"{home[0]} of another{' account' if home[1] in here.accounts(viewer.user) else ''}"
    if home[0] == "room":
        room = here.rooms[home[1]]
        if room.home != home:
            return "a room's private time"
        if room.members.get(viewer.user) is False:
            return "a room that was left"
        if room.private:
            return "private thread" if "/" in room.name else "private room"
        return "another public room" if home != rules.home(MAIN, conversation_key) else "own room, private mark"
    if home[0] == "project":
        project = here.projects[home[1]]
        return "a project of the viewer's, elsewhere" if viewer.user in project.members else "project of others"
    return f"{home[0]}, {entry.visibility}"


async def compare_twins(
    first: Product,
    second: Product,
    name: str,
    twins: Twins,
    counts: Counter[str],
    *,
    commands: bool = True,
    few: int | None = None,
) -> tuple[Reference, Reference]:
    """Play both worlds and ask in both as the viewer. Raises Broken at the first difference.

    `few`: the number of candidates of each kind, in the replies within the worlds and in those to the viewer.
    """
    rng = random.Random(f"questions {twins.first.seed}")
    rules = [Reference.after(world.events) for world in (twins.first, twins.second)]
    with pytest.MonkeyPatch.context() as patch:
        if few is not None:
            patch.setattr(semantic, "MAX_CANDIDATES", few)
        played = await both(
            first.play(name, twins.first.events, rules[0].accepted, twins.first.nights),
            second.play(name, twins.second.events, rules[1].accepted, twins.second.nights),
        )
        for world, expected, taken in zip((twins.first, twins.second), rules, played, strict=True):
            check_accepted(name, world, expected, taken)
            count_actions(world, expected, counts)
        if twins.first.nights:
            counts["summaries of nights"] += await first.summaries(name)
        await _compare_others(first, second, name, twins, rules, counts, rng)
        await compare(first, second, name, twins, counts, rng, commands=commands)
    return rules[0], rules[1]


async def _compare_others(
    first: Product,
    second: Product,
    name: str,
    twins: Twins,
    rules: Sequence[Reference],
    counts: Counter[str],
    rng: random.Random,
) -> None:
    """Compare for other viewers to whom the worlds are equal by the reference, with one question each."""
    inside, outside = everyone(twins.first, rules[0])
    groups = [g for g in (viewers_in_projects(rules[0], inside), inside, outside) for _ in range(2) if g][:OTHERS]
    if twins.first.small:
        groups = [rng.choice(groups)]
    for viewer in [rng.choice(group) for group in groups]:
        seen = [surroundings(r, w, viewer) for r, w in zip(rules, (twins.first, twins.second), strict=True)]
        if any(one != two for one, two in zip(*seen, strict=True)):
            continue
        text = rng.choice((EVERYTHING, "what did we decide?", f"tell me of the {rng.choice(TOPICS)}"))
        one, two = await both(
            *(p.ask(name, MAIN, viewer.user, viewer.spot, text, twins.first.end) for p in (first, second))
        )
        counts["questions of others compared"] += 1
        if one.text() != two.text():
            raise Broken("interference", name, f"{viewer} asks '{text}': {_difference(one.text(), two.text())}")


async def compare(
    first: Product,
    second: Product,
    name: str,
    twins: Twins,
    counts: Counter[str],
    rng: random.Random,
    *,
    commands: bool,
) -> None:
    """Ask the same questions and run the same commands in both worlds."""
    user, spot, at = twins.viewer.user, twins.viewer.spot, twins.first.end
    questions = probe(rng, list(twins.secrets))
    if twins.first.small:
        questions = questions[:1] if rng.random() < 0.5 else [rng.choice(questions)]
    for number, text in enumerate(questions):
        top_k = rng.choice((None, 3)) if number else None
        one, two = await both(
            *(product.ask(name, MAIN, user, spot, text, at, top_k=top_k) for product in (first, second))
        )
        counts["questions compared"] += 1
        if one.text() != two.text():
            raise Broken("interference", name, f"{twins.viewer} asks '{text}': {_difference(one.text(), two.text())}")
    if not commands or not _can_speak(twins):
        return
    for number, command in enumerate(_commands(twins, rng)):
        one, two = await both(
            *(product.tell(name, MAIN, user, spot, command, at, f"probe{number}") for product in (first, second))
        )
        counts["commands compared"] += 1
        if one != two:
            raise Broken("interference", name, f"{twins.viewer} says '{command}': {_difference(one, two)}")


def _can_speak(twins: Twins) -> bool:
    """Return whether a command of the viewer changes nothing: a new or returning person would join the room by it,
    and see more."""
    rules, (user, spot) = Reference.after(twins.first.events), (twins.viewer.user, twins.viewer.spot)
    if _view(rules, twins.first, twins.viewer) is None:
        return False
    room = rules.tenant(MAIN).rooms.get(spot.name)
    return user != STRANGER and (spot.kind in ("dm", "session") or room is None or room.members.get(user) is not False)


def _commands(twins: Twins, rng: random.Random) -> list[str]:
    """Return commands by which a viewer can find something out, and commands that should be refused.

    privacy, export and share are left out: they show what is the caller's in every place, and twins may differ in
    what the viewer said elsewhere. tests/integration/test_own_data.py has twins of their own for them.
    """
    hidden = rng.choice((*PROJECTS, "xylo"))
    secret = rng.choice(twins.secrets) if twins.secrets else "zx0q"
    said = [e.n for e in twins.first.events if isinstance(e, Say) and e.user != twins.viewer.user]
    some = [
        f"/nexus recall {EVERYTHING}",
        "/nexus fact list",
        "/nexus memory",
        "/nexus landmark list",
        f"/nexus recall {secret}",
        f"/nexus fact get {rng.choice(KEYS)}",
        f"/nexus fact history {rng.choice(KEYS)}",
        f"/nexus project member list {hidden}",
        "/nexus why --details",
        "/nexus why m1",
        "/nexus why --prompt",
        f"/nexus project create {hidden}",
        "/nexus project member list xylo",
        "/nexus project member add xylo bob",
        "/nexus project assign xylo",
        f"/nexus forget message m{rng.choice(said)}" if said else "/nexus help",
        f"/nexus forget {rng.choice(twins.others) if twins.others else 'zx0q'}",
        "/nexus rooms",
    ]
    apart = random.Random(f"review {twins.first.seed}")
    if any(event.user in UNTRUSTED for event in twins.first.events) and apart.random() < 0.5:
        return [
            apart.choice(("/nexus memory pending", "/nexus fact list", "/nexus landmark list", "/nexus recall note"))
        ]
    if twins.first.small:
        return [rng.choice(("/nexus project list", rng.choice(some)))]
    return ["/nexus project list", *rng.sample(some, 3)]


def _difference(one: str, two: str) -> str:
    """Describe where two texts begin to differ."""
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    return f"'…{one[max(at - 120, 0) : at + 160]}' or '…{two[max(at - 120, 0) : at + 160]}'"
