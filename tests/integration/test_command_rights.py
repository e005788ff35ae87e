"""The declared places and rights of each command are the ones that are enforced."""

import pytest

from bot.commands.command import Command, PlaceKind, Right
from bot.commands.table import COMMANDS
from composer.errors import BadInput, NexusError, NotFound, Refused
from tests.support.harness import AppHarness

pytestmark = pytest.mark.integration

PLACES = {
    PlaceKind.ROOM: {"room": "general"},
    PlaceKind.DM: {"dm": "nexus"},
    PlaceKind.SESSION: {"session": "s1", "agent": "nexus"},
}
# Who has which rights in the room and the project of `add_sample_data`.
RIGHTS = {
    "owner": {Right.PARTICIPANT, Right.ROOM_ADMIN, Right.PROJECT_MEMBER, Right.PROJECT_WRITER, Right.PROJECT_ADMIN},
    "writer": {Right.PARTICIPANT, Right.PROJECT_MEMBER, Right.PROJECT_WRITER},
    "reader": {Right.PARTICIPANT, Right.PROJECT_MEMBER},
    "guest": {Right.PARTICIPANT},
    "root": set(Right),
}
VIEWS = {"memory": "memory", "project member": "project member list apollo"}  # calls that only read


async def add_sample_data(harness: AppHarness) -> None:
    """A room that its owner opened, in a project with members of each role."""
    for user in RIGHTS:
        for place in PLACES.values():
            await harness.say(user, "hello", **place)
    workspace = harness.workspace()
    async with harness.app.database.transaction(workspace.tenant_id) as tx:
        root = await tx.people.find_user(workspace.platform, workspace.name, "root")
        assert root is not None
        await tx.people.set_admin(root.id, True)
    room = PLACES[PlaceKind.ROOM]
    await harness.command("owner", "/nexus project create apollo", **room)
    await harness.command("owner", "/nexus project assign apollo", **room)
    for user, role in (("writer", "write"), ("reader", "read")):
        await harness.command("owner", f"/nexus project member add apollo {user} {role}", **room)


async def refused(harness: AppHarness, user: str, line: str, place: PlaceKind) -> bool:
    """Whether a call is refused; a project that is hidden from the caller counts as refused."""
    try:
        await harness.command(user, f"/nexus {line}", **PLACES[place])
    except Refused:
        return True
    except NotFound as error:
        return "There is no project" in str(error)
    except NexusError:
        return False
    return False


def allowed(command: Command, user: str) -> bool:
    # An admin of a room may remove it from any project.
    rights = RIGHTS[user] | ({Right.PROJECT_WRITER} if user == "owner" else set())
    return command.right in rights


@pytest.mark.parametrize("user", RIGHTS)
async def test_a_command_is_refused_exactly_to_those_without_its_right(harness: AppHarness, user: str) -> None:
    await add_sample_data(harness)
    for name, command in COMMANDS.items():
        if name in ("project unassign", "unlink", "opt-out"):
            continue  # these change what the others need
        line = command.example.replace("bob", "guest")
        assert await refused(harness, user, line, PlaceKind.ROOM) is not allowed(command, user), name
    unassign = COMMANDS["project unassign"]
    assert await refused(harness, user, unassign.example, PlaceKind.ROOM) is not allowed(unassign, user)


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.view_right])
async def test_viewing_needs_only_the_view_right(harness: AppHarness, name: str) -> None:
    await add_sample_data(harness)
    for user, rights in RIGHTS.items():
        expected = COMMANDS[name].view_right not in rights
        assert await refused(harness, user, VIEWS[name], PlaceKind.ROOM) is expected, user


async def test_a_flag_is_refused_to_those_without_its_right(harness: AppHarness) -> None:
    await add_sample_data(harness)
    flags = [(c, flag) for c in COMMANDS.values() for flag in c.options if flag.right and flag.name != "pool"]
    assert flags
    for user, rights in RIGHTS.items():
        for command, flag in flags:
            line = f"{command.example} --{flag.name}"
            assert await refused(harness, user, line, PlaceKind.ROOM) is (flag.right not in rights), (user, line)


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_command_works_only_in_its_places(harness: AppHarness, name: str) -> None:
    await harness.say("alice", "hello", room="general")
    command = COMMANDS[name]
    for place, where in PLACES.items():
        if place in command.places:
            continue
        with pytest.raises(BadInput, match=f"/nexus {name} works only in a room"):
            await harness.command("alice", f"/nexus {command.example}", **where)
