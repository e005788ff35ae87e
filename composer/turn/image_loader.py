"""Load the images that a prompt names, from the platform that each message came from."""

import asyncio
from typing import Final

import structlog

from composer.errors import Refused, Unavailable
from composer.model import Turn
from composer.ports.files import FileSource
from composer.ports.models import Image
from composer.prompt import images
from composer.prompt.budget import with_images
from composer.prompt.images import SelectedImage
from composer.prompt.sections import Prompt

logger = structlog.get_logger()

ATTEMPTS: Final = 2  # per image
IMAGE_RETRY_SECONDS: Final = 0.5


class ImageLoader:
    """Loads images from one source per adapter. An adapter registers its source when it starts."""

    def __init__(self) -> None:
        self._sources: dict[str, FileSource] = {}

    def register_source(self, adapter: str, source: FileSource) -> None:
        """Load the images of messages that came through `adapter` from `source`."""
        self._sources[adapter] = source

    async def load_into(self, prompt: Prompt, turn: Turn) -> Prompt:
        """The prompt with its images added. An image that can't be loaded is replaced by a sentence that says why."""
        return with_images(prompt, await asyncio.gather(*(self._load_one(turn, each) for each in prompt.images)))

    async def _load_one(self, turn: Turn, image: SelectedImage) -> Image | str:
        source, reason = self._sources.get(turn.adapter), "images from this platform are not supported"
        for attempt in range(ATTEMPTS if source is not None else 0):
            if attempt:
                await asyncio.sleep(IMAGE_RETRY_SECONDS)
            try:
                assert source is not None
                content = await source.fetch(turn, image.message, image.attachment, images.MAX_IMAGE_BYTES)
            except Unavailable:
                reason = "it could not be loaded just now; ask again in a while"
                continue
            except Refused as error:
                reason = str(error)
                break
            loaded = images.image_from(content)
            if loaded is not None:
                return loaded
            reason = "it is not a PNG, JPEG, WebP or GIF"
            break
        logger.warning("turn.image_not_loaded", turn=str(turn.id), message=str(image.message.id))
        return images.not_viewed_sentence(image.attachment, reason)
