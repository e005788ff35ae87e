"""The turn that a request belongs to, and where memory goes into it. Pure.

A turn begins with the user's message and lasts while the model calls functions for it: the requests that bring their
results are the same turn, and get the very same memory, or the beginning would change under the model.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from composer.gateway.json_text import Edit, Part, elements, insert_element, members, to_json
from composer.gateway.requests import Api, GatewayRequest, is_text
from composer.model import MemoryRole

_TEXTS: Final = ("text", "input_text")
_SYSTEM: Final = ("system", "developer")
_CHAINED: Final = ("previous_response_id", "conversation")  # the server has what was said before


@dataclass(frozen=True, slots=True)
class GatewayTurn:
    """A turn. `question` is the place of the user's last message in what is said, `text` its words; `is_new`: the
    request ends in it. `digest` stands for what was said up to it, without system texts. `is_mixed`: its client names
    which of its people wrote it, who may be anybody, or sends several texts, of which some may be of files."""

    question: int
    text: str
    is_new: bool
    digest: bytes
    is_mixed: bool = False


def find_turn(request: GatewayRequest) -> GatewayTurn | None:
    """The turn of a request; None where the user says nothing in it."""
    said, chained = request.part(request.api.input_name), [str(request.value(name)) for name in _CHAINED]
    if said is None or request.api is Api.EMBEDDINGS:
        return None
    if request.api is Api.RESPONSES and is_text(said.value):
        digest = _digest(request, chained, [request.text[said.start : said.end]])
        return GatewayTurn(0, said.value, True, digest)
    items = request.items
    found = [place for place, item in enumerate(items) if _role(item.value) == "user"]
    if not found:
        return None
    before = [item for item in items[: found[-1] + 1] if _role(item.value) not in _SYSTEM]
    digest = _digest(request, chained, [request.text[item.start : item.end] for item in before])
    last = items[found[-1]].value
    is_mixed = bool(last.get("name")) or len(_texts_of(last)) > 1
    return GatewayTurn(found[-1], text_of(last), found[-1] == len(items) - 1, digest, is_mixed)


def memory_edits(
    request: GatewayRequest, turn: GatewayTurn, standing: str, recalled: str, role: MemoryRole
) -> list[Edit]:
    """The edits that put memory into a request: the `standing` part behind the client's own system text, the `recalled`
    part, which others may have written, as a message of the user's right before their last one, never between calls of
    functions and their results. An empty part is left out."""
    said = request.part(request.api.input_name)
    assert said is not None, "there is a turn in it"
    if request.api is Api.RESPONSES:
        return _responses_edits(request, said, turn, standing, recalled, role)
    items = request.items
    lead = next((n for n, item in enumerate(items) if _role(item.value) not in _SYSTEM), len(items))
    edits: list[Edit] = []
    if standing:
        edits += _standing_edits(request.text, said, items, lead, standing, role)
    if recalled:
        merged = _in_front(request.text, items[turn.question], recalled) if role == "user" else None
        place = _before(items, turn.question)
        edits.append(merged or insert_element(said, items, place, _message("user", recalled)))
    return edits


def text_of(item: Mapping[str, Any]) -> str:
    """The words of a message."""
    return "\n".join(_texts_of(item))


def _texts_of(item: Mapping[str, Any]) -> list[str]:
    content = item.get("content")
    if is_text(content):
        return [str(content)]
    parts = content if isinstance(content, list) else []
    texts = [each.get("text") for each in parts if isinstance(each, Mapping) and each.get("type") in _TEXTS]
    return [text for text in texts if isinstance(text, str) and is_text(text)]


def _standing_edits(
    text: str, said: Part, items: Sequence[Part], lead: int, standing: str, role: MemoryRole
) -> list[Edit]:
    if role == "system":
        merged = _behind(text, items[lead - 1], standing) if lead else None
        return [merged or insert_element(said, items, lead, _message("system", standing))]
    if role == "developer":
        return [insert_element(said, items, lead, _message("developer", standing))]
    first = items[lead] if lead < len(items) and _role(items[lead].value) == "user" else None
    merged = None if first is None else _in_front(text, first, standing)
    return [merged or insert_element(said, items, lead, _message("user", standing))]


def _responses_edits(
    request: GatewayRequest, said: Part, turn: GatewayTurn, standing: str, recalled: str, role: MemoryRole
) -> list[Edit]:
    of_standing = "user" if role == "user" else "developer"
    if any(request.value(name) is not None for name in _CHAINED):
        standing = ""  # the server keeps it with what was said before
    put = [_message(of_standing, standing), _message("user", recalled)]
    if is_text(said.value):
        given = request.text[said.start : said.end]
        shown = [each for each, text in zip(put, (standing, recalled), strict=True) if text]
        return [Edit(said.start, said.end, f'[{",".join(shown)},{{"role":"user","content":{given}}}]')] if shown else []
    items = request.items
    edits = [insert_element(said, items, 0, put[0])] if standing else []
    return edits + ([insert_element(said, items, _before(items, turn.question), put[1])] if recalled else [])


def _before(items: Sequence[Part], question: int) -> int:
    """The place right before a message, or before the calls of functions whose results come only after it."""
    made = {id: place for place, item in enumerate(items[:question]) for id in _calls(item.value)}
    for item in items[:question]:
        made.pop(_result(item.value) or "", None)
    later = {_result(item.value) for item in items[question:]}
    return min((place for id, place in made.items() if id in later), default=question)


def _calls(item: Any) -> Iterator[str]:
    """The ids of the functions that an item calls."""
    if not isinstance(item, Mapping):
        return
    calls = item.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            yield str(call.get("id"))
    if str(item.get("type", "")).endswith("_call"):
        yield str(item.get("call_id"))


def _result(item: Any) -> str | None:
    """The id of the call whose result an item is."""
    if not isinstance(item, Mapping):
        return None
    if item.get("role") == "tool":
        return str(item.get("tool_call_id"))
    return str(item.get("call_id")) if str(item.get("type", "")).endswith("_call_output") else None


def _role(item: Any) -> str | None:
    role = item.get("role") if isinstance(item, Mapping) and item.get("type") in (None, "message") else None
    return role if isinstance(role, str) else None


def _message(role: str, text: str) -> str:
    return f'{{"role":"{role}","content":{to_json(text)}}}'


def _behind(text: str, item: Part, added: str) -> Edit | None:
    """Add a text to the end of a message; None where its content is neither a text nor parts."""
    content = _content(text, item)
    if content is None:
        return None
    if is_text(content.value):
        return Edit(content.end - 1, content.end - 1, to_json(f"\n\n{added}" if content.value else added)[1:-1])
    parts = elements(text, content.start)
    return insert_element(content, parts, len(parts), _part(added))


def _in_front(text: str, item: Part, added: str) -> Edit | None:
    """Add a text to the beginning of a message; None as above, and where it has no part."""
    content = _content(text, item)
    if content is None or content.value == []:
        return None
    if is_text(content.value):
        return Edit(content.start + 1, content.start + 1, to_json(f"{added}\n\n")[1:-1])
    return insert_element(content, elements(text, content.start), 0, _part(added))


def _content(text: str, item: Part) -> Part | None:
    found = [each for each in members(text, item.start, whole=False) if each.name == "content"]
    return found[-1] if found and (is_text(found[-1].value) or isinstance(found[-1].value, list)) else None


def _part(text: str) -> str:
    return f'{{"type":"text","text":{to_json(text)}}}'


def _digest(request: GatewayRequest, chained: Sequence[str], said: Sequence[str]) -> bytes:
    whole = "\x00".join((request.api, *chained, *said))
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()
