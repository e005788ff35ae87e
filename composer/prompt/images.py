"""The images that come with a question: which of them a model is shown, and what is said of the others. Pure.

An image goes along with the message that brought it and with an answer to that message, nowhere else. The log keeps
where it is, never its bytes: they are fetched when the question is answered, and again when that was cut off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from composer.model import Attachment, Message
from composer.ports.models import Image

MOST: Final = 4  # images of one question
LARGEST: Final = 5 * 2**20  # bytes of one; providers differ, and all take this much
# Tokens of one image. An estimate from above: OpenAI counts 85 + 170 for each of at most 8 tiles of 512 x 512 (1,445),
# Anthropic width x height / 750, at most about 1,600.
TOKENS: Final = 1_600
SHARE: Final = 0.5  # of a prompt's budget that images may take

_SIGNATURES: Final = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


@dataclass(frozen=True, slots=True)
class Picture:
    """An image of a message that the model is to be shown; `place` is its number among the message's attachments."""

    message: Message
    place: int

    @property
    def attachment(self) -> Attachment:
        """The image as the log has it."""
        return self.message.attachments[self.place]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The images that go along, in their order, and a sentence for the asker on each that doesn't."""

    shown: tuple[Picture, ...] = ()
    unseen: tuple[str, ...] = ()


def choose(asked: Message, replied: Message | None, budget: int) -> Chosen:
    """What goes along with a question: its own images, then those of the message that it answers, if that is in the
    view. `budget` is the prompt's, in tokens."""
    room = int(budget * SHARE) // TOKENS
    shown: list[Picture] = []
    unseen: list[str] = []
    for message in (asked, *(() if replied is None else (replied,))):
        for place, attachment in enumerate(message.attachments):
            if not attachment.is_image:
                continue
            if attachment.size > LARGEST:
                most = f"{LARGEST / 2**20:.0f} MB"
                unseen.append(missed(attachment, f"it has {_megabytes(attachment.size)}, and I look at up to {most}"))
            elif not attachment.address:
                unseen.append(missed(attachment, "I was told its name only"))
            elif len(shown) == MOST:
                unseen.append(missed(attachment, f"I look at up to {MOST} images at once"))
            elif len(shown) == room:
                unseen.append(missed(attachment, "there is no room for it in my window"))
            else:
                shown.append(Picture(message, place))
    return Chosen(tuple(shown), tuple(unseen))


def missed(attachment: Attachment, why: str) -> str:
    """The sentence for an image that was not looked at."""
    return f"I did not look at {' '.join(attachment.name.split())}: {why}."


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MB"


def numbers(shown: Sequence[Picture], message: Message) -> dict[int, int]:
    """The number that each attachment of a message has among the images that are shown, by its place."""
    return {p.place: number for number, p in enumerate(shown, 1) if p.message.id == message.id}


def image_of(content: bytes) -> Image | None:
    """Bytes as an image, of the kind that they say themselves; None when they are none that models take."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return Image("image/webp", content)
    kind = next((kind for signature, kind in _SIGNATURES if content.startswith(signature)), None)
    return None if kind is None else Image(kind, content)
