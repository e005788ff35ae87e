"""That no answer differs from the document of the API unnoticed (tests/support/documented.py)."""

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import jsonschema_rs
import pytest
from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.datastructures import Headers

from bot.web.app import ROUTES, web_app
from bot.web.document import EXAMPLES, document
from bot.web.event_stream import EVENT_STREAM, event
from bot.web.gateway.errors import GATEWAY_PATHS
from bot.web.metrics import Metrics
from bot.web.oauth import metadata
from bot.web.problems import documented, header, problem
from bot.web.routes import gateway, mcp_route, oauth
from bot.web.standards import standard_paths, standard_schemas
from composer.settings import Settings
from composer.settings.server_urls import ServerUrl
from tests.support.documented import Answered, Document
from tests.support.web import served_at


class Thing(BaseModel):
    name: str
    made_at: str | None = None


THING = {"$ref": "#/components/schemas/Thing"}
SAID: dict[int | str, dict[str, Any]] = {
    200: {"model": Thing, "headers": {"ETag": header("A version.")}, "content": {EVENT_STREAM: {"x-data": THING}}},
    204: {"description": "Nothing"},
    205: {"description": "Nothing"},
    **documented(404),
}
GOOD = {"name": "a"}
ETAG = {"ETag": '"1"'}


def an_app() -> FastAPI:
    unasked = SimpleNamespace(serve=lambda *_, **__: None, register_source=lambda *_: None)
    unasked.images = unasked
    settings, redis = Settings(home=Path("unused")), ServerUrl("redis://127.0.0.1:1/0")
    parts = SimpleNamespace(settings=settings, redis_url=redis, turns=unasked, drafter=unasked, file_texts=unasked)
    return web_app(cast(Any, parts), Metrics(()), {}, None)


def answering(response: Response) -> Callable[[], Awaitable[Response]]:
    async def answer() -> Response:
        return response

    return answer


def json_of(value: Any, status: int = 200, headers: dict[str, str] = ETAG, kind: str = "application/json") -> Response:
    return Response(json.dumps(value), status, headers, kind)


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (json_of(GOOD), ""),
        (problem(404), ""),
        (problem(503), ""),  # any request may get it
        (problem(409), "409: the status is not documented"),
        (json_of(GOOD, 201), "201: the status is not documented"),
        (json_of({**GOOD, "owner": "alice"}), "breaks"),
        (json_of({}), "breaks"),
        (json_of({"name": 1}), "name breaks"),
        (json_of([]), "the body breaks"),
        (json_of(GOOD, headers={}), "the header etag is missing"),
        (json_of(GOOD, headers={**ETAG, "X-Owner": "alice"}), "the header x-owner is not documented"),
        (json_of(GOOD, kind="text/html"), "the media type 'text/html' is none of"),
        (json_of(GOOD, 404), "the media type 'application/json' is none of"),
        (json_of({"detail": "No."}, 404, {}, "application/problem+json"), "breaks"),
        (Response(status_code=204), ""),
        (Response(status_code=204, media_type="text/plain"), ""),  # our routes take its type away
        (Response(b"x", 205), "none is documented"),
        (Response(event("start", b'{"name": "a"}') + event("done", b"{}"), headers=ETAG, media_type=EVENT_STREAM), ""),
        (Response(event("start", b'{"owner": "a"}'), headers=ETAG, media_type=EVENT_STREAM), "start: the body breaks"),
    ],
)
async def test_an_answer_that_is_not_as_documented_fails_the_test(response: Response, said: str) -> None:
    served = an_app()
    served.add_api_route("/v1/things/{id}", answering(response), responses=SAID, response_class=Response)
    failed = ""
    try:
        async with served_at(served) as url, httpx2.AsyncClient(base_url=url) as client:
            assert (await client.get("/v1/things/1")).status_code == response.status_code
    except AssertionError as error:
        failed = str(error)
    assert bool(failed) == bool(said), failed
    assert said in failed


