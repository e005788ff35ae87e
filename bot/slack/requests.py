"""Requests to our HTTP address: whether Slack signed them, and whether they have the shape of Slack's events.

Whoever finds the address can send anything to it, so nothing is parsed before its signature is checked, and what is no
event is refused in one place.
"""

import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from composer.errors import BadInput
from composer.text.moments import moment_of_seconds

MAX_SIGNATURE_SECONDS: Final = 300  # of a request, either way: an older one may be a replay
MAX_FORM_FIELDS: Final = 200
_SECONDS: Final = re.compile(r"[0-9]{1,12}")
_RETRIES: Final = re.compile(r"[0-9]{1,3}")
_TIMES: Final = ("ts", "event_ts", "thread_ts", "deleted_ts")
_IDS: Final = ("type", "subtype", "channel_type", "bot_id", "text")
_MESSAGES: Final = ("message", "previous_message", "edited", "bot_profile", "assistant_thread")
_COMMAND_FIELDS: Final = ("team_id", "channel_id", "user_id", "trigger_id")


class Malformed(ValueError):
    """This is no event, command or interaction of Slack."""


def is_signed(body: bytes, timestamp: str, signature: str, secret: str, now: float) -> bool:
    """Whether Slack signed this body, lately (docs.slack.dev, "Verifying requests from Slack"). `now`: Unix seconds."""
    if not secret or not _SECONDS.fullmatch(timestamp) or abs(now - int(timestamp)) > MAX_SIGNATURE_SECONDS:
        return False
    expected = "v0=" + hmac.new(secret.encode(), b"v0:" + timestamp.encode() + b":" + body, "sha256").hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode(errors="replace"))


def check_shape(body: bytes, content_type: str) -> str:
    """The text of a body that has the shape of what Slack sends. Raises Malformed."""
    try:
        text = body.decode()
        if content_type == "application/json" or text.startswith("{"):
            _check_event(json.loads(text))
        else:
            _check_form(dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)))
    except (ValueError, RecursionError) as error:  # also of bytes that are not UTF-8
        raise Malformed from error
    return text


def _check_form(form: Mapping[str, str]) -> None:
    if "payload" in form:
        payload = json.loads(form["payload"])
        _require(isinstance(payload, dict))
        _check_teams(payload)
    else:
        _require(form.get("command", "").startswith("/") and all(form.get(name) for name in _COMMAND_FIELDS))


def _check_event(body: Any) -> None:
    _require(isinstance(body, dict))
    if body.get("type") == "url_verification":
        _require(isinstance(body.get("challenge"), str))
        return
    event = body.get("event")
    _require(isinstance(event, dict) and isinstance(event.get("type"), str) and bool(event["type"]))
    _check_teams(body)
    _require(bool(teams(body)))
    if event["type"] in ("message", "app_mention"):
        _require(isinstance(event.get("channel"), str) and isinstance(event.get("ts"), str))
    _check_fields(event)


def _check_teams(body: Mapping[str, Any]) -> None:
    """Whether the workspaces that a body names are text where they should be (see `teams`)."""
    granted, team = body.get("authorizations"), body.get("team")
    _require(isinstance(granted, list | None) and isinstance(team, str | dict | None))
    for each in (body, *([team] if isinstance(team, dict) else ()), *(granted or ())):
        _require(isinstance(each, dict) and all(isinstance(each.get(name), str | None) for name in ("team_id", "id")))


def _check_fields(event: Mapping[str, Any]) -> None:
    for name in _TIMES:
        _require(event.get(name) is None or (isinstance(event[name], str) and _is_time(event[name])))
    for name in _IDS:
        _require(isinstance(event.get(name), str | None))
    for name in ("channel", "user"):  # an object in events about channels and users
        _require(isinstance(event.get(name), str | dict | None))
    files = event.get("files")
    _require(files is None or (isinstance(files, list) and all(isinstance(file, dict) for file in files)))
    for name in _MESSAGES:
        _require(isinstance(event.get(name), dict | None))
        if event.get(name):
            _check_fields(event[name])


def _is_time(ts: str) -> bool:
    try:
        return "." in ts and bool(moment_of_seconds(ts))
    except BadInput:
        return False


def _require(well_formed: bool) -> None:
    if not well_formed:
        raise Malformed


def teams(body: Mapping[str, Any]) -> set[str]:
    """The workspaces that an event, command or interaction was sent for: in a shared channel, of the installations."""
    found = {body.get("team_id")}
    for each in (body.get("team"), *(body.get("authorizations") or ())):
        if isinstance(each, dict):
            found |= {each.get("team_id"), each.get("id")}
    return {team for team in found if isinstance(team, str) and team}


def retries(headers: Mapping[str, Any]) -> int:
    """How often Slack has sent this event before."""
    number = str((headers.get("x-slack-retry-num") or ["0"])[0])
    return int(number) if _RETRIES.fullmatch(number) else 0
