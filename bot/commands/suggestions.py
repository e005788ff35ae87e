"""Suggested values for a command's parameter, while somebody types: only names that the typist may read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bot.commands.parameters import ForgetScope, Parameter, ParameterKind
from bot.commands.structured import short_id
from bot.commands.table import COMMANDS, parse
from composer import visibility
from composer.app import App
from composer.errors import BadInput, NexusError, NotFound
from composer.layers.retrieval_settings import RETRIEVAL
from composer.layers.tenant_settings import AS_CONFIGURED
from composer.model import ConversationKind, Incoming, Workspace, conversation_id, room_id, user_id
from composer.repositories.database import Transaction
from composer.visibility import AccessContext

MAX_HINTS: Final = 8  # names in the hint of an error
_HINTED: Final = (ParameterKind.AGENT, ParameterKind.FACT_KEY, ParameterKind.LANDMARK, ParameterKind.PROJECT)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A value, and the text that shows it."""

    value: str
    label: str


async def suggest(
    app: App, workspace: Workspace, incoming: Incoming, parameter: Parameter[Any], before: Sequence[str], typed: str
) -> list[Suggestion]:
    """The possible values of a parameter that contain `typed`.

    `before` are the arguments in front of it. `incoming` says who is typing and where; nothing of it is stored. Raises
    Unavailable.
    """
    wanted = typed.strip().casefold()
    if parameter.choices:
        found = [Suggestion(choice, choice) for choice in parameter.choices]
    else:
        found = await _values(app, workspace, incoming, parameter.kind, before)
    return [each for each in found if wanted in each.value.casefold() or wanted in each.label.casefold()]


async def hint(app: App, workspace: Workspace, incoming: Incoming, error: NexusError) -> str:
    """An error's sentence with the command's usage and possible names, for platforms that can't suggest anything while
    somebody types."""
    try:
        command, text = parse(incoming.text)
    except BadInput:
        return str(error)
    if not isinstance(error, BadInput | NotFound) or not command.parameters:
        return str(error)
    lines = [str(error)] if command.usage in str(error) else [str(error), f"Usage: {command.usage}"]
    words = text.split()
    for place, parameter in enumerate(command.parameters):
        if parameter.kind in _HINTED:
            found = await suggest(app, workspace, incoming, parameter, words[:place], "")
            names = [each.label for each in found[:MAX_HINTS]]
            if names:
                lines.append(f"{parameter.usage}: {', '.join(names)}{', …' if len(found) > MAX_HINTS else ''}")
    return "\n".join(lines)


async def _values(
    app: App, workspace: Workspace, incoming: Incoming, kind: ParameterKind, before: Sequence[str]
) -> list[Suggestion]:
    match kind:
        case ParameterKind.AGENT:
            return [Suggestion(a.slug, a.slug) for a in app.directory.agents(workspace.tenant_id)]
        case ParameterKind.COMMAND:
            return [Suggestion(name, name) for name in COMMANDS]
        case ParameterKind.FORGET_TARGET:
            ids = (f"{ForgetScope.MESSAGE} ", f"{ForgetScope.ITEM} ")
            words = (ForgetScope.HERE, ForgetScope.EVERYTHING, *ids)
            return [Suggestion(str(word), str(word)) for word in words]
        case ParameterKind.SETTING_VALUE:
            key = RETRIEVAL.settings.get(before[0]) if before else None
            values = () if key is None else key.choices
            return [Suggestion(value, value) for value in (*values, AS_CONFIGURED)]
        case ParameterKind.PROJECT | ParameterKind.FACT_KEY | ParameterKind.LANDMARK:
            async with app.database.transaction(workspace.tenant_id, "read") as tx:
                return await _stored_names(tx, app, workspace, incoming, kind)
    return []  # free text; and users, whom the platforms suggest themselves


async def _stored_names(
    tx: Transaction, app: App, workspace: Workspace, incoming: Incoming, kind: ParameterKind
) -> list[Suggestion]:
    access = await _access_context(tx, app, workspace, incoming)
    if access is None or not visibility.may_participate(access):
        return []
    if kind is ParameterKind.PROJECT:
        return [Suggestion(p.name, p.name) for p in await tx.projects.find_for(access.asker)]
    readable, at = visibility.readable(access, []), app.clock.now()
    if kind is ParameterKind.FACT_KEY:
        facts = [fact for fact in await tx.facts.find(readable, at, None) if readable.admits(fact)]
        return [Suggestion(key, key) for key in dict.fromkeys(fact.key for fact in facts)]
    landmarks = [each for each in await tx.landmarks.find(readable, at, retired=False) if readable.admits(each)]
    return [
        Suggestion(short_id(each.id), f"{number}. {' '.join(each.text.split())} ({short_id(each.id)})")
        for number, each in enumerate(landmarks, 1)
    ]


async def _access_context(tx: Transaction, app: App, workspace: Workspace, incoming: Incoming) -> AccessContext | None:
    """The access context in which somebody types; None where nobody has written yet, so that no names are stored."""
    known = await tx.people.find_user(workspace.platform, workspace.name, incoming.user)
    asker = user_id(workspace, incoming.user) if known is None else known.id
    place, agents = incoming.place, app.directory.agents(workspace.tenant_id)
    slug = place.name if place.kind is ConversationKind.DM else place.agent or agents[0].slug
    agent = next((each.id for each in agents if each.slug == slug), None)
    here, trust = conversation_id(workspace, place, asker, agent), incoming.sender_trust
    access = await tx.conversations.access_context(here, asker, trust)
    if access is None and place.kind is ConversationKind.THREAD:
        access = await tx.conversations.access_context(room_id(workspace, place.name), asker, trust)
    if access is None:
        return None
    conversation = access.conversation
    if incoming.place.private:  # the platform says so; it may not be stored yet
        conversation = replace(conversation, private=True)
    return replace(access, conversation=conversation, asker_admin=access.asker_admin or incoming.sender_is_admin)
