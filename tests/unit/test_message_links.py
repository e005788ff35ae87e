"""Links from pages and the API to messages on chat platforms, of addresses alone."""

import pytest

from bot.web.links import message_link
from composer.model import API, CONSOLE, DISCORD, SLACK, ConversationKind
from composer.repositories.explanations import MessageAddress

ROOM, THREAD, DM = ConversationKind.ROOM, ConversationKind.THREAD, ConversationKind.DM


@pytest.mark.parametrize(
    ("address", "link"),
    [
        (MessageAddress(DISCORD, "91", ROOM, "92", None, "93"), "https://discord.com/channels/91/92/93"),
        (MessageAddress(DISCORD, "91", THREAD, "92", "94", "93"), "https://discord.com/channels/91/94/93"),
        (MessageAddress(DISCORD, "91", ROOM, "92/94", None, "93"), "https://discord.com/channels/91/94/93"),
        (MessageAddress(DISCORD, "91", DM, "nexus", None, "93"), None),
        (
            MessageAddress(SLACK, "T1", ROOM, "C2", None, "1700000000.000100"),
            "https://app.slack.com/client/T1/C2/thread/C2-1700000000.000100",
        ),
        (
            MessageAddress(SLACK, "T1", THREAD, "C2", "1690000000.000100", "1700000000.000100"),
            "https://app.slack.com/client/T1/C2/thread/C2-1690000000.000100",
        ),
        (MessageAddress(SLACK, "T1", DM, "nexus", None, "1700000000.000100"), None),
        (MessageAddress(CONSOLE, "acme", ROOM, "general", None, "m1"), None),
        (MessageAddress(API, "acme", ConversationKind.SESSION, "s1", None, "m1"), None),
        (None, None),
    ],
)
def test_a_message_of_a_room_on_a_platform_alone_has_a_link(address: MessageAddress | None, link: str | None) -> None:
    assert message_link(address) == link


def test_what_a_file_calls_a_message_leads_to_no_other_place() -> None:
    for odd in ('9"><script>', "9?x=javascript:1#y", "@evil.test/9", "9\n9"):
        found = message_link(MessageAddress(DISCORD, "91", ROOM, "92", None, odd))
        assert found is not None
        assert found.startswith("https://discord.com/channels/91/92/")
        assert not set(found) & set("\"<>?#\n@ '")
