"""Make nexus_client/sync.py from nexus_client/aio.py: `python -m tests.support.client_sync`."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[2] / "nexus_client"
# In this order: what is replaced by another text, wherever it stands.
REPLACED: Final = (
    ("The asynchronous client. `nexus_client/sync.py` is made from this file", "The synchronous client, made from"),
    (" (`python -m tests.support.client_sync`).", " `nexus_client/aio.py`\nby `python -m tests.support.client_sync`."),
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
    ("            for item in items:\n                yield item\n", "            yield from items\n"),
)


def sync_source() -> str:
    """The text of the synchronous client."""
    text = (FOLDER / "aio.py").read_text(encoding="utf-8")
    for old, new in REPLACED:
        text = text.replace(old, new)
    return text


if __name__ == "__main__":
    (FOLDER / "sync.py").write_text(sync_source(), encoding="utf-8")
