"""What is added to the answer to somebody who asks in words to have something forgotten: the command, with the ids of
the messages that it would take. Nothing is forgotten by a message (docs/decisions/0024). Pure."""

from typing import Final

from composer.model import Item, Message
from composer.prompt.sections import RELATED, WORKING
from composer.text.asked import Asked
from composer.text.forgetting import Forgetting, asked_to_forget
from composer.text.notices import NOTHING_FORGOTTEN
from composer.text.small_talk import FORGET
from composer.turn.compose import ComposedPrompt

_EVERYTHING: Final = (
    "To have all that you said and stored here forgotten for good: /nexus forget here. Everywhere: /nexus forget "
    "everything. Both show first how much that is."
)
_NOT_STORED: Final = "Your message is not stored: it is erased once it is answered."


def forget_offer(composed: ComposedPrompt, question: Message, said: Asked) -> str | None:
    """The lines for the answer to a question that asks to have something forgotten; None if it asks for no such thing.

    "That" is what the asker said last in the view, or the message of theirs that this one replies to.
    """
    asked = asked_to_forget(said.words)
    if asked is None:
        return None
    if asked is Forgetting.EVERYTHING:
        return f"{NOTHING_FORGOTTEN} {_EVERYTHING}"
    before = _said_before(composed, question)
    lines = [] if before is None else [f"Your message before: {_command(before.messages[0])}"]
    if asked is Forgetting.THIS and not question.ephemeral:
        lines.append(f"The one that I answer here: {_command(question.external_id)}")
    elif asked is Forgetting.THIS:
        lines.append(_NOT_STORED)
    if not lines:
        return f"{NOTHING_FORGOTTEN} {FORGET}"
    return "\n".join((f"{NOTHING_FORGOTTEN} To erase for good, with all that was made from it:", *lines))


def _said_before(composed: ComposedPrompt, question: Message) -> Item | None:
    """The asker's message that this one replies to, or their latest one in the view."""
    shown = [s for each in composed.prompt.sections if each.name in (RELATED, WORKING) for s in each.sources]
    own = [item for item in shown if item.user_id in composed.asker_accounts and not item.by_agent and item.messages]
    replied = [item for item in own if question.reply_to is not None and question.reply_to in item.messages]
    return max(replied or own, key=lambda item: item.at, default=None)


def _command(external_id: str) -> str:
    return f"/nexus forget message {external_id}"
