"""The paths of the document of the API that are served by standards: the OpenAI API, MCP and OAuth.

Their routes take what clients of these standards send, so FastAPI reads nothing of it from them: what is fixed is said
here, and `tests/integration/test_documented.py` holds it against the routes.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bot.web.event_stream import EVENT_STREAM
from bot.web.oauth import metadata
from bot.web.problems import documented, header
from bot.web.shapes import standards

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
PAGE: Final = "text/html"
KEY: Final = [{"key": list[str]()}]
Said = dict[str, Any]
_NO_GATEWAY: Final = "Where the settings name no model server, there is nothing at this address."
_STREAMS: Final = f"With `stream`, the answer is `{EVENT_STREAM}`: see `x-event-stream`."
_NO_OAUTH: Final = "Without NEXUS_PUBLIC_URL there is nothing at this address."
_MEMORY: Final = {
    "name": "X-Nexus-Memory",
    "in": "header",
    "description": "`off`: nothing is put in, and nothing is learnt.",
    "schema": {"type": "string"},
}
_HOW_MUCH: Final = {"X-Nexus-Memory": header("How much was put in: `3 entries, 412 tokens`.", required=False)}


def standard_paths() -> Mapping[str, Mapping[str, Said]]:
    """What there is to say of each path, by its method."""
    return {**_gateway(), "/mcp": {"post": _mcp()}, **_oauth()}


def standard_schemas() -> Mapping[str, Said]:
    """The schemas that those paths name."""
    models = [each for each in vars(standards).values() if isinstance(each, type) and issubclass(each, BaseModel)]
    shown = [(each, "validation") for each in models if each is not BaseModel and not each.__name__.startswith("_")]
    _, made = models_json_schema(shown, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    found: Mapping[str, Said] = made["$defs"]
    return found


def _gateway() -> dict[str, dict[str, Said]]:
    chat = _asked("chat_completions", "An answer to messages", "ChatCompletion", "ChatCompletionChunk")
    answered = _asked("responses", "An answer to input", "ModelResponse", "ModelResponseEvent")
    vectors = _asked("embeddings", "Vectors of texts", "Embeddings")
    listed = _relayed("list_models", "The models that may be asked for", "GatewayModelList")
    model = _relayed("get_model", "One model", "GatewayModel")
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "/v1/chat/completions": {"post": {**chat, "requestBody": _body("ChatCompletionRequest")}},
        "/v1/responses": {"post": {**answered, "requestBody": _body("ModelResponseRequest")}},
        "/v1/embeddings": {"post": {**vectors, "requestBody": _body("EmbeddingsRequest")}},
        "/v1/models": {"get": listed},
        "/v1/models/{name}": {"get": {**model, "parameters": [name]}},
    }


def _asked(name: str, summary: str, answer: str, event: str | None = None) -> Said:
    """What there is to say of a request to a model, which may be answered by a stream of events of a schema."""
    said = _relayed(name, f"{summary}, with what is remembered put in", answer)
    said["responses"]["200"]["headers"] = dict(_HOW_MUCH)
    said["parameters"] = [_MEMORY]
    if event is not None:
        said["description"] = f"{_STREAMS} {said['description']}"
        said["responses"]["200"]["x-event-stream"] = {"schema": _named(event)}
    return said


def _relayed(name: str, summary: str, answer: str) -> Said:
    refused = {"description": "What is wrong, said by Nexus or by the model server", "content": _json("GatewayError")}
    wrong_key = {"WWW-Authenticate": header("Bearer: a key is sent as a bearer token.", required=False)}
    wait = {"Retry-After": header("The seconds after which to ask again.", "integer", required=False)}
    return {
        "operationId": name,
        "tags": ["gateway"],
        "summary": summary,
        "description": f"The OpenAI API, for a key with the permission `gateway`. {_NO_GATEWAY}",
        "security": KEY,
        "responses": {
            "200": {"description": "The answer of the model server", "content": _json(answer)},
            "401": {**refused, "headers": wrong_key},
            "4XX": {**refused, "headers": wait},
            "5XX": {**refused, "headers": wait},
            "default": refused,
        },
    }


def _mcp() -> Said:
    sign_in = {"WWW-Authenticate": header("Where to sign in, and for what (RFC 9728).", required=False)}
    refused = documented(401, 403, 404, 429)
    for status in (401, 403):
        refused[status] = {**refused[status], "headers": sign_in}
    return {
        "operationId": "mcp",
        "tags": ["mcp"],
        "summary": "One request of an MCP client",
        "description": (
            "Streamable HTTP without sessions: each request is answered in JSON, and there is no stream to open. For a "
            "tool's key, or a token of OAuth."
        ),
        "security": KEY,
        "requestBody": _body("McpRequest"),
        "responses": {
            "200": {"description": "The answer", "content": _json("McpAnswer")},
            "202": {"description": "A notification was taken"},
            "400": {"description": "No request of MCP", "content": _json("McpAnswer")},
            **_by_text(refused),
        },
    }


def _oauth() -> dict[str, dict[str, Said]]:
    return {
        f"{metadata.PROTECTED_RESOURCE}{metadata.RESOURCE_PATH}": {
            "get": _said_to_all("protected_resource", "Which server gives tokens for `/mcp`", "ProtectedResource")
        },
        metadata.AUTHORIZATION_SERVER: {
            "get": _said_to_all("authorization_server", "Where and how apps get tokens", "AuthorizationServer")
        },
        metadata.REGISTER: {
            "post": {
                **_open("register", "Register an app", {"201": _answered("The app", "RegisteredApp")}),
                "requestBody": _body("AppRegistration"),
            }
        },
        metadata.AUTHORIZE: {"get": _authorize()},
        metadata.TOKEN: {
            "post": {
                **_open("token", "Get tokens for a code or a refresh token", {"200": _answered("Tokens", "Tokens")}),
                "requestBody": _body("TokenRequest", FORM),
            }
        },
        metadata.REVOKE: {
            "post": {
                **_open("revoke", "End the sign-in of a token", {"200": {"description": "It has ended"}}),
                "requestBody": _body("RevocationRequest", FORM),
            }
        },
    }


def _said_to_all(name: str, summary: str, answer: str) -> Said:
    said = _open(name, summary, {"200": _answered("As the settings say", answer)})
    del said["responses"]["400"], said["responses"]["401"]
    said["responses"]["200"]["headers"] = {"Cache-Control": header("May be kept for an hour.")}
    return said


def _open(name: str, summary: str, answers: Mapping[str, Said]) -> Said:
    """What there is to say of an address that apps ask without a credential of a person."""
    who = {"WWW-Authenticate": header("Basic, to an app that tried it.", required=False)}
    return {
        "operationId": name,
        "tags": ["oauth"],
        "summary": summary,
        "description": _NO_OAUTH,
        "security": [],
        "responses": {
            **{status: {**answer, "headers": _not_kept()} for status, answer in answers.items()},
            "400": {**_answered("What is wrong with the request", "OAuthError"), "headers": _not_kept()},
            "401": {**_answered("Not this app", "OAuthError"), "headers": who | _not_kept()},
            **_by_text(documented(404, 415, 429)),
        },
    }


def _authorize() -> Said:
    asked: Mapping[str, Said] = {
        "response_type": {"schema": {"type": "string", "const": "code"}, "required": True},
        "client_id": {
            "description": "Of an app that is registered, or the https address of what it says of itself.",
            "required": True,
        },
        "redirect_uri": {"description": "One of those of the app; may be left out where it has one."},
        "scope": {"description": f"Some of {', '.join(metadata.OAUTH_SCOPES)}; without it, all of them."},
        "state": {"description": "What the app gets back as it is."},
        "code_challenge": {"description": "Of PKCE, by S256.", "required": True},
        "code_challenge_method": {"schema": {"type": "string", "const": "S256"}, "required": True},
        "resource": {"description": "The address of `/mcp`: tokens are for nothing else."},
        "prompt": {"description": "`consent` asks a person again who has allowed the same before."},
    }
    kept = {"Set-Cookie": header("The request, kept until the person has signed in; or its end.", required=False)}
    page = {"content": {PAGE: {"schema": {"type": "string"}}}, "headers": kept}
    back = {"Location": header("The app's address."), **kept, **_not_kept()}
    return {
        "operationId": "authorize",
        "tags": ["oauth"],
        "summary": "Ask a person, in their browser, what an app may do",
        "description": f"Whoever is signed in decides on this page, and is led back to the app. {_NO_OAUTH}",
        "security": [],
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string"}, **said} for name, said in asked.items()
        ],
        "responses": {
            "200": {"description": "The page that asks", **page},
            "302": {"description": "Back to the app, with a code", "headers": back},
            "400": {"description": "A page that says what is wrong with the request", **page},
            "401": {"description": "A page that says how to sign in", **page},
            "403": {"description": "A page that says why the person may connect no app", **page},
            **_by_text(documented(404, 429)),
        },
    }


def _named(schema: str) -> Said:
    return {"$ref": f"#/components/schemas/{schema}"}


def _json(schema: str) -> Said:
    return {JSON: {"schema": _named(schema)}}


def _body(schema: str, kind: str = JSON) -> Said:
    return {"required": True, "content": {kind: {"schema": _named(schema)}}}


def _answered(description: str, schema: str) -> Said:
    return {"description": description, "content": _json(schema)}


def _not_kept() -> Said:
    return {"Pragma": header("no-cache", required=False), "Cache-Control": header("no-store", required=False)}


def _by_text(responses: Mapping[int | str, Said]) -> dict[str, Said]:
    """Responses by their statuses as a document writes them."""
    return {str(status): said for status, said in responses.items()}
