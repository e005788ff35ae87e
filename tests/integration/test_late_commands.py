"""Commands that are done late, since a restart interrupted them: the later of two acts wins, and none loosens."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import pytest

from bot.commands.idempotency import adopt_interrupted, begin_command
from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.errors import Refused
from composer.memory.forget import forget
from composer.memory.remember import Author, set_fact
from composer.model import Incoming, Trust, Visibility
from composer.repositories.facts import current_value
from composer.settings import Settings, TenantSettings
from composer.visibility import AccessTag
from composer.workspace import room_id
from jobs.work import JobRun, expire
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until

pytestmark = pytest.mark.integration

ROOM: dict[str, Any] = {"room": "board"}
DM: dict[str, Any] = {"dm": "nexus"}
_ID = re.compile(r"\b[0-9a-f]{8}\b")


@pytest.fixture
async def office(harness: AppHarness, settings: Settings) -> AppHarness:
    """A room that alice opened, an admin of the workspace, with bob in it; and projects of hers."""
    await harness.say("alice", "good morning all", **ROOM)
    await harness.say("bob", "good morning to you", **ROOM)
    await execute(settings, "UPDATE users SET admin = true WHERE name = 'alice'")
    for name in ("apollo", "zeus", "cell --isolated"):
        await harness.command("alice", f"/nexus project create {name}", **ROOM)
    return harness


async def execute(settings: Settings, query: str, *values: object) -> Any:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return await connection.fetchval(query, *values)
    finally:
        await connection.close()


async def rows(settings: Settings, query: str) -> list[Any]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return list(await connection.fetch(query))
    finally:
        await connection.close()


async def interrupt(harness: AppHarness, user: str, text: str, **where: Any) -> None:
    """A command that a process began before it died."""
    place = place_of(where.get("room"), where.get("dm"), None)
    given = incoming(harness.workspace(), place, user, f"/nexus {text}", harness.clock.tick(), id=f"call {text}")
    assert await begin_command(harness.app, harness.workspace(), given, {})


async def adopted(harness: AppHarness, settings: Settings) -> list[Incoming]:
    """The commands that the next process takes over, in the order in which they were given."""
    await execute(settings, "UPDATE commands SET process = 1")
    return [found.incoming for found in await adopt_interrupted(harness.app, harness.workspace())]


async def done_late(harness: AppHarness, given: Incoming) -> str:
    """The answer to a command that is done after the restart."""
    harness.clock.tick()
    try:
        return (await run_command(harness.app, harness.workspace(), given, late=True)).text
    except Refused as error:
        return str(error)


@dataclass(frozen=True, slots=True)
class Case:
    """What alice gave, what is done `before` that (by alice) and `since` (by somebody), and the command (or query) that
    shows the value. {id} is the first id that the command `id_from` shows."""

    given: str
    since: tuple[tuple[str, str], ...]
    shown_by: str
    before: tuple[str, ...] = ()
    where: str = "room"
    id_from: str = ""

    @property
    def place(self) -> dict[str, Any]:
        """Where all of it happens."""
        return ROOM if self.where == "room" else DM


OPTED_OUT = "SELECT opted_out FROM users WHERE name = 'alice'"  # no command shows it
BOB_IN = "project member add apollo bob write"
CASES = {
    "a fact": Case("fact set day Friday", (("bob", "fact set day Monday"),), "fact get day"),
    "a fact that was there before": Case(
        "fact set day Friday", (("bob", "fact set day Monday"),), "fact get day", ("fact set day Sunday",)
    ),
    "a fact for everyone": Case(
        "fact set day Friday --global --yes", (("alice", "fact set day Monday --global --yes"),), "fact get day"
    ),
    "a fact that was forgotten": Case(
        "fact set day Friday",
        (("alice", "forget item {id} --yes"),),
        "fact get day",
        ("fact set day Sunday",),
        id_from="share",
    ),
    "a fact that was filed elsewhere": Case(
        "fact set day Friday",
        (("alice", "share {id} everywhere --yes"),),
        "share",
        ("fact set day Sunday",),
        id_from="share",
    ),
    "a fact that is filed where another was set": Case(
        "share {id} global --yes",
        (("alice", "fact set day Monday --global --yes"),),
        "fact get day",
        ("fact set day Sunday",),
        id_from="share",
    ),
    "where a memory is filed": Case(
        "share {id} everywhere --yes",
        (("alice", "share {id} global --yes"),),
        "share",
        ("remember the printer is upstairs",),
        id_from="share",
    ),
    "a proposed landmark": Case(
        "landmark retire {id}", (("bob", "landmark accept {id}"),), "landmark list", id_from="landmark list"
    ),
    "an amended landmark": Case(
        "landmark amend {id} we ship daily",
        (("bob", "landmark accept {id}"),),
        "landmark list",
        id_from="landmark list",
    ),
    "what is stored of a room": Case("memory off", (("alice", "memory mentions"),), "memory"),
    "whether somebody is stored": Case("opt-out", (("alice", "opt-in"),), OPTED_OUT),
    "whether DMs read rooms": Case("rooms off", (("alice", "rooms on"),), "rooms", ("rooms on",), where="dm"),
    "the project of a room": Case(
        "project assign apollo --yes", (("alice", "project assign zeus --yes"),), "project list"
    ),
    "out of a project": Case(
        "project unassign --yes",
        (("alice", "project assign zeus --yes"),),
        "project list",
        ("project assign apollo --yes",),
    ),
    "a role": Case(
        "project member add apollo bob read",
        (("alice", "project member add apollo bob admin"),),
        "project member list apollo",
    ),
    "a member": Case(
        "project member add apollo bob write",
        (("alice", "project member remove apollo bob"),),
        "project member list apollo",
        ("project member add apollo bob read",),
    ),
    "who is removed": Case(
        "project member remove apollo bob",
        (("alice", "project member add apollo bob admin"),),
        "project member list apollo",
        (BOB_IN,),
    ),
    "a digest": Case("digest daily 7", (("alice", "digest weekly"),), "digest"),
    "a digest that was ended": Case("digest daily 7", (("alice", "digest off"),), "digest", ("digest daily 8",)),
    "a setting": Case("settings top_k 5", (("alice", "settings top_k 9"),), "settings top_k"),
    "a setting that was reset": Case(
        "settings top_k 5", (("alice", "settings top_k default"),), "settings top_k", ("settings top_k 7",)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
async def test_an_interrupted_command_changes_nothing_that_was_changed_since_it_was_given(
    office: AppHarness, settings: Settings, case: Case
) -> None:
    # Before, it overwrote what somebody had set later.
    await office.say("bob", "we decided to ship on Fridays", id="decision", **ROOM)
    for text in case.before:
        await office.command("alice", f"/nexus {text}", **case.place)
    id = await first_id(office, case) if case.id_from else ""
    await interrupt(office, "alice", case.given.format(id=id), **case.place)
    for user, text in case.since:
        await office.command(user, f"/nexus {text.format(id=id)}", **case.place)
    before = await shown(office, case)
    (given,) = await adopted(office, settings)
    answer = await done_late(office, given)
    assert answer == (
        f"`{given.text}` was interrupted by my restart and not done: it was changed meanwhile. If you still want it, "
        "give it again."
    )
    assert await shown(office, case) == before


async def shown(harness: AppHarness, case: Case) -> str:
    return await show(harness, case.shown_by, case.place)


async def show(harness: AppHarness, shown_by: str, place: dict[str, Any]) -> str:
    if shown_by.startswith("SELECT"):
        return str(await execute(harness.app.settings, shown_by))
    return (await harness.command("alice", f"/nexus {shown_by}", **place)).text


async def first_id(harness: AppHarness, case: Case) -> str:
    listed = (await harness.command("alice", f"/nexus {case.id_from}", **case.place)).text
    found = _ID.search(listed)
    assert found, listed
    return found[0]


# By what one looks at what a command sets.
SHOWN_BY = {
    "fact": "fact get day",
    "settings": "settings top_k",
    "project": "project list",
    "member": "project member list apollo",
    "digest": "digest",
    "memory": "memory",
    "opt-in": OPTED_OUT,
    "opt-out": OPTED_OUT,
    "rooms": "rooms",
}


@pytest.mark.parametrize(
    ("present", "given", "loosens"),
    [
        ("", "fact set day Friday", False),
        ("fact set day Sunday", "fact set day Friday", False),
        ("", "fact set day Friday --global --yes", False),
        ("settings top_k 7", "settings top_k 5", False),
        ("", "project assign apollo --yes", True),
        ("project assign apollo --yes", "project assign zeus --yes", True),
        ("project assign apollo --yes", "project assign apollo --yes", False),
        ("project assign apollo --yes", "project unassign --yes", False),
        ("project assign cell --yes", "project unassign --yes", True),  # it is isolated
        ("", "project member add apollo bob read", True),
        ("project member add apollo bob read", "project member add apollo bob write", True),
        ("project member add apollo bob write", "project member add apollo bob admin", True),
        ("project member add apollo bob write", "project member add apollo bob write", False),
        ("project member add apollo bob write", "project member add apollo bob read", False),
        ("project member add apollo bob write", "project member remove apollo bob", False),
        ("", "digest weekly", True),
        ("digest weekly", "digest daily 7", True),
        ("digest daily 8", "digest daily 7", False),
        ("digest daily", "digest weekly", False),
        ("digest daily", "digest off", False),
        ("memory on", "memory on", False),
        ("memory on", "memory mentions", False),
        ("memory on", "memory off", False),
        ("memory mentions", "memory on", True),
        ("memory mentions", "memory mentions", False),
        ("memory mentions", "memory off", False),
        ("memory off", "memory on", True),
        ("memory off", "memory mentions", True),
        ("memory off", "memory off", False),
        ("opt-out", "opt-in", True),
        ("opt-in", "opt-in", False),
        ("opt-in", "opt-out", False),
        ("rooms off", "rooms on", True),
        ("rooms on", "rooms on", False),
        ("rooms on", "rooms off", False),
    ],
)
async def test_an_interrupted_command_is_done_late_unless_more_would_be_stored_read_or_posted_than_now(
    office: AppHarness, settings: Settings, present: str, given: str, loosens: bool
) -> None:
    where = DM if given.startswith("rooms") else ROOM
    named = [word for word in given.split() if word in SHOWN_BY][-1]
    if present:
        await office.command("alice", f"/nexus {present}", **where)
    before = await show(office, SHOWN_BY[named], where)
    await interrupt(office, "alice", given, **where)
    (found,) = await adopted(office, settings)
    answer = await done_late(office, found)
    refused = (
        "was interrupted by my restart and not done: it lets more be stored, read or posted. If you still want it,"
    )
    assert (refused in answer) is loosens
    assert (await show(office, SHOWN_BY[named], where) == before) is (loosens or given == present)


@pytest.mark.parametrize("later_first", [False, True])
async def test_of_two_interrupted_commands_the_later_wins_in_whichever_order_they_are_done(
    office: AppHarness, settings: Settings, later_first: bool
) -> None:
    # Each workspace takes over its own, so those of two may be done in either order.
    await interrupt(office, "alice", "fact set day Friday", **ROOM)
    await interrupt(office, "bob", "fact set day Monday", **ROOM)
    given: Sequence[Incoming] = await adopted(office, settings)
    for each in reversed(given) if later_first else given:
        await done_late(office, each)
    assert (await office.command("bob", "/nexus fact get day", **ROOM)).text.startswith('day = "Monday"')


async def test_what_is_set_over_the_api_counts_as_changed_too(office: AppHarness, settings: Settings) -> None:
    await interrupt(office, "alice", "fact set day Friday", **ROOM)
    at = office.workspace()
    tag = AccessTag(f"room:{room_id(at, 'board')}", Visibility.PUBLIC, await user_id(settings, "bob"))
    async with office.app.database.transaction(at.tenant_id) as tx:
        await set_fact(tx, tag, "day", '"Monday"', Author("bob"), "mcp", "request", office.clock.tick())
    (given,) = await adopted(office, settings)
    assert "it was changed meanwhile" in await done_late(office, given)
    assert (await office.command("bob", "/nexus fact get day", **ROOM)).text.startswith('day = "Monday"')


async def user_id(settings: Settings, name: str) -> Any:
    return await execute(settings, "SELECT id FROM users WHERE name = $1", name)


async def test_a_fact_that_is_approved_late_replaces_none_that_was_set_since(
    office: AppHarness, settings: Settings
) -> None:
    await pending_fact(office)
    listed = (await office.command("alice", "/nexus memory pending", **ROOM)).text
    found = _ID.search(listed)
    assert found, listed
    await interrupt(office, "alice", f"memory approve {found[0]}", **ROOM)
    await office.command("bob", "/nexus fact set day Monday", **ROOM)
    (given,) = await adopted(office, settings)
    assert "it was changed meanwhile" in await done_late(office, given)
    assert (await office.command("alice", "/nexus memory pending", **ROOM)).text == listed


async def test_accounts_stay_linked_that_were_linked_after_an_interrupted_unlink(
    office: AppHarness, settings: Settings
) -> None:
    await link(office, settings)
    await interrupt(office, "alice", "unlink", **DM)
    await office.command("alice", "/nexus unlink", **DM)
    await link(office, settings)
    (given,) = await adopted(office, settings)
    assert "it was changed meanwhile" in await done_late(office, given)
    assert "separate again" in (await office.command("alice", "/nexus unlink", **DM)).text


async def link(harness: AppHarness, settings: Settings) -> None:
    """Make alice and bob one person."""
    harness.clock.tick()
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.link(await user_id(settings, "alice"), await user_id(settings, "bob"))


@pytest.mark.parametrize("text", ["forget item {id} --yes", "forget everything --yes"])
async def test_what_is_to_be_forgotten_is_forgotten_late_whatever_was_changed_since(
    office: AppHarness, settings: Settings, text: str
) -> None:
    await office.command("alice", "/nexus fact set day Friday", **ROOM)
    listed = _ID.search((await office.command("alice", "/nexus share", **ROOM)).text)
    assert listed
    await interrupt(office, "alice", text.format(id=listed[0]), **ROOM)
    await office.command("bob", "/nexus fact set day Monday", **ROOM)
    (given,) = await adopted(office, settings)
    assert (await done_late(office, given)).startswith("Forgotten for good")


@pytest.mark.parametrize(
    "text",
    [
        "forget everything --yes",
        "forget here --yes",
        "forget zqplum --yes",
        "erase room --yes",
        "erase user alice --yes",
        "erase project apollo --yes",
    ],
)
async def test_what_is_forgotten_late_is_what_there_was_when_it_was_asked_for(
    office: AppHarness, settings: Settings, text: str
) -> None:
    # Before, what its sender had said and stored since went with it, and so did their commands that waited.
    await office.command("alice", "/nexus project assign apollo --yes", **ROOM)
    await office.say("alice", "zqplum is early", **ROOM)
    await office.command("alice", "/nexus fact set early zqplum", **ROOM)
    await interrupt(office, "alice", text, **ROOM)
    office.clock.tick(60)
    await office.say("alice", "zqplum is late", **ROOM)
    await office.command("alice", "/nexus fact set late zqplum", **ROOM)
    await interrupt(office, "alice", "remember zqplum waits", **ROOM)
    first, second = await adopted(office, settings)
    assert (await done_late(office, first)).startswith("Forgotten for good")
    texts = {row["text"] for row in await rows(settings, "SELECT text FROM messages WHERE text LIKE 'zqplum%'")}
    keys = {row["key"] for row in await rows(settings, "SELECT key FROM facts")}
    assert (texts, keys) == ({"zqplum is late"}, {"late"})
    assert (await done_late(office, second)).startswith("Remembered")


async def test_what_was_said_right_before_it_is_forgotten_late_by_a_clock_that_is_ahead_too(
    office: AppHarness, settings: Settings
) -> None:
    await interrupt(office, "alice", "forget everything --yes", **ROOM)
    ahead = incoming(
        office.workspace(), place_of("board", None, None), "alice", "zqplum is early", office.clock.tick(3), id="ahead"
    )
    await office.app.receive(office.workspace(), [ahead])
    (given,) = await adopted(office, settings)
    assert (await done_late(office, given)).startswith("Forgotten for good")
    assert not await rows(settings, "SELECT text FROM messages WHERE text LIKE 'zqplum%'")


async def test_an_interrupted_command_links_no_accounts(settings: Settings) -> None:
    tenants = {"acme": TenantSettings(workspaces=("home", "annex"))}
    async with open_harness(settings.model_copy(update={"tenants": tenants})) as harness:
        object.__setattr__(harness, "name", "home")
        code = re.search(r"link ([A-Z0-9]{8})", (await harness.command("alice", "/nexus link", **DM)).text)
        assert code is not None
        object.__setattr__(harness, "name", "annex")
        await interrupt(harness, "anna", f"link {code[1]} --yes", **DM)
        (given,) = await adopted(harness, settings)
        assert "it lets more be stored, read or posted" in await done_late(harness, given)
        answer = await harness.command("anna", f"/nexus link {code[1]} --yes", **DM)
        assert answer.text.startswith("Linked with alice")


async def test_a_guests_fact_is_forgotten_late_that_was_approved_since(office: AppHarness, settings: Settings) -> None:
    # It was dated by its approval, so it counted as set after the command was given.
    await pending_fact(office)
    listed = _ID.search((await office.command("alice", "/nexus memory pending", **ROOM)).text)
    assert listed
    await interrupt(office, "mallory", "forget everything --yes", **ROOM)
    await office.command("alice", f"/nexus memory approve {listed[0]}", **ROOM)
    (given,) = await adopted(office, settings)
    assert (await done_late(office, given)).startswith("Forgotten for good: 1 fact")


async def test_what_is_taken_back_late_is_what_there_was_when_it_was_asked_for(
    office: AppHarness, settings: Settings
) -> None:
    await office.command("bob", "/nexus remember the code was zqold", **ROOM)
    await interrupt(office, "alice", "memory undo bob --yes", **ROOM)
    await office.command("bob", "/nexus remember the code is zqnew", **ROOM)
    (given,) = await adopted(office, settings)
    assert (await done_late(office, given)).startswith("Taken back: 1 memory by bob")
    assert await execute(settings, "SELECT string_agg(text, ',') FROM memories") == "the code is zqnew"


@pytest.mark.parametrize("is_old", [False, True], ids=["set now", "set before 0058"])
async def test_a_fact_is_forgotten_late_that_was_shared_over_another_one_since(
    office: AppHarness, settings: Settings, *, is_old: bool
) -> None:
    # It was dated by the sharing, so it counted as set after the command was given.
    await office.command("alice", "/nexus fact set day zqsunday --everywhere --yes", **ROOM)
    await office.command("alice", "/nexus fact set day zqfriday", **ROOM)
    if is_old:
        await rows(settings, "UPDATE facts SET set_at = NULL RETURNING 1")
    listed = (await office.command("alice", "/nexus share", **ROOM)).text
    [id] = [line.split()[0] for line in listed.splitlines() if "zqfriday" in line]
    await interrupt(office, "alice", "forget everything --yes", **ROOM)
    office.clock.tick(60)
    assert "now" in (await office.command("alice", f"/nexus share {id} everywhere --yes", **ROOM)).text
    (given,) = await adopted(office, settings)
    assert (await done_late(office, given)).startswith("Forgotten for good")
    assert await rows(settings, "SELECT value FROM facts") == []


async def test_a_guests_fact_is_taken_back_late_that_was_approved_since(office: AppHarness, settings: Settings) -> None:
    await pending_fact(office)
    listed = _ID.search((await office.command("alice", "/nexus memory pending", **ROOM)).text)
    assert listed
    await interrupt(office, "alice", "memory undo mallory --yes", **ROOM)
    office.clock.tick(60)
    await office.command("alice", f"/nexus memory approve {listed[0]}", **ROOM)
    (given,) = await adopted(office, settings)
    assert (await done_late(office, given)).startswith("Taken back: 1 fact by mallory")


async def pending_fact(harness: AppHarness) -> None:
    """A fact that a guest has set, which waits for approval."""
    at, place = harness.workspace(), place_of("board", None, None)
    given = incoming(at, place, "mallory", "/nexus fact set day Friday", harness.clock.tick(), trust=Trust.GUEST)
    await run_command(harness.app, at, replace(given, sender_trust=Trust.GUEST))


@pytest.mark.parametrize(
    "given", ["remember the code is zqorchid", "fact set code zqorchid", "landmark add code zqorchid"]
)
@pytest.mark.parametrize("moved", [True, False])
async def test_what_was_written_for_a_project_is_not_stored_late_for_another(
    office: AppHarness, settings: Settings, given: str, moved: bool
) -> None:
    # README: what is stored for a project is read in that project. The room was moved since; those who read in its
    # new project were shown it, whom nobody had named when it was confirmed.
    await office.command("alice", "/nexus project assign apollo --yes", **ROOM)
    await interrupt(office, "alice", f"{given} --project --yes", **ROOM)
    if moved:
        await office.command("alice", "/nexus project assign zeus --yes", **ROOM)
    (found,) = await adopted(office, settings)
    answer = await done_late(office, found)
    assert ("not done: the project of this conversation was changed meanwhile." in answer) is moved
    await office.app.indexer.catch_up(office.workspace().tenant_id)
    await office.say("bob", "good morning", room="elsewhere")
    await office.command("bob", "/nexus project create hera", room="elsewhere")
    for project in ("apollo", "zeus"):
        await office.command("alice", f"/nexus project member add {project} bob admin --yes", **ROOM)
        await office.command("bob", f"/nexus project assign {project} --yes", room="elsewhere")
        prompt = (await office.compose("bob", "@nexus what is the code?", room="elsewhere")).prompt
        assert ("zqorchid" in prompt.as_text()) is (project == "apollo" and not moved)


async def test_a_login_link_stays_valid_that_was_made_after_an_interrupted_one(
    office: AppHarness, settings: Settings
) -> None:
    # The late one ended it, and had expired itself: its five minutes began when it was asked for.
    await interrupt(office, "alice", "login", **DM)
    await office.command("alice", "/nexus login", **DM)
    before = await execute(settings, "SELECT digest FROM login_links")
    (given,) = await adopted(office, settings)
    assert "it was changed meanwhile" in await done_late(office, given)
    assert await execute(settings, "SELECT digest FROM login_links") == before


@pytest.mark.parametrize(("given", "table"), [("login", "login_links"), ("link", "link_codes")])
async def test_what_an_interrupted_command_shows_is_valid_from_when_it_is_shown(
    office: AppHarness, settings: Settings, given: str, table: str
) -> None:
    await interrupt(office, "alice", given, **DM)
    (found,) = await adopted(office, settings)
    office.clock.tick(14 * 60)
    await done_late(office, found)
    assert await execute(settings, f"SELECT expires_at FROM {table}") > office.clock.now()


async def test_a_fact_may_be_set_while_its_value_is_being_forgotten(office: AppHarness, settings: Settings) -> None:
    # Each waited for what the other had locked, and the database ended one: nothing was forgotten.
    await office.command("alice", "/nexus fact set day Friday", **ROOM)
    at, locked = office.workspace(), asyncio.Event()
    tag = AccessTag(f"room:{room_id(at, 'board')}", Visibility.PUBLIC, await user_id(settings, "bob"))
    id = await execute(settings, "SELECT id FROM facts")

    async def set_monday() -> None:
        async with office.app.database.transaction(at.tenant_id) as tx:
            await tx.changes.note(current_value(tag.namespace, tag.visibility, "day"))  # as set_fact does first
            locked.set()
            await until(erasure_waits)
            await set_fact(tx, tag, "day", '"Monday"', Author("bob"), "mcp", "request", office.clock.now())

    async def forget_friday() -> None:
        await locked.wait()
        async with office.app.database.transaction(at.tenant_id) as tx:
            await forget(tx, [], [("fact", id)], office.clock.now())

    async def erasure_waits() -> bool:
        return bool(await execute(settings, "SELECT count(*) FROM pg_locks WHERE NOT granted"))

    await asyncio.gather(set_monday(), forget_friday())
    assert (await office.command("bob", "/nexus fact get day", **ROOM)).text.startswith('day = "Monday"')
    assert "Friday" not in (await office.command("bob", "/nexus fact history day", **ROOM)).text


async def test_changes_are_recorded_for_a_day(office: AppHarness, settings: Settings) -> None:
    await office.command("alice", "/nexus fact set day Friday", **ROOM)
    assert await changes(settings)
    run = JobRun(office.app, office.clock.tick(25 * 3600), lambda *_: None)
    await expire(run)
    assert not await changes(settings)


async def changes(settings: Settings) -> int:
    return int(await execute(settings, "SELECT count(*) FROM changes"))
