"""The first DM asks once whether the person's rooms may be used there, with buttons; buttons below answers give
commands."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.commands.confirmations import CANCELLED
from bot.delivery.notices import ROOMS_QUESTION
from bot.delivery.offers import ASKED_AGAIN, NOT_YOURS, OFFER_PREFIX, Press, button, read_press
from composer.memory.forget import RETRACTED
from composer.model import Offer
from composer.settings import Settings
from tests.support.discord.harness import Discord, on_discord
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.slack.harness import Office, Running, office_on
from tests.support.waiting import until

REMIND = Offer("Set the reminder", "/nexus remember Tom likes walnuts")


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


def buttons_of(message: dict[str, Any]) -> list[str]:
    """The labels of a Slack message's buttons."""
    actions = [block for block in message.get("blocks") or [] if block["type"] == "actions"]
    return [element["text"]["text"] for block in actions for element in block["elements"]]


async def reads_rooms(running: Running | Discord) -> list[str]:
    """The names of the people whose DMs read their rooms."""
    workspace = running.workspace if isinstance(running, Discord) else await running.adapter.inbox.workspace()
    async with running.app.database._pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{workspace.tenant_id}'")
        rows = await connection.fetch("SELECT name FROM users WHERE reads_rooms")
    return [row["name"] for row in rows]


async def test_the_first_dm_on_slack_asks_once_and_yes_opens_the_rooms(office: Office) -> None:
    dm = await office.slack.add_im(office.team, office.alice)
    async with office.socket() as running:
        await office.slack.post(dm, office.alice, "hello")
        await office.answered(1, dm)
        await office.slack.wait_for(lambda: office.notices(dm))
        await office.slack.post(dm, office.alice, "and again")
        await office.answered(2, dm)
        [asked] = [m for m in office.slack.messages(dm) if m["text"] == ROOMS_QUESTION]
        assert buttons_of(asked) == ["Yes", "Not now"]
        assert await reads_rooms(running) == []
        answered = await office.slack.click(dm, office.alice, asked["ts"], f"{OFFER_PREFIX}0")
        await until(lambda: reads_rooms(running))
        await office.slack.wait_for(lambda: answered.responses)
        assert "From now on I also recall in this DM the rooms" in answered.responses[0]["text"]


async def test_the_first_dm_on_discord_asks_once_and_yes_opens_the_rooms(here: Discord, ada: User) -> None:
    dm = here.server.dm(ada)
    await here.answer(await here.server.post(dm, ada, "hello"))
    await here.answer(await here.server.post(dm, ada, "and again"))
    await here.server.until(lambda: here.notices(dm))
    assert here.notices(dm) == [ROOMS_QUESTION]
    [asked] = [m for m in here.server.messages(dm, here.server.bot) if m.content == ROOMS_QUESTION]
    [row] = asked.components
    assert [each["label"] for each in row["components"]] == ["Yes", "Not now"]
    pressed = await here.server.click(asked, row["components"][0]["custom_id"], ada)
    shown = await here.server.answer_to(pressed)
    assert "From now on I also recall in this DM the rooms that you are in" in shown.content
    again = await here.server.click(asked, row["components"][0]["custom_id"], ada)
    assert (await here.server.answer_to(again)).content == ASKED_AGAIN
    assert await reads_rooms(here) == ["Ada"]


async def test_a_guest_is_not_asked_on_slack_since_rooms_give_them_nothing(office: Office) -> None:
    gus = await office.slack.add_user(office.team, "gus", is_restricted=True)
    guests, members = [await office.slack.add_im(office.team, who) for who in (gus, office.alice)]
    async with office.socket():
        await office.slack.post(guests, gus, "hello")
        await office.answered(1, guests)
        await office.slack.post(members, office.alice, "hello")
        await office.slack.wait_for(lambda: office.notices(members))
        assert office.notices(guests) == []


async def test_a_guest_is_not_asked_on_discord_until_they_are_one_no_more(
    server: DiscordServer, settings: Settings, guild: Guild, ada: User
) -> None:
    staff = await server.add_role(guild, "staff")  # who has no role is a guest from now on
    dm = server.dm(ada)
    async with on_discord(settings, server, guild) as here:
        await here.answer(await server.post(dm, ada, "hello"))
        await here.app.turns.settle()
        assert here.notices(dm) == []
    await server.set_roles(guild, ada, staff)
    async with on_discord(settings, server, guild) as here:
        await here.answer(await server.post(dm, ada, "hello again"))
        await server.until(lambda: here.notices(dm))


