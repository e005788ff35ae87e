"""Select the images that a model is shown with a question, and say why others are not. Pure.

An image is shown with the message that brought it and with a reply to that message, nowhere else. The log stores where
an image is, never its bytes: they are loaded when the question is answered, and again if that was interrupted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from composer.model import Attachment, Message
from composer.ports.models import IMAGE_TOKENS, Image

MAX_IMAGES: Final = 4  # per question
MAX_IMAGE_BYTES: Final = 5 * 2**20  # per image; providers differ, and all of them accept this much
BUDGET_SHARE: Final = 0.5  # of the prompt's budget that images may use

_SIGNATURES: Final = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


@dataclass(frozen=True, slots=True)
class SelectedImage:
    """An image to show to the model. `index` is its position in the message's attachments."""

    message: Message
    index: int

    @property
    def attachment(self) -> Attachment:
        """The image as it is stored in the log."""
        return self.message.attachments[self.index]


@dataclass(frozen=True, slots=True)
class ImageSelection:
    """The images to show, in order, and a sentence for the asker about each one that is not shown."""

    shown: tuple[SelectedImage, ...] = ()
    unseen: tuple[str, ...] = ()


def select_images(question: Message, replied_to: Message | None, budget: int) -> ImageSelection:
    """Select the question's own images, then those of the message it replies to, if that is in the view.

    `budget` is the prompt's budget in tokens.
    """
    affordable = int(budget * BUDGET_SHARE) // IMAGE_TOKENS
    shown: list[SelectedImage] = []
    unseen: list[str] = []
    for message in (question, *(() if replied_to is None else (replied_to,))):
        for index, attachment in enumerate(message.attachments):
            if not attachment.is_image:
                continue
            if attachment.size > MAX_IMAGE_BYTES:
                limit = f"{MAX_IMAGE_BYTES / 2**20:.0f} MB"
                size = f"{attachment.size / 2**20:.1f} MB"
                unseen.append(not_viewed_sentence(attachment, f"it has {size}, and I look at up to {limit}"))
            elif not attachment.address:
                unseen.append(not_viewed_sentence(attachment, "the platform gave me only its name"))
            elif len(shown) == MAX_IMAGES:
                unseen.append(not_viewed_sentence(attachment, f"I look at up to {MAX_IMAGES} images at once"))
            elif len(shown) == affordable:
                unseen.append(not_viewed_sentence(attachment, "there is no room for it in my context window"))
            else:
                shown.append(SelectedImage(message, index))
    return ImageSelection(tuple(shown), tuple(unseen))


def not_viewed_sentence(attachment: Attachment, reason: str) -> str:
    """The sentence about an image that was not shown to the model."""
    return f"I did not look at {' '.join(attachment.name.split())}: {reason}."


def numbers(shown: Sequence[SelectedImage], message: Message) -> dict[int, int]:
    """For each attachment of a message that is shown, by its index: its number among all shown images."""
    return {image.index: number for number, image in enumerate(shown, 1) if image.message.id == message.id}


def image_from(content: bytes) -> Image | None:
    """Bytes as an image, with the media type that the bytes themselves show. None for a type that models don't take."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return Image("image/webp", content)
    kind = next((kind for signature, kind in _SIGNATURES if content.startswith(signature)), None)
    return None if kind is None else Image(kind, content)
