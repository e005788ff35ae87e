"""What is erased is gone with all that was made from it, whichever way it is erased, and nothing else is."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from bot.console import schedule
from bot.console.doctor import check_receipt
from bot.console.operations import set_admin
from bot.script.places import incoming, place_of
from composer.entries import teams
from composer.errors import Unavailable
from composer.memory.forget import RETRACTED
from composer.model import Attachment, TeamRole, message_id, room_id
from composer.repositories.recall import episode_id_of
from composer.settings import AgentSettings, Settings, TenantSettings
from composer.stores.database.working_cache import RedisWorkingCache
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.erased_ids import find_remains
from tests.support.harness import AppHarness, open_harness

ROOM = {"room": "general"}
FILLER = " ".join(f"filler{n}" for n in range(2_300))


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),), "extraction": "pattern"})
    async with open_harness(plain, model=model) as harness:
        yield harness


async def answers(harness: AppHarness, **where: Any) -> list[str]:
    """The agent's answers in a conversation, oldest first."""
    composed = await harness.compose("zoe", "hello", **(where or ROOM))
    return [message.content for message in composed.prompt.role_messages if message.role == "assistant"]


async def ask(harness: AppHarness, model: Model, user: str, text: str, says: str, **where: Any) -> None:
    model.says = [says]
    await harness.ask(user, f"@nexus {text}", **(where or ROOM))


async def attach(harness: AppHarness, id: str, name: str, text: str) -> None:
    """A message of alice in #general with a text file."""
    at, place = harness.workspace(), place_of("general", None, None)
    message = incoming(at, place, "alice", "see the file", harness.clock.tick(), id=id)
    await harness.app.receive(at, [replace(message, attachments=(Attachment(name, "text/plain", text),))])
    await harness.app.indexer.catch_up(at.tenant_id)


async def say_filler(harness: AppHarness, count: int = 60, room: str = "general") -> None:
    """Messages that push the earlier ones out of the view."""
    at, place = harness.workspace(), place_of(room, None, None)
    batch = [incoming(at, place, "carol", f"weather {n}", harness.clock.tick(), id=f"{room}{n}") for n in range(count)]
    await harness.app.receive(at, batch)
    await harness.app.indexer.catch_up(at.tenant_id)


# --- answers ---------------------------------------------------------------------------------------------------------


# A summary shows only its beginning.
LONG = (
    "Before the offsite, and before anybody asks me again in the corridor or at lunch, here is how it stands. "
    "I earn ninety-one thousand zqsummarised, and that is all that I want to say about it for the rest of this year. "
    f"{'The crane moves the containers of the harbour. ' * 4}My pay is 91k since spring."
)


async def test_an_answer_that_repeats_a_retracted_answer_is_retracted_too(harness: AppHarness, model: Model) -> None:
    await harness.say("alice", "my pay is 91k, mind that", id="said", **ROOM)
    await ask(harness, model, "bob", "what does she earn?", "That is 91k, ninety-one thousand.")
    await ask(harness, model, "carol", "what did you answer bob?", "I told him: ninety-one thousand.")
    await ask(harness, model, "dave", "and what is for lunch?", "There is soup.")
    await harness.change("said", None)
    assert await answers(harness) == [RETRACTED, RETRACTED, "There is soup."]


async def test_an_answer_goes_with_its_question_whatever_it_says(harness: AppHarness, model: Model) -> None:
    model.says = ["The usual."]
    await harness.ask("bob", "@nexus what do I earn?", id="asked", **ROOM)
    await ask(harness, model, "carol", "and what is for lunch?", "There is soup.")
    await harness.change("asked", None)
    assert await answers(harness) == [RETRACTED, "There is soup."]


async def test_an_answer_that_says_the_name_of_somebody_who_forgot_everything_goes(
    harness: AppHarness, model: Model
) -> None:
    at, place = harness.workspace(), place_of("general", None, None)
    hello = incoming(at, place, "dora", "hi all, it rains here", harness.clock.tick(), id="d1", name="Zqdora")
    await harness.app.receive(at, [hello])
    await ask(harness, model, "bob", "who has an umbrella?", "Zqdora has.")
    await harness.command("dora", "/nexus forget everything --yes", **ROOM)
    assert await answers(harness) == [RETRACTED]


