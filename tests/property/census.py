"""How often each kind of event must occur: a test over poor traces finds little without saying so."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

# The least number per hundred worlds.
ACTIONS: Final[Mapping[str, float]] = {
    "say": 1500,
    "say in a room": 700,
    "say in a thread": 120,
    "say in a dm": 120,
    "say in a session": 100,
    "say in a room, closed": 200,
    "say in a room, opened": 15,
    "say in a thread, closed": 80,
    "say with a mention": 80,
    "say with an attachment": 15,
    "say again": 12,
    "refused say": 0.2,
    "answers": 60,
    "remember here": 15,
    "remember everywhere": 30,
    "remember project": 3,
    "remember global": 2,
    "setfact here": 30,
    "setfact everywhere": 20,
    "setfact project": 8,
    "setfact global": 3,
    "refused setfact": 15,
    "pin here": 12,
    "pin everywhere": 10,
    "pin project": 3,
    "pin global": 1,
    "keep": 50,
    "summarise": 40,
    "edit": 50,
    "delete": 50,
    "forget": 30,
    "refused forget": 1,
    "move": 80,
    "newproject": 150,
    "assign": 150,
    "refused assign": 20,
    "unassign": 20,
    "member": 120,
    "refused member": 20,
    "admin": 50,
    "opt": 10,
    "edit, not recorded": 1,
    "record": 15,
    "eraseroom": 1,
    "share": 12,
    "share here": 5,
    "share everywhere": 3,
    "refused share": 2,
}
VIEW_SIZES: Final[Mapping[str, float]] = {
    "viewed room": 120,
    "viewed thread": 25,
    "viewed dm": 8,
    "viewed session": 10,
    "refused": 90,
    "messages shown": 400,
    "answers shown": 15,
    "items recalled": 250,
    "recalled all": 200,
    "facts shown": 70,
    "landmarks shown": 40,
    "erased words looked for": 200,
}
SECRETS: Final[Mapping[str, float]] = {
    "secret: private room": 300,
    "secret: private thread": 100,
    "secret: another public room": 200,
    "secret: a room's private time": 40,
    "secret: a room that was left": 10,
    "secret: dm of another": 120,
    "secret: session of another": 100,
    "secret: own dm": 15,
    "secret: own session": 10,
    "secret: another organisation": 30,
    "secret: erased": 100,
    "secret: for another vendor": 25,
    "secret: profile, shared": 40,
    "secret: profile, private": 4,
    "secret: project of others": 5,
    "secret: a project of the viewer's, elsewhere": 2,
    "secret: global, private": 1,
    "secret: superseded": 1,
}
TWINS: Final[Mapping[str, float]] = {
    "reworded: say": 800,
    "reworded: remember": 30,
    "reworded: setfact": 30,
    "reworded: keep": 25,
    "reworded: pin": 15,
    "reworded: summarise": 15,
    "reworded: edit": 20,
    "left out: say": 150,
    "left out: move": 2,
    "left out: assign": 6,
    "left out: member": 5,
    "erased or edited as well": 60,
    "added: bunker": 40,
    "added: direct": 30,
    "added: profile": 40,
    "added: restricted": 25,
    "added: elsewhere": 15,
    "added: project": 6,
    "added: flood": 0.3,
    "added: a private room in a project": 25,
    "added: a DM in a project": 5,
    "questions compared": 200,
    "questions of others compared": 100,
    "commands compared": 200,
}


def too_few(counts: Counter[str], worlds: int, *tables: Mapping[str, float]) -> dict[str, tuple[int, float]]:
    """Return what occurred too seldom: how often it did, and how often it should have."""
    wanted = {kind: least * worlds / 100 for table in tables for kind, least in table.items()}
    return {kind: (counts[kind], least) for kind, least in wanted.items() if counts[kind] < least}


def report(counts: Counter[str]) -> str:
    """Format all counts, by kind."""
    return "\n".join(f"  {kind}: {count}" for kind, count in sorted(counts.items()))
