"""Lets things happen on other platforms, where people of a world have further accounts."""

from typing import Final

from tests.property.builder import Builder
from tests.property.setting import DEN, DMS, KEYS, LOBBY, PROJECTS, PUBLIC
from tests.property.setting import PEOPLE as PEOPLE_OF_TERMINAL
from tests.property.trace import (
    MAIN,
    TERMINAL,
    Admin,
    Assign,
    Edit,
    EraseRoom,
    Forget,
    Link,
    Member,
    Move,
    MoveUnheard,
    NewProject,
    Opt,
    Outage,
    Pin,
    ReadRooms,
    Remember,
    Review,
    Say,
    SetFact,
    Share,
    Spot,
    Unlink,
    platform_of,
)

PEOPLE: Final = ("uma", "vic", "gus", "rob", "zed")  # with an account on another platform
_LINKABLE: Final = ("uma", "vic", "zed")
_ROOM_OF: Final = {"uma": LOBBY, "vic": DEN}


def link_accounts(b: Builder) -> None:
    """Somebody links an account on another platform with one in the terminal; both go on."""
    here = b.rules.tenant(MAIN)
    inside = sorted(p for p in PEOPLE_OF_TERMINAL if p in here.people)
    owner, account = b.rng.choice(inside), b.rng.choice(_LINKABLE)
    _settle(b, account)
    _speak(b, owner)
    if b.rng.random() < 0.5:  # what only one account was given
        _give(b, owner, account)
    _link(b, owner, account)
    if b.rng.random() < 0.25:  # a third account, linked with either of them
        third = b.rng.choice([user for user in _LINKABLE if platform_of(user) != platform_of(account)])
        _link(b, b.rng.choice((owner, account)), third)
    for _ in range(b.rng.choice((1, 2, 2, 3))):
        b.rng.choice(_AFTERWARDS)(b, owner, account)
    if b.rng.random() < 0.2:
        user = b.rng.choice((owner, account))
        b.add(Unlink, user, spot=_anywhere(b, user))


def _settle(b: Builder, account: str) -> None:
    """An account gets a place on its platform, and something to hide."""
    room = _ROOM_OF.get(account)
    if room is not None:
        b.add(Say, account, spot=room, text=b.words.line(), private=room == DEN)
        if room == DEN and b.rng.random() < 0.5:
            b.add(MoveUnheard, account, room=DEN.name, joined=True)
    if room is None or b.rng.random() < 0.6:
        _speak(b, account)
    if b.rng.random() < 0.5:
        scope = b.rng.choice(("here", "everywhere"))
        b.add(Remember, account, spot=b.rng.choice(DMS), text=b.words.line(), scope=scope)


def _speak(b: Builder, user: str) -> None:
    """Somebody says or stores something in a DM."""
    spot = b.rng.choice(DMS)
    match b.rng.randrange(5):
        case 0:
            b.add(Pin, user, spot=spot, text=b.words.line())
        case 1:
            b.add(SetFact, user, spot=spot, key=b.rng.choice(KEYS), text=f"note {b.words.canary()}")
        case _:
            b.add(Say, user, spot=spot, text=b.words.line(), answer=b.rng.random() < 0.2)


def _give(b: Builder, owner: str, account: str) -> None:
    """One account makes a project, or says that nothing of it may be stored."""
    user = b.rng.choice((owner, account))
    if b.rng.random() < 0.3:
        b.add(Opt, user, spot=b.rng.choice(DMS), out=True)
        return
    slug = b.rng.choice(PROJECTS)
    b.add(NewProject, user, spot=b.rng.choice(DMS), slug=slug, isolated=b.rng.random() < 0.3)
    b.add(Assign, user, spot=b.rng.choice(DMS), slug=slug)
    b.add(Remember, user, spot=b.rng.choice(DMS), text=b.words.line(), scope="project")


