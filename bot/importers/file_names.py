"""Names of files in archives, which programs and operating systems write in several ways. Pure."""

import re
import unicodedata
from typing import Final

# What a zip without the flag for UTF-8 may have names in: the code pages of DOS, Windows, and older Macs.
CODE_PAGES: Final = (
    *("cp1252", "cp850", "cp437", "cp1250", "cp852", "cp1251", "cp866", "koi8-r", "cp1253", "cp737", "cp1254", "cp857"),
    *("cp1255", "cp862", "cp1256", "cp720", "cp1257", "cp775", "cp1258", "cp874", "cp932", "gb18030", "cp949", "cp950"),
    *("mac_roman", "mac_cyrillic", "euc_jp"),
)
_JUNK_FILES: Final = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini"})
_JUNK_FOLDERS: Final = frozenset({"__macosx", "@eadir", "$recycle.bin", "system volume information"})
_ESCAPED: Final = re.compile(r"#[Uu]([0-9a-fA-F]{4,6})")  # how Info-ZIP's unzip writes letters that it can't


def is_junk(name: str) -> bool:
    """Whether a file is one that an operating system or an office program leaves beside others."""
    *folders, last = name.lower().split("/")
    hidden = any(part.startswith((".", "~$")) and part not in (".", "..") for part in (*folders, last))
    return hidden or last in _JUNK_FILES or not _JUNK_FOLDERS.isdisjoint(folders)


def plain_name(name: str) -> str:
    """The name in the normal form NFC: macOS writes NFD."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def legacy_name(raw: bytes) -> str:
    """The name that bytes mean whose encoding nothing tells: UTF-8, or else a text that `is_same_name` compares."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp437")


def is_same_name(stored: str, wanted: str) -> bool:
    """Whether a file or folder has a name that is known: also in another normal form or case, in a code page that
    nothing tells, or escaped."""
    if _folded(stored) == _folded(wanted):
        return True
    if _ESCAPED.search(stored):
        return _folded(_ESCAPED.sub(lambda found: chr(min(int(found[1], 16), 0x10FFFF)), stored)) == _folded(wanted)
    if stored.isascii() or wanted.isascii():
        return False
    try:
        raw = stored.encode("cp437")
    except UnicodeEncodeError:
        return False
    return any(_encoded(form, page) == raw for page in CODE_PAGES for form in _forms(wanted))


def _folded(name: str) -> str:
    return plain_name(name).casefold()


def _forms(name: str) -> tuple[str, str]:
    return unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)


def _encoded(name: str, page: str) -> bytes | None:
    try:
        return name.encode(page)
    except UnicodeEncodeError:
        return None
