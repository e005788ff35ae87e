"""Times, days and numbers from outside: what people, platforms and files say is taken, or refused in a sentence."""

import json
import os
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands.structured import fact_value
from bot.console.audit import audit_query
from bot.importers.history import read_history
from bot.script.events import read_script
from bot.slack.reading import time_of
from bot.slack.requests import Malformed, check_shape
from composer.errors import BadInput
from composer.ingest.validation import validate_message
from composer.layers.retrieval_settings import RETRIEVAL
from composer.layers.semantic import Retrieval
from composer.memory.remember import MAX_VALUE_DEPTH, InexactNumber
from composer.memory.remember import parse_value as parse_fact_value
from composer.model import ConversationKind, Incoming, Place
from composer.text.dates.local_days import day_of as local_day
from composer.text.dates.local_days import end_of_day, start_of_day, week_of
from composer.text.moments import day_of, moment, moment_of, moment_of_seconds

ODD_TIMES: Final = [
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-12:00",
    "1969-12-31T23:59:59Z",
    "2201-01-01T00:00:00Z",
]
ODD_NUMBERS: Final = ["NaN", "Infinity", "-1", "-1e300", "1e300", "99999999999999999999", "1" * 5_000]
MESSAGE: Final[dict[str, Any]] = {"type": "message", "room": "general", "user": "alice", "id": "m1", "text": "hello"}
ZONES: Final = [timezone(timedelta(hours=hours)) for hours in (-12, 0, 14)]


@given(st.datetimes(timezones=st.sampled_from([*ZONES, None])))
def test_a_moment_is_utc_and_can_be_moved_or_it_is_refused(at: datetime) -> None:
    try:
        taken = moment(at)
    except BadInput:
        assert at.tzinfo is None or not 1971 <= at.year <= 2199
        return
    assert taken == at
    assert taken.tzinfo is UTC
    for zone in ZONES:
        assert local_day(taken, zone)[0] <= taken < local_day(taken, zone)[1]
        assert week_of(taken, zone)[0] <= taken < week_of(taken, zone)[1]


@given(st.text(max_size=30) | st.from_regex(r"\A[0-9]{1,12}(\.[0-9]{0,10})?\Z"))
def test_any_text_is_a_moment_or_is_refused(text: str) -> None:
    for read in (moment_of, moment_of_seconds, time_of):
        with suppress(BadInput):
            assert read(text).tzinfo is UTC


@given(st.dates() | st.text(max_size=12))
def test_a_day_has_a_beginning_and_an_end_or_is_refused(given_day: date | str) -> None:
    try:
        day = day_of(str(given_day))
    except BadInput:
        return
    for zone in ZONES:
        assert start_of_day(day, zone) < end_of_day(day, zone)


def test_the_days_of_commands_are_within_the_years() -> None:
    assert day_of("2026-05-01") == date(2026, 5, 1)
    for wrong in ("9999-12-31", "0001-01-01", "1969-12-31", "2201-01-01"):
        with pytest.raises(BadInput, match="is not within the years 1970 to 2200"):
            day_of(wrong)


def test_a_time_without_a_zone_is_utc_in_a_script_and_refused_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "plain.jsonl"
    path.write_text(json.dumps({**MESSAGE, "at": "2026-05-04T09:00:00"}), encoding="utf-8")
    assert read_script(path)[0].event.at == datetime(2026, 5, 4, 9, tzinfo=UTC)
    with pytest.raises(BadInput):
        audit_query("2026-05-04T09:00:00", None, None, None, 1)


@pytest.mark.parametrize("at", [*ODD_TIMES, "soon"])
def test_a_time_of_a_script_or_of_the_command_line_is_refused(tmp_path: Path, at: str) -> None:
    for type in ("message", "join"):
        fields = MESSAGE if type == "message" else {"type": type, "room": "general", "user": "alice"}
        path = tmp_path / "odd.jsonl"
        path.write_text(f"{json.dumps(MESSAGE)}\n{json.dumps({**fields, 'at': at})}\n", encoding="utf-8")
        with pytest.raises(BadInput, match=r"odd\.jsonl:2: "):
            read_script(path)
    with pytest.raises(BadInput):
        audit_query(at, None, None, None, 1)


