"""The entry point of `nexus`. It imports the program only when it is called, without garbage collection."""

import gc


def main() -> None:
    """Import the program and run it.

    Imports make a hundred thousand objects, and all of them stay. Without this, the collector would look through them
    for garbage again and again, and once more at the end: for a third of the time of a short command.
    """
    gc.disable()
    from bot.console.command_line import run  # noqa: PLC0415 - as above

    gc.freeze()
    gc.enable()
    run()


if __name__ == "__main__":
    main()
