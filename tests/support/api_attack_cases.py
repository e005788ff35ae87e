"""Attacks over the API as data: the files tests/attacks/api-*.yaml, read and checked. One file holds the cases of one
family."""

import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tests.support.attack_cases import CANARY, FOLDER
from tests.support.case_files import BadCase, read_family, require_distinct

FAMILIES: Final = frozenset(
    {
        "credentials",  # forged, expired, revoked and borrowed keys
        "identity",  # to be taken for somebody else, of this tenant or another one
        "headers",
        "parameters",  # of the address and of the body
        "json",
        "paths",
        "bodies",  # oversized, deep, broken
        "repeats",  # idempotency keys
        "versions",  # ETags as oracles, lost updates
        "projects",
        "teams",
        "sessions",
        "vendors",  # tools, and what they may read
        "trash",  # and what has expired
        "lists",  # cursors, counts and filters as oracles
        "query",
        "keys",  # keys that make keys
        "exchange",  # documents that are taken out and brought in
        "settings",  # and figures
        "mcp",
        "poison",  # entries and names that are meant for a model, over MCP
        "gateway",  # requests that pass to a model
        "mixing",  # what an MCP client says of itself, repeats and mixes up
    }
)


OWN_CANARY: Final = re.compile(r"zq[a-z]+q[a-j]{4}(?![a-z])")  # as it is sent: no chance makes one

# Methods of MCP by the name of a step's key, with the parameter that it gives.
MCP_METHODS: Final = {
    "use": ("tools/call", "name"),
    "read": ("resources/read", "uri"),
    "prompt": ("prompts/get", "name"),
}
MCP_HEADERS: Final = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, int | str) else value


Statuses = Annotated[tuple[int, ...], BeforeValidator(_as_tuple)]
Words = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]


class Ask(_Data):
    """A request, and what must come of it: one of the statuses, and no other canary than those that it `shows`.

    `who` asks: a person of the case's workspace (alice), a tool of theirs (alice/claude), either with some permissions
    alone (alice/claude[entries:read]), somebody of another tenant (rival:alice), or nobody.

    In all texts <<key WHO>> stands for the text of a key, <<user WHO>> for the id of a person, <<NAME>> for what an
    earlier step kept, <<upper …>> for the same in capitals, <<unknown>> for an id that nothing has, <<hours N>> for the
    time in N hours, <<N x TEXT>> for a repeated text.

    Over MCP, `use` names a tool and `prompt` a prompt, each `given` arguments, or `read` is the address of a resource;
    such a step has the status 200 unless it says otherwise.
    """

    who: str = Field(alias="as", default="nobody")
    do: str = ""  # method and address, as they stand in the request
    wire: str | None = None  # the whole request instead, byte for byte
    headers: dict[str, Words] = Field(default_factory=dict)
    json_: Any = Field(alias="json", default=None)
    raw: str | None = None  # a body as it is, in Latin-1
    status: Statuses
    shows: Words = ()  # canaries and other words that must be in the answer
    lacks: Words = ()  # words that must not
    # What an MCP server's answer says, read as JSON: by where it stands there ("" for all of it). A text is filled in,
    # a list names all keys, a number says how many there are.
    says: dict[str, str | int | list[str]] = Field(default_factory=dict)
    label: str | None = None
    same_as: str | None = None  # the label of an earlier step that was answered alike
    keep: dict[str, str] = Field(default_factory=dict)  # by name: where in the answer it stands, such as items.0.id

    @model_validator(mode="before")
    @classmethod
    def _over_mcp(cls, given: Any) -> Any:
        found = next((each for each in MCP_METHODS if each in given), None)
        if found is None:
            return given
        left = {name: value for name, value in given.items() if name not in (*MCP_METHODS, "given")}
        method, name = MCP_METHODS[found]
        params = {name: given[found]} | ({} if found == "read" else {"arguments": given.get("given", {})})
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return {"do": "POST /mcp", "status": 200, **left, "headers": MCP_HEADERS, "json": message}


class Tell(_Data):
    """A message, or a command (`/nexus …`), in a chat. `room` or `dm` (an agent)."""

    user: str
    tell: str
    room: str | None = None
    dm: str | None = None


class Wait(_Data):
    """The clock moves on by so many hours."""

    hours: float


class Ends(_Data):
    """The keys of somebody, or of their tool, are revoked."""

    revoked: str


Step = Ask | Tell | Wait | Ends


class Case(_Data):
    """One attack, in a workspace of its own."""

    name: str
    script: tuple[Step, ...]
    family: str = ""
    number: int = 0

    @property
    def id(self) -> str:
        return f"{self.family}: {self.name}"

    @property
    def slug(self) -> str:
        """The name of its workspace."""
        return f"api-{self.family}-{self.number}"

    @property
    def suffix(self) -> str:
        """What makes its canaries its own: letters alone."""
        digits = f"{sorted(FAMILIES).index(self.family):02}{self.number:02}"
        return "q" + "".join("abcdefghij"[int(digit)] for digit in digits)

    @cached_property
    def asks(self) -> tuple[Ask, ...]:
        return tuple(step for step in self.script if isinstance(step, Ask))

    @cached_property
    def canaries(self) -> frozenset[str]:
        """Every canary of its steps."""
        return frozenset(CANARY.findall(str([step.model_dump() for step in self.script]).casefold()))

    def check(self) -> Self:
        """Raise BadCase unless the case can fail, and what it hides is seen by someone."""
        labels: set[str] = set()
        for ask in self.asks:
            if bool(ask.do) == (ask.wire is not None):
                raise BadCase(f"{self.id}: a step has either `do` or `wire`.")
            if ask.same_as is not None and ask.same_as not in labels:
                raise BadCase(f"{self.id}: no earlier step has the label {ask.same_as}.")
            labels |= set() if ask.label is None else {ask.label}
        shown = {word for ask in self.asks for word in ask.shows}
        if unseen := sorted(self.canaries - shown):
            raise BadCase(f"{self.id}: nobody ever sees {', '.join(unseen)}, so that hiding it proves nothing.")
        if not any(min(ask.status) < 300 for ask in self.asks):
            raise BadCase(f"{self.id}: it has no control: a step that is allowed.")
        if not any(_attacks(ask) or self.canaries - {*ask.shows} for ask in self.asks):
            raise BadCase(f"{self.id}: no step attacks: is refused, shows less, or is as another one.")
        return self


def _attacks(ask: Ask) -> bool:
    return bool(min(ask.status) >= 400 or ask.lacks or ask.same_as or ask.says)


def read_cases(path: Path) -> list[Case]:
    """The cases of one file. Raises BadCase for one that proves nothing."""
    return read_family(path, FAMILIES, lambda entry: Case.model_validate(entry).check())


def all_cases(folder: Path = FOLDER) -> list[Case]:
    """The cases of every file. Raises BadCase when two share a name."""
    cases = [case for path in sorted(folder.glob("api-*.yaml")) for case in read_cases(path)]
    require_distinct("name", [case.id for case in cases])
    return cases


def with_own_canaries(case: Case, text: str) -> str:
    """A text of a case with canaries that no other case has."""
    return re.sub(r"zq[a-z]{3,}", lambda found: found[0] + case.suffix, text)
