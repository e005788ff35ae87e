"""Files that people attach to what they say in sessions. No platform keeps them, and neither does Nexus: they are held
in memory until the answer is there, and read meanwhile as those of any chat (composer/ingest/file_texts.py)."""

import asyncio
import mimetypes
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from composer.errors import BadInput, Refused, Unavailable
from composer.model import Attachment, Message, Turn
from composer.prompt.images import MAX_IMAGE_BYTES, MAX_IMAGES, image_from
from composer.text.cleaning import clean_line, shorten
from composer.text.file_kinds import FileKind, file_kind

MAX_FILES: Final = MAX_IMAGES  # of one message: so many images are looked at
MAX_FILES_BYTES: Final = 10_000_000  # of all files of one message
MAX_FILE_NAME_CHARS: Final = 200
MAX_HELD_BYTES: Final = 100_000_000  # in this process; a quarter for one person, three for an organisation
HELD_SECONDS: Final = 900.0  # at most, where no answer comes
UNKNOWN_KIND: Final = (
    "{name} is of a kind that is not read: attach a picture (PNG, JPEG, WebP, GIF), PDF, Word, Excel, PowerPoint, "
    "HTML, a mail or a text."
)
NOT_WRITTEN_DOWN: Final = (
    "{name} is a voice note: here none is written down, since whoever runs Nexus has set no model for that. Write what "
    "it says."
)
TOO_MUCH_HELD: Final = "Too many files wait for their answers: try again in a moment."
NOT_HELD: Final = "it is kept only until the answer is there; attach it again"
_AUDIO: Final = re.compile(r"audio/[a-z0-9.+-]{1,40}")


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as it was sent: what it is called and said to be, and what is in it."""

    name: str
    type: str
    content: bytes


def attachments_of(files: Sequence[SentFile], *, spoken: bool = False) -> tuple[Attachment, ...]:
    """Files as a message has them, each with an address of its own. `spoken`: voice notes are written down. Raises
    BadInput, with one sentence, for too many or too large ones, and for kinds that are not read."""
    if len(files) > MAX_FILES:
        raise BadInput(f"At most {MAX_FILES} files are taken with a message.")
    if sum(len(each.content) for each in files) > MAX_FILES_BYTES:
        raise BadInput(f"The files of a message may have {MAX_FILES_BYTES // 1_000_000} MB together.")
    return tuple(_attachment(each, spoken) for each in files)


def _attachment(file: SentFile, spoken: bool) -> Attachment:
    name = shorten(clean_line(PurePosixPath(file.name.replace("\\", "/")).name), MAX_FILE_NAME_CHARS) or "file"
    if not file.content:
        raise BadInput(f"{name} is empty.")
    address, size = f"held:{uuid.uuid4().hex}", len(file.content)
    if (image := image_from(file.content)) is not None:
        if size > MAX_IMAGE_BYTES:
            raise BadInput(f"{name} has {size / 2**20:.1f} MB: a picture may have {MAX_IMAGE_BYTES // 2**20} MB.")
        return Attachment(name, image.type, size=size, address=address)
    said = file.type.partition(";")[0].strip().lower()
    if _AUDIO.fullmatch(said):
        if not spoken:
            raise BadInput(NOT_WRITTEN_DOWN.format(name=name))
        return Attachment(name, said, size=size, address=address)
    is_media = said.startswith(("image/", "audio/", "video/"))  # which it is not, or none that is read
    kind = file_kind(name, "" if is_media else said)
    if kind in (None, FileKind.OTHER):
        raise BadInput(UNKNOWN_KIND.format(name=name))
    known = mimetypes.guess_type(name)[0] or said
    return Attachment(name, "text/plain" if kind is FileKind.TEXT or is_media else known, size=size, address=address)


@dataclass(frozen=True, slots=True)
class _Held:
    tenant: uuid.UUID
    user: uuid.UUID
    content: bytes


class SessionFiles:
    """Holds the files of messages that are not answered yet (composer.ports.files.FileSource)."""

    def __init__(self) -> None:
        self._held: dict[uuid.UUID, dict[str, _Held]] = {}  # by message and address

    def hold(self, tenant: uuid.UUID, user: uuid.UUID, message: uuid.UUID, held: Mapping[str, bytes]) -> None:
        """Hold files of a person's message, by their addresses, until `drop`. Raises Unavailable where too much is
        held, for them, for their organisation or in all."""
        if not held:
            return
        new = {at: _Held(tenant, user, content) for at, content in held.items()}
        every = [each for files in (*self._held.values(), new) for each in files.values()]
        of_tenant = [each for each in every if each.tenant == tenant]
        own = [each for each in of_tenant if each.user == user]
        for quarters, of in ((1, own), (3, of_tenant), (4, every)):
            if sum(len(each.content) for each in of) > MAX_HELD_BYTES * quarters // 4:
                raise Unavailable(TOO_MUCH_HELD)
        self._held.setdefault(message, {}).update(new)
        asyncio.get_running_loop().call_later(HELD_SECONDS, self.release, message, list(held))

    def release(self, message: uuid.UUID, addresses: Collection[str]) -> None:
        """Hold these files of a message no more."""
        left = {at: each for at, each in self._held.pop(message, {}).items() if at not in addresses}
        if left:
            self._held[message] = left

    def drop(self, message: uuid.UUID) -> None:
        """Hold no file of a message any more."""
        self._held.pop(message, None)

    async def fetch(self, turn: Turn | None, message: Message, attachment: Attachment, limit: int) -> bytes:
        """The content of a file. Raises Refused for one that is not held here."""
        found = self._held.get(message.id, {}).get(attachment.address)
        if found is None or len(found.content) > limit:
            raise Refused(NOT_HELD)
        return found.content
