"""Who may act: every command with every flag, by every kind of person, in every kind of place.

The expectations are written by hand from the table "Who may act" of docs/architecture.md, and not taken from
composer/rights/table.py. A command or a flag that is not in the table here fails.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from bot.commands.command import Call
from bot.commands.table import COMMANDS, parse
from composer.errors import BadInput, NotFound, Refused
from composer.ports.database import Mode
from composer.repositories.database import Transaction
from composer.settings import Settings, TenantSettings
from tests.support.harness import AppHarness, open_harness

# Rooms: lobby and cave are in no project, base is in apollo, camp in ares, which is isolated. cave is private.
PLACES: Final[dict[str, dict[str, Any]]] = {
    "lobby": {"room": "lobby"},
    "thread": {"room": "lobby", "thread": "t1"},
    "cave": {"room": "cave"},
    "base": {"room": "base"},
    "camp": {"room": "camp"},
    "cave thread": {"room": "cave", "thread": "t1"},
    "base thread": {"room": "base", "thread": "t1"},
    "camp thread": {"room": "camp", "thread": "t1"},
    "dm": {"dm": "nexus"},
    "session": {"session": "s1"},
    "ares session": {"session": "s2"},
}
# Who they are in the rooms, in apollo, and in ares.
PEOPLE: Final = {
    "guest": (False, None, None),  # has written in every room
    "outsider": (False, None, None),  # has left cave
    "opener": (True, None, None),
    "reader": (False, "read", None),
    "writer": (False, "write", None),
    "manager": (False, "admin", None),
    "captain": (True, "write", None),
    "deserter": (True, None, "write"),  # in the project that camp leaves, not in the one that it enters
    "marshal": (True, "write", "admin"),
    "commander": (False, None, "admin"),
    "root": (False, None, None),  # an admin of the tenant, in no project
}
ALL: Final = frozenset(PEOPLE)
ADMINS: Final = frozenset(name for name, (admin, _, _) in PEOPLE.items() if admin)
APOLLO: Final = frozenset(name for name, (_, role, _) in PEOPLE.items() if role)
ARES: Final = frozenset(name for name, (_, _, role) in PEOPLE.items() if role)
NO_ONE: Final = frozenset[str]()
ROOT: Final = frozenset({"root"})


def people(names: str) -> frozenset[str]:
    found = frozenset(names.split())
    assert found <= ALL
    return found


INVITED: Final = people("commander")  # to apollo
CAMP_LEAVERS: Final = people("marshal commander")  # the admins of the isolated project
REVIEWS: Final = "memory by nobody\nmemory undo nobody"


@dataclass(frozen=True)
class Row:
    """What a call does in some places: for whom it runs, whom it first shows what it opens, to whom the thing that it
    names does not exist. Everybody else is refused."""

    lines: str  # several, one a line
    places: str  # several, separated by commas
    runs: frozenset[str] = NO_ONE
    shows: frozenset[str] = NO_ONE
    hidden: frozenset[str] = NO_ONE
    misplaced: bool = False  # the command is not for this kind of place

    def cells(self) -> Iterator[tuple[str, str, str, str]]:
        """(line, place, person, expected outcome) of everybody."""
        for line in self.lines.strip().splitlines():
            for place in self.places.split(", "):
                for person in sorted(ARES if place == "ares session" else ALL):
                    yield line.strip(), place, person, self.expected(place, person)

    def expected(self, place: str, person: str) -> str:
        if place in ("cave", "cave thread") and person == "outsider":
            return "hidden"
        if self.misplaced:
            return "misplaced"
        outcomes = {"runs": self.runs, "shows": self.shows, "hidden": self.hidden}
        return next((outcome for outcome, who in outcomes.items() if person in who), "refused")


ROWS: Final = (
    # What anyone in the conversation may do.
    Row("help\nremember tea\nforget no such words\nmemory pending", "lobby, cave, dm, session", runs=ALL),
    Row(
        """
        agents
        recall tea
        recall tea --on 2026-05-04
        history tea
        fact set tea 1
        fact get tea
        fact get tea --on 2026-05-04
        fact list
        fact list --on 2026-05-04
        fact history tea
        landmark add we drink tea
        landmark list
        landmark list --retired
        remember tea --everywhere --yes
        fact set tea 1 --everywhere --yes
        landmark add we drink tea --everywhere --yes
        privacy
        share
        export
        opt-out
        opt-in
        timezone
        timezone Berlin
        project create gemini
        project create gemini --isolated
        project list
        """,
        "cave",
        runs=ALL,
    ),
    Row("forget everything", "cave", shows=ALL),
    Row("forget everything --leave", "cave", shows=ALL),
    Row("remember tea --everywhere\nfact set tea 1 --everywhere\nlandmark add tea --everywhere", "cave, dm", shows=ALL),
    Row("ask tea?", "cave, dm", runs=ALL),
    Row(
        "forget message nosuch --yes\nwhy\nwhy --details\nwhy --prompt", "cave", hidden=ALL
    ),  # there is nothing of theirs
    Row("forget here --since 2026-05-01 --until 2026-05-02", "cave", shows=ALL),
    Row("unlink", "dm", hidden=ALL),  # nobody is linked
    # Accounts are linked in DMs alone.
    Row("link", "dm", runs=ALL),
    Row("link\nlink NOSUCH99\nlink NOSUCH99 --yes", "lobby, cave, session", misplaced=True),
    # What opens a person's memory from outside: made, seen and ended in DMs alone.
    Row("keys create claude", "dm", shows=ALL),
    Row("keys create claude --yes\nkeys create claude --expires 90d --yes\nkeys list\nlogin", "dm", runs=ALL),
    Row("keys revoke 00000000", "dm", hidden=ALL),
    Row("keys create claude --yes\nkeys list\nkeys revoke 00000000\nlogin", "lobby, cave, session", misplaced=True),
    # A person's DMs, and what they read of rooms.
    Row("rooms\nrooms on\nrooms off", "dm", runs=ALL),
    Row("rooms\nrooms on\nrooms off", "lobby, cave, thread, session, ares session", misplaced=True),
    # Reminders.
    Row(
        "remind me in 20 minutes tea\nremind here in 20 minutes tea\nremind list", "lobby, cave, dm, session", runs=ALL
    ),
    Row("follow", "lobby, cave, thread", runs=ALL),
    Row("follow on\nfollow off", "lobby, cave, thread", runs=ADMINS),
    Row("follow off", "dm, session", misplaced=True),
    Row("digest", "lobby, cave, thread", runs=ALL),
    Row("digest daily\ndigest weekly 17\ndigest off", "lobby, cave, thread", runs=ADMINS),
    Row("digest daily", "dm, session", misplaced=True),
    Row("catch-up\ncatch-up 2 hours", "lobby, cave, thread", runs=ALL),
    Row("catch-up", "dm, session", misplaced=True),
    Row("remind cancel 00000000", "lobby, cave, dm", hidden=ALL),
    # What is kept of a room, and compaction.
    Row("memory", "lobby, cave, thread", runs=ALL),
    Row("memory off", "lobby, cave, thread", runs=ADMINS),
    Row("memory off", "dm, session", misplaced=True),
    Row("compact", "lobby, cave", runs=ADMINS),
    # What guests wrote, and what one person has contributed.
    Row(f"{REVIEWS}\nmemory undo nobody --since 2026-05-01 --yes", "lobby, cave", runs=ADMINS),
    Row(REVIEWS, "base", runs=ADMINS | people("manager")),
    Row(REVIEWS, "camp", runs=ADMINS | CAMP_LEAVERS),
    Row(REVIEWS, "dm, session", runs=ALL),
    Row("memory approve 00000000\nmemory approve 00000000 --yes\nmemory reject 00000000", "lobby, cave", hidden=ALL),
    Row("compact", "dm, session", runs=ALL),
    # Erasing what others said.
    Row("erase room\nerase room --since 2026-05-01 --until 2026-05-02", "lobby, cave", shows=ADMINS),
    Row("erase room --yes", "lobby, thread", runs=ADMINS),
    Row("erase room", "dm, session", misplaced=True),
    Row("erase user guest\nerase project apollo", "lobby, dm", shows=ROOT),
    Row(
        """
        erase user guest --since 2026-05-01 --until 2026-05-02 --yes
        erase project apollo --since 2026-05-01 --until 2026-05-02 --yes
        """,
        "cave",
        runs=ROOT,
    ),
    # What is written more widely.
    Row(
        "remember tea --global --yes\nfact set tea 1 --global --yes\nlandmark add tea --global --yes",
        "lobby",
        runs=ROOT,
    ),
    Row("remember tea --global\nfact set tea 1 --global\nlandmark add tea --global", "lobby", shows=ROOT),
    Row("remember tea --global --yes", "cave, dm, session", runs=ROOT),
    Row("settings\nsettings top_k 5\naudit", "lobby, dm", runs=ROOT),
    Row("remember tea --project --yes", "base thread", runs=people("writer manager captain marshal")),
    Row("usage\nusage --by room --since 2026-05-01 --until 2026-05-31", "lobby, cave, dm, session", runs=ALL),
    Row("usage --everyone\nusage --everyone --by room", "lobby, dm", runs=ROOT),
    Row(
        "remember tea --project --yes\nfact set tea 1 --project --yes\nlandmark add tea --project --yes",
        "base",
        runs=people("writer manager captain marshal"),
    ),
    Row(
        "remember tea --project\nfact set tea 1 --project\nlandmark add tea --project",
        "base",
        shows=people("writer manager captain marshal"),
    ),
    Row("share abcdef01 global --yes", "lobby", hidden=ROOT),  # there is nothing of theirs to share
    Row("share abcdef01 project", "base", hidden=people("writer manager captain marshal")),
    Row("remember tea --project --yes", "lobby, dm, session"),
    Row("remember tea --project --yes", "camp", runs=ARES),
    Row("remember tea --everywhere --yes\nremember tea --everywhere", "camp, camp thread"),
    Row("remember tea --everywhere --yes", "base, dm", runs=ALL),
    # Landmarks: one in lobby that guest pinned, one there that was only proposed, one of apollo, one for everyone.
    Row("landmark accept {proposed}", "lobby", runs=ALL),
    Row("landmark retire {proposed}\nlandmark amend {proposed} tea", "lobby", runs=ALL),
    Row("landmark retire {pinned}\nlandmark amend {pinned} tea", "lobby, thread", runs=ADMINS | people("guest")),
    Row("landmark retire {pinned}", "cave, base, dm", hidden=ALL),
    Row("landmark retire {apollo}\nlandmark amend {apollo} tea", "base", runs=people("manager writer")),
    Row("landmark retire {global}", "base, dm", runs=ROOT),
    # Projects and their members.
    Row("project member list apollo\nproject member apollo", "lobby", runs=APOLLO, hidden=ALL - APOLLO),
    Row("project member list nosuch", "lobby", hidden=ALL),
    Row(
        "project member add apollo guest\nproject member add apollo guest admin",
        "lobby",
        runs=people("manager"),
        hidden=ALL - APOLLO,
    ),
    Row("project member remove apollo writer", "lobby", runs=people("manager writer"), hidden=ALL - APOLLO),
    Row("project member remove reader apollo", "dm", runs=people("manager reader"), hidden=ALL - APOLLO),
    Row("project member add apollo guest", "camp, session", runs=people("manager"), hidden=ALL - APOLLO),
    Row(
        "project leave apollo",
        "lobby, dm",
        shows=people("manager"),
        runs=APOLLO - people("manager"),
        hidden=ALL - APOLLO,
    ),
    Row("project leave apollo --yes", "session", runs=APOLLO, hidden=ALL - APOLLO),
    Row("project accept apollo\nproject decline apollo", "lobby, dm", runs=INVITED, hidden=ALL - INVITED),
    # A room: into a project, to another one, and out again.
    Row(
        "project assign apollo",
        "lobby, thread",
        shows=people("captain marshal"),
        hidden=ALL - APOLLO,
    ),
    Row("project assign apollo --yes", "lobby, cave", runs=people("captain marshal"), hidden=ALL - APOLLO),
    Row("project assign apollo --pool --yes", "cave", runs=people("captain marshal"), hidden=ALL - APOLLO),
    Row("project assign apollo --pool", "cave, cave thread", shows=people("captain marshal"), hidden=ALL - APOLLO),
    Row("project assign apollo --pool --yes", "lobby, dm, session", hidden=ALL - APOLLO),
    Row("project assign apollo", "camp", shows=people("marshal"), hidden=ALL - APOLLO),
    Row("project assign apollo --yes", "camp", runs=people("marshal"), hidden=ALL - APOLLO),
    Row("project assign ares", "lobby, base", shows=people("deserter marshal"), hidden=ALL - ARES),
    Row("project unassign", "base", shows=ADMINS | people("manager")),
    Row("project unassign --yes", "base", runs=ADMINS | people("manager")),
    Row("project unassign", "camp, camp thread", shows=CAMP_LEAVERS),
    Row("project unassign --yes", "camp", runs=CAMP_LEAVERS),
    # One's own DM and session.
    Row("project assign apollo\nproject assign apollo --yes", "dm", runs=APOLLO, hidden=ALL - APOLLO),
    Row("project assign apollo", "session", shows=APOLLO, hidden=ALL - APOLLO),
    Row("project assign apollo --yes", "session", runs=APOLLO, hidden=ALL - APOLLO),
    Row("project assign ares", "dm", runs=ARES, hidden=ALL - ARES),
    Row("project assign ares --yes", "session", runs=ARES, hidden=ALL - ARES),
    Row("project unassign --yes", "ares session", runs=people("marshal commander")),
    Row("project assign apollo --yes", "ares session", runs=people("marshal"), hidden=people("deserter commander")),
)


class _RolledBackError(Exception):
    """The command ran, and its transaction was rolled back."""


@pytest.fixture
async def harness(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AppHarness]:
    """An open app with everybody in their places."""
    tenants = {"acme": TenantSettings(workspaces=("acme", "acme-eu"))}
    async with open_harness(settings.model_copy(update={"tenants": tenants})) as opened:
        await set_up(opened)
        yield opened


async def set_up(harness: AppHarness) -> None:
    for room in ("lobby", "cave", "base", "camp"):
        for person in ("opener", *(each for each in PEOPLE if each != "opener")):
            await harness.say(person, "hello", room=room, private=True if room == "cave" else None)
    for person in PEOPLE:
        await harness.say(person, "hello", dm="nexus")
        await harness.say(person, "hello", session="s1")
    await harness.move("outsider", "cave", joined=False)
    workspace = harness.workspace()
    async with harness.app.database.transaction(workspace.tenant_id) as tx:
        root = await tx.people.find_user(workspace.platform, workspace.name, "root")
        assert root is not None
        await tx.people.set_admin(root.id, True)
    await harness.command("opener", "/nexus project create apollo", room="base")
    await harness.command("opener", "/nexus project create ares --isolated", room="camp")
    await harness.command("opener", "/nexus project assign apollo --yes", room="base")
    await harness.command("opener", "/nexus project assign ares --yes", room="camp")
    for person, (_, apollo, ares) in PEOPLE.items():
        for project, role in (("apollo", apollo), ("ares", ares)):
            if role is not None:
                await harness.command("opener", f"/nexus project member add {project} {person} {role}", room="lobby")
                await harness.command(person, f"/nexus project accept {project}", room="lobby")
    for person in sorted(INVITED):
        await harness.command("opener", f"/nexus project member add apollo {person}", room="lobby")
    for person in sorted(ARES):
        await harness.command(person, "/nexus project assign ares --yes", session="s2")
    await harness.command("writer", "/nexus landmark add apollo drinks tea --project --yes", room="base")
    await harness.command("guest", "/nexus landmark add we drink tea", room="lobby")
    await harness.command("root", "/nexus landmark add all drink tea --global --yes", room="lobby")
    await harness.say("writer", "We decided to use cups for everything.", room="lobby")
    for project in ("apollo", "ares"):
        await harness.command("opener", f"/nexus project member remove {project} opener", room="lobby")
    async with harness.app.database.transaction(workspace.tenant_id) as tx:
        for person in sorted(ADMINS):
            await make_room_admin(tx, person)


async def make_room_admin(tx: Transaction, person: str) -> None:
    """Make a person an admin of every room, as if they had opened it."""
    connection = tx.conversations._sql._connection  # type: ignore[attr-defined]
    await connection.execute(
        "UPDATE members SET admin = true FROM users WHERE users.id = members.user_id AND users.name = $1", person
    )


async def outcome(harness: AppHarness, person: str, line: str, place: str) -> str:
    try:
        # What it changes is rolled back, so there is nothing to index.
        answer = await harness.command_without_indexing(person, f"/nexus {line}", **PLACES[place])
    except _RolledBackError:
        return "runs"
    except Refused:
        return "refused"
    except NotFound as error:
        named = ("There is no", "You have no", "There is no answer", "Your account is not linked")
        return "hidden" if str(error).startswith(named) else str(error)
    except BadInput as error:
        return "misplaced" if "works only in" in str(error) else str(error)
    return "shows" if answer.confirm and "--yes" not in line else "runs"


def roll_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what each command changes, once it has changed it."""
    changing = Call.changing

    @asynccontextmanager
    async def rolled_back(call: Call, mode: Mode = "share") -> AsyncIterator[Transaction]:
        async with changing(call, mode) as tx:
            yield tx
            raise _RolledBackError

    monkeypatch.setattr(Call, "changing", rolled_back)


