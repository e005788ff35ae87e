"""A change of embedder, while Nexus serves: every item gets a vector of the next embedder beside the one in use, batch
by batch; then all of them change places in one transaction.

Whatever ends it, the next run goes on where it was. What is said, edited or forgotten meanwhile misses nothing.
"""

import uuid
from collections.abc import Callable
from typing import Final

from composer.errors import BadInput
from composer.memory.index import embed_next, searchable
from composer.ports.models import Embedder
from composer.ports.reembedding import EmbedderIdentity, Reembedding
from composer.repositories.database import Database

BATCH: Final = 64  # texts a call
FEW: Final = 64  # a pass that finds no more than these is the last one before the switch


def mark_of(embedder: Embedder) -> EmbedderIdentity:
    """An embedder as it is stored beside its vectors."""
    return EmbedderIdentity(embedder.name, embedder.width)


async def reembed(
    vectors: Reembedding, store: Database, embedder: Embedder, progress: Callable[[int, int], None] = lambda _, __: None
) -> int:
    """Bring all vectors over to `embedder`; how many items there are. `progress` is told (prepared, items).

    `store` is that of the next embedder: with it, what came in too late for the last pass is embedded after the switch.
    Raises BadInput when the stored vectors are of this embedder already, Refused when another process is at it,
    Unavailable when the embedder or the database does not answer: then another run goes on from there.
    """
    async with vectors.exclusive():
        status, target = await vectors.status(), mark_of(embedder)
        current = status.current
        if current is None or current == target:
            await vectors.abandon()  # what a run for another embedder has left
            raise BadInput(
                f"There is nothing to do: the stored vectors are of {target.name} ({target.width} dimensions) already. "
                "Set NEXUS_EMBEDDER to the embedder that you want."
            )
        await vectors.begin(target)
        while await _pass(vectors, store, embedder, progress) > FEW:
            pass
        await vectors.switch(current, target)
    for tenant, _ in await store.tenants():
        while await embed_next(store, embedder, tenant):
            pass
    items = (await vectors.status()).items
    progress(items, items)
    return items


async def _pass(vectors: Reembedding, store: Database, embedder: Embedder, progress: Callable[[int, int], None]) -> int:
    """Embed what has no vector of the next embedder yet, once through all tenants; how many there were."""
    found, status = 0, await vectors.status()
    progress(status.prepared, status.items)
    for tenant, _ in await store.tenants():
        after = uuid.UUID(int=0)
        while items := await vectors.pending(tenant, after, BATCH):
            made = await embedder.embed([searchable(item.text) for item in items])
            await vectors.store(tenant, items, made)
            found, after = found + len(items), items[-1].id
            progress(status.prepared + found, status.items)
    return found
