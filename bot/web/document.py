"""The OpenAPI document of the API: what FastAPI reads from the routes, and what their layers answer besides."""

import json
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from bot.web.metering import QUOTA, operation_of
from bot.web.problems import SCHEMA, documented, header
from bot.web.standards import standard_paths, standard_schemas

# What a request can be refused with before its route sees it, by what the route takes.
OF_CREDENTIALS: Final = (401, 403, 422, 429)  # whoever asks is told, too, that a parameter is not known
OF_PARAMETERS: Final = (422,)
OF_BODIES: Final = (400, 408, 413, 415, 422)
ABOUT: Final = """What Nexus remembers for a person, for them and for their AI tools. A key is sent as a bearer token.

The same address serves, by standards that have documents of their own, MCP (`/mcp`), OAuth 2.1 for AI tools, with
dynamic registration, PKCE (S256) and tokens that open `/mcp` alone, and the OpenAI API with memory added. Requests and
answers of these may hold more than is named here.
"""
# Bodies that fit, by the name of their schema.
_ID: Final = "8f14e45f-ceea-467f-a8f5-1b2c3d4e5f60"
EXAMPLES: Final[Mapping[str, Any]] = {
    "AppRegistration": {"redirect_uris": ["https://app.example.com/callback"], "client_name": "Example"},
    "BulkRequest": {"ids": [_ID], "act": "trash"},
    "ChatCompletionRequest": {"model": "gpt-5", "messages": [{"role": "user", "content": "When do we deploy?"}]},
    "ChatRequest": {"content": "When do we deploy?", "session": "plans"},
    "CheckoutRequest": {"plan": "team"},
    "ChosenChannels": {"channels": ["C0123456789"]},
    "NewWebhookRequest": {"url": "https://n8n.example.com/webhook/nexus", "pages": ["memory"]},
    "WebhookState": {"on": False},
    "DecisionUpdate": {"state": "current"},
    "DigestUpdate": {"period": "weekly", "hour": 9},
    "DmRoomsUpdate": {"account": _ID, "on": True},
    "EmbeddingsRequest": {"model": "text-embedding-3-small", "input": "We deploy on Fridays."},
    "EntryDocument": {"format": "nexus-entries", "version": 1, "entries": [{"content": "We deploy on Fridays."}]},
    "EntryUpdate": {"tags": ["ops", "release"]},
    "ForgetRequest": {"trashed": True, "confirm": 3},
    "McpRequest": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    "ModelResponseRequest": {"model": "gpt-5", "input": "When do we deploy?"},
    "NewAdmin": {"user": _ID},
    "NewAnswerRating": {"rating": "good"},
    "NewInvitation": {"user": _ID},
    "PersonUpdate": {"admin": True},
    "ProjectRoleUpdate": {"role": "write"},
    "ProjectUpdate": {"name": "artemis"},
    "RevocationRequest": {"token": "nxr_…", "client_id": _ID},
    "RoomProject": {"project": _ID},
    "SettingsUpdate": {"budget": 4000, "trash_days": 90},
    "ShareRequest": {"team": _ID},
    "TeamRoleUpdate": {"role": "admin"},
    "TeamUpdate": {"name": "Operations"},
    "WaitingBulk": {"ids": [_ID], "act": "accept"},
    "WaitingUpdate": {"act": "accept"},
    "TokenRequest": {"grant_type": "refresh_token", "client_id": _ID, "refresh_token": "nxr_…"},
    "ToolForgetRequest": {"kind": "preference"},
    "WorkspaceSettingsUpdate": {"top_k": 20},
    "NewEntry": {"content": "We deploy on Fridays.", "title": "Deploys", "tags": ["ops"]},
    "NewKeyRequest": {"vendor": "claude", "name": "my laptop"},
    "NewPersonInvitation": {"name": "Dana", "email": "dana@example.com"},
    "NewProject": {"name": "apollo"},
    "NewTeam": {"name": "Ops"},
    "QueryRequest": {"question": "When do we deploy?"},
}


def document(api: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of an app, made once."""
    if api.openapi_schema is None:
        made = get_openapi(title=api.title, version=api.version, routes=api.routes)
        made.setdefault("components", {}).setdefault("schemas", {}).update({**standard_schemas(), "Problem": SCHEMA})
        counted = {
            (method, route.path_format)
            for route in api.routes
            if isinstance(route, APIRoute) and operation_of(route) is not None
            for method in route.methods or ()
        }
        made["info"]["description"] = ABOUT
        made["servers"] = [{"url": api.state.nexus.app.settings.public_url or "/"}]
        for name, example in EXAMPLES.items():
            made["components"]["schemas"][name]["examples"] = [example]
        for path, operations in made["paths"].items():
            for method, operation in operations.items():
                _add_refusals(operation)
                operation.setdefault("security", [])  # of a route that is open to anybody, not to be guessed
                if (method.upper(), path) in counted:
                    _add_quota(operation)
        made["paths"] |= standard_paths()
        for name in standard_schemas().keys() | _taken(made):
            _tell_defaults(made["components"]["schemas"][name])
        api.openapi_schema = made
    return api.openapi_schema


def _taken(made: Mapping[str, Any]) -> set[str]:
    """The names of the schemas that bodies of requests hold."""
    bodies = [
        each["requestBody"] for methods in made["paths"].values() for each in methods.values() if "requestBody" in each
    ]
    found, open_ = set[str](), _named(bodies)
    while open_:
        found |= open_
        open_ = set().union(*(_named(made["components"]["schemas"][name]) for name in open_)) - found
    return found


def _named(part: Any) -> set[str]:
    if isinstance(part, Mapping):
        own = {part["$ref"].rpartition("/")[2]} if "$ref" in part else set()
        return own.union(*map(_named, part.values()))
    return set().union(*map(_named, part)) if isinstance(part, list) else set()


def _tell_defaults(schema: dict[str, Any]) -> None:
    """Say in words what counts for a field that is left out: generators take one with a default for one that is always
    there, and ask for it."""
    for field in schema.get("properties", {}).values():
        if "default" in field and (default := field.pop("default")) not in (None, [], {}, ""):
            told = field.get("description", "")
            field["description"] = f"{told} Without it: {json.dumps(default)}.".strip()


def _add_refusals(operation: dict[str, Any]) -> None:
    """Document what the layers before a route answer, unless the route says it in its own words."""
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
    taken: Mapping[str, tuple[int, ...]] = {
        "security": OF_CREDENTIALS,
        "parameters": OF_PARAMETERS,
        "requestBody": OF_BODIES,
    }
    statuses = {status for part, refusals in taken.items() if operation.get(part) for status in refusals}
    for status in sorted(statuses):
        operation["responses"].setdefault(str(status), documented(status)[status])
    operation["responses"] = dict(sorted(operation["responses"].items()))


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter: one that is left out is not there, and none is null."""
    given = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return schema if len(given) != 1 else {**given[0], **{k: v for k, v in schema.items() if k != "anyOf"}}


def _add_quota(operation: dict[str, Any]) -> None:
    """Document what answers of an operation say once most of its quota is used."""
    sentence = (
        "How much of a quota of the workspace's plan the person has used, from 80% on; for admins, what all have."
    )
    said = header(sentence, required=False)
    for response in operation["responses"].values():
        response.setdefault("headers", {})[QUOTA] = said
