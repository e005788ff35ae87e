"""Attacks as data: the files of tests/attacks, read and checked. One file holds the cases of one family."""

import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from bot.script.events import Event
from tests.support.case_files import BadCase, read_family, require_distinct

FOLDER: Final = Path(__file__).resolve().parents[1] / "attacks"
OVER_API: Final = "api-"  # files of tests/support/api_attack_cases.py
FAMILIES: Final = frozenset(
    {
        "direct",  # ask for it, in plain words or in clever ones
        "cross-room",
        "cross-project",
        "cross-tenant",
        "dm-to-room",
        "private-made-public",
        "profile",  # what was said about oneself, in rooms where it does not belong
        "summaries",
        "landmarks",
        "facts",
        "counts-and-errors",  # what exists is told by how much there is, or by what is refused
        "commands",  # what a command or a suggestion shows, or moves
        "import",
        "names",  # people, rooms and projects that call themselves something else
        "forged-marks",  # a text that looks like a part of the prompt
        "membership",  # who joins, leaves, or is removed meanwhile
        "link",  # to become somebody else
        "own-data",  # what a person gets of what is stored of them: privacy, export, why
        "erasure",  # what was forgotten, deleted or edited
        "injection",  # instructions in files, values and statements
    }
)
CANARY: Final = re.compile(r"zq[a-z]{3,}")
_EVENT: Final[TypeAdapter[Any]] = TypeAdapter(Event)


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Placed(_Data):
    workspace: str = ""
    user: str
    room: str | None = None
    thread: str | None = None
    dm: str | None = None
    session: str | None = None
    agent: str | None = None
    text: str


class Suggest(_Placed):
    """Someone types a command; the suggestions for its last word are shown."""

    type: Literal["suggest"]


class Compose(_Placed):
    """`nexus compose`: the prompt that would be sent."""

    type: Literal["compose"]


class MakeAdmin(_Data):
    """`nexus admin USER`."""

    type: Literal["admin"]
    workspace: str = ""
    user: str


class Chatter(_Data):
    """`count` messages about nothing: they push what was said before out of the working view."""

    type: Literal["chatter"]
    workspace: str = ""
    user: str
    room: str | None = None
    dm: str | None = None
    session: str | None = None
    count: int = 60


class Import(_Data):
    """`nexus import` of a file with these lines. `name` is the file's, `room` the option."""

    type: Literal["import"]
    workspace: str = ""
    format: Literal["jsonl", "irc"] = "jsonl"
    name: str = "history.jsonl"
    room: str | None = None
    lines: tuple[dict[str, Any] | str, ...]


OwnEvent = Annotated[Suggest | Compose | MakeAdmin | Chatter | Import, Field(discriminator="type")]
_OWN: Final[TypeAdapter[OwnEvent]] = TypeAdapter(OwnEvent)
_OWN_TYPES: Final = frozenset({"suggest", "compose", "admin", "chatter", "import"})


