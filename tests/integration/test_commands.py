"""The commands: what they answer and store, and that an event delivered twice is one call."""

import json
import re

import pytest

from bot.commands.command import CommandAnswer, PlaceKind
from bot.commands.table import COMMANDS, _who, parse, run_command
from bot.console.operations import set_admin
from bot.script.places import incoming
from composer.errors import BadInput, Conflict, NexusError, NotFound, Refused
from tests.support.canaries import place
from tests.support.harness import AppHarness

ROOM = {"room": "general"}


async def call(harness: AppHarness, text: str, id: str, user: str = "alice") -> CommandAnswer:
    """Run a command as an adapter passes it on, with the id of its event."""
    workspace = harness.workspace()
    return await run_command(
        harness.app, workspace, incoming(workspace, place(ROOM), user, f"/nexus {text}", harness.clock.tick(), id=id)
    )


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("/nexus fact set a 1", "fact set", "a 1"),
        ("/fact set a 1", "fact set", "a 1"),
        ("/NEXUS FACT SET a  1 ", "fact set", "a  1"),
        ("/nexus", "help", ""),
        ("/nexus remember  two\nlines", "remember", "two\nlines"),
        ("/why", "why", ""),
    ],
)
def test_a_command_line_is_split_into_its_name_and_text(text: str, name: str, words: str) -> None:
    command, rest = parse(text)
    assert (command.name, rest) == (name, words)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("/nexus fact sett", "did you mean /nexus fact set?"),
        ("/nexus fact nonsense", "fact set, fact get"),
        ("/nexus nothing", "/nexus help shows what there is"),
        ("/nexusfact", "/nexus help shows what there is"),
        ("/nexus remembr we ship on Fridays", "did you mean /nexus remember?"),
    ],
)
def test_an_unknown_command_is_refused_with_what_was_meant(text: str, near: str) -> None:
    with pytest.raises(BadInput, match=re.escape(near)):
        parse(text)


@pytest.mark.parametrize(("where", "own"), [(ROOM, "/nexus catch-up"), ({"dm": "nexus"}, "/nexus rooms on")])
async def test_help_shows_eight_things_that_people_do(harness: AppHarness, where: dict[str, str], own: str) -> None:
    *shown, more, one = (await harness.command("alice", "/nexus help", **where)).text.splitlines()
    assert len(shown) == 8
    assert any(line.startswith(own) for line in shown)
    assert (more, one[:30]) == ("All commands: /nexus help more", "One command: /nexus help COMMA")


async def test_help_lists_by_subject_what_the_caller_may(harness: AppHarness) -> None:
    answers = {
        place: (await harness.command("alice", "/nexus help more", **where)).text
        for place, where in (("room", ROOM), ("dm", {"dm": "nexus"}))
    }
    assert [line for line in answers["room"].splitlines() if line.endswith(":")][:3] == [
        "Ask and search:",
        "Forget:",
        "Facts and decisions:",
    ]
    for command in COMMANDS.values():
        listed = [place for place, answer in answers.items() if f"{command.usage} " in answer]
        assert listed or "admin" in _who(command), command.name
        assert PlaceKind.DM in command.places or "dm" not in listed
    assert "/nexus rooms" not in answers["room"]
    assert "/nexus audit" not in answers["room"], "alice is no admin"
    await set_admin(harness.app, harness.workspace().name, "alice", True)
    assert "/nexus audit" in (await harness.command("alice", "/nexus help more", **ROOM)).text


async def stored_messages(harness: AppHarness) -> int:
    async with harness.app.database._pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{harness.workspace().tenant_id}'")
        return int(await connection.fetchval("SELECT count(*) FROM messages"))


