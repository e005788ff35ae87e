"""Which attached files are read as text, and how. One rule for every platform and importer. Pure."""

from typing import Final

MAX_TEXT_FILE_BYTES: Final = 100_000  # of a larger file only the name is stored
_TYPES: Final = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"}
    | {"application/sql", "application/javascript", "application/x-sh", "application/x-python", "application/x-ndjson"}
)
_SUFFIXES: Final = (".txt", ".md", ".csv", ".json", ".yaml", ".yml", ".toml", ".log", ".py", ".sql", ".sh", ".xml")


def is_text_file(name: str, media_type: str) -> bool:
    """Whether a file is text, by its media type ("": unknown) or by the suffix of its name."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence.startswith("text/") or essence in _TYPES or name.lower().endswith(_SUFFIXES)


def decode_text(content: bytes) -> str:
    """The text of such a file: UTF-8 without a byte order mark; what is not UTF-8 is replaced."""
    return content.decode("utf-8", "replace").removeprefix("\ufeff")
