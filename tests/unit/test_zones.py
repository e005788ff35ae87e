"""Time zones by name."""

import pytest

from composer.errors import BadInput
from composer.text.zones import zone_named, zone_of_text


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("  ho chi minh  ", "Asia/Ho_Chi_Minh"),
        ("Buenos Aires", "America/Argentina/Buenos_Aires"),
        ("utc", "UTC"),
    ],
)
def test_a_zone_is_meant_by_its_name_or_its_city(text: str, zone: str) -> None:
    assert zone_of_text(text) == zone


@pytest.mark.parametrize(
    "text", ["EST", "PST", "IST", "UTC+2", "Etc/GMT+2", "localtime", "", "../etc/passwd", "x" * 99]
)
def test_what_may_be_several_zones_or_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="no time zone that I know"):
        zone_of_text(text)


def test_a_slip_of_the_pen_is_pointed_out() -> None:
    with pytest.raises(BadInput, match="Did you mean Europe/Berlin"):
        zone_of_text("Europe/Berln")


@pytest.mark.parametrize(
    "name", [None, "", "Mars/Olympus", "europe/berlin", "../../etc/passwd", "localtime", "A" * 500]
)
def test_what_a_platform_says_is_a_zone_or_nothing(name: str | None) -> None:
    assert zone_named(name) is None
    assert str(zone_named("Asia/Kolkata")) == "Asia/Kolkata"