@pytest.mark.parametrize(
    "line", ["/nexus when is the launch?", "/nexus ask when is the launch?", "when is the launch?"]
)
async def test_a_question_after_the_command_is_answered_for_its_asker_alone(harness: AppHarness, line: str) -> None:
    await harness.say("alice", "the launch is on June 12", **ROOM)
    before = await stored_messages(harness)
    answer = await harness.command("bob", line, **ROOM)
    assert "the launch is on June 12" in answer.text
    assert await stored_messages(harness) == before, "nothing of it is stored"


async def test_a_question_after_the_command_reads_what_its_room_reads(harness: AppHarness) -> None:
    await harness.say("bob", "my salary is 91k", dm="nexus")
    assert "91k" not in (await harness.command("bob", "/nexus what is my salary?", **ROOM)).text
    assert "91k" in (await harness.command("bob", "/nexus what is my salary?", dm="nexus")).text


async def test_help_explains_one_command_or_a_group(harness: AppHarness) -> None:
    answer = (await harness.command("alice", "/nexus help memory", **ROOM)).text
    assert answer.startswith("/nexus memory [on|mentions|off]\nShow or set which messages")
    assert "Where: in a room. Who: admins of the room" in answer
    assert "to look only: anyone in the conversation" in answer
    assert "\n/nexus memory pending\n" in answer, "a command's name may also begin those of others"
    group = (await harness.command("alice", "/nexus help fact", **ROOM)).text
    assert group.count("Example: /nexus fact ") == 4
    assert (await harness.command("alice", "/nexus fact", **ROOM)).text == group


async def test_help_says_once_who_may_where_that_is_alike(harness: AppHarness) -> None:
    answer = (await harness.command("alice", "/nexus help project unassign", **ROOM)).text
    assert "in a DM or a session: the person whose DM or session it is" in answer
    answer = (await harness.command("alice", "/nexus help project assign", **ROOM)).text
    assert "in a room: admins of the room, with the role write or admin in the project, and" in answer


async def test_an_answer_is_explained_by_what_was_recalled_and_by_what_was_only_the_latest(harness: AppHarness) -> None:
    await harness.say("alice", "the parrot is grey", **ROOM)
    await harness.say("alice", "@nexus what colour is the parrot?", **ROOM)
    lines = (await harness.command("alice", "/nexus why --details", **ROOM)).text.splitlines()
    shown = {line.partition(":")[0]: line.partition(", ")[2] for line in lines if " token" in line}
    assert shown["WORKING"] == "the latest 1 message of this conversation"
    assert shown["MESSAGE"] == "the question"
    assert shown["SYSTEM"] == ""
    assert "source" not in shown["WORKING"] + shown["MESSAGE"]
    assert re.search(r", total [0-9.]+ ms\.$", lines[0])


async def test_why_says_first_what_an_answer_without_a_model_quotes(harness: AppHarness) -> None:
    await harness.say("bob", "the parrot is grey", **ROOM)
    await harness.say_all("alice", [f"ok, thanks {n}" for n in range(60)], **ROOM)
    await harness.say("bob", "the parrot bites", **ROOM)
    answer = (await harness.ask("alice", "@nexus what about the parrot?", **ROOM)).text
    assert "the parrot is grey" in answer
    assert "the parrot bites" in answer
    why = await harness.command("alice", "/nexus why --details", **ROOM)
    first, quotes, *lines = why.head.splitlines()
    assert first.startswith("No model: quotes. That answer's prompt had ")
    assert quotes == "The answer quotes:"
    assert {line.split()[0] for line in lines} == {"RECALL:", "WORKING:"}
    assert "the parrot is grey" in next(line for line in lines if "RECALL" in line)
    assert "the parrot bites" in next(line for line in lines if "WORKING" in line)
    assert why.text.startswith(f"{why.head}\nSYSTEM: ")
    listed = [line for line in why.text.removeprefix(why.head).splitlines() if line.startswith("  - (s")]
    assert ["(in the answer)" in line for line in listed] == ["the parrot is grey" in line for line in listed]
    cited = [source for section in why.sections for source in section.sources if source.cited]
    assert ["the parrot is grey" in source.text for source in cited] == [True]