async def test_who_has_opened_their_rooms_is_not_asked(here: Discord, ada: User) -> None:
    dm = here.server.dm(ada)
    await here.server.answer_to(await here.server.invoke("nexus rooms", dm, ada, mode="on"))
    await here.answer(await here.server.post(dm, ada, "hello"))
    await here.app.turns.settle()
    assert here.notices(dm) == []


async def offering(here: Discord, room: Channel, ada: User) -> tuple[Any, Any]:
    """An answer with a button, in a room: the question, and the message with the button."""
    drafted = here.app.drafter._ask

    async def with_offer(request: Any, turn: Any, draft: Any, delivery: Any) -> None:
        await drafted(request, turn, draft, delivery)
        draft.offers.append(REMIND)

    here.app.drafter._ask = with_offer  # type: ignore[method-assign]
    asked = await here.server.post(room, ada, f"{here.server.bot.mention} what does Tom like?")
    await here.answer(asked)
    offered = await here.server.wait_for_message(lambda m: bool(m.components))
    return asked, offered


async def test_a_button_below_an_answer_gives_its_command_for_the_asker_alone(
    here: Discord, room: Channel, ada: User
) -> None:
    bob = await here.server.add_member(here.guild, "Bob")
    _, offered = await offering(here, room, ada)
    assert offered.content == "Set the reminder: `/nexus remember Tom likes walnuts`"
    [each] = offered.components[0]["components"]
    refused = await here.server.answer_to(await here.server.click(offered, each["custom_id"], bob))
    assert refused.content == NOT_YOURS
    done = await here.server.answer_to(await here.server.click(offered, each["custom_id"], ada))
    assert done.content == "Remembered, in #general."


async def test_a_button_goes_when_the_question_of_its_answer_is_deleted(
    here: Discord, room: Channel, ada: User
) -> None:
    asked, offered = await offering(here, room, ada)
    await here.server.delete(asked)
    await here.server.until(lambda: offered.content == RETRACTED)
    assert offered.components == []


@pytest.mark.parametrize("carried", ["", "nexus-do:", "nexus-do:7", "nexus-confirm:7:/nexus help", "nexus-other"])
def test_what_is_no_button_of_ours_means_nothing(carried: str) -> None:
    assert read_press(carried) is None


def test_a_button_carries_its_person_and_its_command() -> None:
    carried = button("U1", Offer("Yes", "/nexus fact set a: b"), 100)
    assert carried is not None
    assert read_press(carried) == Press("U1", "/nexus fact set a: b")
    assert button("U1", Offer("Yes", "x" * 100), 100) is None


async def test_a_typed_yes_in_a_dm_is_no_message(here: Discord, ada: User) -> None:
    dm = here.server.dm(ada)
    await here.answer(await here.server.post(dm, ada, "the vault code is walnut"))
    await here.server.answer_to(await here.server.invoke("nexus forget", dm, ada, what="walnut"))
    await here.server.post(dm, ada, "yes")
    await here.server.wait_for_message(lambda m: m.author is here.server.bot and "Forgotten for good" in m.content)
    await here.server.post(dm, ada, "yes")
    await here.stored("yes")
    assert "the vault code is walnut" not in await here.texts(dm)
    assert len(here.app.turns.served) == 1


async def test_a_typed_cancel_on_slack_is_no_message(office: Office) -> None:
    dm = await office.slack.add_im(office.team, office.alice)
    async with office.socket():
        await office.slack.post(dm, office.alice, "the vault code is walnut")
        await office.answered(1, dm)
        await office.slack.command(dm, office.alice, "forget walnut")
        [asked] = [each for each in office.slack.ephemerals(office.alice) if each.get("blocks")]
        assert buttons_of(asked) == ["Yes", "Erase, leave the answers", "Cancel"]
        await office.slack.post(dm, office.alice, "no")
        await office.slack.wait_for(lambda: office.slack.ephemerals(office.alice)[-1]["text"] == CANCELLED)
        assert len(office.answers(dm)) == 1


async def test_a_typed_yes_that_slack_delivers_twice_is_no_message(office: Office) -> None:
    # A mention comes as two events, and what is acknowledged late comes again.
    async with office.socket() as running:
        await office.slack.post(office.general, office.alice, "the vault code is walnut")
        await running.settle()
        await office.slack.command(office.general, office.alice, "forget walnut")
        await office.slack.post(office.general, office.alice, office.mention("yes"))
        await office.slack.wait_for(lambda: "Forgotten for good" in office.slack.ephemerals(office.alice)[-1]["text"])
        await running.settle()
        assert "@nexus yes" not in await running.stored()
        assert office.answers() == []
