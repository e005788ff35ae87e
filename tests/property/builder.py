"""Builds a world event by event.

The builder consults the reference, so that most of its events are possible and some are not.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from tests.property.reference import ConversationKey, Entry, Reference
from tests.property.setting import (
    BUSY_PEOPLE,
    CLOSED,
    DEALS,
    DMS,
    HOUR,
    KEYS,
    PEOPLE,
    PLACES,
    PRIVATE_THREAD,
    PROJECTS,
    PUBLIC,
    SESSIONS,
    THREADS,
    TOPICS,
    Words,
)
from tests.property.trace import (
    MAIN,
    OTHER,
    Accept,
    Admin,
    Assign,
    Delete,
    Edit,
    EraseProject,
    EraseRoom,
    EraseUser,
    Event,
    Forget,
    Import,
    Keep,
    Leave,
    Member,
    Move,
    NewProject,
    Opt,
    Pin,
    ReadRooms,
    Record,
    Remember,
    Say,
    SetFact,
    Share,
    Spot,
    Summarise,
    Unassign,
)


@dataclass
class Builder:
    """A world under construction."""

    rng: random.Random
    words: Words
    rules: Reference = field(default_factory=Reference)
    events: list[Event] = field(default_factory=list)
    at: int = 0

    def add(self, kind: type[Event], user: str = "", *, after: int | None = None, **fields: Any) -> bool:
        """Add the next event, some time after the last one, or so many seconds."""
        self.at += self.rng.choice((30, 60, 300, HOUR, 9 * HOUR)) if after is None else after
        event = kind(n=len(self.events) + 1, at=self.at, user=user, **fields)
        assert ":" not in fields.get("slug", ""), "that may be the beginning of a project's id"
        self.events.append(event)
        return self.rules.apply(event)

    def bring(self, manager: str, slug: str, who: str, role: str, spot: Spot = PUBLIC[0]) -> None:
        """An admin sets a member's role, or invites somebody, who mostly accepts."""
        self.add(Member, manager, spot=spot, slug=slug, who=who, role=role)
        project = next((p for p in self.rules.tenant(MAIN).projects.values() if who in p.invited), None)
        if project is not None and self.rng.random() < 0.9:
            self.add(Accept, who, spot=spot, slug=slug, declined=self.rng.random() < 0.1)

    # --- people and places--------------------------------------------------------------------------------

    def person(self) -> str:
        return self.rng.choice(PEOPLE)

    def place(self) -> Spot:
        return self.rng.choices(PLACES, weights=(5, 4, 5, 3, 3, 2, 3, 4, 2, 4, 2))[0]

    def speaker(self, spot: Spot, tenant: str = MAIN) -> str:
        """Choose a person who mostly takes part already; a DM or session is mostly of one of the first three people."""
        if spot.kind in ("dm", "session"):
            return self.rng.choice(PEOPLE[:3] if self.rng.random() < 0.8 else PEOPLE)
        room = self.rules.tenant(tenant).rooms.get(spot.name)
        there = [p for p in PEOPLE if room is not None and room.members.get(p)]
        keeps_out = spot in (*CLOSED, PRIVATE_THREAD) or spot.name == "vault"
        if there and (keeps_out or self.rng.random() < 0.6) and self.rng.random() < 0.93:
            return self.rng.choice(there)
        return self.person()

    def said(self, tenant: str = MAIN) -> list[Entry]:
        return [e for e in self.rules.tenant(tenant).entries if e.kind == "message" and e.alive]

    # --- events -------------------------------------------------------------------------------------------

    def found(self) -> None:
        """Create the rooms, with someone in each."""
        for spot in PUBLIC:
            self.add(Say, self.person(), spot=spot, text=self.words.line())
        for spot in CLOSED:
            insiders = self.rng.sample(PEOPLE, 2)
            for user in insiders:
                self.add(Say, user, spot=spot, text=self.words.line(), private=True)
        self.add(Say, self.person(), spot=DEALS, text=self.words.line(), private=True)
        if self.rng.random() < 0.8:
            self.add(Admin, self.rng.choice(PEOPLE[2:]), admin=True)
        for slug in PROJECTS[: self.rng.choice((1, 2, 3))]:
            isolated = self.rng.random() < (0.6 if slug == "borealis" else 0.1)
            openers = sorted({user for room in self.rules.tenant(MAIN).rooms.values() for user in room.admins})
            maker = self.rng.choice(openers) if self.rng.random() < 0.8 else self.person()
            self.add(NewProject, maker, spot=self.rng.choice(PUBLIC), slug=slug, isolated=isolated)
            for _ in range(self.rng.choice((0, 1, 2))):
                role = self.rng.choice(("read", "write", "admin"))
                self.bring(maker, slug, self.person(), role)
            for _ in range(self.rng.choice((0, 1, 2))):
                self.assign(slug)

    def found_few(self) -> None:
        """Create a public room and one or two others, and mostly a project with a conversation in it."""
        self.add(Say, self.person(), spot=PUBLIC[0], text=self.words.line())
        closed = self.rng.choice(CLOSED)
        for user in self.rng.sample(PEOPLE, self.rng.choice((1, 2))):
            self.add(Say, user, spot=closed, text=self.words.line(), private=True)
        if self.rng.random() < 0.25:
            self.add(Say, self.person(), spot=DEALS, text=self.words.line(), private=True)
        people = self.rules.tenant(MAIN).people
        if self.rng.random() < 0.3:
            self.add(Admin, self.rng.choice(sorted(people)), admin=True)
        if self.rng.random() < 0.65:
            slug = self.rng.choice(PROJECTS)
            openers = sorted({user for room in self.rules.tenant(MAIN).rooms.values() for user in room.admins})
            maker = self.rng.choice(openers)
            isolated = self.rng.random() < 0.25
            self.add(NewProject, maker, spot=PUBLIC[0], slug=slug, isolated=isolated)
            project = self.rules.tenant(MAIN).projects[slug]
            if self.rng.random() < 0.6:
                who, role = self.rng.choice(sorted(people)), self.rng.choice(("read", "write", "write", "admin"))
                self.bring(maker, slug, who, role)
            spot = self.rng.choice((*DMS, *SESSIONS))
            if self.rng.random() < 0.6:
                user = self.rng.choice(sorted(project.members.keys() - {maker}) or [maker])
                self.add(Say, user, spot=spot, text=self.words.line(), answer=self.live(spot))
                self.add(Assign, user, spot=spot, slug=slug)
            if self.rng.random() < 0.6:
                self.assign(slug)

    def say(self) -> None:
        spot = self.place()
        if spot == PRIVATE_THREAD and self.rng.random() < 0.5:
            private, spot = True, DEALS
            there = self.speaker(PRIVATE_THREAD)
        else:
            private, there = None, self.speaker(spot)
        text = self.words.line()
        if self.rng.random() < 0.15:
            text = f"@{self.rng.choice((*PEOPLE, 'stranger'))} {text}"
        attachment = f"the {self.rng.choice(TOPICS)} file {self.words.canary()}" if self.rng.random() < 0.06 else ""
        if spot.kind in ("room", "thread") and self.rng.random() < 0.15:
            text = f"@{self.rng.choice(('nexus', 'scout'))} {text}"
        answer = self.live(spot)
        self.add(Say, there, spot=spot, text=text, private=private, answer=answer, attachment=attachment)

    def follow_up(self) -> None:
        """People ask an agent in a thread, and go on there without a mention."""
        spot = self.rng.choice(THREADS)
        people = [self.speaker(spot), self.speaker(spot)]
        for number in range(self.rng.randint(2, 6)):
            to = f"@{self.rng.choice(('nexus', 'scout'))} " if number == 0 or self.rng.random() < 0.25 else ""
            to = to or self.rng.choice(("", "", "", "", f"@{people[1]} ", f"hey @{people[0]} "))
            user = people[0] if number == 0 or self.rng.random() < 0.6 else people[1]
            after = self.rng.choice((30, 60, 300, HOUR, HOUR + 1))
            self.add(Say, user, spot=spot, text=to + self.words.line(), after=after)

    def live(self, spot: Spot) -> bool:
        """Decide whether a message is live: in a DM or session it then causes a turn, which takes time."""
        return self.rng.random() < (0.3 if spot.kind in ("dm", "session") else 0.9)

    def burst(self) -> None:
        """A few messages in one place."""
        spot = self.place()
        for _ in range(self.rng.randint(2, 5)):
            live = spot.kind in ("room", "thread") and self.rng.random() < 0.8
            self.add(Say, self.speaker(spot), spot=spot, text=self.words.line(), answer=live)

    def say_elsewhere(self) -> None:
        """Add messages in another tenant, with the same names."""
        spot = self.rng.choice((*PUBLIC, CLOSED[0], *DMS[:1], *SESSIONS[:1]))
        user, tenant = self.rng.choice(PEOPLE[:3]), OTHER
        match self.rng.randrange(5):
            case 0:
                self.add(SetFact, user, tenant=tenant, spot=spot, key=self.rng.choice(KEYS), text=self._value())
            case 1:
                self.add(Remember, user, tenant=tenant, spot=spot, text=self.words.line(), scope="everywhere")
            case 2:
                self.add(NewProject, user, tenant=tenant, spot=spot, slug=PROJECTS[0])
                self.add(Assign, user, tenant=tenant, spot=spot, slug=PROJECTS[0])
            case _:
                self.add(Say, user, tenant=tenant, spot=spot, text=self.words.line(), answer=self.live(spot))

    def _value(self) -> str:
        return f"{self.rng.choice(TOPICS)} {self.words.canary()}"

    def _scope(self) -> str:
        return self.rng.choices(("here", "everywhere", "project", "global"), weights=(5, 4, 3, 2))[0]

    def _writer_for(self, scope: str) -> tuple[str, Spot]:
        """Choose a person and a place; mostly they may write with this scope."""
        here, spot = self.rules.tenant(MAIN), self.place()
        if scope == "global" and here.admins and self.rng.random() < 0.9:
            return self.rng.choice(sorted(here.admins)), spot
        if scope == "project" and self.rng.random() < 0.9:
            may = [
                (user, s)
                for key, project in sorted(here.projects.items())
                for user in sorted(u for u, role in project.members.items() if role != "read")
                for s in PLACES
                if self.rules.may_take_part(MAIN, user, conversation_key := self.rules.conversation_key(MAIN, user, s))
                and (found := self.rules.project(MAIN, user, conversation_key)) is not None
                and found.key == key
            ]
            if may:
                return self.rng.choice(may)
        return self.speaker(spot), spot

    def fact(self) -> None:
        before = [e for e in self.events if isinstance(e, SetFact) and e.tenant == MAIN]
        if before and self.rng.random() < 0.25:  # another value, which supersedes
            old = self.rng.choice(before)
            self.add(SetFact, old.user, spot=old.spot, key=old.key, text=self._value(), scope=old.scope)
            return
        scope, key = self._scope(), self.rng.choice(KEYS)
        user, spot = self._writer_for(scope)
        self.add(SetFact, user, spot=spot, key=key, text=self._value(), scope=scope)

    def pin(self) -> None:
        scope = self._scope()
        user, spot = self._writer_for(scope)
        self.add(Pin, user, spot=spot, text=self.words.line(), scope=scope)

    def remember(self) -> None:
        scope = self._scope()
        user, spot = self._writer_for(scope)
        self.add(Remember, user, spot=spot, text=self.words.line(), scope=scope)

    def keep(self) -> None:
        """A memory entry of a tool: private in a profile, or for some vendors only, or soon over."""
        projects = sorted(key for key, each in self.rules.tenant(MAIN).projects.items() if key == each.slug)
        where = self.rng.choice(("profile", "profile", "here", "global", *(f"project:{slug}" for slug in projects)))
        user = self.rng.choice(sorted(self.rules.tenant(MAIN).people))
        spot = self._existing(user) if where == "here" else None
        if where == "here" and spot is None:
            where = "profile"
        visibility = self.rng.choice(("private", "private", "shared", "public"))
        vendors = self.rng.choice((("*",), ("*",), ("nexus",), ("claude",), ("claude", "chatgpt"), ()))
        lasts = self.rng.choice((None, None, HOUR, 3 * HOUR, 10_000 * HOUR))
        self.add(
            Keep,
            user,
            where=where,
            text=self.words.line(),
            visibility=visibility,
            vendors=vendors,
            spot=spot,
            lasts=lasts,
        )

    def _existing(self, user: str) -> Spot | None:
        spots = [s for s in PLACES if self.rules.may_take_part(MAIN, user, self.rules.conversation_key(MAIN, user, s))]
        return self.rng.choice(spots) if spots else None

    def summarise(self) -> None:
        user = self.person()
        spot = self._existing(user)
        if spot is None:
            return
        home = self.rules.home(MAIN, self.rules.conversation_key(MAIN, user, spot))
        made = [e for e in self.rules.tenant(MAIN).entries if e.home == home and e.alive]
        from_ = [e.n for e in made if e.kind in ("message", "summary")]
        sources = tuple(self.rng.sample(from_, min(len(from_), self.rng.choice((0, 1, 3)))))
        tier = self.rng.choice(("thread", "session", "day", "week"))
        text = f"they spoke of the {self.rng.choice(TOPICS)} and {self.words.canary()}"
        self.add(Summarise, user, spot=spot, tier=tier, text=text, sources=sources)

    def edit(self, among: list[Entry] | None = None) -> None:
        if said := self.said() if among is None else among:
            target = self.rng.choice(said)
            text = self.words.line()
            if self.rng.random() < 0.3:
                text = f"@{self.rng.choice((*PEOPLE, 'stranger'))} {text}"
            self.add(Edit, target.owner or "", target=target.n, text=text)

    def delete(self) -> None:
        if said := self.said():
            target = self.rng.choice(said)
            self.add(Delete, target.owner or "", target=target.n)

    def repeat(self) -> None:
        """A platform delivers a message again, also one that was erased since."""
        before = [e for e in self.events if isinstance(e, Say) and e.tenant == MAIN and e.again is None]
        old = self.rng.choice(before)
        if not self.rules.accepted[old.n - 1] or old.n in self.rules.of_opted_out:  # it would be a new message
            return
        self.add(Say, old.user, spot=old.spot, text=old.text, again=old.n, answer=old.answer)

    def forget(self) -> None:
        own = [e for e in self.rules.tenant(MAIN).entries if e.alive and e.owner and e.kind != "summary"]
        if not own:
            return
        target = self.rng.choice(own)
        user = target.owner or ""
        spot = self._spot_of(target.conversation_key) or self._spot_at(target) or self.place()
        choice = self.rng.random()
        if choice < 0.15:
            self.add(Forget, user, spot=spot, words="here")
        elif choice < 0.18:
            self.add(Forget, user, spot=spot, words="everything")
        elif choice < 0.4 and target.kind == "message":
            self.add(Forget, user, spot=self._existing(user) or spot, message=target.n)
        elif choice < 0.5:
            self.add(Forget, self.person(), spot=spot, message=target.n)
        else:
            words = sorted(target.canaries)[:1] or [self.rng.choice(TOPICS)]
            self.add(Forget, user, spot=spot, words=words[0] if choice < 0.85 else self.rng.choice(TOPICS))

    def _spot_of(self, conversation_key: ConversationKey) -> Spot | None:
        match conversation_key:
            case ("room", name):
                return Spot("room", name)
            case ("thread", room, thread):
                return Spot("thread", room, thread)
            case ("dm", _, agent):
                return Spot("dm", agent)
            case ("session", _, agent, name):
                return Spot("session", name, agent=agent)
        return None

    def _spot_at(self, entry: Entry) -> Spot | None:
        return self._spot_of(entry.home[:2] if entry.home[0] == "room" else entry.home)

    def room(self, *spots: Spot) -> Spot:
        """Choose one of these rooms and threads, if one of them exists; else the public room that always does."""
        rooms = self.rules.tenant(MAIN).rooms
        return self.rng.choice([spot for spot in spots if spot.name in rooms] or [PUBLIC[0]])

    def move(self) -> None:
        """Join and leave, mostly of private rooms."""
        spot = self.room(*CLOSED, *CLOSED, PRIVATE_THREAD, *PUBLIC)
        room = self.rules.tenant(MAIN).rooms[spot.name]
        there = sorted(p for p in PEOPLE if room.members.get(p))
        if there and self.rng.random() < 0.5:
            user = self.rng.choice(there)
            if self.rng.random() < 0.5:  # the leaver has a profile and is still in the view
                self.add(Remember, user, spot=DMS[0], text=self.words.line(), scope="everywhere")
                self.add(Say, user, spot=spot, text=self.words.line())
            self.add(Move, user, room=spot.name, joined=False)
            if self.rng.random() < 0.15:  # a message that crossed with it: a private room refuses it
                self.add(Say, user, spot=spot, text=self.words.line())
        else:
            self.add(Move, self.person(), room=spot.name, joined=True)

    def open_or_close(self) -> None:
        spot = self.room(*CLOSED, *PUBLIC)
        room = self.rules.tenant(MAIN).rooms[spot.name]
        user = self.speaker(spot)
        self.add(Say, user, spot=spot, text=self.words.line(), private=not room.private)
        if self.rng.random() < 0.5:
            self.add(Say, self.speaker(spot), spot=spot, text=self.words.line())

    def assign(self, slug: str | None = None) -> None:
        projects = self.rules.tenant(MAIN).projects
        if not projects:
            return
        project = projects[slug or self.rng.choice(sorted(projects))]
        writers = sorted(p for p, role in project.members.items() if role != "read")
        user = self.rng.choice(writers) if writers and self.rng.random() < 0.9 else self.person()
        mine = [
            s
            for s in (*PUBLIC, *CLOSED, PRIVATE_THREAD, *DMS, *SESSIONS, *SESSIONS)
            if self.rules.may_take_part(MAIN, user, self.rules.conversation_key(MAIN, user, s))
            and self._may_assign(user, s)
        ]
        spot = self.rng.choice(mine) if mine and self.rng.random() < 0.9 else self.place()
        room = self.rules.tenant(MAIN).rooms.get(spot.name)
        pool = room is not None and room.private and spot.kind == "room" and self.rng.random() < 0.5
        if pool and room is not None and room.admins and self.rng.random() < 0.7:
            writing = sorted(room.admins.intersection(writers))
            user = self.rng.choice(writing) if writing else user
        self.add(Assign, user, spot=spot, slug=project.slug, pool=pool)

    def _may_assign(self, user: str, spot: Spot) -> bool:
        """Whether a person may put their own conversation, or a room that they are an admin of, into a project."""
        room = self.rules.tenant(MAIN).rooms.get(spot.name)
        return spot.kind in ("dm", "session") or (room is not None and user in room.admins)

    def project_life(self) -> None:
        """A project with DMs, sessions and rooms in it, of people who are in it, and who may not stay."""
        here = self.rules.tenant(MAIN)
        project = here.projects[self.rng.choice(sorted(here.projects))]
        slug = project.slug
        manager = self.rng.choice(sorted(p for p, role in project.members.items() if role == "admin") or [""])
        if not manager:
            return
        for who in self.rng.sample(PEOPLE, 2):
            if who != manager:
                role = self.rng.choice(("write", "write", "admin", "read"))
                self.bring(manager, slug, who, role)
        for who in sorted(project.members):
            for spot in self.rng.sample((*DMS, *SESSIONS), self.rng.choice((1, 2))):
                for _ in range(self.rng.choice((1, 2))):
                    self.add(Say, who, spot=spot, text=self.words.line(), answer=self.live(spot))
                self.add(Assign, who, spot=spot, slug=slug)
        if self.rng.random() < 0.7:
            self.assign(slug)
        if self.rng.random() < 0.6:
            scope = self.rng.choice(("project", "here"))
            user, spot = self._writer_for(scope)
            self.add(SetFact, user, spot=spot, key=self.rng.choice(KEYS), text=self._value(), scope=scope)
        if self.rng.random() < 0.6:
            who = self.rng.choice(sorted(project.members))
            self.add(Member, manager, spot=PUBLIC[0], slug=slug, who=who, role=None)

    def unassign(self) -> None:
        here = self.rules.tenant(MAIN)
        spots = [Spot("room", r.name) for r in here.rooms.values() if r.project]
        personal_conversations = [t for t in here.personal_conversations.values() if t.project]
        if personal_conversations and self.rng.random() < 0.5:
            talk = self.rng.choice(personal_conversations)
            self.add(Unassign, talk.owner, spot=self._spot_of(talk.conversation_key))
        elif spots:
            spot = self.rng.choice(spots)
            room = here.rooms[spot.name]
            may = sorted(room.admins) or list(PEOPLE)
            self.add(Unassign, self.rng.choice(may), spot=spot)

    def member(self) -> None:
        projects = self.rules.tenant(MAIN).projects
        if not projects:
            return
        project = projects[self.rng.choice(sorted(projects))]
        managers = sorted(p for p, role in project.members.items() if role == "admin")
        user = self.rng.choice(managers) if managers and self.rng.random() < 0.9 else self.person()
        who = self.person()
        role: str | None = self.rng.choice(("read", "write", "admin"))
        if self.rng.random() < 0.5:
            who, role = self.rng.choice(sorted(project.members) or [who]), None
        spot = self._existing(user) or PUBLIC[0]
        if role is None and self.rng.random() < 0.3:
            self.add(Leave, who, spot=spot, slug=project.slug)
        elif role is None:
            self.add(Member, user, spot=spot, slug=project.slug, who=who, role=None)
        else:
            self.bring(user, project.slug, who, role, spot)

    def expel(self) -> None:
        """Somebody whose DM or session is in a project is removed from it."""
        here = self.rules.tenant(MAIN)
        talks = [t for t in here.personal_conversations.values() if t.project]
        if not talks:
            return
        talk = self.rng.choice(talks)
        project = here.projects[talk.project or ""]
        managers = sorted(p for p, role in project.members.items() if role == "admin")
        if managers:
            manager = self.rng.choice(managers)
            self.add(Member, manager, spot=PUBLIC[0], slug=project.slug, who=talk.owner, role=None)

    def admin(self) -> None:
        self.add(Admin, self.person(), admin=self.rng.random() < 0.4)

    def opt(self) -> None:
        """Someone opts out or back in, and continues to write."""
        user, out = self.person(), self.rules.tenant(MAIN).opted_out
        spot = self._existing(user) or PUBLIC[0]
        self.add(Opt, user, spot=spot, out=user not in out or self.rng.random() < 0.1)
        for _ in range(self.rng.randint(1, 3)):
            asked = self.rng.choice(("", "@nexus ", "@scout "))
            self.add(Say, user, spot=spot, text=asked + self.words.line(), answer=self.live(spot))

    def read_rooms(self) -> None:
        """Somebody opens their DMs to rooms, or closes them, and goes on; others try that in a room."""
        here = self.rules.tenant(MAIN)
        inside = sorted({p for room in here.rooms.values() for p in PEOPLE if room.members.get(p)})
        user = self.rng.choice(inside) if inside and self.rng.random() < 0.9 else self.person()
        spot = self.rng.choice(DMS) if self.rng.random() < 0.93 else self._existing(user) or PUBLIC[0]
        self.add(ReadRooms, user, spot=spot, on=user not in here.read_rooms or self.rng.random() < 0.5)
        rooms = [Spot("room", room.name) for room in here.rooms.values() if room.members.get(user)]
        if rooms and self.rng.random() < 0.5:
            text = self.words.line()
            self.add(Say, self.speaker(room := self.rng.choice(rooms)), spot=room, text=text)
        if self.rng.random() < 0.6:  # the answer is from the rooms; it stays in the DM
            spot = spot if spot.kind == "dm" else self.rng.choice(DMS)
            self.add(Say, user, spot=spot, text=self.words.line(), answer=True)
        if rooms and self.rng.random() < 0.25:
            self.add(Move, user, room=self.rng.choice(rooms).name, joined=False)

    def edit_unrecorded(self) -> None:
        """Somebody opts out and edits what they said before."""
        said = self.said()
        if not said:
            return
        user = self.rng.choice(said).owner or ""
        self.add(Opt, user, spot=self._existing(user) or PUBLIC[0], out=True)
        self.edit([e for e in self.said() if e.owner == user])
        if self.rng.random() < 0.7:
            self.add(Opt, user, spot=self._existing(user) or PUBLIC[0], out=False)

    def record(self) -> None:
        """A room admin, or somebody else, changes what is stored of a room; people go on writing, and edit."""
        spot = self.room(*PUBLIC, *CLOSED, THREADS[0])
        admins = sorted(self.rules.tenant(MAIN).rooms[spot.name].admins)
        user = self.rng.choice(admins) if admins and self.rng.random() < 0.9 else self.person()
        self.add(Record, user, spot=spot, policy=self.rng.choice(("off", "mentions", "on")))
        for _ in range(self.rng.randint(1, 4)):
            asked = self.rng.choice(("", "", "@nexus "))
            answer = bool(asked) and self.rng.random() < 0.8
            self.add(Say, self.speaker(spot), spot=spot, text=asked + self.words.line(), answer=answer)
        if self.rng.random() < 0.5:
            self.edit([e for e in self.said() if e.conversation_key[1] == spot.name])
        if self.rng.random() < 0.6:
            self.add(Record, user, spot=spot, policy="on")

    def erase_room(self) -> None:
        spot = self.room(*PUBLIC, *CLOSED, THREADS[0])
        admins = sorted(self.rules.tenant(MAIN).rooms[spot.name].admins)
        user = self.rng.choice(admins) if admins and self.rng.random() < 0.85 else self.person()
        self.add(EraseRoom, user, spot=spot)

    def erase_all(self) -> None:
        """An admin of the tenant, or somebody else, erases all of a person or of a project."""
        here = self.rules.tenant(MAIN)
        known = sorted(here.people.intersection(PEOPLE)) or [PEOPLE[0]]
        admin = self.rng.choice(sorted(here.admins.intersection(PEOPLE)) or known)
        if admin not in here.admins and self.rng.random() < 0.85:
            self.add(Admin, admin, admin=True)
        spot, slugs = self.rng.choice((*DMS, *PUBLIC)), sorted({project.slug for project in here.projects.values()})
        if slugs and self.rng.random() < 0.5:
            self.add(EraseProject, admin, spot=spot, slug=self.rng.choice(slugs))
        else:
            self.add(EraseUser, admin, spot=spot, who=self.rng.choice(known))

    def bring_history(self) -> None:
        """Files of history bring messages of rooms, some of them new, and some into one room."""
        into = self.rng.choice((*PUBLIC, *CLOSED)).name if self.rng.random() < 0.5 else ""
        closed = self.rng.random() < 0.4
        for _ in range(self.rng.choice((1, 2, 2, 3))):
            spot, said = self.rng.choice((*PUBLIC, *CLOSED)), self.rng.choice((None, None, None, None, True, False))
            self.add(
                Import, self.person(), spot=spot, text=self.words.line(), private=said, answer=False, into=into,
                closed=closed,
            )  # fmt: skip

    def share(self) -> None:
        """Somebody files what they wrote elsewhere, or tries to file what another wrote."""
        kinds = (Remember, SetFact, Pin)
        shared = {e.target for e in self.events if isinstance(e, Share)}
        written = [e for e in self.events if isinstance(e, kinds) and e.tenant == MAIN and e.n not in shared]
        if not written:
            self.remember()
            return
        target = self.rng.choice(written)
        user = target.user if self.rng.random() < 0.7 else self.person()
        spot, scope = self._existing(user) or PUBLIC[0], self._scope()
        self.add(Share, user, spot=spot, target=target.n, written=target.at, scope=scope)

    def crowd(self) -> None:
        """More people in one room than a prompt has participants, many of them with profiles."""
        spot = self.rng.choice((*PUBLIC, CLOSED[0]))
        room = self.rules.tenant(MAIN).rooms[spot.name]
        guests = self.rng.sample(BUSY_PEOPLE, self.rng.randint(15, 21))
        for guest in guests:
            if self.rng.random() < 0.5:  # with or without a profile
                self.add(Remember, guest, spot=DMS[0], text=self.words.line(), scope="everywhere")
        for guest in guests:
            if self.rng.random() < 0.3 and not room.private:
                self.add(Say, self.speaker(spot), spot=spot, text=f"@{guest} {self.words.line()}")
            elif not room.private or self.add(Move, guest, room=spot.name, joined=True):
                self.add(Say, guest, spot=spot, text=self.words.line())

    def long_talk(self) -> None:
        """More messages than a prompt shows, preferably in a room that was private before, or in a busy one."""
        self.continue_in(self.rng.choice((*PUBLIC, *CLOSED, THREADS[0], DMS[0])))

    def continue_in(self, spot: Spot) -> None:
        """A long conversation; in a public room with guests, so that several discussions are interleaved."""
        room = self.rules.tenant(MAIN).rooms.get(spot.name)
        user = self.speaker(spot)
        if room is not None and room.private and spot.kind == "room":
            self.add(Say, user, spot=spot, text=self.words.line(), private=False)
        guests = self.rng.sample(BUSY_PEOPLE, 5) if spot in PUBLIC else []
        for _ in range(self.rng.randint(51, 68)):
            speaker = user if spot.kind == "dm" else self.rng.choice([self.speaker(spot), *guests])
            self.add(Say, speaker, spot=spot, text=f"so {self.words.canary()}", answer=spot.kind != "dm")

    def opened(self) -> None:
        """A private room with replies of an agent becomes public."""
        spot = self.room(*CLOSED)
        room = self.rules.tenant(MAIN).rooms[spot.name]
        insiders = sorted(p for p in PEOPLE if room.members.get(p))
        if not insiders:
            return
        for _ in range(self.rng.randint(1, 4)):
            agent = self.rng.choice(("", "@scout ", "@nexus "))
            text = agent + self.words.line()
            self.add(Say, self.rng.choice(insiders), spot=spot, text=text, private=None if room.private else True)
        self.add(Say, self.rng.choice(insiders), spot=spot, text=self.words.line(), private=False)
        for _ in range(self.rng.randint(0, 3)):
            self.add(Say, self.person(), spot=spot, text=self.words.line())
