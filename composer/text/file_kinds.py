"""Which attached files are read as text. One rule for every platform and importer. Pure."""

from enum import StrEnum
from typing import Final

MAX_DOCUMENT_BYTES: Final = 20_000_000  # of a larger file only the name is stored
MAX_DOCUMENT_CHARS: Final = 300_000  # of the text of one file; what stands after them is not read


class FileKind(StrEnum):
    """How a file is read. OTHER: a document of a format that is not read."""

    TEXT = "text"
    PDF = "pdf"
    WORD = "word"
    SHEETS = "sheets"
    SLIDES = "slides"
    HTML = "html"
    MAIL = "mail"
    OTHER = "other"


_SUFFIXES: Final = {
    **dict.fromkeys(("pdf",), FileKind.PDF),
    **dict.fromkeys(("docx", "docm", "dotx"), FileKind.WORD),
    **dict.fromkeys(("xlsx", "xlsm", "xltx"), FileKind.SHEETS),
    **dict.fromkeys(("pptx", "pptm", "ppsx", "potx"), FileKind.SLIDES),
    **dict.fromkeys(("html", "htm", "xhtml"), FileKind.HTML),
    **dict.fromkeys(("eml",), FileKind.MAIL),
    **dict.fromkeys(
        ("doc", "xls", "xlsb", "ppt", "odt", "ods", "odp", "rtf", "msg", "pages", "numbers", "key", "epub"),
        FileKind.OTHER,
    ),
    **dict.fromkeys(
        (
            "txt",
            "md",
            "csv",
            "tsv",
            "json",
            "jsonl",
            "yaml",
            "yml",
            "toml",
            "log",
            "py",
            "sql",
            "sh",
            "xml",
            "ini",
            "rst",
        ),
        FileKind.TEXT,
    ),
}
READ_SUFFIXES: Final = tuple(suffix for suffix, kind in _SUFFIXES.items() if kind is not FileKind.OTHER)
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_TYPES: Final = {
    "application/pdf": FileKind.PDF,
    f"{_OFFICE}wordprocessingml.document": FileKind.WORD,
    f"{_OFFICE}spreadsheetml.sheet": FileKind.SHEETS,
    f"{_OFFICE}presentationml.presentation": FileKind.SLIDES,
    "text/html": FileKind.HTML,
    "application/xhtml+xml": FileKind.HTML,
    "message/rfc822": FileKind.MAIL,
    **dict.fromkeys(
        (
            "application/msword",
            "application/vnd.ms-excel",
            "application/vnd.ms-powerpoint",
            "application/rtf",
            "text/rtf",
        ),
        FileKind.OTHER,
    ),
    **dict.fromkeys(
        (
            *("application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"),
            *("application/sql", "application/javascript", "application/x-sh", "application/x-python"),
            "application/x-ndjson",
        ),
        FileKind.TEXT,
    ),
}


def too_large(size: int) -> str:
    """Why a file of so many bytes is not read."""
    return f"could not be read: it has {size / 1e6:,.1f} MB, and the limit is {MAX_DOCUMENT_BYTES / 1e6:,.0f} MB"


def file_kind(name: str, media_type: str) -> FileKind | None:
    """How a file is read, by the suffix of its name, else by its media type ("": unknown); None for one that is no
    document, such as an image or a program. The suffix comes first: some browsers give CSV the type of Excel."""
    if found := _SUFFIXES.get(name.lower().rpartition(".")[2] if "." in name else ""):
        return found
    essence = media_type.partition(";")[0].strip().lower()
    return _TYPES.get(essence) or (FileKind.TEXT if essence.startswith("text/") else None)
