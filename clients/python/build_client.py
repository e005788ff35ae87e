"""The build backend of the client: setuptools, once the synchronous client is made from the asynchronous one.

`python build_client.py` makes the synchronous client alone, after a change of the asynchronous one.
"""

from pathlib import Path
from typing import Any, Final

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks that stay as they are

FOLDER: Final = Path(__file__).resolve().parent / "nexus_client"
# In this order: what is replaced by another text, wherever it stands.
REPLACED: Final = (
    (
        "The asynchronous client. `sync.py` is made from this file (build_client.py).",
        "The synchronous client, made from `aio.py`.",
    ),
    (
        "import asyncio\nimport json\nimport random\nimport uuid\n",
        "import json\nimport random\nimport time\nimport uuid\n",
    ),
    ("AsyncIterator", "Iterator"),
    ("AsyncNexus", "Nexus"),
    ("httpx2.AsyncClient", "httpx2.Client"),
    ("await asyncio.sleep", "time.sleep"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
    (".aclose()", ".close()"),
    (".aread()", ".read()"),
    (".aiter_lines()", ".iter_lines()"),
    ("async def", "def"),
    ("async for", "for"),
    ("async with", "with"),
    ("await ", ""),
)


def sync_source() -> str:
    """The text of the synchronous client."""
    text = (FOLDER / "aio.py").read_text(encoding="utf-8")
    for old, new in REPLACED:
        text = text.replace(old, new)
    return text


def write_sync() -> None:
    """Make the synchronous client."""
    (FOLDER / "sync.py").write_text(sync_source(), encoding="utf-8")


def build_wheel(*arguments: Any, **options: Any) -> str:
    """As setuptools does, with the synchronous client."""
    write_sync()
    return build_meta.build_wheel(*arguments, **options)


def build_editable(*arguments: Any, **options: Any) -> str:
    """As setuptools does, with the synchronous client."""
    write_sync()
    return build_meta.build_editable(*arguments, **options)


def build_sdist(*arguments: Any, **options: Any) -> str:
    """As setuptools does, with the synchronous client."""
    write_sync()
    return build_meta.build_sdist(*arguments, **options)


if __name__ == "__main__":
    write_sync()
