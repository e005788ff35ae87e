"""Times as people write them, in many languages: each is read right, or asked about, and never taken for another one.

A line of times_as_people_say.txt is a text and what may be made of it, at 11:00 on Tuesday, 20 October 2026, in Berlin:
a time, with what repeats after "R:", or ASK.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from composer.text.dates.when import read_when

ZONE: Final = ZoneInfo("Europe/Berlin")
NOW: Final = datetime(2026, 10, 20, 9, tzinfo=UTC)
ASK: Final = "ASK"
TABLE: Final = Path(__file__).with_name("times_as_people_say.txt").read_text(encoding="utf-8").splitlines()
CASES: Final = [(text, right.split("|")) for text, _, right in (line.partition("\t") for line in TABLE)]
TO_CALL: Final = frozenset(
    ["call", "anrufen", "appeler", "llamar", "ligar", "chiamare", "bellen", "zadzwonić", "позвонить", "ara"]
)


def told(text: str) -> str:
    """The time that is read of a text; ASK for none, and for one that is over."""
    found = read_when(text, NOW, ZONE)
    if found is None or found[0].at <= NOW:
        return ASK
    repeats = f" R:{found[0].repeat}" if found[0].repeat else ""
    return f"{found[0].at.astimezone(ZONE):%Y-%m-%d %H:%M}{repeats}"


def test_each_time_is_read_right_or_asked_about() -> None:
    read = {text: told(text) for text, _ in CASES}
    assert {text: read[text] for text, right in CASES if read[text] not in right} == {}


def test_a_time_that_ends_a_text_is_no_part_of_another_one() -> None:
    ended = [case for case in CASES if case[0].split()[-1] in TO_CALL and "meeting" not in case[0]]
    parts = [(text.rpartition(" "), right) for text, right in ended]
    read = {text: told(f"{text[2]} xyz {text[0]}") for text, _ in parts}
    assert {text: read[text] for text, right in parts if read[text] not in (*right, told("".join(text)), ASK)} == {}
    assert len(ended) > len(CASES) / 4
