"""The embedders that run in this process, by name: which one a bench measures."""

from typing import Final

from composer.ports.models import Vectors
from composer.settings import LOCAL_EMBEDDERS
from composer.stores.models.configured import default_embedder
from composer.stores.models.e5 import MultilingualE5
from composer.stores.models.minilm import MiniLM
from composer.stores.models.multilingual import Multilingual

EMBEDDERS: Final = LOCAL_EMBEDDERS
DEFAULT: Final = default_embedder().name  # what a new installation has


def embedder_named(name: str) -> MiniLM:
    """The embedder of that name."""
    return dict(zip(EMBEDDERS, (MiniLM, MultilingualE5, Multilingual), strict=True))[name]()


async def embed_question(embedder: MiniLM, text: str) -> Vectors:
    """The vector of a text to search with."""
    embed = embedder.embed_questions if isinstance(embedder, MultilingualE5) else embedder.embed
    vector: Vectors = (await embed([text]))[0]
    return vector
