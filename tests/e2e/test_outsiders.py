"""What belongs to the organisation stays with its own people: a guest, somebody of another company and a channel that
is shared with one are answered without it, and an admin of another company is no admin here."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

import pytest

from bot.slack import directory
from composer.settings import Settings
from tests.e2e.test_slack_privacy import rows
from tests.support.slack.harness import Office, office_on
from tests.support.waiting import until

PARTNER: Final[dict[str, Any]] = {
    "team_id": "T0OTHER",
    "is_stranger": False,
}  # as in a shared channel
SECRETS: Final = ("zqrunway", "zqsalary")


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        await it.slack.add_im(it.team, it.alice)
        yield it


async def tell(office: Office, running: Any) -> None:
    """Alice says something for everyone, Bob of himself, and both are there where the tests ask."""
    await office.slack.post(office.general, office.alice, "hi")
    await running.settle()
    await office.slack.command(office.general, office.alice, "remember the runway is zqrunway months --global --yes")
    await office.slack.command(office.general, office.bob, "fact set salary zqsalary --everywhere --yes")
    await running.settle()


async def ask(office: Office, running: Any, channel: str, user: str) -> list[str]:
    """Which of the secrets the prompt of somebody's question holds."""
    asked = len(office.answers(channel))
    await office.slack.post(channel, user, office.mention("what is the runway, and Bob's salary?"))
    await office.answered(asked + 1, channel)
    await running.settle()
    return [secret for secret in SECRETS if secret in office.model.prompts[-1]]


@pytest.mark.parametrize("mark", [PARTNER, {"is_stranger": True, "team_id": "T0OTHER"}, {"is_restricted": True}])
async def test_whoever_is_not_of_the_organisation_reads_nothing_of_it(office: Office, mark: dict[str, Any]) -> None:
    outsider = await office.slack.add_user(office.team, "mallory", **mark)
    await office.slack.join(office.general, outsider)
    async with office.socket() as running:
        await tell(office, running)
        assert await ask(office, running, office.general, outsider) == []
        assert await ask(office, running, office.general, office.bob) == list(SECRETS)
        recalled = await office.slack.command(office.general, outsider, "recall runway")
        listed = await office.slack.command(office.general, outsider, "fact list")
        await running.settle()
        assert not any(secret in str(shown) for secret in SECRETS for shown in (recalled, listed))


async def test_in_a_channel_that_is_shared_with_another_company_nobody_is_answered_from_it(office: Office) -> None:
    async with office.socket() as running:
        await tell(office, running)
        assert await ask(office, running, office.general, office.bob) == list(SECRETS)
        await office.slack.share(office.general)
        assert await ask(office, running, office.general, office.bob) == []
        recalled = await office.slack.command(office.general, office.bob, "recall runway")
        await running.settle()
        assert "zqrunway" not in str(recalled)
        root = await office.slack.post(office.general, office.bob, "a thread")
        await office.slack.post(office.general, office.bob, office.mention("what is the runway?"), thread=root)
        await office.answered(3, office.general)
        await running.settle()
        assert "zqrunway" not in office.model.prompts[-1]


@pytest.mark.parametrize("missed", ["a shared channel", "a guest"])
async def test_what_slack_tells_nobody_during_an_outage_holds_once_it_is_over(office: Office, missed: str) -> None:
    # What Slack said before the outage was believed for ten minutes more.
    async with office.socket() as running:
        await tell(office, running)
        assert await ask(office, running, office.general, office.bob) == list(SECRETS)
        caught_up = running.adapter.reconciliation.completed
        office.slack.hold()
        if missed == "a guest":
            office.slack.world.users[office.bob]["is_restricted"] = True
        else:
            await office.slack.share(office.general)
        await office.slack.ask_to_reconnect("refresh_requested")
        await until(lambda: running.adapter.reconciliation.completed > caught_up)
        await office.slack.release(lambda events: [])  # Slack does not deliver them any more
        await running.settle()
        own = ["zqsalary"] if missed == "a guest" else []  # a guest is answered from what is their own
        assert await ask(office, running, office.general, office.bob) == own


async def test_a_late_question_is_not_answered_from_it_in_a_channel_that_is_shared_now(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "MAX_CLOCK_DIFFERENCE", timedelta(0))  # as if the question were some seconds older
    async with office.socket() as running:
        await tell(office, running)
        late: list[Any] = []

        def held_back(events: list[Any]) -> list[Any]:
            late.extend(events)
            return []

        office.slack.hold()
        await office.slack.post(office.general, office.bob, office.mention("what is the runway, and Bob's salary?"))
        await office.slack.release(held_back)
        await office.slack.rename(office.general, "lobby", office.alice)  # so Slack is asked again who reads it
        await running.settle()
        await office.slack.command(office.general, office.bob, "recall nothing")
        await running.settle()
        await office.slack.share(office.general)
        await running.settle()
        for event in late:
            office.slack.outbox.send(event)
        await office.answered(1, office.general)
        await running.settle()
        assert [secret for secret in SECRETS if secret in office.model.prompts[-1]] == []


async def test_slack_says_at_once_that_a_channel_is_shared(office: Office) -> None:
    async with office.socket() as running:
        await tell(office, running)
        await office.slack.share(office.general)
        await running.settle()
        found = await rows(office, "SELECT outsiders FROM conversations WHERE name = $1", office.general)
        assert found == [(True,)]


async def test_an_admin_of_another_company_is_no_admin_here(office: Office) -> None:
    theirs = await office.slack.add_user(office.team, "mallory", admin=True, **PARTNER)
    await office.slack.join(office.general, theirs)
    async with office.socket() as running:
        await tell(office, running)
        for line in ("settings", "audit", "remember we never pay --global --yes", "memory off"):
            answer = await office.slack.command(office.general, theirs, line)
            await running.settle()
            assert "Only an admin of" in str(answer), (line, answer)
