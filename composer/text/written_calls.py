"""Read calls of functions that a model has written as text, in the formats that local models were trained on. Pure.

A server that knows a model's format turns them into calls by itself; many do not. The formats have in common what is
read here: the name of an offered function, and its arguments as JSON, as tags or as those of Python.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

MAX_READ_CHARS: Final = 20_000  # of what a model wrote; a longer text is no call
MAX_BRACKETS: Final = 20  # after which no further end of a call is tried
_CALLED: Final = re.compile(r"\A(?:print\()?([A-Za-z_][\w.-]{0,200})\(")
_NAME_OF_CALL: Final = re.compile(r"(?<![\w.-])([A-Za-z_][\w.-]{0,200})\(")
_NUMBER: Final = re.compile(r":\d+\Z")
_WORD: Final = re.compile(r"\A\w*")
MAX_WRITTEN_CALLS: Final = 8
Offered = Mapping[str, Sequence[str]]  # the names of functions, with those of their arguments where all are texts

_NAMES: Final = ("name", "tool_name", "tool", "function", "function_name", "action", "recipient_name")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "params", "action_input", "tool_input", "input")
_JSON: Final = json.JSONDecoder(strict=False)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][\w-]*")
# <function=NAME>…, <invoke name="NAME">…, and the same with a prefix
_FUNCTION_TAG: Final = re.compile(
    r"<[^<>\s=]{0,40}?(?:function|invoke)(?:=|\s+name=)\s*\"?(?P<name>[\w.:-]{1,100})\"?[^<>]{0,100}>"
)
_PARAMETER_TAG: Final = re.compile(
    r"<[^<>\s=/]{0,40}?parameter(?:=|\s+name=)\s*\"?(?P<name>[\w-]{1,100})\"?[^<>]{0,100}>(?P<value>.*?)</[^<>]{0,40}?parameter>",
    re.DOTALL,
)
_KEY_AND_VALUE: Final = re.compile(  # GLM's, and with a prefix LongCat's
    r"<(?P<of>\w{0,20})arg_key>\s*(?P<name>[\w-]{1,100})\s*</(?P=of)arg_key>\s*"
    r"<(?P=of)arg_value>(?P<value>.*?)</(?P=of)arg_value>",
    re.DOTALL,
)
_KEY_BEGINS: Final = re.compile(r"<\w{0,20}arg_key>")
_END_OF_TOOL_CALL: Final = re.compile(r"</\w{0,20}tool_call>")
_NAMED_BEFORE: Final = re.compile(r"call:(?P<name>[\w.-]{1,100})\{")  # Gemma's: call:NAME{key:<|"|>text<|"|>,key:7}
_TEXT_TOKEN: Final = r"(?:<\|\"\|>|<escape>)"
_PAIR: Final = re.compile(
    rf"(?P<name>[\w-]{{1,100}}):(?:{_TEXT_TOKEN}(?P<text>.*?){_TEXT_TOKEN}|(?P<value>[^,{{}}<>]{{1,200}}))", re.DOTALL
)
_BEFORE_CALL: Final = re.compile(r"\A(?:functools(?=\[)|>>>(?=\w+\n))")  # of Phi, Functionary
_NAME_ALONE: Final = re.compile(r"\A([\w.-]{1,100})\n\s*(?=\{)")


def written_calls(text: str, offered: Offered, *, bare: bool = False) -> list[tuple[str, str]]:
    """The calls of offered functions in a text: each with its name, and its arguments as JSON. `bare`: nothing but
    their own form says that they are calls; then the whole text has to be calls."""
    if len(text) > MAX_READ_CHARS or not offered:
        return []
    if bare and not _is_nothing_but_calls(text, offered):
        return []
    ways = (_of_tags, _of_gemma, _of_json, _of_python)
    found = next((calls for way in ways if (calls := list(way(text, offered)))), [])
    return [(name, json.dumps(given, ensure_ascii=False)) for name, given in found[:MAX_WRITTEN_CALLS]]


def _unfenced(text: str) -> str:
    """A text without the fence of code around it."""
    inner = text.removeprefix("```").removesuffix("```") if text.startswith("```") else text.removesuffix("```")
    return (inner[len(_WORD.match(inner)[0]) :] if text.startswith("```") else inner).strip()  # type: ignore[index]


def _ends_of_calls(text: str) -> list[int]:
    """Where a call may end: after each of the first closing brackets."""
    ends, at = list[int](), text.find(")")
    while at >= 0 and len(ends) < MAX_BRACKETS:
        ends.append(at + 1)
        at = text.find(")", at + 1)
    return ends


def _is_nothing_but_calls(text: str, offered: Offered) -> bool:
    bare = text.strip()
    inner = _unfenced(_BEFORE_CALL.sub("", bare))
    if bare.startswith(">>>") and (named := _NAME_ALONE.match(inner)) is not None:
        values = list(_objects(inner))
        return _known(named[1], offered) is not None and [inner[end:].strip() for _, end, _ in values] == [""]
    if inner[:1] in ("{", "["):
        try:
            value, end = _JSON.raw_decode(inner)
        except (ValueError, RecursionError):
            return inner[0] == "[" and bool(list(_of_python(inner, offered)))
        objects = value.get("tool_calls", [value]) if isinstance(value, dict) else value
        rest = inner[end:].strip(" \n;")
        is_call = (
            isinstance(objects, list)
            and bool(objects)
            and all(_call(each, offered, strict=True) is not None for each in objects)
        )
        return is_call and (not rest or _is_nothing_but_calls(rest, offered))
    called = _CALLED.match(inner)
    return called is not None and _known(called[1], offered) is not None and inner.endswith(")")


def _of_tags(text: str, offered: Offered) -> Iterator[tuple[str, Mapping[str, Any]]]:
    opened = list(_FUNCTION_TAG.finditer(text))
    for tag, following in zip(opened, [*opened[1:], None], strict=False):
        body = text[tag.end() : len(text) if following is None else following.start()]
        name = _known(tag["name"], offered)
        if name is None:
            continue
        given = {each["name"]: _value(each["value"], name, offered) for each in _PARAMETER_TAG.finditer(body)}
        yield name, given or next((each for _, _, each in _objects(body)), {})
    for body in _END_OF_TOOL_CALL.split(text):
        keys = _KEY_BEGINS.search(body)
        name = _last_name(body[: keys.start()], offered) if keys else None
        if name is not None:
            yield name, {each["name"]: _value(each["value"], name, offered) for each in _KEY_AND_VALUE.finditer(body)}


def _of_gemma(text: str, offered: Offered) -> Iterator[tuple[str, Mapping[str, Any]]]:
    opened = list(_NAMED_BEFORE.finditer(text))
    for found, following in zip(opened, [*opened[1:], None], strict=False):
        name = _known(found["name"], offered)
        if name is not None:
            body = text[found.end() : len(text) if following is None else following.start()]
            pairs = _PAIR.finditer(body)
            yield name, {each["name"]: each["text"] or _value(each["value"] or "", name, offered) for each in pairs}


def _of_json(text: str, offered: Offered) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Objects that name their function, or that stand behind its name."""
    before = 0
    for start, end, value in _objects(text):
        found = _call(value, offered, strict=False)
        if found is not None:
            yield found
        elif "tool_calls" in value and isinstance(value["tool_calls"], list):
            yield from filter(None, (_call(each, offered, strict=False) for each in value["tool_calls"]))
        elif (name := _last_name(text[before:start], offered)) is not None:
            yield name, value
        before = end


