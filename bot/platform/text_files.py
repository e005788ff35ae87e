"""Which files that come with messages are read as text, and how. Pure."""

from typing import Final

LONGEST_FILE: Final = 100_000  # bytes of a text file that are read
_TYPES: Final = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")
_NAMES: Final = (".txt", ".md", ".csv", ".json", ".yaml", ".yml", ".toml", ".log", ".py", ".sql", ".sh", ".xml")


def is_text(name: str, type: str) -> bool:
    """Whether a file of this name and media type ("" where nobody says) is one of text."""
    return type.startswith(_TYPES) or name.lower().endswith(_NAMES)


def text_in(content: bytes) -> str:
    """The text of such a file."""
    return content.decode("utf-8", "replace")
