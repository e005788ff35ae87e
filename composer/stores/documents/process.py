"""Starts the process that reads a document (composer/stores/documents/child.py), and limits it from outside."""

import asyncio
import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import IO, Final

import structlog

import composer
from composer.ports.documents import DocumentText
from composer.tasks.shares import Places
from composer.text.decoding import decode_text
from composer.text.file_kinds import MAX_DOCUMENT_BYTES, MAX_DOCUMENT_CHARS, FileKind, file_kind, too_large

logger = structlog.get_logger()

MAX_DOCUMENT_SECONDS: Final = 60.0  # for one document, which may use less of the processor's time
MAX_DOCUMENTS_AT_ONCE: Final = 2
MAX_DECODED_BYTES: Final = 4 * (MAX_DOCUMENT_CHARS + 2)  # of a text, which are enough in any encoding
TOO_LONG: Final = "could not be read: it takes too long"
BROKEN: Final = "could not be read: it is damaged, or too large when it is unpacked"
_ROOT: Final = str(Path(composer.__file__).parent.parent)
_MAIN: Final = "import sys; sys.path.append(sys.argv.pop(1)); from composer.stores.documents.child import main; main()"
_COMMAND: Final = (sys.executable, "-I", "-X", "utf8", "-c", _MAIN, _ROOT)


class DocumentProcesses:
    """Reads each document in a process of its own (composer.ports.documents.DocumentReader), a few at once. A text is
    decoded here."""

    def __init__(self, seconds: float = MAX_DOCUMENT_SECONDS) -> None:
        self._seconds = seconds
        self._places = Places(MAX_DOCUMENTS_AT_ONCE)

    async def read(self, name: str, media_type: str, content: bytes) -> DocumentText:
        """The text of a file, and what was not read of it."""
        kind = file_kind(name, media_type)
        if kind is None or not content:
            return DocumentText()
        if len(content) > MAX_DOCUMENT_BYTES:
            return DocumentText(note=too_large(len(content)))
        if kind is FileKind.TEXT:
            text = await asyncio.to_thread(decode_text, content[:MAX_DECODED_BYTES])
            cut = f"only its first {MAX_DOCUMENT_CHARS:,} characters are read" if len(text) > MAX_DOCUMENT_CHARS else ""
            return DocumentText(text[:MAX_DOCUMENT_CHARS], cut)
        async with self._places.take():
            with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as taken:
                await asyncio.to_thread(_put, given, content)
                return await self._read(kind, given, taken)

    async def _read(self, kind: FileKind, given: IO[bytes], taken: IO[bytes]) -> DocumentText:
        nowhere = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *_COMMAND, kind, stdin=given, stdout=taken, stderr=nowhere, env={}, cwd="/", start_new_session=True
        )
        try:
            async with asyncio.timeout(self._seconds):
                status = await process.wait()
        except TimeoutError:
            return DocumentText(note=TOO_LONG)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        taken.seek(0)
        try:
            text, note = json.loads(taken.read())
        except ValueError:
            logger.warning("document.not_read", kind=kind, status=status)
            return DocumentText(note=TOO_LONG if status == -signal.SIGXCPU else BROKEN)
        return DocumentText(text, note)


def _put(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.seek(0)
