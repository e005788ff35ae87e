"""A Readable as the parameters of a query."""

from typing import Any

from composer.visibility import Readable


def readable_parameters(readable: Readable) -> dict[str, Any]:
    """The parameters by which a query reads only what a viewer may read."""
    return {
        "namespaces": list(readable.all_namespaces),
        "pooled": list(readable.pooled),
        "visibilities": [str(visibility) for visibility in readable.visibilities],
        "readers": list(readable.readers),
        "vendor": readable.vendor,
    }


def recall_parameters(readable: Readable) -> dict[str, Any]:
    """The same for a query that recalls, or explains what was recalled: it reads the rooms opened to a DM as well, and
    names them in may_read()."""
    parameters = readable_parameters(readable)
    return {**parameters, "namespaces": [*parameters["namespaces"], *readable.rooms], "rooms": list(readable.rooms)}


def pattern_of(word: str) -> str:
    """A pattern of LIKE that a text with a word fits; what the word holds has no meaning of its own there."""
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
