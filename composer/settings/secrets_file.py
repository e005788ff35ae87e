"""The file of secrets, `secrets.env`: lines of NAME=value, as Docker Compose and systemd read them too."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from composer.errors import BadInput, Misconfigured

NOT_SECRETS: Final = ("NEXUS_HOME", "NEXUS_CONFIG")  # by which the file is found
_LINE: Final = re.compile(r"\A([A-Za-z_][A-Za-z0-9_]*+)=(.*)")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:/+=@%,~-]+")


def read_secrets(path: Path) -> dict[str, str]:
    """The variables of a file, none if there is no file. Raises Misconfigured."""
    if not os.path.isfile(path):  # also where its folder can't be used, which whoever uses that says
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{path} is not UTF-8 text.") from error
    except (OSError, ValueError) as error:
        raise Misconfigured(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    found = parse_secrets(text, str(path))
    for name in NOT_SECRETS:
        if name in found:
            raise Misconfigured(f"In {path}, {name} cannot be set: set it in the environment.")
    return found


def parse_secrets(text: str, where: str) -> dict[str, str]:
    """The variables of a text. Blank lines and those that begin with # are skipped; a value may stand in quotes.

    Raises Misconfigured with the number of a line that is none of these; never with its text, which may be a secret.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        match = _LINE.fullmatch(written)
        if match is None:
            raise Misconfigured(f"{where}, line {number}: write NAME=value, for example NEXUS_MODEL=gpt-4o.")
        value = match[2].strip()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        found[match[1]] = value[1:-1] if quoted else value
    return found


def format_secrets(variables: Mapping[str, str]) -> str:
    """The lines of these variables, as every reader of such files understands them.

    Raises BadInput for a value that they would read in different ways: with a quote or a control character.
    """
    lines = []
    for name, value in variables.items():
        if not value.isprintable() or "'" in value or "\\" in value:
            raise BadInput(f"{name} has a quote, a backslash or a character that can't be printed: copy it again.")
        lines.append(f"{name}={value}\n" if _PLAIN.fullmatch(value) else f"{name}='{value}'\n")
    return "".join(lines)
