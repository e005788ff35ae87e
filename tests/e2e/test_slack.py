"""The agent on Slack: the real slack-bolt and slack-sdk over real sockets, to a server that speaks Slack's protocol."""

from collections.abc import AsyncIterator

import pytest

from composer.settings import Settings
from tests.e2e.slack_office import Office, office_on

pytestmark = pytest.mark.e2e


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with office_on(settings) as it:
        yield it


@pytest.mark.parametrize("wire", ["socket", "http"])
async def test_a_mention_is_answered_once_in_a_thread_under_it(office: Office, wire: str) -> None:
    async with office.socket() if wire == "socket" else office.http() as running:
        ts = await office.slack.post(office.general, office.alice, office.mention("when do we ship?"))
        assert await office.answered() == [office.model.answer]
        await running.settle()
        assert await running.stored() == ["@nexus when do we ship?"]
        assert office.answers()[0]["thread_ts"] == ts
        assert {attempt.outcome for attempt in office.slack.outbox.attempts} == {"acked"}
