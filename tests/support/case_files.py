"""The files of attack cases, in YAML: one family of cases each, which are checked before they are played."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

C = TypeVar("C")


class BadCase(Exception):
    """A case that proves nothing, or can't be read; the message says which, and why."""


def read_family(path: Path, families: Collection[str], make: Callable[[dict[str, Any]], C]) -> list[C]:
    """The cases of one file, each as `make` makes and checks it. Raises BadCase for one that proves nothing."""
    content = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    family = content["family"]
    if family not in families:
        raise BadCase(f"{path.name}: there is no family {family}: choose one of {', '.join(sorted(families))}.")
    found = []
    for number, entry in enumerate(content["cases"], 1):
        try:
            found.append(make(entry | {"family": family, "number": number}))
        except ValidationError as error:
            detail = error.errors()[0]
            raise BadCase(f"{path.name}: {entry.get('name')}: {detail['loc']}: {detail['msg']}") from None
    return found


def require_distinct(what: str, values: Sequence[str]) -> None:
    """Return if no two cases have the same value of a kind (`what`). Raises BadCase."""
    for value, count in Counter(values).items():
        if count > 1:
            raise BadCase(f"Several cases have the {what} {value}.")
