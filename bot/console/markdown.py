"""Markdown in a terminal: each line is shown, with its marks as styles, as soon as it has come in."""

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from bot.console.render import MIN_WIDTH, plain

CODE: Final = "cyan"
MAX_ROW_CHARS: Final = 20_000  # of one line that is read for marks; a longer one is shown as it is
# HTML is shown as it was written, and so is what would vanish, such as the target of a reference.
_INLINE: Final = MarkdownIt("zero").enable(["emphasis", "strikethrough", "backticks", "escape", "link", "autolink"])
_STYLES: Final = {"strong": "bold", "em": "italic", "s": "strike"}
_FENCE: Final = re.compile(r"\A {0,12}(`{3,}|~{3,})")
_HEADING: Final = re.compile(r"\A {0,3}(#{1,6}) +(.*?)(?: +#+)? *\Z", re.DOTALL)
_ITEM: Final = re.compile(r"\A([ \t]{0,40})([-*+]|[0-9]{1,9}[.)])( +)", re.DOTALL)
_QUOTED: Final = re.compile(r"\A {0,3}((?:> ?)+)")
_LINE_ACROSS: Final = re.compile(r"\A {0,3}([-*_])(?: {0,3}\1){2,} *\Z")
_ROW: Final = re.compile(r"\A {0,3}\|")
_LINE_BETWEEN: Final = re.compile(r"\A[|: -]*-[|: -]*\Z")  # of a table: |---|:--:|
_CELL: Final = re.compile(r"(?<!\\)\|")
_COMPLETE: Final = re.compile(r"\A([^ ]+)( +)")
_WORD: Final = re.compile(r"[^ ]* ?")
_MARKS: Final = frozenset("*_`[]~\\<>|#")


class MarkdownPrinter:
    """Prints one text in Markdown, in parts as they come in: words at once, a line that begins with a mark or what
    follows a mark in it once the line is complete, and a table after its last row."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._pending = ""  # of a line that is not complete
        self._begun = False  # words of that line are shown
        self._column, self._gap = 0, ""  # where they end, and the spaces after them
        self._fence = ""
        self._rows: list[str] = []

    def feed(self, text: str) -> None:
        """Print what is complete with these next characters."""
        *lines, self._pending = (self._pending + plain(text)).split("\n")
        for line in lines:
            self._line(line)
        self._print_words()

    def end(self) -> None:
        """Print what is left. The next text begins anew."""
        if self._pending or self._begun:
            self._line(self._pending)
        self._print_table()
        self._pending, self._fence = "", ""

    def _line(self, line: str) -> None:
        begun, self._begun = self._begun, False
        if _ROW.match(line) and not self._fence and not begun:
            self._rows.append(line)
            return
        self._print_table()
        fence = None if begun else _FENCE.match(line)
        if self._fence:
            if fence is not None and fence[1].startswith(self._fence) and not line.strip("`~ "):
                self._fence = ""
            else:
                self._print(Text(line, CODE))
        elif fence is not None:
            self._fence = fence[1]
        elif begun:
            self._go_on(inline(line))
        else:
            self._styled(line)

    def _styled(self, line: str) -> None:
        """A line outside code and tables."""
        if found := _LINE_ACROSS.match(line):
            self._print(Text("─" * min(self._width, 40), "dim"))
        elif found := _HEADING.match(line):
            self._wrap(inline(found[2], "bold underline" if len(found[1]) == 1 else "bold"))
        elif found := _QUOTED.match(line):
            self._wrap(inline(line[found.end() :], "italic"), Text("│ " * found[1].count(">"), "dim"))
        elif found := _ITEM.match(line):
            bullet = "•" if found[2] in "-*+" else found[2]
            self._wrap(inline(line[found.end() :]), Text(f"{found[1]}{bullet}{found[3]}"), hanging=True)
        else:
            margin = line[: len(line) - len(line.lstrip(" "))]
            self._wrap(inline(line[len(margin) :]), Text(margin))

    def _print_words(self) -> None:
        """Show the complete words of a line without marks that goes on."""
        while not (self._fence or self._rows) and (found := _COMPLETE.match(self._pending)):
            word = found[1]
            if not _MARKS.isdisjoint(word) or _is_wide(word) or not (self._begun or word[0].isalpha()):
                return
            if self._column and self._column + len(self._gap) + cell_len(word) > self._width:
                self._end_row()
            self._console.print(Text(self._gap + word), soft_wrap=True, end="")
            self._column += len(self._gap) + cell_len(word)
            self._begun, self._gap, self._pending = True, found[2], self._pending[found.end() :]

    def _go_on(self, text: Text) -> None:
        """The rest of a line whose first words are shown."""
        room = self._width - self._column - len(self._gap)
        first, *rows = self._rows_of(text, self._width, room)
        first.rstrip()
        if first:
            self._console.print(Text(self._gap).append_text(first), soft_wrap=True, end="")
        self._end_row()
        for row in rows:
            row.rstrip()
            self._print(row)

    def _end_row(self) -> None:
        self._console.print("")
        self._column, self._gap = 0, ""

    def _print_table(self) -> None:
        rows, self._rows = self._rows, []
        if len(rows) < 2 or not _LINE_BETWEEN.match(rows[1].strip()):
            for row in rows:
                self._styled(row)
            return
        cells = [[inline(cell) for cell in _cells(row)] for at, row in enumerate(rows) if at != 1]
        columns = list(zip_longest(*cells, fillvalue=Text()))
        widths = [max(_longest_word(cell) for cell in column) for column in columns]
        if sum(widths) + 3 * len(widths) > self._width:  # words would be broken
            for row in rows:
                self._styled(row)
            return
        table = Table(show_edge=False, pad_edge=False)
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column[0], min_width=width, overflow="fold")
        for each in zip(*(column[1:] for column in columns), strict=True):
            table.add_row(*each)
        self._console.print(table, soft_wrap=False)

    def _wrap(self, text: Text, before: Text | None = None, *, hanging: bool = False) -> None:
        """A text in rows that are broken between words. `before` stands before each; a `hanging` one before the first,
        and as much space before the others."""
        before = before or Text()
        space = max(self._width - before.cell_len, MIN_WIDTH)
        for number, row in enumerate(self._rows_of(text, space)):
            row.rstrip()
            self._print((Text(" " * before.cell_len) if hanging and number else before.copy()).append_text(row))

    def _rows_of(self, text: Text, width: int, room: int | None = None) -> Sequence[Text]:
        """A text in rows; `room` is what the first one has left, if less than the others."""
        limit = width if room is None else room
        if _is_wide(text.plain):  # in such scripts no spaces stand between words
            fits = text.cell_len <= limit
            rows = [] if fits else list(text.wrap(self._console, width, overflow="fold"))
            return [text] if fits else rows if room is None else [Text(), *rows]
        ends, rest = list[int](), text.plain
        while cell_len(rest) > limit:
            row = _first_row(rest, limit) or ("" if limit < width else _first_word(rest))
            if row == rest:
                break
            ends.append((ends[-1] if ends else 0) + len(row))
            rest, limit = rest[len(row) :], width
        return list(text.divide(ends))

    def _print(self, row: Text) -> None:
        self._console.print(row, soft_wrap=True)

    @property
    def _width(self) -> int:
        return max(self._console.width, MIN_WIDTH)


def inline(text: str, style: str = "") -> Text:
    """A line's words, with marks of bold, italic, code and links as styles. A link shows where it leads."""
    shown = Text(style=style)
    if len(text) > MAX_ROW_CHARS:
        return shown.append(text)
    (token,) = _INLINE.parseInline(text) or (Token("inline", "", 0, children=[]),)
    _append(shown.append, token.children or ())
    return shown


