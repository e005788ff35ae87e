"""A program whose library swallows its end ends all the same: at a second signal, or when its time is over."""

import signal
import subprocess
import sys

import pytest

STUBBORN = """
import asyncio, sys
from bot.console.cli.signals import SignalHandling

async def work():
    print("at work", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("swallowed", flush=True)

SignalHandling(float(sys.argv[1])).run(work())
"""


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_a_program_that_swallowed_the_first(second: signal.Signals) -> None:
    given = [sys.executable, "-c", STUBBORN, "3600"]
    with subprocess.Popen(given, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "at work\n"
        program.send_signal(signal.SIGTERM)
        assert program.stdout.readline() == "swallowed\n"
        program.send_signal(second)
        assert program.wait() == 128 + second


def test_a_program_that_swallows_its_end_is_ended_when_its_time_is_over() -> None:
    given = [sys.executable, "-c", STUBBORN, "0.2"]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "at work\n"
        program.send_signal(signal.SIGTERM)
        _, errors = program.communicate()
    assert program.returncode == 128 + signal.SIGTERM
    assert "Not everything has ended" in errors
