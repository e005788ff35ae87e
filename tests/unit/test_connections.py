"""Which connections make room for others: those that wait, of whoever has most; never one that is answered."""

import resource
from collections import Counter

import pytest

from bot.web.connections import Connections, connections_for

PROXY = "10.0.0.1"


class Line:
    """A connection that does nothing."""

    def __init__(self, host: str, asks: str = "", *, waits: bool = True) -> None:
        self.host, self.asks, self.waits = host, asks or host, waits
        self.is_open = True

    def abort(self) -> None:
        self.is_open = False


def opened(places: Connections, *lines: Line) -> list[bool]:
    return [places.add(line) for line in lines]


def still_open(lines: list[Line]) -> Counter[str]:
    return Counter(line.asks for line in lines if line.is_open)


def test_whoever_has_most_makes_room_with_the_oldest_that_wait() -> None:
    places = Connections(12, [PROXY])
    crowd = [Line("192.0.2.1") for _ in range(3)]
    others = [Line(f"198.51.100.{number}") for number in range(9)]
    assert all(opened(places, *crowd, *others))
    assert places.add(Line("203.0.113.1"))
    assert [line.is_open for line in crowd] == [False, True, True]
    assert all(line.is_open for line in others)
    assert len(places) == 12


def test_one_address_has_a_share_and_beyond_it_takes_the_place_of_its_own() -> None:
    places = Connections(40, [PROXY])
    crowd = [Line("192.0.2.1") for _ in range(1_000)]
    other = Line("192.0.2.2")
    assert places.add(other)
    assert all(opened(places, *crowd))
    assert still_open(crowd) == {"192.0.2.1": 10}
    assert other.is_open
    assert len(places) == 11


def test_a_network_of_ipv6_is_one_address_and_so_is_a_mapped_one() -> None:
    places = Connections(40, [PROXY])
    crowd = [Line(f"2001:db8:1:2::{number:x}") for number in range(100)]
    mapped = [Line("::ffff:192.0.2.1" if number % 2 else "192.0.2.1") for number in range(100)]
    assert all(opened(places, *crowd, *mapped))
    assert sum(line.is_open for line in crowd) == sum(line.is_open for line in mapped) == 10


def test_what_is_answered_makes_no_room() -> None:
    places = Connections(12, [PROXY])
    answered = [Line(f"198.51.100.{number}", waits=False) for number in range(11)]
    waiting = Line("192.0.2.1")
    assert all(opened(places, *answered, waiting))
    assert opened(places, Line("203.0.113.1", waits=False), Line("203.0.113.2")) == [True, False]
    assert not waiting.is_open
    assert all(line.is_open for line in answered)
    places.remove(answered[0])
    assert places.add(Line("203.0.113.2"))


def test_an_address_that_has_its_share_of_answers_gets_no_more_and_others_do() -> None:
    places = Connections(40, [PROXY])
    assert opened(places, *(Line("192.0.2.1", waits=False) for _ in range(11))) == [True] * 10 + [False]
    assert places.add(Line("192.0.2.2"))


def test_behind_a_proxy_the_client_that_has_most_makes_room() -> None:
    places = Connections(40, [PROXY])
    few = [Line(PROXY, "192.0.2.2") for _ in range(5)]
    crowd = [Line(PROXY, "192.0.2.1") for _ in range(35)]
    assert all(opened(places, *few, *crowd)), "a proxy is no client: it may have all"
    more = [Line(PROXY, "192.0.2.1") for _ in range(100)]
    assert all(opened(places, *more))
    assert all(line.is_open for line in few)
    assert len(places) <= 40


def test_what_is_removed_twice_is_counted_once() -> None:
    places = Connections(40, [PROXY])
    lines = [Line("192.0.2.1") for _ in range(10)]
    opened(places, *lines)
    for line in [*lines, *lines]:
        places.remove(line)
    assert len(places) == 0
    assert all(opened(places, *(Line("192.0.2.1") for _ in range(10))))


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "most"),
    [
        (1_024, 524_288, (65_536, 524_288), 2_000),
        (1_024, resource.RLIM_INFINITY, (65_536, resource.RLIM_INFINITY), 2_000),
        (1_024, 1_024, None, 768),
        (256, 1_024, (1_024, 1_024), 768),
        (64, 64, None, 32),
        (524_288, 524_288, None, 2_000),
    ],
)
def test_there_are_fewer_connections_than_files(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: tuple[int, int] | None, most: int
) -> None:
    asked = list[tuple[int, int]]()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    places = connections_for([])
    assert asked == ([] if raised is None else [raised])
    lines = [Line(f"10.{number >> 8}.{number & 255}.1", waits=False) for number in range(most + 1)]
    assert opened(places, *lines) == [True] * most + [False]