def _append(append: Callable[[str, Style], Text], tokens: Sequence[Token]) -> None:
    """Append the words of tokens, each in the style of the marks that are open there."""
    opened: list[str] = []
    links: list[tuple[str, str]] = []  # where each leads, and its words
    for token in tokens:
        name, _, kind = token.type.rpartition("_")
        words = token.content
        if name in _STYLES and kind == "open":
            opened.append(_STYLES[name])
        elif name in _STYLES and opened:
            opened.pop()
        elif token.type == "link_open":
            links.append((str(token.attrGet("href") or ""), ""))
        elif token.type == "link_close" and links:
            address, said = links.pop()
            if address and plain(address) not in (said, f"mailto:{said}"):
                append(f" ({plain(address)})", Style.parse("dim"))
        elif words or token.type == "softbreak":
            words = plain(words or " ")
            links = [(address, said + words) for address, said in links]
            styles = [*opened, *([CODE] if token.type == "code_inline" else []), *(["underline"] if links else [])]
            append(words, Style.parse(" ".join(styles)))


def _first_row(text: str, width: int) -> str:
    """The words that fill the first row, with the space after them; "" where the first word is longer."""
    end = used = 0
    for word in _WORD.findall(text[: width + 1]):
        used += cell_len(word)
        if cell_len(word.rstrip()) + used - cell_len(word) > width or not word.endswith(" "):
            break
        end += len(word)
    return text[:end]


def _is_wide(text: str) -> bool:
    return cell_len(text) > len(text)


def _first_word(text: str) -> str:
    head, space, _ = text.partition(" ")
    return head + space


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(row.strip().removeprefix("|").removesuffix("|"))]


def _longest_word(text: Text) -> int:
    """The width of the longest word; in scripts without spaces, of a character."""
    return 2 if _is_wide(text.plain) else max(map(cell_len, text.plain.split()), default=1)