def test_the_document_says_of_every_route_what_opens_it_and_names_it_once() -> None:
    told = document(an_app())
    operations = {
        (method, path): operation for path, methods in told["paths"].items() for method, operation in methods.items()
    }
    names = [operation["operationId"] for operation in operations.values()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", name) and "v1" not in name for name in names), names
    assert all(re.fullmatch("[A-Za-z]+", name) for name in told["components"]["schemas"]), "two of one name"
    assert told["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for (method, path), operation in operations.items():
        assert bool(operation["security"]) == path.startswith(("/v1/", "/mcp")), (method, path)
        assert ("401" in operation["responses"]) == path.startswith(("/v1/", "/mcp", "/oauth/")), (method, path)


def test_the_document_says_where_it_is_served_what_else_is_and_shows_bodies_that_fit() -> None:
    told = document(an_app())
    assert told["servers"] == [{"url": "/"}]
    schemas = told["components"]["schemas"]
    for name in EXAMPLES:
        validator = jsonschema_rs.validator_for({**schemas[name], "components": told["components"]})
        for example in schemas[name]["examples"]:
            validator.validate(example)
            assert set(example) <= set(schemas[name]["properties"]), name


def test_every_route_of_the_gateway_mcp_and_oauth_is_a_path_of_the_document() -> None:
    """But the form of the consent page, and second addresses of the same."""
    told, known = document(an_app())["paths"], standard_paths()
    routers = (gateway.router, mcp_route.router, oauth.router)
    served = {
        (method.lower(), route.path.replace(":path", "")): route.name
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    for path in (metadata.CONSENT, metadata.PROTECTED_RESOURCE, metadata.OPENID_CONFIGURATION):
        served = {at: name for at, name in served.items() if at[1] != path}
    described = {(method, path): said["operationId"] for path, each in known.items() for method, said in each.items()}
    assert described == served
    assert {path.removesuffix("/{name}") for path in known if path.startswith("/v1/")} == set(GATEWAY_PATHS)
    assert {path: told[path] for path in known} == known


def test_the_schemas_of_standards_take_no_name_of_ours() -> None:
    told = get_openapi(title="", version="", routes=ROUTES)
    assert set(standard_schemas()) & set(told["components"]["schemas"]) == set()


def test_an_answer_of_a_standard_is_held_against_the_document_too() -> None:
    judged = Document.of(an_app())

    def wrong(path: str, status: int, value: Any, kind: str = "application/json") -> str:
        sent = Answered("POST", path, status, Headers({"content-type": kind}), json.dumps(value).encode())
        return " ".join(judged.violations(sent))

    chat = {"id": "c", "choices": [{"message": {"role": "assistant", "content": "hi"}, "logprobs": None}], "more": 1}
    assert not wrong("/v1/chat/completions", 200, chat)
    assert not wrong("/v1/chat/completions", 200, "data: …", EVENT_STREAM)
    assert not wrong("/v1/chat/completions", 418, {"error": {"message": "no", "code": 418}})
    assert "breaks" in wrong("/v1/chat/completions", 200, {"id": "c"})
    assert "breaks" in wrong("/v1/chat/completions", 404, {"detail": "no"})
    assert "breaks" in wrong("/mcp", 200, {"id": 1, "result": {}})
    assert "media type" in wrong("/mcp", 200, "data: …", EVENT_STREAM)
    assert "breaks" in wrong("/oauth/token", 400, {"detail": "no"})
    assert "breaks" in wrong("/oauth/token", 200, {"access_token": "x", "token_type": "mac"})


def test_whoever_generates_a_client_finds_ranges_examples_and_one_kind_of_answer() -> None:
    made = document(an_app())
    schemas, looked = made["components"]["schemas"], set[str]()

    def check(schema: Any, at: str) -> None:
        if not isinstance(schema, dict):
            return
        if schema.get("type") in ("integer", "number") and "const" not in schema:
            assert {"minimum", "maximum"} <= {*schema}, f"{at} has no range"
        assert "default" not in schema or not at.startswith("body"), f"{at}: generated clients would ask for it"
        for part in ("anyOf", "oneOf", "allOf"):
            for each in schema.get(part, ()):
                check(each, at)
        check(schema.get("items"), f"{at}[]")
        for name, each in schema.get("properties", {}).items():
            check(each, f"{at}.{name}")
        name = schema.get("$ref", "").rpartition("/")[2]
        if name and name not in looked:
            looked.add(name)
            check(schemas[name], f"body {name}")

    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", ()):
                check(parameter["schema"], f"{method} {path} {parameter['name']}")
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                check(body["schema"], f"body of {method} {path}")
                name = body["schema"].get("$ref", "").rpartition("/")[2]
                assert kind != "application/json" or name in EXAMPLES, f"{method} {path} has no example"
            for status, response in operation["responses"].items():
                assert len(response.get("content", {})) < 2, f"{method} {path} {status} answers two kinds"