class Step(BaseModel):
    """One event of a case, with what must come of it. The fields beside those below are the event's own: an event of a
    script (docs/json-lines.md), or one of those above.

    What the event brings about is everything that the model is sent, that is answered, and that is refused, until all
    is quiet again.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    hides: tuple[str, ...] = ()  # words that must not come of it
    shows: tuple[str, ...] = ()  # words that must
    no_line: tuple[str, ...] = ()  # patterns that no line of what the model is sent begins with
    same_as: str | None = None  # the label of an earlier step that brought about the same
    label: str | None = None
    keep: dict[str, str] = Field(default_factory=dict)  # by name: a pattern; its group stands for <<name>> later
    attempt: bool = False  # whether it may be refused; what must hide something may be
    answer: str | None = None  # what the model answers, instead of repeating all canaries that it is sent

    @property
    def event(self) -> dict[str, Any]:
        """The event itself."""
        return {"type": self.type, **(self.model_extra or {})}

    @property
    def may_be_refused(self) -> bool:
        return self.attempt or bool(self.hides or self.same_as)

    @property
    def probes(self) -> bool:
        """Whether something is wanted that an attack would break."""
        return bool(self.hides or self.no_line or self.same_as)


def _as_texts(names: Any) -> Any:
    return [str(name) for name in names] if isinstance(names, list) else names


class Case(_Data):
    """One attack. It plays in a workspace (and so in a tenant) of its own, unless `tenant` names several workspaces of
    one tenant, by the names that its events use.

    `names` are what the compared answers of `same_as` may differ in. `open`: the attack succeeds still, and why.
    """

    name: str
    script: tuple[Step, ...]
    tenant: tuple[str, ...] = ()
    names: Annotated[tuple[str, ...], BeforeValidator(_as_texts)] = ()
    open: str | None = None
    family: str = ""
    number: int = 0

    @property
    def id(self) -> str:
        return f"{self.family}: {self.name}"

    @property
    def slug(self) -> str:
        """The name of its workspace, and the beginning of the names of all that it has."""
        return f"{self.family}-{self.number}"

    @cached_property
    def canaries(self) -> frozenset[str]:
        """Every canary of its events."""
        return frozenset(CANARY.findall(str([(step.event, step.answer) for step in self.script]).casefold()))

    @property
    def runs_jobs(self) -> bool:
        """Whether it runs scheduled jobs, which go through all tenants."""
        return any(step.type == "job" for step in self.script)

    def check(self) -> Self:
        """Raise BadCase unless the case can fail: it wants something, and what must be hidden is seen by someone."""
        for step in self.script:
            _check_event(self, step)
        if not any(step.probes for step in self.script):
            raise BadCase(f"{self.id}: no step says what must not come of it (hides, no_line or same_as).")
        shown = {word for step in self.script for word in step.shows}
        hidden = {word for step in self.script for word in step.hides}
        if unseen := sorted(hidden - shown):
            raise BadCase(f"{self.id}: nobody ever sees {', '.join(unseen)}, so that hiding it proves nothing.")
        if not shown:
            raise BadCase(f"{self.id}: it has no control: a step that shows something.")
        labels = {step.label for step in self.script}
        for step in self.script:
            if step.same_as is not None and step.same_as not in labels:
                raise BadCase(f"{self.id}: no step has the label {step.same_as}.")
        return self


def _check_event(case: Case, step: Step) -> None:
    try:
        (_OWN if step.type in _OWN_TYPES else _EVENT).validate_python(step.event)
    except ValidationError as error:
        raise BadCase(f"{case.id}: {step.event}: {error.errors()[0]['msg']}") from None
    for word in (*step.hides, *step.shows):
        if word in str(step.event) and not step.no_line:
            raise BadCase(f"{case.id}: the step asks with the word {word} itself.")


def own_event(event: dict[str, Any]) -> Suggest | Compose | MakeAdmin | Chatter | Import | None:
    """An event that is not one of a script's; None for those."""
    return _OWN.validate_python(event) if event["type"] in _OWN_TYPES else None


def script_event(event: dict[str, Any]) -> Event:
    """An event of a script."""
    found: Event = _EVENT.validate_python(event)
    return found


def read_cases(path: Path) -> list[Case]:
    """The cases of one file. Raises BadCase for one that proves nothing."""
    return read_family(path, FAMILIES, lambda entry: Case.model_validate(entry).check())


def all_cases(folder: Path = FOLDER) -> list[Case]:
    """The cases of every file. Raises BadCase when two share a name or a canary: the leak of one would pass for the
    other's."""
    paths = sorted(path for path in folder.glob("*.yaml") if not path.name.startswith(OVER_API))
    cases = [case for path in paths for case in read_cases(path)]
    require_distinct("name", [case.id for case in cases])
    require_distinct("canary", [word for case in cases for word in case.canaries])
    return cases