def _link(b: Builder, one: str, other: str) -> None:
    """Link two accounts: mostly as it must be done, each from a DM."""
    user, other = b.rng.sample((one, other), 2)
    chance = b.rng.random()
    if chance < 0.08:
        b.add(Link, user, spot=b.rng.choice(DMS), other=other, confirmed=False)
    elif chance < 0.14:
        b.add(Link, user, spot=_room(b, user), other=other)
    elif chance < 0.20:
        b.add(Link, user, spot=b.rng.choice(DMS), other=other, late=True)
    elif chance < 0.26:
        same = [p for p in (*PEOPLE_OF_TERMINAL, *_LINKABLE) if platform_of(p) == platform_of(user) and p != user]
        b.add(Link, user, spot=b.rng.choice(DMS), other=b.rng.choice(same or [user]))
    if chance >= 0.14 or b.rng.random() < 0.5:
        b.add(Link, user, spot=b.rng.choice(DMS), other=other)


def _room(b: Builder, user: str) -> Spot:
    """A room of the platform that an account is on, which exists."""
    if platform_of(user) == TERMINAL:
        return PUBLIC[0]
    return _ROOM_OF.get(user, DMS[0])


def _anywhere(b: Builder, user: str) -> Spot:
    return b.rng.choice((*DMS, _room(b, user)))


def _ask(b: Builder, owner: str, account: str) -> None:
    """One of the accounts asks something in its DM: the answer is made from what the person may read with both."""
    user, spot = b.rng.choice((owner, account)), b.rng.choice(DMS)
    b.add(Say, user, spot=spot, text=b.words.line(), answer=True)


def _forget(b: Builder, owner: str, account: str) -> None:
    """One account forgets what another one said or stored."""
    user, other = b.rng.sample((owner, account), 2)
    own = [e for e in b.rules.tenant(MAIN).entries if e.alive and e.owner == other and e.canaries]
    spot, target = _anywhere(b, user), b.rng.choice(own) if own else None
    chance = b.rng.random()
    if target is None or chance < 0.15:
        b.add(Forget, user, spot=spot, words=b.rng.choice(("everything", "here")))
    elif chance < 0.35 and target.kind == "message":  # an id of another platform is of nothing here
        b.add(Forget, b.rng.choice((user, other)), spot=b.rng.choice(DMS), message=target.n)
    else:
        b.add(Forget, user, spot=spot, words=min(target.canaries))


def _opt(b: Builder, owner: str, account: str) -> None:
    """One account opts out, and the other one speaks."""
    user, other = b.rng.sample((owner, account), 2)
    b.add(Opt, user, spot=b.rng.choice(DMS), out=True)
    b.add(Say, other, spot=_anywhere(b, other), text=b.words.line(), answer=b.rng.random() < 0.3)
    if b.rng.random() < 0.5:
        b.add(Opt, other, spot=b.rng.choice(DMS), out=False)
        b.add(Say, user, spot=_anywhere(b, user), text=b.words.line(), answer=False)


def _project(b: Builder, owner: str, account: str) -> None:
    """A conversation of one account enters a project of the other's, or the person loses their role by either."""
    here = b.rules.tenant(MAIN)
    theirs = sorted(slug for slug, project in here.projects.items() if here.role(project, owner))
    if not theirs:
        _give(b, owner, account)
        return
    project = here.projects[b.rng.choice(theirs)]
    user = b.rng.choice((owner, account))
    if b.rng.random() < 0.6:
        b.add(Assign, user, spot=b.rng.choice((*DMS, _room(b, user))), slug=project.slug)
        return
    managers = sorted(p for p, role in project.members.items() if role == "admin")
    who = b.rng.choice((owner, account, *sorted(project.members)))
    b.add(Member, b.rng.choice(managers), spot=DMS[0], slug=project.slug, who=who, role=b.rng.choice((None, "read")))


def _named_twice(b: Builder, owner: str, account: str) -> None:
    """A project names both accounts of a person, who is then removed by one of them, or gets another role by it."""
    others = sorted(p for p in PEOPLE_OF_TERMINAL if p in b.rules.tenant(MAIN).people and p != owner)
    slug, spot = b.rng.choice(PROJECTS), b.rng.choice(DMS)
    manager = b.rng.choice(others or [owner])
    b.add(NewProject, manager, spot=spot, slug=slug)
    b.add(Remember, manager, spot=spot, text=b.words.line())
    b.add(Assign, manager, spot=PUBLIC[0], slug=slug)
    b.bring(manager, slug, owner, "admin", spot)
    b.bring(account, slug, account, b.rng.choice(("write", "read")), spot)
    b.add(Assign, b.rng.choice((owner, account)), spot=spot, slug=slug)
    who = b.rng.choice((owner, account))
    b.add(Member, manager, spot=spot, slug=slug, who=who, role=b.rng.choice((None, None, "read")))


