"""Explain a stored prompt to somebody as they may read it now: its sections, its chat messages, and where its sources
stand on their platforms."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from composer import visibility
from composer.ports.models import ChatMessage
from composer.prompt.explain import (
    ExplainedSection,
    ExplainedSource,
    explain,
    explain_tools,
    readable_messages,
    refiled_ids,
    speakers,
)
from composer.prompt.sections import FACTS, MESSAGE, RELATED, WORKING, UsedTool
from composer.repositories.database import Transaction
from composer.repositories.explanations import MessageAddress
from composer.visibility import AccessContext, Readable

UPLOADED: Final = "from a file that {who} uploaded"
SOMEBODY: Final = "somebody"  # who was erased since
MAX_ADDRESSES: Final = 3  # messages of one source; a summary may have hundreds


@dataclass(frozen=True, slots=True)
class Explanation:
    """A stored prompt as its reader may see it now. `tokens` and `window` are those of the whole prompt; `addresses`
    are by the id of the source; `tools` are the tools that the model called, `unreached` the servers whose tools it was
    not offered because they did not answer."""

    tokens: int
    window: int
    sections: tuple[ExplainedSection, ...]
    messages: tuple[ChatMessage, ...]
    addresses: Mapping[uuid.UUID, Sequence[MessageAddress]]
    tools: tuple[UsedTool, ...] = ()
    unreached: tuple[str, ...] = ()


async def explain_stored(tx: Transaction, access: AccessContext, stored: str) -> Explanation:
    """Explain a stored prompt (JSON text) in the conversation of `access`. Raises NotFound if its asker may not be
    there."""
    prompt: dict[str, Any] = json.loads(stored)
    people = speakers(prompt)
    linked = {} if access.conversation.user_id is not None else await tx.people.linked_users(people)
    readable = visibility.readable(replace(access, linked={**linked, **access.linked}), people)
    filed = await tx.explanations.find_readable(readable, refiled_ids(prompt))
    sections = await _with_uploads(tx, explain(prompt, readable, filed))
    linkable = [
        source.id
        for section in sections
        if section.name not in (WORKING, RELATED, MESSAGE, FACTS)
        for source in section.sources
        if source.id is not None
    ]
    return Explanation(
        prompt["tokens"],
        prompt["window"],
        tuple(sections),
        tuple(readable_messages(prompt, sections)),
        await _nameable_addresses(tx, access, readable, linkable),
        tuple(explain_tools(prompt, sections)),
        tuple(prompt.get("unreached_servers", ())),
    )


async def _with_uploads(tx: Transaction, sections: Sequence[ExplainedSection]) -> list[ExplainedSection]:
    """The sections, in which each source that came from a file of an admin says so, and whose it was: nobody but them
    vouches for its words."""
    found = await uploaders_of(
        tx, {source.id for section in sections for source in section.sources if source.id is not None}
    )

    def marked(source: ExplainedSource) -> ExplainedSource:
        who = found.get(source.id) if source.id is not None else None
        if not who:
            return source
        return replace(source, came_from=", ".join(filter(None, (source.came_from, UPLOADED.format(who=who)))))

    return [replace(section, sources=tuple(map(marked, section.sources))) for section in sections]


async def uploaders_of(tx: Transaction, ids: Iterable[uuid.UUID]) -> Mapping[uuid.UUID, str]:
    """Of messages and what was made of some, those that came from a file of an admin, with whose it was, by name."""
    found = await tx.explanations.uploaders(sorted(ids))
    names = await tx.people.names(sorted({user for users in found.values() for user in users})) if found else {}
    return {id: ", ".join(sorted(names.get(user, SOMEBODY) for user in users)) for id, users in found.items()}


async def _nameable_addresses(
    tx: Transaction, access: AccessContext, readable: Readable, items: Sequence[uuid.UUID]
) -> dict[uuid.UUID, Sequence[MessageAddress]]:
    """Where the messages that items came from stand, as far as that may be named in this conversation."""
    found = await tx.explanations.addresses(readable, items, MAX_ADDRESSES)
    return {id: [each for each in places if visibility.may_be_named(access, each)] for id, places in found.items()}
