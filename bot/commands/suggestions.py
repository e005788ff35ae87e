"""What a parameter of a command may be filled with, for whoever is typing it: of names, those that they may read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from bot.commands.command import Names, Parameter
from bot.commands.retrieval import RESET
from bot.commands.structured import short_id
from bot.commands.table import parse
from composer import visibility
from composer.app import App
from composer.errors import BadInput, NexusError, NotFound
from composer.layers.retrieval_settings import KEYS, STRATEGIES
from composer.model import ConversationKind, Incoming
from composer.repositories.database import Transaction
from composer.visibility import AccessContext
from composer.workspace import Workspace, conversation_id, room_id, user_id

MOST_NAMED: Final = 8  # in the hint of an error


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What would be written, and how it is shown."""

    value: str
    label: str


async def suggest(
    app: App, workspace: Workspace, incoming: Incoming, parameter: Parameter, before: Sequence[str], typed: str
) -> list[Suggestion]:
    """What may stand there, as far as `typed` says; `before` are the arguments in front of it. `incoming` is who types
    and where; nothing is stored of it. Raises Unavailable.
    """
    wanted = typed.strip().casefold()
    if parameter.choices:
        found = [Suggestion(choice, choice) for choice in parameter.choices]
    elif parameter.names is None:
        return []
    else:
        found = await _named(app, workspace, incoming, parameter.names, before)
    return [each for each in found if wanted in each.value.casefold() or wanted in each.label.casefold()]


async def hint(app: App, workspace: Workspace, incoming: Incoming, error: NexusError) -> str:
    """An error's sentence, with how the command is written and what the names in it may be; for doors that can't
    suggest anything while somebody types."""
    try:
        command, words = parse(incoming.text)
    except BadInput:
        return str(error)
    if not isinstance(error, BadInput | NotFound) or not command.parameters:
        return str(error)
    lines = [str(error), f"Usage: {command.usage}"]
    for place, parameter in enumerate(command.parameters):
        if parameter.names in (Names.AGENT, Names.FACT, Names.LANDMARK, Names.PROJECT):
            found = await suggest(app, workspace, incoming, parameter, words.split()[:place], "")
            names = [each.label for each in found[:MOST_NAMED]]
            if names:
                lines.append(f"{parameter.usage}: {', '.join(names)}{', …' if len(found) > MOST_NAMED else ''}")
    return "\n".join(lines)


async def _named(
    app: App, workspace: Workspace, incoming: Incoming, names: Names, before: Sequence[str]
) -> list[Suggestion]:
    match names:
        case Names.AGENT:
            return [Suggestion(a.slug, a.slug) for a in app.directory.agents(workspace.tenant_id)]
        case Names.FORGETTABLE:
            return [Suggestion(word, word) for word in ("here", "everything", "message ")]
        case Names.SETTING:
            key = KEYS.get(before[0]) if before else None
            values = () if key is None or key.maximum else STRATEGIES
            return [Suggestion(value, value) for value in (*values, RESET)]
        case Names.PERSON:
            return []  # platforms know their people themselves
    async with app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
        return await _stored(tx, app, workspace, incoming, names)


async def _stored(
    tx: Transaction, app: App, workspace: Workspace, incoming: Incoming, names: Names
) -> list[Suggestion]:
    now = await _circumstances(tx, app, workspace, incoming)
    if now is None or not visibility.may_participate(now):
        return []
    if names is Names.PROJECT:
        return [Suggestion(p.slug, p.slug) for p in await tx.projects.find_for(now.asker, now.asker_admin)]
    readable, at = visibility.readable(now, []), app.clock.now()
    if names is Names.FACT:
        facts = [fact for fact in await tx.facts.find(readable, at, None) if readable.admits(fact)]
        return [Suggestion(key, key) for key in dict.fromkeys(fact.key for fact in facts)]
    landmarks = [mark for mark in await tx.landmarks.find(readable, at, retired=False) if readable.admits(mark)]
    return [
        Suggestion(short_id(mark.id), f"{number}. {' '.join(mark.text.split())} ({short_id(mark.id)})")
        for number, mark in enumerate(landmarks, 1)
    ]


async def _circumstances(tx: Transaction, app: App, workspace: Workspace, incoming: Incoming) -> AccessContext | None:
    """What is so where somebody types; None where nobody has said anything yet, so that there is nothing to name."""
    known = await tx.people.find_user(workspace.platform, workspace.name, incoming.user)
    asker = user_id(workspace, incoming.user) if known is None else known.id
    place, agents = incoming.place, app.directory.agents(workspace.tenant_id)
    slug = place.name if place.kind is ConversationKind.DM else place.agent or agents[0].slug
    agent = next((each.id for each in agents if each.slug == slug), None)
    access = await tx.conversations.access_context(conversation_id(workspace, place, asker, agent), asker)
    if access is None and place.kind is ConversationKind.THREAD:
        access = await tx.conversations.access_context(room_id(workspace, place.name), asker)
    return None if access is None else replace(access, asker_admin=access.asker_admin or incoming.sender_is_admin)
