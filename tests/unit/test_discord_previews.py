"""Answers on Discord show no previews of links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.discord.previews import MAX_ADDRESS_CHARS, without_previews

ADDRESS = "https://evil.example/?q=walrus"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"see {ADDRESS}.", f"see <{ADDRESS}>."),
        (f"({ADDRESS})", f"(<{ADDRESS}>)"),
        (f"![x]({ADDRESS})", f"![x](<{ADDRESS}>)"),
        (f'[x]({ADDRESS} "title")', f'[x](<{ADDRESS}> "title")'),
        (f"**{ADDRESS}**", f"**<{ADDRESS}>**"),
        ("https://en.example/wiki/Harbour_(Porto)", "<https://en.example/wiki/Harbour_(Porto)>"),
        ("HTTPS://EVIL.EXAMPLE", "<HTTPS://EVIL.EXAMPLE>"),
        (f"<{ADDRESS}> and [x](<{ADDRESS}>)", f"<{ADDRESS}> and [x](<{ADDRESS}>)"),
        (f"`curl {ADDRESS}`", f"`curl {ADDRESS}`"),
        (f"```sh\ncurl {ADDRESS}\n```", f"```sh\ncurl {ADDRESS}\n```"),
        (f"``a ` {ADDRESS}``", f"``a ` {ADDRESS}``"),
        (f"\\`{ADDRESS}\\`", f"\\`<{ADDRESS}\\`>"),
        (f"` {ADDRESS} ``", f"` <{ADDRESS}> ``"),
        (f"    {ADDRESS}", f"    <{ADDRESS}>"),
        (f"~~~\n{ADDRESS}\n~~~", f"~~~\n<{ADDRESS}>\n~~~"),
        (f"`a` {ADDRESS} `b`", f"`a` <{ADDRESS}> `b`"),
        ("no link: https:// alone", "no link: https:// alone"),
    ],
)
def test_addresses_outside_code_get_no_preview(text: str, shown: str) -> None:
    assert without_previews(text) == shown
    assert without_previews(shown) == shown


def test_a_long_address_is_no_link() -> None:
    path = "a" * MAX_ADDRESS_CHARS
    assert without_previews(f"see hthttps://tps://evil.example/{path}") == f"see hthttps:tps:evil.example/{path}"


@given(st.text(st.sampled_from("`\\<>()[ \nhttps://e.")))
def test_nothing_but_signs_around_addresses_is_added(text: str) -> None:
    shown = without_previews(text)
    assert without_previews(shown) == shown
    assert [c for c in shown if c not in "<>"] == [c for c in text if c not in "<>"]
