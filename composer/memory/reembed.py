"""Re-embedding: replace all vectors by those of another embedder while Nexus serves.

Every item gets its new vector beside the one in use, batch by batch; then one transaction switches all of them. An
interrupted run is continued by the next one. Items that are added, edited or erased meanwhile are taken into account.
"""

import uuid
from collections.abc import Callable
from typing import Final

from composer.errors import BadInput
from composer.memory.index import embed_next, embedding_text
from composer.ports.models import Embedder, MeteredEmbedder, UsageAccount, WorkKind
from composer.ports.reembedding import EmbedderIdentity, Reembedding
from composer.repositories.database import Database

REEMBEDDING_BATCH: Final = 64  # texts per call of the embedder
MAX_LAST_PASS_ITEMS: Final = 64  # after a pass that embeds at most this many, switch


def identity_of(embedder: Embedder) -> EmbedderIdentity:
    """The name and width of an embedder, as they are stored with its vectors."""
    return EmbedderIdentity(embedder.name, embedder.width)


async def reembed(
    vectors: Reembedding,
    database: Database,
    target: EmbedderIdentity,
    embedder: MeteredEmbedder,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> int:
    """Replace all vectors by those of `embedder`, whose identity is `target`; returns the number of items.

    `database` must use `embedder`: items that came too late for the last pass are embedded after the switch. `progress`
    is called with (items prepared, items in all). Raises BadInput when the stored vectors are of this embedder
    already, Refused while another process re-embeds, and Unavailable when the embedder or the database does not
    answer; then another run continues from there.
    """
    async with vectors.exclusive():
        status = await vectors.status()
        current = status.current
        if current is None or current == target:
            await vectors.abandon()  # removes what an interrupted run for another embedder prepared
            raise BadInput(
                f"The stored vectors are of {target.name} ({target.width} dimensions) already, so there is nothing to "
                "do. To change the embedder, set NEXUS_EMBEDDER to the one that you want, and run this again."
            )
        await vectors.begin(target)
        while await _embed_missing(vectors, database, embedder, progress) > MAX_LAST_PASS_ITEMS:
            pass
        await vectors.switch(current, target)
    for tenant, _ in await database.tenants():
        while (await embed_next(database, embedder, tenant)).more:
            pass
    items = (await vectors.status()).items
    progress(items, items)
    return items


async def _embed_missing(
    vectors: Reembedding, database: Database, embedder: MeteredEmbedder, progress: Callable[[int, int], None]
) -> int:
    """Embed the items of all tenants that have no new vector yet, in one pass; returns their number."""
    embedded, status = 0, await vectors.status()
    progress(status.prepared, status.items)
    for tenant, _ in await database.tenants():
        after = (uuid.UUID(int=0), 0)
        while items := await vectors.pending(tenant, after, REEMBEDDING_BATCH):
            account = UsageAccount(tenant, WorkKind.EMBEDDING)
            new = await embedder.embed([embedding_text(item.text) for item in items], account)
            await vectors.store(tenant, items, new)
            embedded, after = embedded + len(items), (items[-1].id, items[-1].part)
            progress(status.prepared + embedded, status.items)
    return embedded