async def landmark_ids(harness: AppHarness) -> dict[str, str]:
    found = {}
    for room in ("lobby", "base"):
        for line in (await harness.command("writer", "/nexus landmark list", room=room)).text.splitlines():
            word = next(each for each in ("apollo", "all drink", "we drink", "cups") if each in line)
            found[word] = line.split()[0]
    names = {"apollo": "apollo", "all drink": "global", "we drink": "pinned", "cups": "proposed"}
    return {names[word]: id for word, id in found.items()}


async def test_every_command_is_for_those_whom_the_table_names(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await landmark_ids(harness)
    roll_back(monkeypatch)
    wrong = []
    for row in ROWS:
        for line, place, person, expected in row.cells():
            found = await outcome(harness, person, line.format(**ids), place)
            if found != expected:
                wrong.append(f"{line} by {person} in {place}: {found}, not {expected}")
    assert not wrong, "\n".join(wrong)


def test_every_command_and_flag_is_in_the_table() -> None:
    tried = {name: set[str]() for name in COMMANDS}
    for row in ROWS:
        for line in row.lines.strip().splitlines():
            command, text = parse(line.strip().replace("{", "").replace("}", ""))
            tried[command.name] |= {word.removeprefix("--") for word in text.split() if word.startswith("--")} | {""}
    assert tried == {name: {*command.flags, ""} for name, command in COMMANDS.items()}
