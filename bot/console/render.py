"""What the terminal shows: plain text that can't move the cursor, progress."""

import re
import textwrap
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

TABLE_WIDTH: Final = 80  # of a terminal in which a table has room
MIN_WIDTH: Final = 20
_MARGIN: Final = "    "
out: Final = Console(highlight=False, markup=False, soft_wrap=True)
err: Final = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """A text without the control characters by which a message could rewrite the screen."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def show(text: str, style: str = "") -> None:
    """Print a person's text, without control characters."""
    out.print(Text(plain(text), style=style))


def show_words(text: str) -> None:
    """Print a text of ours; in a terminal, broken between words."""
    show(wrapped(plain(text), max(out.width, MIN_WIDTH)) if out.is_terminal else text)


def next_step(text: str) -> None:
    """Print what to do next, after a command that leaves something to do. Not with --json."""
    out.print(Text(f"Next: {plain(text)}", style="dim"))


def warn(text: str) -> None:
    """Print a sentence to standard error."""
    err.print(Text(plain(text), style="yellow"))


def progress(what: str) -> Progress:
    """A progress bar on standard error; it shows only where that is a terminal."""
    return Progress(
        TextColumn(what.ljust(10)),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


def wrapped(text: str, width: int) -> str:
    """A text in lines of at most `width` characters, broken between words: what goes on is set in, and the second
    column of a line that is too long stands under the first one."""
    lines = []
    for line in text.split("\n"):
        first, gap, second = line.partition("  ")
        if len(line) <= width or not (first and gap and second.strip()):
            lines += _broken(line, width, _MARGIN)
        else:
            lines += [*_broken(first, width, _MARGIN), *_broken(f"{_MARGIN}{second.lstrip()}", width, "")]
    return "\n".join(lines)


def _broken(line: str, width: int, more: str) -> list[str]:
    """A line in as many as it needs; all but the first one are set in as far as it is, and by `more`."""
    margin = line[: len(line) - len(line.lstrip(" "))]
    indent = margin + more
    lines = textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines or [""]


def sections(prompt: dict[str, Any], timings: dict[str, float]) -> None:
    """Print a composed prompt for a person: its sections as they are sent, then tokens and times."""
    for section in prompt["sections"]:
        if section["text"]:
            out.print(Text(f"── {section['name']} · {section['tokens']} tokens", style="bold cyan"))
            show(section["text"])
    exact = "" if prompt["exact_tokens"] else " (estimated)"
    spent = ", ".join(f"{name} {value:.1f} ms" for name, value in timings.items())
    out.print(Text(f"── {prompt['tokens']:,} of {prompt['window']:,} tokens{exact}; {spent}", style="dim"))
