"""Bodies that are small on the wire and large in memory. README: one installation serves several organisations; so no
request of one may stop the process for the others."""

import json
from typing import Any

import httpx2
import pytest
from pydantic import TypeAdapter, ValidationError

from bot.web.bodies import MAX_JSON_NAMES
from bot.web.mcp.tools import KindFilter, TagFilter
from bot.web.routes.exchange import EntryDocument
from bot.web.routes.query import QueryRequest
from composer.errors import BadInput
from tests.support.api import bearer, key_of
from tests.support.harness import AppHarness

pytestmark = pytest.mark.integration
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
        (EntryDocument, document(*[{}] * 1_000)),
        (QueryRequest, {"question": "x", "kinds": [1] * 100_000}),
        (QueryRequest, {"question": "x", "tags": [1] * 100_000}),
    ],
)
def test_of_many_errors_in_a_list_the_first_is_made(model: Any, sent: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as raised:
        model.model_validate(sent)
    assert raised.value.error_count() == 1


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
