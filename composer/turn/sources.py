"""The sources of a prompt:

the lineage of the reply, and whether the reply used a source that was erased meanwhile. Pure.
"""

import uuid
from collections.abc import Collection, Mapping

from composer.model import Item, Message
from composer.prompt.sections import COMPACTION, OPEN_REMINDER, Prompt
from composer.text.rarity import is_rare
from composer.text.repetition import words_of

DERIVED_KINDS = ("landmark", "summary", COMPACTION, OPEN_REMINDER)


def lineage_of(prompt: Prompt, question: Message, erased: Collection[uuid.UUID]) -> tuple[tuple[str, uuid.UUID], ...]:
    """(kind, id) of everything the prompt held, except what is erased: the lineage of the turn, by which forgetting
    finds its prompt."""
    items = [(item.kind, uuid.UUID(item.id)) for item in _items(prompt)]
    images = [("message", image.message.id) for image in prompt.images]
    everything = dict.fromkeys([("message", question.id), *items, *images])
    return tuple(source for source in everything if source[1] not in erased)


def message_and_memory_texts(prompt: Prompt) -> list[tuple[uuid.UUID, str | None, tuple[str, ...]]]:
    """(id, text, files) of the messages and episodes in the prompt, (id, None, ()) of its memories and facts.

    These can be erased or edited while the model is answering; comparing the text and the files shows an edit.
    """
    items = {item.id: item for item in _items(prompt) if not _is_derived(item)}
    return [(uuid.UUID(i.id), i.text if i.kind in ("message", "episode") else None, i.files) for i in items.values()]


def derived_ids(prompt: Prompt) -> list[uuid.UUID]:
    """Ids of the landmarks, summaries, compactions and reminders in the prompt.

    These also disappear for other reasons than erasure (a summary is rewritten), so their absence proves nothing:
    only a recorded erasure does.
    """
    return list(dict.fromkeys(uuid.UUID(item.id) for item in _items(prompt) if _is_derived(item)))


def used_erased_source(
    prompt: Prompt, erased: Mapping[uuid.UUID, str | None], used: Collection[uuid.UUID], text: str
) -> bool:
    """Whether a reply used something that was erased or edited while it was made.

    `erased` maps each id to the text that is there now (None: nothing), and `used` are the sources that the reply is
    made of. The rule is that of composer/memory/affected.py.
    """
    if not erased:
        return False
    if any(id in erased and erased[id] is None for id in used):
        return True
    if any(image.message.id in erased for image in prompt.images):
        return True
    items = {uuid.UUID(item.id): item for item in _items(prompt)}
    lost = words_of(*(part for id, item in items.items() if id in erased for part in (item.text, *item.files)))
    others = [item for id, item in items.items() if id not in erased]
    remaining = words_of(*(part for item in others for part in (item.author, item.text, *item.files)))
    remaining |= words_of(*(present or "" for present in erased.values()))
    repeated = (lost - remaining) & words_of(text)
    return any(map(is_rare, repeated)) or (bool(repeated) and any(id in erased for id in used))


def source_namespaces(prompt: Prompt) -> set[str]:
    """The namespaces that a prompt drew on."""
    return {item.namespace for item in _items(prompt)}


def _items(prompt: Prompt) -> list[Item]:
    return [item for section in prompt.sections for item in section.sources]


def _is_derived(item: Item) -> bool:
    return item.layer == "episodic" or item.kind in DERIVED_KINDS
