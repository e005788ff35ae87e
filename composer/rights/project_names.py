"""How projects are named: by their slug, and by slug and id (apollo:1f0c9a2b) where a person is in several of one slug.

Slugs need not be unique: a name that somebody else has taken would tell that their project exists.
"""

import uuid
from collections import Counter
from collections.abc import Iterable
from typing import Final

_BORDER: Final = ":"  # no slug has one
_ID_DIGITS: Final = 8


def full_name(slug: str, id: uuid.UUID) -> str:
    """The name of a project that no other has: its slug with the beginning of its id."""
    return f"{slug}{_BORDER}{id.hex[:_ID_DIGITS]}"


def names(typed: str, slug: str, id: uuid.UUID) -> bool:
    """Whether a typed name means a project: it is the slug, alone or with the beginning of the id."""
    name, border, beginning = typed.partition(_BORDER)
    return name == slug and (not border or (bool(beginning) and id.hex.startswith(beginning.replace("-", ""))))


def slug_of(typed: str) -> str:
    """The slug in a typed name."""
    return typed.partition(_BORDER)[0]


def distinct_names(projects: Iterable[tuple[uuid.UUID, str]]) -> dict[uuid.UUID, str]:
    """The shortest name of each of these projects (id, slug) that names no other of them."""
    found = list(projects)
    count = Counter(slug for _, slug in found)
    return {id: slug if count[slug] == 1 else full_name(slug, id) for id, slug in found}
