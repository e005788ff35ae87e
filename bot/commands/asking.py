"""ask: answer a question for the caller alone. Nothing of it is stored."""

import json
from collections.abc import Sequence
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import OUTDATED, Call, Command, CommandAnswer
from bot.commands.memories import unstored_question
from bot.commands.sources import source_lines
from composer.errors import Refused
from composer.rights.table import Act
from composer.text.offline import OFFLINE
from composer.turn.explanation import explain_stored
from composer.turn.sources import derived_ids, message_and_memory_texts

ASK: Final = "ask"
_QUESTION: Final = parameters.text("question", "what you want to know, in your own words")


async def _ask(call: Call) -> CommandAnswer:
    request = unstored_question(call, call.arguments[_QUESTION])
    text, composed = await call.app.drafter.answer_unstored(request)
    read = [each for each in message_and_memory_texts(composed.prompt) if each[0] != request.message.id]
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        if await tx.erasure.changed_sources(read, derived_ids(composed.prompt)):
            raise Refused(OUTDATED)  # the answer may say what was erased while the model wrote it
        explanation = await explain_stored(tx, await access_context(tx, call), json.dumps(composed.prompt.as_json()))
    lines = [] if OFFLINE in text else source_lines(call, explanation, text)  # without a model it quotes them
    return CommandAnswer("\n".join((text.strip(), *lines)))


COMMANDS: Final[Sequence[Command]] = (
    Command(
        ASK,
        (_QUESTION,),
        "Answer a question for you alone; nothing of it is stored",
        _ask,
        "ask when is the launch?",
        act=Act.READ,
        names_rooms=True,
    ),
)
