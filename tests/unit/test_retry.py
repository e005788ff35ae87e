"""Retries: each wait is longer, up to a maximum, and the first result or other error ends them."""

import pytest

from bot.platform.retry import Backoff
from composer.errors import Refused, Unavailable


class Service:
    """Fails a number of times, then answers."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.failures = failures
        self.error = error or Unavailable("It does not answer.")
        self.waits: list[float] = []

    async def call(self) -> str:
        self.failures -= 1
        if self.failures >= 0:
            raise self.error
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def backoff(self) -> Backoff:
        return Backoff(first_seconds=1.0, max_seconds=5.0, sleep=self.sleep)


async def test_each_wait_is_twice_the_one_before_up_to_the_maximum() -> None:
    service = Service(5)
    assert await service.backoff().retry(lambda: service.call(), "test.retrying") == "done"
    assert service.waits == [1.0, 2.0, 4.0, 5.0, 5.0]


async def test_another_error_ends_the_retries_at_once() -> None:
    service = Service(5, Refused("never"))
    with pytest.raises(Refused):
        await service.backoff().retry(service.call, "test.retrying")
    assert service.waits == []


async def test_the_last_error_is_raised_after_the_last_try() -> None:
    service = Service(5)
    with pytest.raises(Unavailable):
        await service.backoff().retry(service.call, "test.retrying", max_tries=3)
    assert len(service.waits) == 2


async def test_a_result_that_is_not_final_is_retried() -> None:
    results = [False, False, True]

    async def call() -> bool:
        return results.pop(0)

    service = Service(0)
    assert await service.backoff().retry(call, "test.retrying", again=lambda done: not done)
    assert len(service.waits) == 2
