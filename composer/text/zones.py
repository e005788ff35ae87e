"""Time zones by name: as platforms say them, and as people write them. Pure."""

import difflib
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from composer.errors import BadInput

MAX_ZONE_CHARS: Final = 64
_SHOWN_CHARS: Final = 40  # of a name that is refused
_LIKENESS: Final = 0.75  # of a word and the city that it may be
_OF_NO_PLACE: Final = frozenset({"Factory", "localtime"})  # the zone of this machine, or of none


def zone_named(name: str | None) -> ZoneInfo | None:
    """The zone of that exact name, such as Europe/Berlin; None for any other text, and for none."""
    return ZoneInfo(name) if name in _zones() else None


def zone_of_text(text: str) -> str:
    """The name of the zone that somebody means: it, or its city, in any case. Abbreviations are not read: most are
    several zones. Raises BadInput, with the zone that may be meant."""
    wanted = "_".join(text[: MAX_ZONE_CHARS + 1].split()).lower()
    cities, names = _cities(), _names()
    if found := names.get(wanted) or cities.get(wanted):
        return found
    near = difflib.get_close_matches(wanted.rpartition("/")[2], cities, n=1, cutoff=_LIKENESS)
    meant = f"Did you mean {cities[near[0]]}?" if near else "Write the zone of the nearest large city."
    raise BadInput(
        f"'{text[:_SHOWN_CHARS]}' is no time zone that I know; zones are named like Europe/Berlin, or UTC. {meant}"
    )


def zone_names() -> list[str]:
    """The names of zones that people may write, in their order."""
    return sorted(_names().values())


@cache
def _zones() -> frozenset[str]:
    return frozenset(name for name in available_timezones() if len(name) <= MAX_ZONE_CHARS) - _OF_NO_PLACE


@cache
def _names() -> dict[str, str]:
    """The names that people may write, by themselves in small letters. In Etc/GMT+2 the sign is the wrong way round."""
    return {name.lower(): name for name in _zones() if name in ("UTC", "GMT") or _is_of_a_place(name)}


@cache
def _cities() -> dict[str, str]:
    """The same by the name of their city, where one continent alone has it."""
    cities: dict[str, set[str]] = {}
    for name in filter(_is_of_a_place, _zones()):
        cities.setdefault(name.rpartition("/")[2].lower(), set()).add(name)
    continents = {city: {name.partition("/")[0] for name in names} for city, names in cities.items()}
    return {city: max(names, key=len) for city, names in cities.items() if len(continents[city]) == 1}


def _is_of_a_place(name: str) -> bool:
    return "/" in name and not name.startswith(("Etc/", "SystemV/"))
