"""The entry point of `nexus`. It imports the command line only when it is called, and that the rest of the program."""

import os

from bot.console.loading import load


def main() -> None:
    """Load the command line and run it."""
    # What numpy multiplies here is small: after each product its other threads would spin for 25 ms on every core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    load("bot.console.command_line").run()


if __name__ == "__main__":
    main()
