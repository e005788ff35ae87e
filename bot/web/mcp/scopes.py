"""Which scope a call of a tool needs at all: an app that was not given it is told to ask its person for it."""

from collections.abc import Collection, Mapping
from typing import Final

from pydantic_core import from_json

READ, WRITE, TEAMS, PROJECTS = "entries:read", "entries:write", "teams:read", "projects:read"
# Of each tool, those of which one is needed; the first is what an app is told to ask for.
_READING: Final = (READ, TEAMS, PROJECTS)
SCOPES_OF_TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "search": _READING,
    "fetch": _READING,
    "browse_entries": _READING,
    "entries_by_tag": _READING,
    "latest_entry": _READING,
    "facts": _READING,
    "team_entries": (TEAMS,),
    "write_entry": (WRITE,),
    "forget_own": (WRITE,),
}


def scope_needed(body: bytes, permissions: Collection[str]) -> str | None:
    """The scope that the call of a tool in a request's body needs and that is not among these permissions; None where
    it needs none, and for any other body."""
    try:
        said = from_json(body)
    except ValueError:
        return None
    if not isinstance(said, dict) or said.get("method") != "tools/call" or not isinstance(said.get("params"), dict):
        return None
    name = said["params"].get("name")
    needed = SCOPES_OF_TOOLS.get(name, ()) if isinstance(name, str) else ()
    return needed[0] if needed and not set(needed) & set(permissions) else None