def _of_python(text: str, offered: Offered) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Calls such as recall(query="tea")."""
    for found in _NAME_OF_CALL.finditer(text):
        name = _known(found[1].removesuffix(".call"), offered)
        if name is None:
            continue
        for end in _ends_of_calls(text[found.end() :]):
            given = _python_arguments(f"f({text[found.end() : found.end() + end]}", offered[name])
            if given is not None:
                yield name, given
                break


def _python_arguments(expression: str, names: Sequence[str]) -> Mapping[str, Any] | None:
    try:
        call = ast.parse(expression, mode="eval").body
        if not isinstance(call, ast.Call) or len(call.args) > len(names):
            return None
        given = dict(zip(names, map(ast.literal_eval, call.args), strict=False))
        return given | {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The JSON objects of a text, with their places."""
    at, failed = 0, 0
    while (at := text.find("{", at)) >= 0 and failed < MAX_WRITTEN_CALLS:
        try:
            value, end = _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            at, failed = at + 1, failed + 1
            continue
        if isinstance(value, dict):
            yield at, end, value
        at = end


def _call(value: Any, offered: Offered, *, strict: bool) -> tuple[str, Mapping[str, Any]] | None:
    """A call as an object; `strict`: it has arguments, and little else."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    if len(value) == 1 and (alone := _known(next(iter(value)), offered)) and isinstance(value[alone], dict):
        return alone, value[alone]
    named = next((value[each] for each in _NAMES if isinstance(value.get(each), str)), None)
    name = None if named is None else _known(named, offered)
    given = next((value[each] for each in _ARGUMENTS if each in value), None)
    if isinstance(given, str):
        given = next((each for _, _, each in _objects(given)), None)
    if name is None or (given is None and strict) or not isinstance(given, dict | None):
        return None
    return name, given or {}


def _known(name: str, offered: Offered) -> str | None:
    """The offered function that a model names: some put a prefix before it, and a number behind it."""
    bare = _NUMBER.sub("", name.strip())
    for each in (bare, bare.rpartition(".")[2], bare.rpartition(":")[2]):
        if each in offered:
            return each
    return None


def _last_name(text: str, offered: Offered) -> str | None:
    return next((each for each in reversed(_IDENTIFIER.findall(text[-400:])) if each in offered), None)


def _value(text: str, name: str, offered: Offered) -> Any:
    """The value of a tag: a text where all arguments of the function are, else what it says as JSON."""
    text = text.strip("\n").strip()
    if offered[name]:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
