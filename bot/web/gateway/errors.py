"""Errors of our own at the gateway's addresses, in the shape that clients of the OpenAI API read."""

from collections.abc import Mapping
from typing import Any, Final

GATEWAY_PATHS: Final = ("/v1/chat/completions", "/v1/responses", "/v1/models", "/v1/embeddings")
USED_UP: Final = "insufficient_quota"
UNKNOWN_MODEL: Final = "model_not_found"

# What clients tell errors apart by, by status: (type, code).
_KINDS: Final[Mapping[int, tuple[str, str | None]]] = {
    401: ("authentication_error", "invalid_api_key"),
    403: ("permission_error", "permission_denied"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}


def is_of_gateway(path: str) -> bool:
    """Whether a path is one of the gateway's."""
    return any(path == each or path.startswith(f"{each}/") for each in GATEWAY_PATHS)


def error_body(status: int, sentence: str, code: str | None) -> dict[str, Any]:
    """The body of an error. `code` is that of the error, or None for that of its status."""
    usual = ("server_error", None) if status >= 500 else ("invalid_request_error", None)
    kind, usual_code = _KINDS.get(status, usual)
    kind = USED_UP if code == USED_UP else kind
    return {"error": {"message": sentence, "type": kind, "param": None, "code": code or usual_code}}
