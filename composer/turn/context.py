"""The CONTEXT section of a prompt: where it is asked, who takes part, and the date."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from composer import visibility
from composer.layers import working
from composer.model import ConversationKind, Message
from composer.prompt.sections import MISSED_SINCE, PROJECT_ROOMS_CLOSED, ROOMS_CLOSED
from composer.text.names import in_quotes
from composer.visibility import AccessContext


def context_section(
    access: AccessContext, question: Message, recent: Sequence[Message], now: datetime, since: datetime | None = None
) -> str:
    """The CONTEXT section: where this is, who takes part, and the date of `now`, whose zone is the tenant's; where the
    asker is alone, in their own zone, which nobody else is told of. It changes seldom, so it comes early in the prompt
    (see the prompt cache in `_until_last_step`). `since`: since when the asker wants to know what they missed."""
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
    today = now if access.zone is None or conversation.kind is not ConversationKind.DM else now.astimezone(access.zone)
    own, common = ("" if str(each.tzinfo) == str(UTC) else str(each.tzinfo) for each in (today, now))
    place, local = own and f" in {own}", common and f", in the text of summaries {common}"
    lines.append(f"Today is {today:%A, %Y-%m-%d}{place}; times are UTC{local}.")
    if since is not None:
        lines.append(MISSED_SINCE.format(f"{since:%Y-%m-%d %H:%M}"))
    return "[CONTEXT]\n" + "\n".join(lines)


def _until_last_step(recent: Sequence[Message]) -> list[Message]:
    """The recent messages up to the place where the window last moved. It moves by `working.WINDOW_STEP` messages at a
    time, so these stay the same for many turns, and a provider's prompt cache can reuse the beginning."""
    if not recent:
        return []
    last_move = recent[-1].seq - recent[-1].seq % working.WINDOW_STEP
    return [message for message in recent if message.seq <= last_move]
