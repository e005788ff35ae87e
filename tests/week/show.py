"""The week as lines of a terminal: day, time, place, who and what; beside an answer, what was kept from it."""

import asyncio
import textwrap
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from bot.console import render
from tests.week.player import Line

SECONDS: Final = 90.0  # of all pauses; the work itself takes about half a minute
LINES: Final = 150  # about so many it has
MARGIN: Final = 33  # columns before the text
MOST_LINES: Final = 9  # of one text
STYLES: Final = {
    "said": "",
    "asked": "bold",
    "answer": "green",
    "alone": "cyan",
    "posted": "magenta",
    "taken": "yellow",
    "note": "dim italic",
}
WHO: Final = {"answer": "Nexus", "alone": "Nexus", "posted": "Nexus", "taken": "Nexus", "note": ""}


@dataclass
class Show:
    """Prints lines, each with a pause after it in which it can be read."""

    seconds: float  # of all pauses
    day: str = ""

    async def line(self, line: Line) -> None:
        """Print what somebody did or saw."""
        if line.day != self.day:
            self.day = line.day
            render.out.print(Text(f"\n{line.day.capitalize()}", style="bold underline"))
        if line.kind == "note":
            render.out.print(Text(f"{'':6} ({render.plain(line.text)})", style=STYLES["note"]))
            return
        in_room = not line.place.startswith("dm ")
        alone = f" (shown to {line.who.capitalize()} alone)" if line.kind == "alone" and in_room else ""
        who = WHO.get(line.kind, line.who.capitalize())
        most = MOST_LINES * 2 if line.kind == "alone" else MOST_LINES
        self._print(f"{line.at:6} {_place(line.place):17} {who:6}", f"{line.text}{alone}", STYLES[line.kind], most)
        if line.kept:
            words = "; ".join(f"“{each.word}” ({each.origin})" for each in line.kept)
            self._print("", f"kept from this answer: {words}", "dim red")
        await asyncio.sleep(self.seconds / LINES)

    def _print(self, head: str, text: str, style: str, most: int = MOST_LINES) -> None:
        width = max(render.out.width - MARGIN, 40) if render.out.is_terminal else 100
        plain = render.plain(text).replace("```", "").strip()
        wrapped = [part for each in plain.splitlines() for part in textwrap.wrap(each, width) or [""]]
        shown = wrapped[:most] + (["…"] if len(wrapped) > most else [])
        for number, part in enumerate(shown):
            render.out.print(Text.assemble((f"{head if not number else '':{MARGIN}}", "dim"), (part, style)))


def _place(place: str) -> str:
    """A place as people name it."""
    return f"@{place.split()[1]}" if place.startswith("dm ") else f"#{place}" if place else ""
