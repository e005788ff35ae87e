"""What a request has for the model, to count its tokens: every text, and images and files by their size. Pure.

Names, numbers and marks count as texts, also where no server is known to read them. Only what stands in the place where
the API has the data of an image, a sound or a file, and is such data, is left out of the texts: another text there
counts as one.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from composer.gateway.json_text import Repeating, pairs_of
from composer.gateway.requests import Api, GatewayRequest, is_text
from composer.ports.models import IMAGE_TOKENS, SPEECH_BYTES_PER_SECOND, speech_tokens

BYTES_PER_TOKEN: Final = 4  # of a file's text
MAX_FILE_TOKENS: Final = 100_000  # that one file counts as: pages of images are large, and say little
_BASE64: Final = re.compile(r"\A(?>(?:data:([\w.+-]+)/[\w.+-]+;base64,)?)[A-Za-z0-9+/_-]++=*+\Z", re.ASCII)
_ADDRESSES: Final = ("url", "image_url")  # fields that hold data as an address alone: data:image/png;base64,…


def _of_image(_: int) -> int:
    return IMAGE_TOKENS


def _of_sound(size: int) -> int:
    return speech_tokens(size / SPEECH_BYTES_PER_SECOND)


def _of_file(size: int) -> int:
    return min(max(size // BYTES_PER_TOKEN, IMAGE_TOKENS), MAX_FILE_TOKENS)


def _of_hidden_text(size: int) -> int:
    return max(size // BYTES_PER_TOKEN, 1)


# By the type of a part, or of an item: where its data stand, and how many tokens so many bytes count as.
_DATA: Final[Mapping[str, tuple[tuple[str, ...], Callable[[int], int]]]] = {
    "image_url": (("image_url", "url"), _of_image),
    "input_image": (("image_url",), _of_image),
    "computer_screenshot": (("image_url",), _of_image),
    "image_generation_call": (("result",), _of_image),
    "input_audio": (("input_audio", "data"), _of_sound),
    "file": (("file", "file_data"), _of_file),
    "input_file": (("file_data",), _of_file),
    "reasoning": (("encrypted_content",), _of_hidden_text),
    "compaction": (("encrypted_content",), _of_hidden_text),
}


@dataclass(frozen=True, slots=True)
class Sent:
    """What a request has for the model: its texts, a line each, and how many tokens all else counts as."""

    text: str
    others: int = 0


def sent(request: GatewayRequest) -> Sent:
    """What the model may read of a request."""
    data = dict(_data(request))
    others, texts = sum(data.values()), list[str]()
    for member in request.members:
        if request.api is Api.EMBEDDINGS and member.name == "input" and not is_text(member.value):
            ids = list(_leaves(member.value))
            texts += [each for each in ids if is_text(each)]
            others += sum(not is_text(each) for each in ids)  # tokens, each by its number
        else:
            texts += [member.name, *(each for each in _leaves(member.value) if id(each) not in data)]
    return Sent("\n".join(texts), others)


def _data(request: GatewayRequest) -> Iterator[tuple[int, int]]:
    """The data of images, sounds and files, by the ids of their texts, and as how many tokens each counts."""
    said = request.value(request.api.input_name)
    for item in said if isinstance(said, list) else ():
        if isinstance(item, Mapping):
            inner = [item, *(part for name in ("content", "output") for part in _parts(item.get(name)))]
            yield from (found for each in inner if (found := _datum(each)) is not None)


def _parts(content: object) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _datum(part: object) -> tuple[int, int] | None:
    """The data of a part, or the part where an address or an id stands for them."""
    path, tokens = _DATA.get(str(part.get("type")), ((), _of_file)) if isinstance(part, Mapping) else ((), _of_file)
    if not path:
        return None
    held: Any = part
    for name in path:
        if isinstance(held, Repeating):  # another server may read the other one
            return id(part), tokens(0)
        held = held.get(name) if isinstance(held, Mapping) else held
    found = _BASE64.match(held) if is_text(held) and len(held) > 1 else None
    if found is None or (path[-1] in _ADDRESSES and found[1] is None):
        return id(part), tokens(0)
    if tokens is _of_image and found[1] not in (None, "image"):
        tokens = _of_file  # some servers read any file there
    return id(held), tokens(len(held) * 3 // 4)


def _leaves(value: object) -> Iterator[str]:
    """Every text, name, number and mark of a value, each where it is repeated too."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case list() as items:
                yield "["
                waiting.extend(reversed(items))
            case dict() as members:
                yield "{"
                waiting.extend(each for pair in reversed(pairs_of(members)) for each in reversed(pair))
            case other:
                yield str(other)
