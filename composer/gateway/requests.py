"""A request to the gateway, as far as Nexus reads it: model, stream, what is said. Pure."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from composer.errors import BadInput
from composer.gateway.json_text import Edit, Part, add_member, decode, elements, members, pairs_of, require_few_values
from composer.text.cleaning import is_storable

MAX_MODEL_CHARS: Final = 200
MAX_ITEMS: Final = 20_000  # messages, or items of an input: OpenAI takes 2,048; of each the place is looked up
USAGE: Final = "include_usage"
# What is read of a request. A server may read another one of two, and some tell no case of letters apart.
_READ: Final = ("model", "messages", "input", "stream", "stream_options", "previous_response_id", "conversation")
_LIMIT: Final = "tokens"  # the end of the names of limits: `max_completion_tokens`, `max_tokens`, `budget_tokens`
_CHOICES: Final = ("n", "best_of")
REPLY_TOKENS: Final = 4_096  # of the longest answer, where a request does not say how long it may be
REASONED_TOKENS: Final = 16_384  # and where it says that the model is to reason first
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


@dataclass(frozen=True)
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

    @cached_property
    def items(self) -> Sequence[Part]:
        """The messages, or the items of the input, in order; none where the input is one text."""
        said = self.part(self.api.input_name)
        return [] if said is None or not isinstance(said.value, list) else elements(self.text, said.start)

    @property
    def model(self) -> str:
        """The model that is asked for."""
        return str(self.value("model"))

    @property
    def streams(self) -> bool:
        """Whether the answer is to come as events."""
        return self.value("stream") is True

    @property
    def reply_tokens(self) -> int:
        """The longest answer that is asked for, of all choices together, with its hidden reasoning. Of several limits
        the largest counts, since servers differ in which one they read."""
        limits = [_largest((each.name, each.value) for each in self.members)]
        limits += [_largest(pairs_of(each.value)) for each in self.members if isinstance(each.value, dict)]
        reasons = any(self.value(name) for name in ("reasoning", "reasoning_effort", "thinking"))
        usual = REASONED_TOKENS if reasons else REPLY_TOKENS
        choices = [parse_count(each.value) or 1 for each in self.members if each.name.casefold() in _CHOICES]
        return min((max(limits) or usual) * max(choices, default=1), _MAX_COUNT)


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
    said = request.value(api.input_name)
    if api is not Api.EMBEDDINGS and isinstance(said, list) and len(said) > MAX_ITEMS:
        raise BadInput(f"`{api.input_name}` has {len(said):,} items; the limit is {MAX_ITEMS:,}: send the latest.")
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


def parse_count(value: object) -> int | None:
    """A number from 0 on that is written in a request or an answer, rounded up, since servers take 1e3 too; None for
    anything else."""
    text = str(value) if isinstance(value, str) or type(value) is int else ""
    return math.ceil(min(float(text), _MAX_COUNT)) if _NUMBER.fullmatch(text) else None


def is_text(value: object) -> bool:
    """Whether a value is a text: numbers are kept as they are written, in a class of their own."""
    return type(value) is str


def _largest(members: Iterable[tuple[str, Any]]) -> int:
    """The largest limit of an answer's tokens among the members of an object; 0 without one."""
    limits = (parse_count(value) for name, value in members if name.casefold().endswith(_LIMIT))
    return max((limit for limit in limits if limit is not None), default=0)