async def test_a_fact_may_be_plain_text(harness: AppHarness) -> None:
    assert (
        await harness.command("alice", "/nexus fact set diet no nuts", **ROOM)
    ).text == 'diet = "no nuts", in #general.'
    assert (await harness.command("bob", "/nexus fact get diet", **ROOM)).text.startswith(
        'diet = "no nuts"  (this room; '
    )


async def test_a_project_member_may_be_named_before_or_after_the_project(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    await harness.say("bob", "hello", **ROOM)
    invited = (await harness.command("alice", "/nexus project member add apollo bob", **ROOM)).text
    assert invited.startswith("Invited bob to apollo with the role write, which they have once they accept: ")
    await harness.command("bob", "/nexus project accept apollo", **ROOM)
    for line, role in (
        ("add apollo bob", "write"),
        ("set <@bob> apollo admin", "admin"),
        ("bob apollo --read", "read"),
    ):
        answer = (await harness.command("alice", f"/nexus project member {line}", **ROOM)).text
        assert answer == f"bob is in apollo with the role {role}."


async def test_a_fact_keeps_its_exact_value_and_has_a_history(harness: AppHarness) -> None:
    for value in ('{"day": "Friday", "at": [1, 2.5]}', '"Monday"', "null"):
        await harness.command("alice", f"/nexus fact set deploy {value}", **ROOM)
    assert (await harness.command("bob", "/nexus fact get deploy", **ROOM)).text.startswith(
        "deploy = null  (this room; "
    )
    history = (await harness.command("bob", "/nexus fact history deploy", **ROOM)).text.splitlines()
    assert [re.sub(r"^.*?: |  \(alice\)$", "", line) for line in history] == [
        '{"at": [1, 2.5], "day": "Friday"}',
        '"Monday"',
        "null",
    ]
    assert [" to now: " in line for line in history] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fact set a", "VALUE is missing. Usage: /nexus fact set KEY VALUE"),
        ("fact set", "KEY is missing."),
        ('fact set a "\\u0000"', "cannot be stored (NUL"),
        ("fact get two words", "KEY is one word; 'two words' has several."),
        (f"fact set {'k' * 201} 1", "A fact's key is one word of at most 200 characters."),
        ("fact set a 1 --global --everywhere", "Choose one of --everywhere and --global."),
        ("fact set a 1 --nowhere", "/nexus fact set has no --nowhere; it has --everywhere --project --global --yes."),
        ("remember", "TEXT is missing. Usage: /nexus remember TEXT"),
        ("remember " + "x" * 100_001, "The text has 100,001 characters; the limit is 100,000: shorten it."),
        ("project create Ünknown!", "A project's name is 1 to 32 characters"),
        ("project member add", "NAME is missing."),
        ("project member add apollo", "USER is missing. Usage: /nexus project member add|remove|list NAME [USER]"),
        ("project unassign", "This conversation is in no project. To add it to one: /nexus project assign NAME"),
        ("recall", "TEXT is missing. Usage: /nexus recall TEXT [--on DAY]. Example: /nexus recall what did"),
        ("forget", "Say what to forget. Usage: /nexus forget WORDS | message ID |"),
        ("opt-out please", "'please' is too much: this command takes no words. Usage: /nexus opt-out."),
        ("unlink bob", "'bob' is too much"),
        ("fact list all of them", "'all of them' is too much"),
        ("project unassign apollo --yes", "'apollo' is too much"),
        ("why last one", "MESSAGE_ID is one word; 'last one' has several."),
        ("reminders", "There is no command /nexus reminders; did you mean /nexus remind?"),
        ("catchup yesterday", "There is no command /nexus catchup; did you mean /nexus catch-up?"),
        (
            "remind canel 3f2a91bc",
            "There is no command /nexus remind canel; did you mean /nexus remind cancel?",
        ),
        ("help frobnicate", "There is no command /nexus frobnicate. /nexus help shows what there is."),
    ],
)
async def test_an_invalid_call_is_refused_with_an_explanation_and_stores_nothing(
    harness: AppHarness, text: str, sentence: str
) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        await harness.command("alice", f"/nexus {text}", **ROOM)
    assert (await harness.command("alice", "/nexus fact list", **ROOM)).text.startswith("There are no facts here.")
    assert "I found nothing" in (await harness.command("alice", "/nexus recall x Friday", **ROOM)).text


