"""The entry point of `make demo`. Ctrl-C ends it quietly from its beginning on: also while it is being imported."""

import os
import signal
import sys
from typing import Final

from bot.console.loading import load

INTERRUPTED: Final = 128 + signal.SIGINT


def main() -> int:
    """Import the demo and play it; returns the exit status."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # an import may swallow an exception
    play = load("tests.week.demo").main
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return int(play())
    except KeyboardInterrupt:  # before its work began, or after it ended
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
