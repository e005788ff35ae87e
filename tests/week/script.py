"""The week as data (week.yaml), read and checked."""

from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Final, Literal
from zoneinfo import ZoneInfo

import yaml
from pydantic import BaseModel, ConfigDict, Field

FILE: Final = Path(__file__).with_name("week.yaml")
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Platform = Literal["discord", "slack"]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Person(_Table):
    """Somebody, with an account on each of these `platforms`; their DM is on the first unless a step says another."""

    platforms: tuple[Platform, ...]
    admin: bool = False


class Room(_Table):
    """A channel; with `private`, of these people alone."""

    platform: Platform
    private: tuple[str, ...] = ()


class Secret(_Table):
    """A word of a private talk, where it was said (for people), and the places that may show it."""

    word: str
    origin: str = Field(alias="from")
    stays: tuple[str, ...]


class Answer(_Table):
    """What the model says to a question that holds `asked`: `says`, if its prompt holds what it `needs`."""

    asked: str
    says: str
    needs: str = ""


class Posted(_Table):
    """What Nexus posts of itself: the beginning of a text in a place."""

    place: str = Field(alias="in")
    text: str


class Step(_Table):
    """Something that happens at a time, most often by somebody (`who`) in a place.

    A place is a room, or `dm PERSON [PLATFORM]`; `thread` names the message that one was begun on. Exactly one of these
    says what happens:
    `says`; `asks` (an agent answers: from what it knows, or that it does not know; `refused`: by a sentence that holds
    this); `command` with its options (`with`, `confirmed`), whose answer holds what it `shows`; `edits` (to what is in
    `says`) or `deletes` the message of an `id`; `leaves` a room or a platform; `job`; `posts`: what is posted of
    itself at that time, and nothing else; `down`: the models that fail from then on; `restarted`.

    A question that is `killed` is cut off by kill -9 in the middle of its answer. `meanwhile` happens while Nexus is
    away. `never`: words that the prompt must not hold. `forgets`: what was posted with these words is then taken back,
    and those that begin as one of `may_take` may be ("": any): their prompts had a summary of it. `keeps` takes values
    out of a command's answer, by a pattern, for later options. `pastes` adds so many words to a question.
    """

    at: str
    who: str = ""
    place: str = Field(default="", alias="in")
    thread: str = ""
    id: str = ""
    says: str = ""
    asks: str = ""
    known: bool = False
    refused: str = ""
    never: str = ""
    model: str = ""
    pastes: int = 0
    killed: bool = False
    restarted: bool = False
    meanwhile: tuple["Step", ...] = ()
    command: str = ""
    options: dict[str, str] = Field(default_factory=dict, alias="with")
    confirmed: bool = False
    shows: str = ""
    keeps: dict[str, str] = Field(default_factory=dict)
    forgets: tuple[str, ...] = ()
    may_take: tuple[str, ...] = ()
    edits: str = ""
    deletes: str = ""
    leaves: str = ""
    job: tuple[str, ...] = ()
    posts: tuple[Posted, ...] | None = None
    down: tuple[str, ...] | None = None
    note: str = ""


class Day(_Table):
    """The steps of a day, in their order."""

    day: Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    steps: tuple[Step, ...]


class Week(_Table):
    """The whole week; `monday` is its first day, and times are those of `zone`."""

    monday: date
    zone: str
    people: dict[str, Person]
    rooms: dict[str, Room]
    secrets: tuple[Secret, ...]
    answers: tuple[Answer, ...]
    days: tuple[Day, ...]

    def moment(self, day: str, at: str) -> datetime:
        """The time of a step."""
        on = self.monday + timedelta(days=DAYS.index(day))
        return datetime.combine(on, time.fromisoformat(at), ZoneInfo(self.zone))

    @property
    def start(self) -> datetime:
        """The beginning of the week: before it, people and rooms are made."""
        return self.moment("monday", "08:00")

    def platform_of(self, place: str) -> Platform:
        """The platform that a place is on."""
        kind, _, rest = place.partition(" ")
        if kind != "dm":
            return self.rooms[place].platform
        person, _, named = rest.partition(" ")
        found = named or self.people[person].platforms[0]
        return "slack" if found == "slack" else "discord"


def read_week(path: Path = FILE) -> Week:
    """The week of a file. Raises pydantic's ValidationError for a wrong key or value."""
    return Week.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
