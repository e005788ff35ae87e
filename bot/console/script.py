"""Scripts: lines of JSON, each an event (DESIGN section 12), checked as a whole before anything happens."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from composer.errors import BadInput
from composer.model import Attachment, ConversationKind, Incoming, Place
from composer.workspace import Workspace

PLATFORM: Final = "console"
DEFAULT_WORKSPACE: Final = "default"


def external(name: str) -> str:
    """A name as the terminal identifies people and rooms by it: without # or @, in one case."""
    return name.strip().lstrip("#@").casefold()


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


Time = Annotated[AwareDatetime, AfterValidator(_utc)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    at: Time | None = None
    workspace: Name = DEFAULT_WORKSPACE


class _Somewhere(_Event):
    """An event in a room, a DM (with an agent's slug) or a session."""

    user: Name
    name: str | None = None
    room: Name | None = None
    thread: Name | None = None
    private: bool | None = None
    dm: Name | None = None
    session: Name | None = None
    agent: Name | None = None
    id: Name | None = None

    def model_post_init(self, _: Any, /) -> None:
        """Exactly one place, and nothing that doesn't go with it."""
        places = [place for place in (self.room, self.dm, self.session) if place is not None]
        if len(places) != 1:
            raise ValueError("name exactly one of room, dm and session")
        if self.thread is not None and self.room is None:
            raise ValueError("a thread belongs to a room")

    def place(self) -> Place:
        """Where it happened."""
        return place_of(self.room, self.dm, self.session, self.thread, self.private, self.agent)


class AttachmentEntry(BaseModel):
    """A file of a message; `text` where it has any."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    type: str = "text/plain"
    text: str = ""


class MessageEvent(_Somewhere):
    """Someone says something."""

    type: Literal["message"]
    text: str
    attachments: tuple[AttachmentEntry, ...] = ()


class CommandEvent(_Somewhere):
    """Someone gives a command."""

    type: Literal["command"]
    text: str


class EditEvent(_Event):
    """A message gets another text."""

    type: Literal["edit"]
    id: Name
    text: str


class DeleteEvent(_Event):
    """A message is taken back."""

    type: Literal["delete"]
    id: Name


class MoveEvent(_Event):
    """Someone comes into a room or leaves it."""

    type: Literal["join", "leave"]
    room: Name
    user: Name


class JobEvent(_Event):
    """A scheduled job runs now."""

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
    room: Name | None = None
    thread: Name | None = None
    dm: Name | None = None
    session: Name | None = None
    agent: Name | None = None
    user: Name
    text: str

    def place(self) -> Place:
        """Where it is asked. Raises BadInput unless exactly one place is named."""
        if sum(place is not None for place in (self.room, self.dm, self.session)) != 1:
            raise BadInput("name exactly one of room, dm and session")
        return place_of(self.room, self.dm, self.session, self.thread, None, self.agent)


Event = Annotated[
    MessageEvent | CommandEvent | EditEvent | DeleteEvent | MoveEvent | JobEvent | SettleEvent,
    Field(discriminator="type"),
]
_EVENT: Final[TypeAdapter[Event]] = TypeAdapter(Event)
_QUESTION: Final = TypeAdapter(QuestionEntry)


@dataclass(frozen=True, slots=True)
class Line:
    """An event and where it stands."""

    file: str
    number: int
    event: Event


def read_script(path: Path) -> list[Line]:
    """All events of a script. Raises BadInput, naming file and line, before any of them has happened."""
    return [Line(str(path), number, _checked(_EVENT, path, number, text)) for number, text in _lines(path)]


def read_questions(path: Path) -> list[tuple[int, QuestionEntry]]:
    """All lines of a batch with their numbers. Raises BadInput, naming file and line."""
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
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, text in enumerate(file, 1):
                if text.strip():
                    yield number, text
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text (byte {error.start}).") from error


def _checked(adapter: TypeAdapter[Any], path: Path, number: int, text: str) -> Any:
    try:
        return adapter.validate_python(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}:{number}: {_said(error)}.") from None


def _said(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "this is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return f"this is not JSON: {error.msg} at column {error.colno}"
    if isinstance(error, ValidationError):
        return _first(error.errors(include_url=False, include_input=False)[0])
    return str(error)


def _first(detail: ErrorDetails) -> str:
    path = [str(part) for part in detail["loc"] if part not in _TYPES]
    message = detail["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if detail["type"].startswith("union_tag"):
        return f"`type` must be one of {', '.join(_TYPES)}"
    if detail["type"] in ("model_type", "model_attributes_type"):
        return "a line must be a JSON object"
    if detail["type"] == "timezone_aware":
        message = "a time must say its zone, for example 2026-05-04T09:00:00Z"
    return f"`{'.'.join(path)}`: {message}" if path else message


_TYPES: Final = ("message", "command", "edit", "delete", "join", "leave", "job", "settle")


def place_of(
    room: str | None,
    dm: str | None,
    session: str | None,
    thread: str | None = None,
    private: bool | None = None,
    agent: str | None = None,
) -> Place:
    """A place by the names that the terminal uses; exactly one of room, dm and session is given."""
    if dm is not None:
        return Place(ConversationKind.DM, external(dm))
    if session is not None:
        return Place(ConversationKind.SESSION, session, agent=None if agent is None else external(agent))
    kind = ConversationKind.ROOM if thread is None else ConversationKind.THREAD
    return Place(kind, external(room or ""), thread, private)


def mentions(text: str) -> tuple[str, ...]:
    """Whom a text mentions by @name, as the terminal identifies them."""
    return tuple(dict.fromkeys(external(word.rstrip(".,:;!?)")) for word in text.split() if word.startswith("@")))


def incoming(
    workspace: Workspace,
    place: Place,
    user: str,
    text: str,
    at: datetime,
    *,
    id: str | None = None,
    name: str | None = None,
    attachments: tuple[AttachmentEntry, ...] = (),
) -> Incoming:
    """Something said in the terminal or in a script, as every door hands it in."""
    return Incoming(
        PLATFORM,
        workspace.name,
        place,
        external(user),
        name or user.strip().lstrip("@"),
        id or secrets.token_hex(8),
        text,
        at,
        tuple(Attachment(a.name, a.type, a.text) for a in attachments),
        mentions(text),
    )