def _share(b: Builder, owner: str, account: str) -> None:
    """One account files what the other one wrote."""
    written = [e for e in b.events if isinstance(e, (Remember, SetFact, Pin)) and e.user in (owner, account)]
    shared = {e.target for e in b.events if isinstance(e, Share)}
    written = [e for e in written if e.n not in shared]
    user = b.rng.choice((owner, account))
    if not written:
        b.add(Remember, user, spot=b.rng.choice(DMS), text=b.words.line(), scope="everywhere")
        return
    target = b.rng.choice(written)
    scope = b.rng.choice(("here", "everywhere", "project"))
    b.add(Share, user, spot=_anywhere(b, user), target=target.n, written=target.at, scope=scope)


def _read_rooms(b: Builder, owner: str, account: str) -> None:
    """The DMs of one account read the rooms that the person is in, with either account."""
    user = b.rng.choice((owner, account))
    b.add(ReadRooms, user, spot=b.rng.choice(DMS), on=True)
    if b.rng.random() < 0.5:
        b.add(Say, user, spot=b.rng.choice(DMS), text=b.words.line(), answer=True)
    joined = [r.name for r in b.rules.tenant(MAIN).rooms.values() if r.members.get(owner) or r.members.get(account)]
    if joined and b.rng.random() < 0.3:
        room = b.rng.choice(joined)
        mover = owner if b.rules.tenant(MAIN).rooms[room].members.get(owner) else account
        b.add(Move, mover, room=room, joined=False)


def _profile(b: Builder, owner: str, account: str) -> None:
    """Somebody takes part in a room with one account; what is known of them was stored with the other."""
    user, other = b.rng.sample((owner, account), 2)
    b.add(Remember, other, spot=b.rng.choice(DMS), text=b.words.line(), scope="everywhere")
    b.add(Say, user, spot=_room(b, user), text=b.words.line(), answer=True)


_AFTERWARDS: Final = (
    _ask,
    _ask,
    _forget,
    _forget,
    _forget,
    _opt,
    _project,
    _named_twice,
    _share,
    _read_rooms,
    _profile,
)


# --- guests -------------------------------------------------------------------------------------------------


def visit(b: Builder) -> None:
    """Guests and tools take part in a room, which other organisations may read; what they store waits for approval."""
    spot = b.rng.choice((LOBBY, LOBBY, DEN))
    shared = b.rng.choice((None, None, True))
    b.add(Say, "uma", spot=spot, text=b.words.line(), private=spot == DEN, shared=shared)
    b.add(Say, "gus", spot=spot, text=b.words.line(), answer=True)
    if b.rng.random() < 0.6:
        _keep_within(b)
    if b.rng.random() < 0.25:
        _found_project(b, spot)
    for _ in range(b.rng.choice((1, 2, 2))):
        _write_as_guest(b, spot)
    for _ in range(b.rng.choice((1, 1, 2))):
        b.rng.choice(_VISITING)(b, spot)
    if shared and b.rng.random() < 0.3:
        b.add(Say, "uma", spot=spot, text=b.words.line(), shared=False)


def _keep_within(b: Builder) -> None:
    """Something is stored for everyone, or in a profile: not for guests, and not where others read."""
    admins = sorted(b.rules.tenant(MAIN).admins)
    if b.rng.random() < 0.4:
        if not admins:
            b.add(Admin, admin := sorted(b.rules.tenant(MAIN).people & {*PEOPLE_OF_TERMINAL})[0], admin=True)
            admins = [admin]
        b.add(Remember, admins[0], spot=DMS[0], text=b.words.line(), scope="global")
    else:
        b.add(Remember, b.rng.choice(("uma", "gus")), spot=DMS[0], text=b.words.line(), scope="everywhere")


def _found_project(b: Builder, spot: Spot) -> None:
    slug = b.rng.choice(PROJECTS)
    b.add(NewProject, "uma", spot=spot, slug=slug)
    b.add(Assign, "uma", spot=spot, slug=slug)
    b.bring("uma", slug, "gus", b.rng.choice(("write", "admin")), spot)
    if b.rng.random() < 0.5:
        b.add(Assign, b.rng.choice(("uma", "gus")), spot=DMS[0], slug=slug)


