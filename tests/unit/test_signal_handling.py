"""Signals end a command, whichever thread of it the system delivers them to."""

import asyncio
import signal
import threading
import time

import pytest

from bot.console.cli.signals import SignalHandling
from tests.support.waiting import TIMEOUT_SECONDS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_another_thread_gets_ends_work_that_waits(number: signal.Signals) -> None:
    ending, asleep, late = SignalHandling(), threading.Event(), list[bool]()

    def deliver() -> None:
        asleep.wait(TIMEOUT_SECONDS)
        time.sleep(0.1)  # the loop begins to wait meanwhile; if it does later, the test passes all the same
        signal.pthread_kill(threading.get_ident(), number)

    async def work() -> None:
        threading.Thread(target=deliver).start()
        loop = asyncio.get_running_loop()
        loop.call_soon(asleep.set)
        loop.call_later(TIMEOUT_SECONDS, late.append, True)
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        ending.run(work())
    assert ending.signal == number
    assert not late


def test_the_handlers_from_before_are_back_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]

    async def work() -> int:
        return 7

    assert SignalHandling().run(work()) == 7
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
