"""The events of scripts, one a line of JSON. A file is checked as a whole before any event is applied."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from bot.script.places import place_of, room_of
from composer.errors import BadInput
from composer.model import CONSOLE, Attachment, ConversationKind, Place, Trust, private_thread
from composer.settings import DEFAULT_WORKSPACE
from composer.text.cleaning import is_storable
from composer.text.moments import moment


def _utc(at: datetime) -> datetime:
    try:
        return moment(at if at.tzinfo else at.replace(tzinfo=UTC))
    except BadInput as error:
        raise ValueError(str(error).removesuffix(".")) from None


Time = Annotated[datetime, AfterValidator(_utc)]  # without a zone: UTC


def _storable(name: str) -> str:
    if not is_storable(name):
        raise ValueError("a name must not contain NUL or half of a surrogate pair")
    return name


def _text(name: object) -> object:
    """The text of an id that another program wrote as a number."""
    return str(name) if isinstance(name, int) and not isinstance(name, bool) else name


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_storable), BeforeValidator(_text)]


def _room(name: str) -> str:
    try:
        room_of(name)
    except BadInput as error:
        raise ValueError(str(error).rstrip(".")) from None
    return name


RoomName = Annotated[Name, AfterValidator(_room)]


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    at: Time | None = None
    workspace: Name = DEFAULT_WORKSPACE


class _PlacedEvent(_Event):
    """An event in a room, a DM (with an agent's slug) or a session."""

    user: Name
    name: str | None = None
    room: RoomName | None = None
    thread: Name | None = None
    private: bool | None = None
    dm: Name | None = None
    session: Name | None = None
    agent: Name | None = None
    id: Name | None = None
    trust: Trust = Trust.MEMBER

    def model_post_init(self, _: Any, /) -> None:
        """Check that exactly one place is named, and a thread only with a room."""
        places = [place for place in (self.room, self.dm, self.session) if place is not None]
        if len(places) != 1:
            raise ValueError("name exactly one of room, dm and session")
        if self.thread is not None and self.room is None:
            raise ValueError("a thread belongs to a room")

    def place(self) -> Place:
        """Where the event happened."""
        return place_of(self.room, self.dm, self.session, self.thread, self.private, self.agent)


class AttachmentEntry(BaseModel):
    """A file that is attached to a message, with its text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    type: str = "text/plain"
    text: str = ""


class MessageEvent(_PlacedEvent):
    """Someone writes a message."""

    type: Literal["message"]
    text: str
    attachments: tuple[AttachmentEntry, ...] = ()

    def files(self) -> tuple[Attachment, ...]:
        """The attached files."""
        return tuple(Attachment(entry.name, entry.type, entry.text) for entry in self.attachments)


class CommandEvent(_PlacedEvent):
    """Someone gives a command."""

    type: Literal["command"]
    text: str


class EditEvent(_Event):
    """Someone edits a message."""

    type: Literal["edit"]
    id: Name
    text: str


class DeleteEvent(_Event):
    """Someone deletes a message."""

    type: Literal["delete"]
    id: Name


class MoveEvent(_Event):
    """Someone joins a room, which is made if it is new, or leaves it. `private`: the room is private from then on. With
    `thread` it is a private thread of the room."""

    type: Literal["join", "leave"]
    room: RoomName
    thread: Name | None = None
    user: Name
    private: bool | None = None

    def model_post_init(self, _: Any, /) -> None:
        """Check that a thread is said to be private."""
        if self.thread is not None and self.private is not True:
            raise ValueError("only a private thread has members of its own: add `private`: true")

    def room_id(self) -> str:
        """The id of the room that it is about."""
        room = room_of(self.room)
        return room if self.thread is None else private_thread(Place(ConversationKind.THREAD, room, self.thread)).name


class JobEvent(_Event):
    """Run a scheduled job now."""

    type: Literal["job"]
    name: Name


class SettleEvent(_Event):
    """Wait until all background work is done."""

    type: Literal["settle"]


class QuestionEntry(BaseModel):
    """One line of `compose --batch`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    at: Time | None = None
    workspace: Name = DEFAULT_WORKSPACE
    room: RoomName | None = None
    thread: Name | None = None
    dm: Name | None = None
    session: Name | None = None
    agent: Name | None = None
    user: Name
    text: str

    def place(self, platform: str = CONSOLE) -> Place:
        """Where the question is asked. Raises BadInput unless exactly one place is named."""
        if sum(place is not None for place in (self.room, self.dm, self.session)) != 1:
            raise BadInput("name exactly one of room, dm and session")
        return place_of(self.room, self.dm, self.session, self.thread, None, self.agent, platform=platform)


Event = Annotated[
    MessageEvent | CommandEvent | EditEvent | DeleteEvent | MoveEvent | JobEvent | SettleEvent,
    Field(discriminator="type"),
]
_EVENT: Final[TypeAdapter[Event]] = TypeAdapter(Event)
_QUESTION: Final = TypeAdapter(QuestionEntry)


@dataclass(frozen=True, slots=True)
class Line:
    """An event with its file and line number."""

    file: str
    number: int
    event: Event


def read_script(path: Path) -> list[Line]:
    """The events of a script. Raises BadInput, with file and line, if any line is wrong."""
    return [Line(str(path), number, _checked(_EVENT, path, number, text)) for number, text in _lines(path)]


def read_questions(path: Path) -> list[tuple[int, QuestionEntry]]:
    """The questions of a batch with their line numbers. Raises BadInput, with file and line."""
    questions = []
    for number, text in _lines(path):
        entry = _checked(_QUESTION, path, number, text)
        try:
            entry.place()
        except BadInput as error:
            raise BadInput(f"{path}:{number}: {error}.") from None
        questions.append((number, entry))
    return questions


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, also where they stand in one list; in UTF-8, or UTF-16 with its mark."""
    try:
        with path.open("rb") as raw:
            encoding = "utf-16" if _UTF_16.match(raw.read(4)) else "utf-8-sig"
        with path.open(encoding=encoding) as file:
            first = next((line for line in file if line.strip()), "")
            file.seek(0)
            if first.lstrip().startswith("["):
                yield from _elements(path, file.read())
                return
            for number, text in enumerate(file, 1):
                if text.strip():
                    yield number, text
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror or error}.") from error
    except UnicodeError as error:
        at = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        raise BadInput(f"{path} is not UTF-8 text{at}.") from error


def _elements(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """The elements of a list, as lines."""
    try:
        elements = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise BadInput(f"{path}:{line}: {_sentence(error)}.") from None
    for number, element in enumerate(elements or [[]], 1):
        yield number, json.dumps(element)


def check_event(fields: Mapping[str, Any], path: Path, number: int) -> Event:
    """An event that was read from another format. Raises BadInput, with file and line."""
    try:
        return _EVENT.validate_python(fields)
    except ValueError as error:
        raise BadInput(f"{path}:{number}: {_sentence(error)}.") from None


def _checked(adapter: TypeAdapter[Any], path: Path, number: int, text: str) -> Any:
    try:
        return adapter.validate_python(json.loads(text.rstrip("\r\n")))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}:{number}: {_sentence(error)}.") from None


def _sentence(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "this is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return f"this is not JSON: {error.msg} at column {error.colno}"
    if isinstance(error, ValidationError):
        return _first_error(error.errors(include_url=False, include_input=False)[0])
    return str(error)


def _first_error(detail: ErrorDetails) -> str:
    path = [str(part) for part in detail["loc"] if part not in EVENT_TYPES]
    message = detail["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if detail["type"].startswith("union_tag"):
        return f"`type` must be one of {', '.join(EVENT_TYPES)}"
    if detail["type"] in ("model_type", "model_attributes_type"):
        return "a line must be a JSON object"
    return f"`{'.'.join(path)}`: {message}" if path else message


_UTF_16: Final = re.compile(rb"\xff\xfe.\x00|\xfe\xff\x00", re.DOTALL)  # its mark, and a character of JSON
EVENT_TYPES: Final = ("message", "command", "edit", "delete", "join", "leave", "job", "settle")
