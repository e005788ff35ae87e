"""A body that is no event of Slack is refused, whatever its fields hold."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from bot.slack.requests import Malformed, check_shape

EVENT: dict[str, Any] = {"team_id": "T1", "event": {"type": "message", "channel": "C1", "ts": "1.2"}}
WRONG: list[dict[str, Any]] = [
    {"authorizations": 5},
    {"authorizations": {"team_id": "T1"}},
    {"authorizations": ["T1"]},
    {"authorizations": [{"team_id": ["T1"]}]},
    {"team_id": ["T1"]},
    {"team_id": {"id": "T1"}},
    {"team": ["T1"]},
    {"team": {"id": {}}},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_workspaces_that_are_not_text_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        check_shape(json.dumps(EVENT | wrong).encode(), "application/json")
    with pytest.raises(Malformed):
        check_shape(f"payload={quote(json.dumps(wrong))}".encode(), "application/x-www-form-urlencoded")


@pytest.mark.parametrize("kind", [5, ["message"], {"a": 1}])
def test_an_event_whose_type_is_not_text_is_refused(kind: object) -> None:
    with pytest.raises(Malformed):
        check_shape(json.dumps(EVENT | {"event": {"type": kind}}).encode(), "application/json")


def test_what_slack_sends_is_taken() -> None:
    team = {"team": "T1", "authorizations": [{"team_id": "T1", "is_bot": True}]}
    for body in (EVENT, EVENT | team, EVENT | {"team": {"id": "T1"}, "authorizations": None}):
        assert check_shape(json.dumps(body).encode(), "application/json")