async def test_why_of_a_message_that_got_no_answer_names_it(harness: AppHarness) -> None:
    with pytest.raises(NotFound, match="There is no answer to you here that I can explain"):
        await harness.command("alice", "/nexus why --details", **ROOM)
    named = "The message 'm77' got no answer here that I can explain to you. For your last one leave out the id."
    with pytest.raises(NotFound, match=re.escape(named)):
        await harness.command("alice", "/nexus why m77", **ROOM)


async def test_an_unknown_user_is_answered_with_how_people_are_named(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    named = "There is no user 'zed' here. Mention the person instead; I only know people who have written where I read."
    with pytest.raises(NotFound, match=re.escape(named)):
        await harness.command("alice", "/nexus project member add apollo zed", **ROOM)
    await set_admin(harness.app, "acme", "alice", True)
    with pytest.raises(NotFound, match=re.escape(named)):
        await harness.command("alice", "/nexus erase user zed", **ROOM)


async def test_what_is_written_for_others_is_shown_first_and_then_stored(harness: AppHarness) -> None:
    shown = await harness.command("alice", "/nexus remember I like tea --everywhere", **ROOM)
    assert "others in every room where you take part or are mentioned" in shown.text
    assert shown.confirm == "/nexus remember I like tea --everywhere --yes"
    assert "I found nothing" in (await harness.command("alice", "/nexus recall tea", **ROOM)).text
    assert "Remembered, about you, for everyone to know" in (await harness.command("alice", shown.confirm, **ROOM)).text


async def test_a_dm_that_changes_its_project_is_told_which_one_it_left(harness: AppHarness) -> None:
    for slug in ("apollo", "gemini"):
        await harness.command("alice", f"/nexus project create {slug}", dm="nexus")
        moved = (await harness.command("alice", f"/nexus project assign {slug}", dm="nexus")).text
    left = "It is no longer in apollo, of which I recall nothing here now."
    assert moved.startswith(f"{left} In this conversation I can now recall what gemini remembers.")


async def test_only_an_admin_sets_a_global_fact(harness: AppHarness) -> None:
    with pytest.raises(Refused, match=r"^Only an admin of the workspace may use --global"):
        await harness.command("alice", "/nexus fact set a 1 --global --yes", **ROOM)


async def test_a_role_limits_what_a_member_may_do_in_a_project(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    await harness.command("alice", "/nexus project assign apollo --yes", **ROOM)
    for user in ("bob", "carol"):
        await harness.say(user, "hello", **ROOM)
        with pytest.raises(NexusError):
            await harness.command(user, "/nexus fact set a 1 --project --yes", **ROOM)
    await harness.command("alice", "/nexus project member add apollo bob read", **ROOM)
    await harness.command("bob", "/nexus project accept apollo", **ROOM)
    for text in ("fact set a 1 --project --yes", "project assign apollo", "project member add apollo carol"):
        with pytest.raises(Refused):
            await harness.command("bob", f"/nexus {text}", room="bobs")
    await harness.command("alice", "/nexus project member add apollo bob write", **ROOM)
    await harness.command("bob", "/nexus project accept apollo", **ROOM)
    await harness.command("bob", "/nexus fact set a 1 --project --yes", **ROOM)
    with pytest.raises(Refused, match="Only an admin of apollo"):
        await harness.command("bob", "/nexus project member add apollo carol", **ROOM)
    listed = (await harness.command("bob", "/nexus project member list apollo", **ROOM)).text
    assert listed == "alice  admin\nbob  write"
    await harness.command("bob", "/nexus project member remove apollo bob", **ROOM)
    with pytest.raises(NexusError, match="There is no project 'apollo' here"):
        await harness.command("bob", "/nexus project member list apollo", **ROOM)


async def test_an_event_delivered_twice_runs_its_command_once(harness: AppHarness) -> None:
    for _ in range(2):
        await call(harness, "fact set deploy 1", "c1")
        await call(harness, "fact set deploy 2", "c2")
        await call(harness, "remember the vault is open", "c3")
        await call(harness, "landmark add the vault is open", "c4")
    assert (await call(harness, "fact get deploy", "c5")).text.startswith("deploy = 2  ")
    assert len((await call(harness, "fact history deploy", "c6")).text.splitlines()) == 2
    assert len((await call(harness, "landmark list", "c7")).text.splitlines()) == 1
    assert (await call(harness, "recall vault", "c8")).text.count("the vault is open") == 1


async def test_two_projects_of_one_name_are_told_apart_by_their_ids(harness: AppHarness) -> None:
    for user, room in (("alice", "moon"), ("bob", "sun")):
        await harness.command(user, "/nexus project create apollo", room=room)
    with pytest.raises(Conflict, match="You are in a project called apollo already"):
        await harness.command("alice", "/nexus project create apollo", room="moon")
    await harness.command("bob", "/nexus project assign apollo --yes", room="sun")
    assert (await harness.command("bob", "/nexus project list", room="sun")).text.startswith("apollo  your role: admin")
    await harness.command("bob", "/nexus project member add apollo alice admin", room="sun")
    await harness.command("alice", "/nexus project accept apollo", room="sun")
    listed = (await harness.command("alice", "/nexus project list", room="moon")).text
    names = dict(re.findall(r"(apollo:[0-9a-f]{8})  .*rooms: (\S+)", listed))
    with pytest.raises(BadInput) as refused:
        await harness.command("alice", "/nexus project assign apollo --yes", room="moon")
    assert all(name in str(refused.value) for name in names)
    of_sun = next(name for name, room in names.items() if room == "#sun")
    await harness.command("alice", f"/nexus project assign {of_sun} --yes", room="moon")
    listed = (await harness.command("bob", "/nexus project list", room="sun")).text
    assert re.fullmatch(r"apollo  your role: admin; 2 members; rooms: #moon, #sun", listed)
    with pytest.raises(NotFound, match="There is no project 'apollo:00000000' here"):
        await harness.command("alice", "/nexus project assign apollo:00000000 --yes", room="moon")


async def test_an_admin_who_erases_one_of_two_projects_of_a_name_says_which(harness: AppHarness) -> None:
    for user, room in (("alice", "moon"), ("bob", "sun")):
        await harness.command(user, "/nexus project create apollo", room=room)
        await harness.command(user, "/nexus project assign apollo --yes", room=room)
        await harness.command(user, f"/nexus remember the {room} is far --project --yes", room=room)
    await set_admin(harness.app, "acme", "alice", True)
    with pytest.raises(BadInput) as refused:
        await harness.command("alice", "/nexus erase project apollo --yes", room="moon")
    listed = (await harness.command("bob", "/nexus export", room="sun")).file
    assert listed is not None
    (of_bob,) = json.loads(listed.text)["projects"]
    name = f"apollo:{of_bob['id'].replace('-', '')[:8]}"
    assert name in str(refused.value)
    await harness.command("alice", f"/nexus erase project {name} --yes", room="moon")
    assert "far" not in (await harness.command("bob", "/nexus recall far", room="sun")).text
    assert "the moon is far" in (await harness.command("alice", "/nexus recall far", room="moon")).text
