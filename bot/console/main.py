"""The entry point of `nexus`. It imports the command line only when it is called, and that the rest of the program."""

from bot.console.loading import load


def main() -> None:
    """Load the command line and run it."""
    load("bot.console.command_line").run()


if __name__ == "__main__":
    main()
