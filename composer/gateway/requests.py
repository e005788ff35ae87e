"""A request to the gateway, as far as Nexus reads it: model, stream, what is said. Pure."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from composer.errors import BadInput
from composer.gateway.json_text import Edit, Part, add_member, decode, elements, members, require_few_values
from composer.text.cleaning import is_storable

MAX_MODEL_CHARS: Final = 200
USAGE: Final = "include_usage"
# What is read of a request. A server may read another one of two, and some tell no case of letters apart.
_READ: Final = ("model", "messages", "input", "stream", "stream_options", "previous_response_id", "conversation")
_LIMITS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_MAX_COUNT: Final = 10**9
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class Api(StrEnum):
    """The kind of a request, by its path below the upstream's URL."""

    CHAT = "chat/completions"
    RESPONSES = "responses"
    EMBEDDINGS = "embeddings"

    @property
    def input_name(self) -> str:
        """The name of the member that holds the messages, the input or the texts."""
        return "messages" if self is Api.CHAT else "input"


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """A request with its text. `members` are those of its JSON object; each that Nexus reads is there once at most."""

    api: Api
    text: str
    members: Sequence[Part]

    def part(self, name: str) -> Part | None:
        """A member, if it is there."""
        return next((each for each in self.members if each.name == name), None)

    def value(self, name: str) -> Any:
        """The value of a member; None where it is not there."""
        found = self.part(name)
        return None if found is None else found.value

    @property
    def model(self) -> str:
        """The model that is asked for."""
        return str(self.value("model"))

    @property
    def streams(self) -> bool:
        """Whether the answer is to come as events."""
        return self.value("stream") is True

    @property
    def reply_tokens(self) -> int | None:
        """The longest answer that is asked for, of all choices together; None where that is not said. Of several limits
        the largest counts, since servers differ in which one they read."""
        found = self._largest(_LIMITS)
        return None if found is None else found * max(1, self._largest(("n",)) or 1)

    def _largest(self, names: Sequence[str]) -> int | None:
        counts = [parse_count(each.value) for each in self.members if each.name.casefold() in names]
        return max((count for count in counts if count is not None), default=None)

    @property
    def texts(self) -> Iterator[str]:
        """Every text that the model reads, to count its tokens; no images and files."""
        for name in ("instructions", self.api.input_name, "tools", "functions", "response_format", "text"):
            yield from _texts(self.value(name))


def parse_request(api: Api, body: bytes) -> GatewayRequest:
    """Parse the body of a request. Raises BadInput with one sentence."""
    text = decode(body)
    require_few_values(text)
    found = members(text)
    names = [each.name.casefold() for each in found]
    for name in _READ:
        if names.count(name) > sum(each.name == name for each in found) or names.count(name) > 1:
            raise BadInput(f"The request has `{name}` twice, or in other letters: send it once.")
    request = GatewayRequest(api, text, found)
    model = request.value("model")
    if not is_text(model) or not 1 <= len(model) <= MAX_MODEL_CHARS or not is_storable(model):
        raise BadInput("`model` is missing or is not the name of a model: set it to one that GET /v1/models lists.")
    return request


def usage_edits(request: GatewayRequest) -> list[Edit]:
    """The edits that make a stream end with its usage; none where its sender asked for that, or it is no such
    stream."""
    if request.api is not Api.CHAT or not request.streams:
        return []
    options, wanted = request.part("stream_options"), f'{{"{USAGE}":true}}'
    if options is None:
        return [add_member(request.text, 0, "stream_options", wanted, request.members)]
    if options.value is None:
        return [Edit(options.start, options.end, wanted)]
    if not isinstance(options.value, Mapping) or options.value.get(USAGE) is True:
        return []
    within = members(request.text, options.start, whole=False)
    given = [Edit(each.start, each.end, "true") for each in within if each.name == USAGE]
    return given or [add_member(request.text, options.start, USAGE, "true", within)]


def input_items(request: GatewayRequest) -> list[Part]:
    """The messages, or the items of the input, in order; none where the input is one text."""
    said = request.part(request.api.input_name)
    return [] if said is None or not isinstance(said.value, list) else elements(request.text, said.start)


def parse_count(value: object) -> int | None:
    """A number from 0 on that is written in a request or an answer, rounded up, since servers take 1e3 too; None for
    anything else."""
    text = str(value) if isinstance(value, str) or type(value) is int else ""
    return math.ceil(min(float(text), _MAX_COUNT)) if _NUMBER.fullmatch(text) else None


def is_text(value: object) -> bool:
    """Whether a value is a text: numbers are kept as they are written, in a class of their own."""
    return type(value) is str


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text if not text.startswith("data:"):
                yield text
            case list() as items:
                waiting.extend(reversed(items))
            case dict() as items:
                waiting.extend(v for k, v in items.items() if k not in ("file_data", "data", "encrypted_content"))
