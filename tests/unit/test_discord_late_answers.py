"""Commands that an earlier process did not finish, and whose interaction Discord has forgotten: answered in a DM."""

import uuid
from typing import Any
from unittest.mock import MagicMock

import pytest

from bot.commands.command import AnswerFile, CommandAnswer
from bot.discord import slash
from bot.discord.reading import FAILURES


class Dm:
    """A DM that keeps what is sent to it."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []

    async def send(self, text: str = "", **more: Any) -> None:
        self.sent.append((text, more))


async def test_no_file_is_put_into_a_dm_where_it_would_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    async def expired(*given: Any) -> None:
        raise FAILURES[0]

    monkeypatch.setattr(slash, "_show", expired)
    monkeypatch.setattr("discord.Webhook.from_state", lambda **given: None)
    dm, client, command = Dm(), MagicMock(), MagicMock()
    command.address, command.incoming.user = {"application": "1", "token": "t"}, "7"

    async def create_dm(user: object) -> Dm:
        return dm

    client.create_dm = create_dm
    file = AnswerFile("nexus-export.json", "{}", uuid.uuid4(), erasures=0)
    answer = CommandAnswer("All that is yours: 3 messages.", file=file)
    await slash._answer_late(client, command, answer)
    ((text, more),) = dm.sent
    assert text.startswith("All that is yours: 3 messages.")
    assert text.endswith("For the file nexus-export.json give the command again.")
    assert "file" not in more