def _write_as_guest(b: Builder, spot: Spot) -> None:
    spot = spot if b.rng.random() < 0.7 else DMS[0]
    project = b.rules.assigned(MAIN, b.rules.conversation_key(MAIN, "gus", spot))
    wider = "project" if project is not None else b.rng.choice(("everywhere", "global"))
    scope = "here" if b.rng.random() < (0.5 if project is not None else 0.85) else wider
    match b.rng.randrange(5):
        case 0:
            b.add(Remember, "gus", spot=spot, text=b.words.line(), scope=scope)
        case 1:
            b.add(Pin, "gus", spot=spot, text=b.words.line(), scope=scope)
        case 2:
            b.add(Say, b.rng.choice(("gus", "rob")), spot=LOBBY, text=_decision(b), private=False)
        case _:
            if b.rng.random() < 0.5:  # a value that is not superseded before the other one is approved
                b.add(SetFact, "uma", spot=spot, key=KEYS[0], text=f"note {b.words.canary()}")
            b.add(SetFact, "gus", spot=spot, key=KEYS[0], text=f"note {b.words.canary()}", scope=scope)


def _decision(b: Builder) -> str:
    return f"We decided that the launch is {b.words.canary()}"


def _review(b: Builder, spot: Spot) -> None:
    """Somebody approves or rejects what waits: whoever may, or somebody else."""
    waiting = [e for e in b.rules.tenant(MAIN).entries if e.pending and e.alive and e.canaries]
    if not waiting:
        return
    item = b.rng.choice(waiting)
    own = item.home[0] == "dm"
    user = b.rng.choice(("gus", "gus", "uma") if own else ("uma", "uma", "uma", "gus", "vic"))
    place = DMS[0] if own or (item.home[0] == "project" and b.rng.random() < 0.4) else spot
    approve = b.rng.random() < 0.65
    b.add(Review, user, spot=place, target=item.n, canary=min(item.canaries), approve=approve)
    if approve and b.rng.random() < 0.3:
        b.add(Say, "vic", spot=LOBBY, text=f"@nexus {b.words.line()}", private=False)


def _ask_as_guest(b: Builder, spot: Spot) -> None:
    """A guest asks in the room or in a DM, which they may have opened to rooms."""
    if b.rng.random() < 0.3:
        b.add(ReadRooms, "gus", spot=DMS[0], on=True)
    where = b.rng.choice((spot, DMS[0]))
    b.add(Say, "gus", spot=where, text=f"@nexus {b.words.line()}", answer=True)


def _take_back(b: Builder, spot: Spot) -> None:
    """What waits is forgotten by its author, edited in its message, or erased with the room."""
    waiting = [e for e in b.rules.tenant(MAIN).entries if e.pending and e.alive and e.canaries]
    item = b.rng.choice(waiting) if waiting else None
    said = item is not None and any(e.n == item.n and e.kind == "message" for e in b.said())
    if item is None or b.rng.random() < 0.15:
        b.add(EraseRoom, "uma", spot=spot)
    elif said:
        b.add(Edit, item.owner or "", target=item.n, text=b.rng.choice((_decision(b), b.words.line())))
    else:
        b.add(Forget, item.owner or "", spot=DMS[0], words=b.rng.choice((min(item.canaries), "everything")))


def _ask_as_member(b: Builder, spot: Spot) -> None:
    b.add(Say, b.rng.choice(("uma", "vic")), spot=spot, text=f"@nexus {b.words.line()}", answer=True)


def _link_guest(b: Builder, spot: Spot) -> None:
    """A guest is known in the terminal, where everyone is of the organisation."""
    inside = sorted(p for p in PEOPLE_OF_TERMINAL if p in b.rules.tenant(MAIN).people)
    b.add(Link, "gus", spot=DMS[0], other=b.rng.choice(inside))


_VISITING: Final = (_review, _review, _review, _review, _ask_as_guest, _ask_as_member, _take_back, _link_guest)


# --- who is in a private room -------------------------------------------------------------------------------


