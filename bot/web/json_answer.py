"""Answers of the API whose body is made in the call's transaction, and not by the framework."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi.responses import Response
from pydantic_core import to_json


def json_answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`body` as JSON: values, or a model of the API."""
    return Response(to_json(body), status, headers, media_type="application/json")
