"""How often each kind of event must occur: a test over poor traces finds little without saying so."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

# The least number per hundred worlds: about half of what happens, since seeds differ.
ACTIONS: Final[Mapping[str, float]] = {
    "say": 340,
    "say in a room": 150,
    "say in a thread": 18,
    "say in a dm": 35,
    "say in a session": 30,
    "say in a room, closed": 89,
    "say in a room, opened": 7,
    "say in a thread, closed": 15,
    "say with a mention": 28,
    "say with an attachment": 2.8,
    "say again": 4,
    "refused say": 2,
    "answers": 25,
    "remember here": 6,
    "remember everywhere": 12,
    "remember project": 1.6,
    "remember global": 0.6,
    "setfact here": 9,
    "setfact everywhere": 6,
    "setfact project": 1.7,
    "setfact global": 0.8,
    "refused setfact": 4,
    "pin here": 3.1,
    "pin everywhere": 2.4,
    "pin project": 0.9,
    "pin global": 0.5,
    "keep": 9,
    "summarise": 7,
    "edit": 14,
    "delete": 12,
    "forget": 9,
    "refused forget": 1.7,
    "move": 19,
    "newproject": 39,
    "assign": 54,
    "refused assign": 3.5,
    "unassign": 5,
    "member": 20,
    "refused member": 15,
    "admin": 17,
    "opt": 6,
    "edit, not recorded": 2.8,
    "record": 3.9,
    "readrooms": 8,
    "refused readrooms": 0.4,
    "eraseroom": 0.6,
    "share": 1.8,
    "share here": 1.2,
    "share everywhere": 0.6,
    "refused share": 3.3,
}
VIEW_SIZES: Final[Mapping[str, float]] = {
    "viewed room": 34,
    "viewed thread": 4,
    "viewed dm": 7,
    "viewed dm, with rooms": 6,
    "recalled from a room in a dm": 12,
    "viewed session": 7,
    "refused": 28,
    "messages shown": 75,
    "answers shown": 5,
    "items recalled": 33,
    "recalled all": 51,
    "facts shown": 8,
    "landmarks shown": 19,
    "erased words looked for": 61,
}
SECRETS: Final[Mapping[str, float]] = {
    "secret: private room": 90,
    "secret: private thread": 20,
    "secret: another public room": 95,
    "secret: a room's private time": 32,
    "secret: a room that was left": 4,
    "secret: dm of another": 25,
    "secret: session of another": 32,
    "secret: own dm": 6,
    "secret: own session": 7,
    "secret: another organisation": 7,
    "secret: erased": 32,
    "secret: for another vendor": 3.3,
    "secret: profile, shared": 15,
    "secret: profile, private": 0.7,
    "secret: project of others": 2.4,
    "secret: a project of the viewer's, elsewhere": 0.6,
    "secret: superseded": 0.6,
}
TWINS: Final[Mapping[str, float]] = {
    "reworded: say": 190,
    "reworded: remember": 8,
    "reworded: setfact": 7,
    "reworded: keep": 4,
    "reworded: pin": 5,
    "reworded: summarise": 2.4,
    "reworded: edit": 6,
    "left out: say": 26,
    "left out: move": 0.2,
    "left out: assign": 2.8,
    "left out: member": 0.6,
    "erased or edited as well": 18,
    "added: bunker": 12,
    "added: direct": 13,
    "added: profile": 14,
    "added: restricted": 10,
    "added: elsewhere": 7,
    "added: project": 5,
    "added: flood": 0.4,
    "added: nearest": 2.4,
    "added: a private room in a project": 6,
    "added: a DM in a project": 0.4,
    "viewers who read rooms in a dm": 2,
    "questions compared": 61,
    "questions of others compared": 38,
    "commands compared": 50,
}


def too_few(counts: Counter[str], worlds: int, *tables: Mapping[str, float]) -> dict[str, tuple[int, float]]:
    """Return what occurred too seldom: how often it did, and how often it should have."""
    wanted = {kind: least * worlds / 100 for table in tables for kind, least in table.items()}
    return {kind: (counts[kind], least) for kind, least in wanted.items() if counts[kind] < least}


def report(counts: Counter[str]) -> str:
    """Format all counts, by kind."""
    return "\n".join(f"  {kind}: {count}" for kind, count in sorted(counts.items()))
