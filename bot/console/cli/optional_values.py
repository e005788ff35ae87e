"""Values of options that may stand without one: `--dm` and `--public`."""

from typing import Final

FIRST_AGENT: Final = "-"  # the value of --dm without an agent
ALL: Final = "*"  # and of --public without a room


def arguments(words: list[str], agents: set[str]) -> list[str]:
    """The command line with a value for each `--dm` that is not followed by an agent's slug, and for each `--public`
    that is followed by nothing but options."""
    full = []
    for number, word in enumerate(words):
        full.append(word)
        following = words[number + 1] if number + 1 < len(words) else ""
        if word == "--dm" and following not in agents:
            full.append(FIRST_AGENT)
        elif word == "--public" and (not following or following.startswith("-")):
            full.append(ALL)
    return full