@pytest.mark.parametrize("at", ODD_NUMBERS)
def test_a_number_is_no_odd_time_of_a_script(tmp_path: Path, at: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(json.dumps({**MESSAGE, "at": 0}).replace(": 0", f": {at}"), encoding="utf-8")
    with pytest.raises(BadInput, match=r"odd\.jsonl:1: "):
        read_script(path)


def test_an_irc_log_says_where_its_time_is_wrong(tmp_path: Path) -> None:
    midnights = "".join(f"[{hour}:00] <alice> hello\n" for _ in range(3) for hour in ("22", "01"))
    for name, sentence in (
        ("9999-12-31.txt", "is not within the years"),
        ("0001-01-01.txt", "is not within the years"),
        ("2026-13-45.txt", "is not a day"),
        ("2200-12-30.txt", r"2200-12-30\.txt:4: .*is not within the years"),
    ):
        path = tmp_path / name
        path.write_text(midnights, encoding="utf-8")
        with pytest.raises(BadInput, match=sentence):
            read_history(path, "irc", None, None)
    plain = tmp_path / "plain.txt"
    plain.write_text(midnights, encoding="utf-8")
    os.utime(plain, (-(10**9), -(10**9)))
    with pytest.raises(BadInput, match="is not within the years"):
        read_history(plain, "irc", None, None)
    plain.write_text(f"[10:00] <{'x' * 300}> hello\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"plain\.txt:1: `user`"):
        read_history(plain, "irc", None, None)


def test_a_message_with_an_odd_time_is_refused() -> None:
    place = Place(ConversationKind.ROOM, "general")
    for at in ODD_TIMES:
        odd = datetime.fromisoformat(at)
        with pytest.raises(BadInput, match="is not within the years"):
            validate_message(Incoming("console", "default", place, "alice", "Alice", "m1", "hello", odd), [])


@pytest.mark.parametrize(
    "ts", ["99999999999.000000", "7289654400.000000", "1.2.3", "-1.0", "NaN", "1e9.0", "\u0661.\u0662"]
)
def test_slack_is_answered_400_for_an_odd_ts(ts: str) -> None:
    event = {"team_id": "T1", "event": {"type": "message", "channel": "C1", "ts": ts}}
    with pytest.raises(Malformed):
        check_shape(json.dumps(event).encode(), "application/json")
    with pytest.raises(BadInput):
        time_of(ts)
    assert time_of("1777885200.000100") == datetime(2026, 5, 4, 9, 0, 0, 100, tzinfo=UTC)


@pytest.mark.parametrize("number", ["99999999", "0" * 12 + "99999999", "36501", "-1", "1e3", "\u0661\u0662", "NaN"])
def test_days_of_retention_are_within_their_limits(number: str) -> None:
    with pytest.raises(BadInput, match="a whole number from 0 to 36,500"):
        RETRIEVAL.find("retention_days").read(number)


def test_a_number_that_an_older_version_stored_is_cut_to_the_limit() -> None:
    assert RETRIEVAL.over(Retrieval(), {"retrieval.retention_days": "99999999"}).retention_days == 36_500


def test_a_facts_value_has_a_limited_depth() -> None:
    assert json.loads(fact_value("[" * MAX_VALUE_DEPTH + "1" + "]" * MAX_VALUE_DEPTH))
    for levels in (MAX_VALUE_DEPTH + 1, 300, 900, 100_000):
        for text in ("[" * levels + "]" * levels, '{"a":' * levels + "1" + "}" * levels):
            with pytest.raises(BadInput, match="in 20 levels; this one has more"):
                fact_value(text)


@pytest.mark.parametrize("text", ["1e-400", "0.1234567890123456789", "[1, 1.10]", "1.10e0", "-0.0", "-0"])
def test_a_number_that_would_change_is_no_value_of_a_fact(text: str) -> None:
    with pytest.raises(InexactNumber):
        parse_fact_value(text)
