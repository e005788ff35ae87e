"""Bodies that are small on the wire and large in memory. README: one installation serves several organisations; so no
request of one may stop the process for the others."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError

from bot.web import bodies
from bot.web.bodies import MAX_JSON_NAMES, MAX_JSON_VALUES
from bot.web.mcp.tools import KindFilter, TagFilter
from bot.web.routes.exchange import EntryDocument, read_entries
from bot.web.routes.query import QueryRequest
from composer.errors import BadInput
from tests.support.api import bearer, key_of
from tests.support.harness import AppHarness

JSON = {"Content-Type": "application/json"}


def document(*entries: Any) -> dict[str, Any]:
    return {"format": "nexus-entries", "version": 1, "entries": list(entries)}


def test_a_document_of_very_many_entries_is_refused_before_any_is_read() -> None:
    for entry in ({}, {"content": "x"}, 1):
        with pytest.raises(BadInput, match="this one has 2,000,000: divide it"):
            EntryDocument.model_validate(document() | {"entries": [entry] * 2_000_000})


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        (QueryRequest, {"question": "x", "kinds": [1] * 100_000}),
        (QueryRequest, {"question": "x", "tags": [1] * 100_000}),
    ],
)
def test_of_many_errors_in_a_list_the_first_is_made(model: Any, sent: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as raised:
        model.model_validate(sent)
    assert raised.value.error_count() == 1


def test_of_many_entries_that_are_wrong_the_first_is_read() -> None:
    read = []

    class Entries(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            for each in super().__iter__():
                read.append(each)
                yield each

    sent = Entries([{"content": "x"}, {"content": "y", "tags": 1}, *[{}] * 1_000])
    with pytest.raises(RequestValidationError) as raised:
        read_entries(sent)
    assert [each["loc"] for each in raised.value.errors()] == [("body", "entries", 1, "tags")]
    assert len(read) == 2


@pytest.mark.parametrize(
    "body",
    [
        b'{"format": "nexus-entries", "version": 1, "entries": [' + b"1," * 1_000_001 + b"1]}",
        b'{"content": "x", "metadata": {"a": [' + b"{}," * 1_000_001 + b"{}]}}",
        b"[" * 1_000_002,
        b'{"a": "' + "é,".encode() * 500_000 + b'", "b": [' + b'"",' * 1_000_001 + b'""]}',
    ],
)
async def test_more_values_than_any_document_needs_are_counted_and_not_read(
    harness: AppHarness, client: httpx2.AsyncClient, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> Any:
        raise AssertionError("it was read")

    key = await key_of(harness, "alice")
    monkeypatch.setattr(bodies, "from_json", never)
    answer = await client.post("/v1/entries/import", content=body, headers=JSON | bearer(key))
    assert (answer.status_code, "1,000,000 are taken here" in answer.json()["detail"]) == (400, True)


async def test_commas_in_a_text_are_no_values(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key = await key_of(harness, "alice")
    texts = [f"{number}" + ',[{"' * 24_000 for number in range(12)]
    assert sum(text.count(",") + text.count("[") + text.count("{") for text in texts) > MAX_JSON_VALUES * 0.8
    sent = document(*({"content": text} for text in [*texts, *[f"{text}x" for text in texts]]))
    assert len(json.dumps(sent)) < 32 * 2**20
    made = await client.post("/v1/entries/import", json=sent, headers=bearer(key))
    assert made.json()["created"] == 24


async def test_an_entry_that_is_wrong_is_named_by_its_place(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key = await key_of(harness, "alice")
    good = [{"content": f"entry {number}"} for number in range(300)]
    for wrong, said in (
        ({"content": "x", "tags": 1}, "`entries.300.tags` is wrong"),
        ({"contents": "x"}, "`entries.300."),
        (1, "`entries.300` is wrong"),
        (None, "`entries.300` is wrong"),
    ):
        answer = await client.post("/v1/entries/import", json=document(*good, wrong), headers=bearer(key))
        assert (answer.status_code, said in answer.json()["detail"]) == (422, True), answer.text
    others: list[Any] = [{}, "x", 1, None]
    for other in others:
        answer = await client.post("/v1/entries/import", json=document() | {"entries": other}, headers=bearer(key))
        assert (answer.status_code, "`entries` is wrong" in answer.json()["detail"]) == (422, True), answer.text


@pytest.mark.parametrize("items", [KindFilter, TagFilter])
def test_of_many_errors_in_a_list_of_a_tool_of_mcp_the_first_is_made(items: Any) -> None:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(items).validate_python([1] * 100_000)
    assert raised.value.error_count() == 1


@pytest.mark.parametrize("path", ["/v1/entries", "/v1/entries/import", "/v1/query", "/v1/keys"])
async def test_an_object_of_very_many_names_is_refused(
    harness: AppHarness, client: httpx2.AsyncClient, path: str
) -> None:
    key = await key_of(harness, "alice")
    for number, status in ((MAX_JSON_NAMES, 422), (MAX_JSON_NAMES + 1, 400)):
        body = {f"n{n}": 1 for n in range(number)}
        answer = await client.post(path, json=body, headers=bearer(key))
        assert answer.status_code == status, answer.text
    nested = json.dumps({"content": "x", "metadata": [body]})
    assert (await client.post(path, content=nested, headers=JSON | bearer(key))).status_code == 400


async def test_a_long_document_is_read_for_those_alone_who_may_import_it(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    own, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    statuses = {"nobody": 401, own: 400, tool: 403}
    for key, status in statuses.items():
        answer = await client.post("/v1/entries/import", content=b"[" * 1_000, headers=JSON | bearer(key))
        assert answer.status_code == status, answer.text
    made = await client.post("/v1/entries/import", json=document({"content": "x"}), headers=bearer(own))
    assert made.json()["created"] == 1
