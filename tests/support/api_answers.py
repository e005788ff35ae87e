"""What comes back over the API for a request byte for byte, and what must be said of it."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.support.waiting import TIMEOUT_SECONDS


class Leaked(AssertionError):
    """An attack succeeded, or an answer shows more than it is to."""


@dataclass(frozen=True)
class Answer:
    """What came back: everything, and its parts."""

    whole: str
    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def sent(url: str, request: bytes) -> Answer:
    """What comes back for these bytes, until the other side closes the connection."""
    at = urlsplit(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    try:
        writer.write(request)
        back = (await asyncio.wait_for(reader.read(), TIMEOUT_SECONDS)).decode("latin-1")
    finally:
        writer.close()
    head, _, body = back.partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = _joined(body)
    return Answer(back, int(first.split()[1]) if first else 0, headers, body.encode("latin-1").decode(errors="replace"))


def _joined(body: str) -> str:
    parts, rest = [], body
    while rest:
        size, _, rest = rest.partition("\r\n")
        parts.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    return "".join(parts)


def found_in(answer: Answer, where: str) -> str:
    if where.startswith("header "):
        return answer.headers[where.removeprefix("header ")]
    value = answer.json
    for part in where.split("."):
        value = value[int(part)] if part.isdecimal() else value[part]
    return str(value)


def said_over_mcp(answer: Answer, where: str, wanted: str | int | list[str]) -> Any:
    """What stands somewhere in the JSON that a tool, a resource or a prompt of MCP gave."""
    result = answer.json["result"]
    if "messages" in result:
        text = result["messages"][0]["content"]["text"].partition("\n")[2]
    else:
        text = (result.get("content") or result["contents"])[0]["text"]
    value = json.loads(text)
    for part in filter(None, where.split(".")):
        value = value[int(part)] if part.isdecimal() else value[part]
    if isinstance(wanted, list):
        return list(value)
    return len(value) if isinstance(wanted, int) else value


def require_problem(answer: Answer, said: str) -> None:
    """Return if an error is one plain sentence, or one of JSON-RPC."""
    if '"jsonrpc":"2.0"' in answer.body and "/mcp " in said:
        return
    if set(answer.json) == {"error"}:  # at an address of the gateway, as clients of the OpenAI API read it
        error = answer.json["error"]
        sentence = error["message"]
        if set(error) != {"message", "type", "param", "code"} or "\n" in sentence or len(sentence) > 400:
            raise Leaked(f"an error is no plain sentence: {said}")
        return
    if answer.headers.get("content-type") != "application/problem+json":
        raise Leaked(f"an error is no problem: {said}")
    told = answer.json
    detail = told["detail"]
    if set(told) != {"type", "title", "status", "detail"} or told["status"] != answer.status:
        raise Leaked(f"an error is no problem: {said}")
    if "\n" in detail or not detail.endswith(".") or len(detail) > 400:
        raise Leaked(f"an error is no plain sentence: {said}")
