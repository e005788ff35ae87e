"""What a model calls, made fit to be sent back, stored and shown, and its arguments read. Pure.

A model writes names, ids and arguments as it likes. Servers refuse a history in which an argument is no JSON object, a
name is not one of theirs, or two calls share an id.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from composer.errors import BadInput
from composer.ports.models import ToolCall
from composer.text.cleaning import clean_text

MAX_CALLS: Final = 4  # in one step; further ones are left out
MAX_TOOL_ARGUMENT_CHARS: Final = 4_000  # of one call; longer ones are left out
MAX_TOOL_NAME_CHARS: Final = 64
MAX_ID_CHARS: Final = 64
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]+")


def kept_calls(calls: Sequence[ToolCall], taken: Collection[str]) -> Iterator[ToolCall]:
    """The first four calls. `taken` are the ids of earlier ones."""
    ids = set(taken)
    for call in calls[:MAX_CALLS]:
        name = _NOT_IN_NAMES.sub("_", call.name[:MAX_TOOL_NAME_CHARS])
        id, number = call.id[:MAX_ID_CHARS], len(ids)
        while not id or id in ids:
            id, number = f"call_{number}", number + 1
        ids.add(id)
        is_object = len(call.arguments) <= MAX_TOOL_ARGUMENT_CHARS and _object(call.arguments) is not None
        yield replace(call, id=id, name=name, arguments=call.arguments if is_object else "{}")


def arguments_of(text: str) -> Mapping[str, object]:
    """The arguments of a call as the model wrote them. Raises BadInput."""
    if len(text) > MAX_TOOL_ARGUMENT_CHARS:
        raise BadInput(f"The arguments are too long; the limit is {MAX_TOOL_ARGUMENT_CHARS:,} characters.")
    given = _object(text or "{}")
    if given is None:
        raise BadInput("The arguments must be a JSON object.")
    return given


def text_of(given: Mapping[str, object], name: str, *, optional: bool = False) -> str:
    """An argument that is a text. Raises BadInput."""
    value = given.get(name)
    if value is None and optional:
        return ""
    text = clean_text(value).strip() if isinstance(value, str) else ""
    if not text and not optional:
        raise BadInput(f"The argument {name} is missing; it is a text.")
    return text


def value_of(given: Mapping[str, object], name: str) -> str:
    """An argument that is a fact's value, as text; models often give numbers as they are. Raises BadInput."""
    value = given.get(name)
    return text_of(given, name) if isinstance(value, str) or value is None else json.dumps(value)


def _object(text: str) -> Mapping[str, object] | None:
    try:
        given: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None
