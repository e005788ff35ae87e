"""ask: answer a question for the caller alone. Nothing of it is stored."""

import json
from collections.abc import Sequence
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import Call, Command, CommandAnswer
from bot.commands.memories import unstored_question
from bot.commands.sources import source_lines
from composer.rights.table import Act
from composer.text.offline import OFFLINE
from composer.turn.explanation import explain_stored

ASK: Final = "ask"
_QUESTION: Final = parameters.text("question", "what you want to know, in your own words")


async def _ask(call: Call) -> CommandAnswer:
    question = call.arguments[_QUESTION]
    text, composed = await call.app.drafter.answer_unstored(unstored_question(call, question))
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        # What was erased while the model answered, and what may not be read any more, is not named.
        explanation = await explain_stored(tx, await access_context(tx, call), json.dumps(composed.prompt.as_json()))
    sources = [] if OFFLINE in text else source_lines(call, explanation, text)  # without a model it quotes them
    return CommandAnswer("\n".join((text.strip(), *sources)))


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
