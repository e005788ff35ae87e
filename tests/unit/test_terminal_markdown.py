"""Answers in a terminal: Markdown as styles, whole words, nothing that moves the cursor, however they stream."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from bot.console.markdown import MarkdownPrinter, inline

STYLE = re.compile(r"\x1b\[[0-9;]*m")
LONG = """\
# Plan *for* Friday

Some **bold words** and *italic*, `code **as is**`, ~~gone~~ and [the docs](https://example.org/a).
- one item that is long enough to be broken between words in this narrow window, **really**
    - nested
2. second
> quoted words are set in with a bar and go on until the line is broken, too
---
This is a long paragraph without any marks whatsoever which goes on for a while, so that rows are shown, and **bold**.
https://example.org/an/address/that/is/longer/than/the/whole/line/of/this/window/is
```python
def f(x):  # **no** mark
    return x
```
| a | b |
|---|---|
| **1** | 2 |
the end"""


def printed(text: str, width: int = 50, size: int = 10_000) -> str:
    """What a terminal gets when a text comes in parts of so many characters."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, highlight=False, color_system="standard")
    printer = MarkdownPrinter(console)
    for start in range(0, len(text), size):
        printer.feed(text[start : start + size])
    printer.end()
    return file.getvalue()


def rows(text: str, width: int = 50) -> list[str]:
    return STYLE.sub("", printed(text, width)).splitlines()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**bold**", "\x1b[1mbold\x1b[0m"),
        ("*italic* and _so_", "\x1b[3mitalic\x1b[0m and \x1b[3mso\x1b[0m"),
        ("`code`", "\x1b[36mcode\x1b[0m"),
        ("## Title ##", "\x1b[1mTitle\x1b[0m"),
        ("~~gone~~", "\x1b[9mgone\x1b[0m"),
        ("- item", "• item"),
        ("  3) item", "  3) item"),
        ("snake_case_name, 2 * 3 * 4 and a < b > c", "snake_case_name, 2 * 3 * 4 and a < b > c"),
        ("List<String> <b>x</b> &#27;[31m &lt;", "List<String> <b>x</b> &#27;[31m &lt;"),
        ("[1]: https://example.org", "[1]: https://example.org"),
        (r"\*as written\*", "*as written*"),
        ("#general is no heading", "#general is no heading"),
        ("**not closed", "**not closed"),
    ],
)
def test_marks_become_styles_and_all_else_stays(text: str, shown: str) -> None:
    assert printed(text) == f"{shown}\n"


def test_a_link_says_where_it_leads() -> None:
    assert rows("[my bank](https://evil.example)") == ["my bank (https://evil.example)"]
    assert rows("<https://example.org>") == ["https://example.org"]
    assert "\x1b]8" not in printed("[x](https://example.org)"), "no link that a terminal hides"


@pytest.mark.parametrize("size", [1, 3, 17])
def test_it_looks_the_same_however_it_comes_in(size: int) -> None:
    assert printed(LONG, size=size) == printed(LONG)


def test_words_are_not_broken_and_what_goes_on_is_set_in() -> None:
    shown = rows(LONG)
    address = "https://example.org/an/address/that/is/longer/than/the/whole/line/of/this/window/is"
    assert address in shown, "also one that is longer than the line"
    assert all(cell_len(row) <= 50 for row in shown if row != address)
    item = next(at for at, row in enumerate(shown) if row.startswith("• one"))
    assert shown[item + 1].startswith("  between words")
    assert [row.startswith("│ ") for row in shown if "quoted" in row or "broken, too" in row] == [True, True]


def test_code_is_as_it_was_written() -> None:
    assert rows("```\na **b**   c" + " x" * 60 + "\n\n    d\n```\n*e*") == ["a **b**   c" + " x" * 60, "", "    d", "e"]
    assert rows("~~~\n```\n~~~\nx") == ["```", "x"]
    assert rows("```\nnever closed *x*") == ["never closed *x*"]


def test_a_table_has_columns_and_what_is_none_stays() -> None:
    assert rows("| name | n |\n|---|:-:|\n| **ada** | 日本 |\n| b |\nend") == [
        "name ┃ n   ",
        "━━━━━╇━━━━━",
        "ada  │ 日本",
        "b    │     ",
        "end",
    ]
    assert rows("| only one row") == ["| only one row"]
    wide = "|" + "|".join(f"column{number}" for number in range(30)) + "|"
    assert "column29" in "".join(rows(f"{wide}\n|{'---|' * 30}\n{wide}", 40))


@pytest.mark.parametrize(
    "text",
    [
        "עברית שלום עולם זה משפט ארוך בעברית שעובר את השורה הראשונה של המסוף",
        "هذه جملة طويلة باللغة العربية تتجاوز السطر الأول من نافذة الطرفية الضيقة",
        "日本語の長い文章は単語の間に空白がないので、行の終わりで折り返されなければなりません。",
        "e\u0301te\u0301 👩‍👩‍👧 हिन्दी में एक लंबा वाक्य जो पहली पंक्ति से आगे जाता है और टूटता है",
    ],
)
def test_other_scripts_keep_their_characters_in_their_order(text: str) -> None:
    shown = rows(text, 30)
    assert "".join("".join(shown).split()) == "".join(text.split())
    assert all(cell_len(row) <= 30 for row in shown)


def test_nothing_moves_the_cursor() -> None:
    found = printed("a\x1b[2Jb \x07**c\x1b]0;t\x07** `\x9b31m`\n\x1b```\nd\x1b[A\n```\n[x](<http://a\x1b[B>)\r\n\rz")
    assert "\x1b[2J" not in found
    assert not set("\x07\x9b\r") & set(found)
    assert set(re.findall(r"\x1b.?", found)) <= {"\x1b["}
    assert not re.search(r"\x1b\[[0-9;]*[^0-9;m]", found)


def test_a_hostile_line_takes_no_time() -> None:
    for text in ("*" * 20_000, "[" * 20_000, "`" * 19_999, "> " * 10_000, "a " * 10_000, "|" * 20_000, "x" * 200_000):
        assert inline(text).plain or text
        printed(text)


def test_words_are_shown_while_they_come_in() -> None:
    file = io.StringIO()
    printer = MarkdownPrinter(Console(file=file, force_terminal=True, width=40, highlight=False))
    printer.feed("These are the fi")
    assert file.getvalue() == "These are the"
    printer.feed("rst words of a long paragraph **that** is")
    assert file.getvalue() == "These are the first words of a long\nparagraph"
    printer.feed(" still being written.")
    printer.end()
    assert STYLE.sub("", file.getvalue()).splitlines()[1:] == ["paragraph that is still being written."]
