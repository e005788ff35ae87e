"""The CONTEXT section of a prompt: where it is asked, who takes part, and the date."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from composer import visibility
from composer.layers import working
from composer.model import ConversationKind, Message
from composer.prompt.sections import PROJECT_ROOMS_CLOSED, ROOMS_CLOSED
from composer.text.names import in_quotes
from composer.visibility import AccessContext


def context_section(access: AccessContext, question: Message, recent: Sequence[Message], now: datetime) -> str:
    """The CONTEXT section: where this is, who takes part, and the date of `now`, whose zone is the tenant's. It changes
    seldom, so it comes early in the prompt (see the prompt cache in `_until_last_step`)."""
    conversation, project = access.conversation, visibility.effective_project(access)
    name = in_quotes(f"#{conversation.name}")
    where = {
        ConversationKind.ROOM: f"the {'private ' if conversation.private else ''}room {name}",
        ConversationKind.THREAD: f"a thread of the room {name}",
        ConversationKind.DM: f"a private conversation with {in_quotes(question.author)}",
        ConversationKind.SESSION: f"a private session of {in_quotes(question.author)}",
    }[conversation.kind]
    lines = [f"You are in {where}."]
    if project is not None:
        lines.append(f"It belongs to the {'isolated ' if project.isolated else ''}project {in_quotes(project.slug)}.")
    if conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD):
        messages = _until_last_step(recent) or (*recent, question)
        speakers = {(message.author, message.user_id) for message in messages if not message.by_agent}
        counts = Counter(in_quotes(author) for author, _ in speakers)
        people = [name if count == 1 else f"{name} ({count} people)" for name, count in sorted(counts.items())]
        lines.append(f"People in this conversation: {', '.join(people)}.")
    if conversation.kind is ConversationKind.DM and not access.reads_rooms:
        lines.append(ROOMS_CLOSED if project is None else PROJECT_ROOMS_CLOSED)
    here = "" if str(now.tzinfo) == str(UTC) else str(now.tzinfo)
    place, local = (f" in {here}", f", in the text of summaries {here}") if here else ("", "")
    lines.append(f"Today is {now:%A, %Y-%m-%d}{place}; times are UTC{local}.")
    return "[CONTEXT]\n" + "\n".join(lines)


def _until_last_step(recent: Sequence[Message]) -> list[Message]:
    """The recent messages up to the place where the window last moved. It moves by `working.WINDOW_STEP` messages at a
    time, so these stay the same for many turns, and a provider's prompt cache can reuse the beginning."""
    if not recent:
        return []
    last_move = recent[-1].seq - recent[-1].seq % working.WINDOW_STEP
    return [message for message in recent if message.seq <= last_move]
