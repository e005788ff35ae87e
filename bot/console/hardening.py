"""What the program shows and leaves on disk: no secret of the settings, and nothing that other users can read."""

import os
import re
import stat
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

MASK: Final = "[secret]"
# What older versions left readable to others. The database's folder is private by itself.
DATA_FOLDER_CONTENT: Final = (
    "backups",
    "mem0",
    "audit.key",
    "audit.heads",
    "nexus.toml",
    "secrets.env",
)
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class MaskingStream:
    """An output stream that shows none of these secrets, whatever writes to it: sentences, logs, tracebacks."""

    def __init__(self, stream: Any, secrets: Collection[str]) -> None:
        self._stream = stream
        self._secrets = re.compile("|".join(re.escape(each) for each in sorted(secrets, key=len, reverse=True)))

    def write(self, text: str) -> int:
        """Write a text, with each secret masked."""
        self._stream.write(self._secrets.sub(MASK, text))
        return len(text)

    def writelines(self, texts: Collection[str]) -> None:
        """Write several texts."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # whoever finds it writes past the mask; the line editor then uses `write`
            raise AttributeError(name)
        return getattr(self._stream, name)


def mask_output(secrets: Collection[str]) -> None:
    """Mask these secrets in all that this process writes from now on. Call it before logs are configured."""
    if secrets:
        sys.stdout, sys.stderr = MaskingStream(sys.stdout, secrets), MaskingStream(sys.stderr, secrets)


def make_private(home: Path) -> None:
    """Let only this user read what this process creates, and what the data folder holds of content and keys."""
    os.umask(0o077)
    for name in DATA_FOLDER_CONTENT:
        top = home / name
        for path in (top, *top.rglob("*")) if top.is_dir() else (top,):
            with suppress(OSError):  # missing, or somebody else's
                found = path.lstat()
                if found.st_mode & OTHERS and found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode):
                    path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)
