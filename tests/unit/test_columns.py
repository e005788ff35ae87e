"""Tables in chats: the second column stands under the first where there is no room beside it."""

from hypothesis import given
from hypothesis import strategies as st

from bot.commands.table import COMMANDS
from bot.commands.table import in_columns as table
from bot.delivery.columns import WIDTH, fitted, in_columns
from bot.slack.commands import _parts

HELP = "\n".join(table([(command.usage, command.help) for command in COMMANDS.values()]))


def test_the_list_of_the_commands_fits_a_chats_window() -> None:
    shown = fitted(HELP)
    assert "/nexus remind list\n    List your reminders\n" in shown
    assert shown.split() == HELP.split()
    assert max(map(len, shown.split("\n"))) <= WIDTH + 20 < max(map(len, HELP.split("\n")))
    parts = _parts(HELP)
    assert len(parts) == 2, "and takes no more messages than its words need"
    assert all(part["text"].startswith("```\n") and part["text"].endswith("\n```") for part in parts)


def test_what_has_room_and_what_is_no_table_stays_as_it_is() -> None:
    narrow = "3f2a91bc  2026-05-04 memory, #general: we use trunk based development and nothing else, as agreed\n" * 2
    assert fitted(narrow) == narrow
    command = f"To confirm: /nexus remember {'x' * 60}  y --yes"
    assert fitted(f"Everyone reads it.\n{command}") == f"Everyone reads it.\n{command}"


def test_columns_remain_aligned() -> None:
    assert in_columns("a   b\ncc  d")
    assert [part["text"] for part in _parts("a   b\ncc  d")] == ["```\na   b\ncc  d\n```"]
    assert [part["text"] for part in _parts("a   b")] == ["a   b"]


@given(st.text(alphabet="ab  \n/", max_size=300))
def test_no_word_is_lost(text: str) -> None:
    assert fitted(text).split() == text.split()
