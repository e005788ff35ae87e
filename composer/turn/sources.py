"""The sources of a prompt:

the lineage of the reply, and whether the reply used a source that was erased meanwhile. Pure.
"""

import uuid
from collections.abc import Collection, Mapping

from composer.model import Item, Message
from composer.prompt.sections import COMPACTION, Prompt
from composer.repositories.recall import episode_id_of
from composer.text.terms import terms

DERIVED_KINDS = ("landmark", "summary", COMPACTION)


def lineage_of(prompt: Prompt, question: Message, erased: Collection[uuid.UUID]) -> tuple[tuple[str, uuid.UUID], ...]:
    """(kind, id) of everything the prompt held, except what is erased. The reply's lineage: forgetting follows it.

    A message whose image was shown counts as recalled: the reply may describe the image in any words.
    """
    items = [(item.kind, uuid.UUID(item.id)) for item in _items(prompt)]
    viewed = [image.message.id for image in prompt.images if image.message.id != question.id]
    from_images = [(kind, id) for m in viewed for kind, id in (("message", m), ("episode", episode_id_of(m)))]
    everything = dict.fromkeys([("message", question.id), *items, *from_images])
    return tuple(source for source in everything if source[1] not in erased)


def message_and_memory_texts(prompt: Prompt) -> list[tuple[uuid.UUID, str | None]]:
    """(id, text) of the messages and episodes in the prompt, (id, None) of its memories and facts.

    These can be erased or edited while the model is answering; comparing the text shows an edit.
    """
    items = {item.id: item for item in _items(prompt) if not _is_derived(item)}
    return [(uuid.UUID(i.id), i.text if i.kind in ("message", "episode") else None) for i in items.values()]


def derived_ids(prompt: Prompt) -> list[uuid.UUID]:
    """Ids of the landmarks, summaries and compactions in the prompt.

    These also disappear for other reasons than erasure (a summary is rewritten), so their absence proves nothing:
    only a recorded erasure does.
    """
    return list(dict.fromkeys(uuid.UUID(item.id) for item in _items(prompt) if _is_derived(item)))


def used_erased_source(prompt: Prompt, erased: Mapping[uuid.UUID, str | None], text: str) -> bool:
    """Whether a reply used something that was erased or edited while it was made.

    `erased` maps each id to the text that is there now (None: nothing). A reply used a source when the source had been
    recalled, when an image of it was shown, or when the source was merely in view and the reply repeats one of its
    words (the rule of composer/memory/forget.py).
    """
    if not erased:
        return False
    affected = [item for item in _items(prompt) if uuid.UUID(item.id) in erased]
    removed = [item for item in affected if erased[uuid.UUID(item.id)] is None]
    if any(item.layer != "working" for item in removed) or any(i.message.id in erased for i in prompt.images):
        return True
    lost_words = {word for i in affected for word in {*terms(i.text)} - {*terms(erased[uuid.UUID(i.id)] or "")}}
    return not lost_words.isdisjoint(terms(text))


def source_namespaces(prompt: Prompt) -> set[str]:
    """The namespaces that a prompt drew on."""
    return {item.namespace for item in _items(prompt)}


def _items(prompt: Prompt) -> list[Item]:
    return [item for section in prompt.sections for item in section.sources]


def _is_derived(item: Item) -> bool:
    return item.layer == "episodic" or item.kind in DERIVED_KINDS