def be_in_private(b: Builder) -> None:
    """People are in a private room of a platform, and leave it, unnoticed or not; the platform fails now and then; one
    person's DM reads that room."""
    inside = ["uma", "vic"] if b.rng.random() < 0.8 else ["uma", "gus"]
    b.rng.shuffle(inside)
    for user in inside:
        b.add(Say, user, spot=DEN, text=b.words.line(), private=True)
    reader = b.rng.choice(inside if b.rng.random() < 0.8 else ["zed"])
    for user in inside if b.rng.random() < 0.8 else inside[:1]:
        b.add(MoveUnheard, user, room=DEN.name, joined=True)
    if reader == "zed":  # in a room of the same name elsewhere
        b.add(MoveUnheard, reader, room=DEN.name, joined=True)
    if b.rng.random() < 0.1:
        b.add(Outage, reader, begins=True, fails=b.rng.random() < 0.5)
    b.add(ReadRooms, reader, spot=b.rng.choice(DMS), on=True)
    if b.rng.random() < 0.25:
        _found_project(b, DEN)
    for _ in range(b.rng.choice((0, 1, 2, 3, 4))):
        b.rng.choice(_MEANWHILE)(b, reader)
    if b.rng.random() < 0.5:
        _ask_in_dm(b, reader)


def _ask_in_dm(b: Builder, reader: str) -> None:
    b.add(Say, reader, spot=b.rng.choice(DMS), text=b.words.line(), answer=True)


def _somebody_moves_unheard(b: Builder, reader: str) -> None:
    b.add(MoveUnheard, b.rng.choice(("vic", "xan", reader, reader)), room=DEN.name, joined=b.rng.random() < 0.4)


def _somebody_moves(b: Builder, reader: str) -> None:
    b.add(Move, b.rng.choice(("vic", "uma")), room=DEN.name, joined=b.rng.random() < 0.5)


def _reader_leaves_soon(b: Builder, reader: str) -> None:
    """Somebody leaves right after they have asked, and asks again: within a minute, or a little later."""
    b.add(MoveUnheard, reader, room=DEN.name, joined=True)
    b.add(ReadRooms, reader, spot=DMS[0], on=True)
    told = reader != "zed" and b.rng.random() < 0.5
    b.add(Move if told else MoveUnheard, reader, after=b.rng.choice((5, 20)), room=DEN.name, joined=False)
    after = b.rng.choice((5, 40, 60))
    b.add(Say, reader, after=after, spot=b.rng.choice(DMS), text=b.words.line(), answer=True)


def _others_read(b: Builder, reader: str) -> None:
    """Somebody else, who may be in the room or not, has a DM that reads rooms."""
    other = b.rng.choice(("uma", "vic"))
    if b.rng.random() < 0.6:
        b.add(MoveUnheard, other, room=DEN.name, joined=b.rng.random() < 0.4)
    b.add(ReadRooms, other, spot=DMS[0], on=True)
    _ask_in_dm(b, other)


def _platform_fails(b: Builder, reader: str) -> None:
    away = bool(b.rules.tenant(MAIN).outages)
    b.add(Outage, reader, begins=not away, fails=b.rng.random() < 0.5)


def _somebody_new_writes(b: Builder, reader: str) -> None:
    user = b.rng.choice([each for each in ("rob", "gus", "vic", reader) if each != "zed"])
    b.add(Say, user, spot=DEN, text=b.words.line(), private=True)


def _room_opens(b: Builder, reader: str) -> None:
    b.add(Say, "uma", spot=DEN, text=b.words.line(), private=b.rng.random() < 0.4)


def _link_to_reader(b: Builder, reader: str) -> None:
    """Somebody of the terminal, or of the other platform, is the same person: their DM reads rooms."""
    other = b.rng.choice(sorted(p for p in PEOPLE_OF_TERMINAL if p in b.rules.tenant(MAIN).people))
    b.add(Link, other, spot=DMS[0], other=reader)
    b.add(ReadRooms, other, spot=DMS[0], on=True)
    b.add(Say, other, spot=DMS[0], text=b.words.line(), answer=True)


_MEANWHILE: Final = (
    _ask_in_dm,
    _ask_in_dm,
    _somebody_moves_unheard,
    _somebody_moves_unheard,
    _somebody_moves_unheard,
    _somebody_moves,
    _somebody_moves,
    _others_read,
    _others_read,
    _reader_leaves_soon,
    _reader_leaves_soon,
    _reader_leaves_soon,
    _platform_fails,
    _somebody_new_writes,
    _room_opens,
    _link_to_reader,
)