async def test_no_cached_view_shows_what_was_erased_while_the_cache_did_not_answer(
    harness: AppHarness, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    attic = {"room": "attic"}
    await harness.command("alice", "/nexus remember the vault is zqvault --everywhere --yes", dm="nexus")
    await ask(harness, model, "alice", "where is the vault?", "In zqvault.", **attic)
    await harness.say("alice", "it is zqvault", **ROOM)
    await harness.say("alice", "or zqbefore", id="edited", **ROOM)
    assert await answers(harness, **attic) == ["In zqvault."]
    assert await answers(harness) == []  # both views are cached now

    async def fail(*_: object) -> None:
        raise Unavailable("The cache does not answer.")

    monkeypatch.setattr(RedisWorkingCache, "erase", fail)
    await harness.command("alice", "/nexus forget zqvault --yes", dm="nexus")
    assert await answers(harness, **attic) == [RETRACTED]
    shown = (await harness.compose("zoe", "hello", **ROOM)).prompt.as_text()
    assert "zqvault" not in shown
    assert "zqbefore" in shown
    await harness.change("edited", "or nowhere")
    assert "zqbefore" not in (await harness.compose("zoe", "hello", **ROOM)).prompt.as_text()


async def test_words_of_every_kind_and_at_any_depth_are_found_in_answers(
    harness: AppHarness, settings: Settings, model: Model
) -> None:
    secrets = {
        "emoji": ("the sign is \U0001f984\U0001f511", "\U0001f984\U0001f511"),
        "digits": ("my number is 4 7 1 1", "Forty-seven eleven, or 4711."),
        "phrase": ("between you and me: no, not now, once again", "He told me: not now, once again."),
        "tail": (f"{FILLER} zqtail", "It ends in zqtail."),
        "long": (f"{'filler ' * 15_000} zqlong", "It is zqlong."),
    }
    for number, (id, (text, says)) in enumerate(secrets.items()):
        await harness.say("alice", text, id=id, room=f"room{number}")
        await ask(harness, model, "bob", "well?", says, room=f"room{number}")
    for number, id in enumerate(secrets):
        await harness.change(id, None)
        assert await answers(harness, room=f"room{number}") == [RETRACTED], id
    assert await find_remains(settings, "zqtail", "zqlong", "4711", "\U0001f984") == {}


async def test_an_answer_that_repeats_only_what_remains_stays(harness: AppHarness, model: Model) -> None:
    await harness.say("alice", "the vault is in the north tower", id="hers", **ROOM)
    await harness.say("bob", "the vault is in the south tower", **ROOM)
    await ask(harness, model, "carol", "where is the vault?", "In the south tower.")
    await ask(harness, model, "dave", "sure?", "Or in the north one.")
    await harness.change("hers", None)
    assert await answers(harness) == ["In the south tower.", RETRACTED]


async def test_an_answer_made_from_a_summary_goes_with_what_was_summarised(
    harness: AppHarness, settings: Settings, model: Model
) -> None:
    await harness.say("alice", "my pay is 91k since spring, zqsummarised", id="said", **ROOM)
    await harness.say("bob", "important: the launch is on 12 June", **ROOM)
    harness.clock.tick(30 * 3600)
    model.says = ["1, 2"]
    assert (await schedule.run(harness.app, "day", harness.clock.now())).done
    await say_filler(harness)
    await ask(harness, model, "bob", "how much does Alice earn?", "Quite a bit, I gather.")
    await harness.change("said", None)
    assert await answers(harness) == [RETRACTED], "half of what the summary was made from is erased"
    assert await find_remains(settings, "zqsummarised", "91k", "gather") == {}


async def test_an_answer_made_from_a_summary_goes_also_where_the_message_itself_was_not_recalled(
    harness: AppHarness, model: Model
) -> None:
    await harness.say("alice", LONG, id="said", **ROOM)
    harness.clock.tick(30 * 3600)
    model.says = ["1"]
    assert (await schedule.run(harness.app, "day", harness.clock.now())).done
    await say_filler(harness)
    question = "who could buy a boat by now?"
    shown = str((await harness.compose("bob", f"@nexus {question}", **ROOM)).prompt)
    assert "zqsummarised" in shown
    assert "91k" not in shown
    await ask(harness, model, "bob", question, "A lot, with what she earns.")
    await ask(harness, model, "bob", "which pizza is best?", "The one with mushrooms.")
    await harness.change("said", None)
    assert await answers(harness) == [RETRACTED, "The one with mushrooms."]


async def test_of_a_large_summary_only_the_erased_part_counts(harness: AppHarness, model: Model) -> None:
    await harness.say("alice", "my pay is 91k since spring, zqsummarised", id="said", **ROOM)
    await harness.say("carol", "the weather was 7 at noon", **ROOM)
    await say_filler(harness)
    harness.clock.tick(30 * 3600)
    model.says = ["1, 2"]
    assert (await schedule.run(harness.app, "day", harness.clock.now())).done
    await ask(harness, model, "bob", "and?", "The weather.")
    await ask(harness, model, "bob", "what does alice earn?", "zqsummarised")
    await harness.change("said", None)
    assert await answers(harness) == ["The weather.", RETRACTED]


async def test_an_answer_that_repeats_a_large_summary_goes_also_where_the_message_itself_was_not_recalled(
    harness: AppHarness, model: Model
) -> None:
    await harness.say("alice", LONG, id="said", **ROOM)
    await say_filler(harness)
    harness.clock.tick(30 * 3600)
    model.says = ["1"]
    assert (await schedule.run(harness.app, "day", harness.clock.now())).done
    await ask(harness, model, "bob", "which pizza is best?", "I say zqsummarised.")
    await harness.change("said", None)
    assert await answers(harness) == [RETRACTED]


# --- routes ----------------------------------------------------------------------------------------------------------


async def test_forget_words_reaches_all_that_is_ones_own_whatever_its_reach(
    harness: AppHarness, settings: Settings, model: Model
) -> None:
    await harness.command("alice", "/nexus project create apollo", room="proj")
    await harness.command("alice", "/nexus project assign apollo --yes", room="proj")
    await harness.command("alice", "/nexus remember I keep zqproject in mind --project --yes", room="proj")
    await harness.command("alice", '/nexus fact set k "zqfact" --project --yes', room="proj")
    await harness.command("alice", "/nexus landmark add we use zqlandmark --project --yes", room="proj")
    await harness.command("alice", "/nexus remember I keep zqeverywhere in mind --everywhere --yes", **ROOM)
    await harness.command("alice", "/nexus fact set zqkey 1", **ROOM)
    await harness.say("alice", "the closed word is zqclosed", room="attic", private=True)
    await harness.say("alice", "now open", room="attic", private=False)
    await harness.say("alice", "mein Geheimnis heißt Cafézq", dm="nexus")
    await harness.say("alice", f"{FILLER} zqtail", session="one")
    await attach(harness, "file", "notes.txt", f"{FILLER} zqfile")
    words = ("zqproject", "zqfact", "zqlandmark", "zqeverywhere", "zqkey", "zqclosed", "zqtail", "zqfile")
    for word in (*words, "CAFE\u0301ZQ"):
        receipt = await harness.command("alice", f"/nexus forget {word} --yes", dm="nexus")
        assert receipt.text.startswith("Forgotten for good: "), word
    assert await find_remains(settings, *words, "Cafézq") == {}


async def test_forget_here_takes_threads_facts_memories_and_landmarks_of_the_conversation(
    harness: AppHarness, settings: Settings
) -> None:
    for where, mark in ((ROOM, "zqroom"), ({"dm": "nexus"}, "zqdm")):
        await harness.say("alice", f"text {mark}", **where)
        await harness.command("alice", f'/nexus fact set salary "{mark}"', **where)
        await harness.command("alice", f"/nexus remember my bonus is {mark}", **where)
        await harness.command("alice", f"/nexus landmark add I decided {mark}", **where)
    await harness.say("alice", "text zqroom", room="general", thread="t")
    await harness.say("bob", "text zqbob", **ROOM)
    assert "To confirm: /nexus forget here --yes" in (await harness.command("alice", "/nexus forget here", **ROOM)).text
    await harness.command("alice", "/nexus forget here --yes", **ROOM)
    remains = await find_remains(settings, "zqroom", "zqdm", "zqbob")
    assert remains.keys() == {"zqdm", "zqbob"}
    await harness.command("alice", "/nexus forget here --yes", dm="nexus")
    assert (await find_remains(settings, "zqroom", "zqdm", "zqbob")).keys() == {"zqbob"}


async def test_forget_here_takes_a_span_of_days(harness: AppHarness, settings: Settings) -> None:
    for day in range(4):
        await harness.say("alice", f"text zqday{day}", **ROOM)
        harness.clock.tick(24 * 3600)
    asked = await harness.command("alice", "/nexus forget here --since 2026-05-05 --until 2026-05-06", **ROOM)
    assert asked.text.endswith("To confirm: /nexus forget here --since 2026-05-05 --until 2026-05-06 --yes")
    assert "all that you said and stored here from 2026-05-05 until 2026-05-06, for good: 2 messages" in asked.text
    everywhere = await harness.command("alice", "/nexus forget everything --until 2026-05-05", **ROOM)
    assert "all your messages, memories and facts, everywhere until 2026-05-05, for good: 2 mes" in everywhere.text
    room = await harness.command("alice", "/nexus erase room --since 2026-05-06", **ROOM)
    assert "This erases 2 messages and 0 other items of #general from 2026-05-06 on, for good" in room.text
    await harness.command("alice", "/nexus forget here --since 2026-05-05 --until 2026-05-06 --yes", **ROOM)
    assert (await find_remains(settings, *(f"zqday{n}" for n in range(4)))).keys() == {"zqday0", "zqday3"}


async def link(harness: AppHarness, one: str, other: str) -> None:
    """Make two users one person."""
    at = harness.workspace()
    async with harness.app.database.transaction(at.tenant_id, "alone") as tx:
        users = [await tx.people.find_user(at.platform, at.name, name) for name in (one, other)]
        assert users[0] is not None
        assert users[1] is not None
        await tx.people.link(users[0].id, users[1].id)


async def test_forgetting_covers_linked_accounts_and_says_so(harness: AppHarness, settings: Settings) -> None:
    await harness.say("alice", "hello", dm="nexus")
    await harness.say("alicia", "the other word is zqother", dm="nexus")
    await harness.say("alicia", "and zqrest", dm="nexus")
    await link(harness, "alice", "alicia")
    await harness.command("alice", "/nexus forget zqother --yes", dm="nexus")
    assert (await find_remains(settings, "zqother", "zqrest")).keys() == {"zqrest"}
    asked = await harness.command("alice", "/nexus forget everything", dm="nexus")
    assert "It covers your other accounts too: alicia." in asked.text
    await harness.command("alice", "/nexus forget everything --yes", dm="nexus")
    assert await find_remains(settings, "zqrest") == {}
    await harness.command("alice", "/nexus opt-out", dm="nexus")
    await harness.say("alicia", "after the opt-out zqlater", dm="nexus")
    assert await find_remains(settings, "zqlater") == {}


async def test_admins_erase_a_room_a_person_or_a_project(harness: AppHarness, settings: Settings) -> None:
    await harness.say("alice", "zqalice here", **ROOM)
    await harness.say("bob", "zqbob here", **ROOM)
    await harness.say("bob", "zqelse here", room="attic")
    await harness.command("carol", "/nexus project create apollo", room="proj")
    await harness.command("carol", "/nexus project assign apollo --yes", room="proj")
    await harness.command("carol", "/nexus remember zqproject --project --yes", room="proj")
    await harness.say("dave", "zqdave here", room="proj")
    at = harness.workspace()
    async with harness.app.database.transaction(at.tenant_id) as tx:
        root = await tx.people.find_user(at.platform, at.name, "dave")
        assert root is not None
        await tx.people.set_admin(root.id, True)
    words = ("zqalice", "zqbob", "zqelse", "zqproject", "zqdave")
    asked = await harness.command("alice", "/nexus erase room", **ROOM)
    assert asked.text.startswith("This erases 2 messages and 0 other items of #general")
    await harness.command("alice", "/nexus erase room --yes", **ROOM)
    assert (await find_remains(settings, *words)).keys() == {"zqelse", "zqproject", "zqdave"}
    await harness.command("dave", "/nexus erase user bob --yes", **ROOM)
    assert (await find_remains(settings, *words)).keys() == {"zqproject", "zqdave"}
    asked = await harness.command("dave", "/nexus erase project apollo", **ROOM)
    assert asked.confirm.startswith("/nexus erase project apollo:"), "no project of the name that is made later"
    await harness.command("dave", asked.confirm, **ROOM)
    assert await find_remains(settings, *words) == {}


async def test_an_edit_after_opting_out_or_with_memory_off_erases_the_message(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.say("alice", "an innocent line", id="said", **ROOM)
    await harness.say("bob", "another line", id="bobs", **ROOM)
    await harness.command("alice", "/nexus opt-out", **ROOM)
    await harness.change("said", "now zqedited, I prefer zqedited tea")
    assert await find_remains(settings, "zqedited", "innocent") == {}
    await harness.command("alice", "/nexus memory off", **ROOM)
    await harness.change("bobs", "now zqoff")
    assert await find_remains(settings, "zqoff", "another") == {}


async def test_a_name_is_blanked_with_everything_else(harness: AppHarness, settings: Settings, model: Model) -> None:
    at, place = harness.workspace(), place_of("general", None, None)
    hello = incoming(at, place, "dora", "hi all, it rains here", harness.clock.tick(), id="d1", name="Zqdora")
    await harness.app.receive(at, [hello])
    await harness.app.indexer.catch_up(at.tenant_id)
    mentioning = incoming(at, place, "bob", "thank you @Zqdora for the cake", harness.clock.tick(), id="b1")
    await harness.app.receive(at, [replace(mentioning, mentions=("dora",))])
    await harness.app.indexer.catch_up(at.tenant_id)
    await ask(harness, model, "bob", "who is here?", "Some people.")
    await harness.command("dora", "/nexus forget everything --yes", **ROOM)
    assert await find_remains(settings, "Zqdora") == {}
    assert (await find_remains(settings, "cake")).keys() == {"cake"}
    assert await answers(harness) == ["Some people."]


@pytest.mark.parametrize("erase", ["/nexus forget everything --yes", "/nexus erase user alice --yes"])
async def test_names_of_projects_and_teams_that_are_a_persons_alone_go_with_them(
    harness: AppHarness, settings: Settings, erase: str
) -> None:
    hub = Hub(harness)
    await harness.say("alice", "hello", **ROOM)
    for name in ("zqalone", "zqalone2", "zqshared", "zqroom"):
        await harness.command("alice", f"/nexus project create {name}", dm="nexus")
    await harness.command("alice", "/nexus project assign zqalone --yes", dm="nexus")
    await harness.say("bob", "hello", **ROOM)
    await harness.command("alice", "/nexus project member add zqshared bob", **ROOM)
    await harness.command("bob", "/nexus project accept zqshared", **ROOM)
    await harness.command("alice", "/nexus project create zqother", **ROOM)
    await harness.command("alice", "/nexus project assign zqroom --yes", **ROOM)
    bob = await hub.user("bob")
    async with hub.request("alice") as (tx, access):
        await teams.create(tx, access, "zqteam", "1", harness.clock.now())
        shared = await teams.create(tx, access, "zqtogether", "2", harness.clock.now())
        await tx.teams.add_member(shared, bob, TeamRole.MEMBER, access.user, harness.clock.now())
    await harness.ask("alice", "which project is this?", dm="nexus")
    if "everything" in erase:
        await harness.command("alice", erase, dm="nexus")
    else:
        await harness.say("dave", "hello", **ROOM)
        assert await set_admin(harness.app, harness.workspace().tenant, "dave", True)
        await harness.command("dave", erase, **ROOM)
    assert await find_remains(settings, "zqalone", "zqother", "zqteam") == {}
    others = ("zqshared", "zqroom", "zqtogether")
    assert (await find_remains(settings, *others)).keys() == set(others)


# --- landmarks -------------------------------------------------------------------------------------------------------


async def test_confirmed_landmarks_outlive_retention_and_go_when_their_author_forgets(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.say("alice", "we decided to use zqaccepted for storage", **ROOM)
    await harness.say("alice", "we decided to paint it zqbefore", **ROOM)
    await harness.say("alice", "we decided to drop zqproposed", **ROOM)
    listed = (await harness.command("bob", "/nexus landmark list", **ROOM)).text.splitlines()
    ids = {word: next(line.split()[0] for line in listed if word in line) for word in ("zqaccepted", "zqbefore")}
    await harness.command("bob", f"/nexus landmark accept {ids['zqaccepted']}", **ROOM)
    await harness.command("bob", f"/nexus landmark amend {ids['zqbefore']} we paint it zqamended", **ROOM)
    harness.clock.tick(timedelta(days=20).total_seconds())
    kept = settings.model_copy(update={"tenants": {"acme": TenantSettings(keep_days=10)}})
    await schedule.run(replace(harness.app, settings=kept), "retention", harness.clock.now())
    words = ("zqaccepted", "zqbefore", "zqamended", "zqproposed")
    remains = await find_remains(settings, *words)
    assert remains.keys() == {"zqaccepted", "zqbefore", "zqamended"}
    await harness.command("alice", "/nexus forget everything --yes", **ROOM)
    assert await find_remains(settings, *words) == {}


# --- receipts --------------------------------------------------------------------------------------------------------


async def test_a_receipt_holds_nothing_that_was_erased_and_shows_whether_it_came_back(
    harness: AppHarness, settings: Settings, model: Model
) -> None:
    await harness.say("alice", "the vault is zqvault", id="said", **ROOM)
    await harness.command("alice", "/nexus remember the code is zqvault", **ROOM)
    connection = await asyncpg.connect(settings.database_url)
    memory = await connection.fetchval("SELECT id FROM memories WHERE text = 'the code is zqvault'")
    await ask(harness, model, "bob", "where?", "It is zqvault.")
    text = (await harness.command("alice", "/nexus forget zqvault --yes", **ROOM)).text
    receipt = text.partition("Receipt: ")[2].rstrip(".")
    at = harness.workspace()
    message = message_id(room_id(at, "general"), "said")
    assert await find_remains(settings, "zqvault") == {}
    [check] = [each for each in await check_receipt(settings, receipt) if each.name == "erased"]
    assert check.ok, check.detail
    try:
        for id in (message, episode_id_of(message), memory):
            await connection.execute("UPDATE turns SET timings_ms = jsonb_build_object('x', $1::text)", str(id))
            [check] = [each for each in await check_receipt(settings, receipt) if each.name == "erased"]
            assert (check.ok, check.detail.endswith("turns.timings_ms (1).")) == (False, True)
    finally:
        await connection.close()
    [check] = [each for each in await check_receipt(settings, "nonsense") if each.name == "erased"]
    assert check.detail.startswith("There is no receipt 'nonsense'.")


async def test_retention_leaves_newer_answers_that_merely_had_an_old_landmark_in_their_prompt(
    harness: AppHarness, settings: Settings, model: Model
) -> None:
    await harness.say("alice", "we decided to use zqold for storage", **ROOM)
    harness.clock.tick(timedelta(days=9).total_seconds())
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.settings.set("retrieval.top_k", "0", harness.clock.now())
    await ask(harness, model, "bob", "shall we go on?", "Gladly.")
    harness.clock.tick(timedelta(days=6).total_seconds())
    kept = settings.model_copy(update={"tenants": {"acme": TenantSettings(keep_days=10)}})
    await schedule.run(replace(harness.app, settings=kept), "retention", harness.clock.now())
    assert await answers(harness) == ["Gladly."]
    assert await find_remains(settings, "zqold") == {}


@pytest.mark.parametrize(
    ("typed", "shown", "what"),
    [
        ("forget here --since yesterday", "forget here --since 2026-05-05", " from 2026-05-05 on"),
        ("forget everything --until yesterday", "forget everything --until 2026-05-05", " until 2026-05-05"),
        ("erase room --since=monday", "erase room --since 2026-05-04", " from 2026-05-04 on"),
        ("erase user alice --until Monday", "erase user alice --until 2026-05-04", " until 2026-05-04"),
        ("memory undo alice --since today", "memory undo alice --since 2026-05-06", " from 2026-05-06 on"),
    ],
)
async def test_what_erases_shows_which_days_it_takes_that_were_named_in_words(
    harness: AppHarness, typed: str, shown: str, what: str
) -> None:
    # The words meant another day where the button was pressed after midnight; and nobody had seen which.
    await harness.say("alice", "we ship on Friday", **ROOM)
    assert await set_admin(harness.app, "acme", "alice", True)
    harness.clock.set(datetime(2026, 5, 6, 23, 50, tzinfo=UTC))
    await harness.command("alice", "/nexus remember zqplum", **ROOM)
    for yes in ("", " --yes"):
        asked = await harness.command("alice", f"/nexus {typed}{yes}", **ROOM)
        assert asked.confirm == f"/nexus {shown} --yes"
        assert what in asked.text
    harness.clock.set(datetime(2026, 5, 7, 0, 10, tzinfo=UTC))
    done = await harness.command("alice", asked.confirm, **ROOM)
    assert done.text.startswith(("Forgotten for good", "Taken back", "Nothing was erased"))
    assert not done.confirm
