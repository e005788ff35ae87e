"""What a model would do in the name of who asks, where the message alone is no request for exactly that: it waits for
their yes.

Below the answer stand the question, a button for them alone, and the command, which does the same where there are no
buttons. What is proposed consists of words of their message: others' words, which a model reads as well, can't be put
before them as if they had said them.
"""

from dataclasses import dataclass
from typing import Final

from composer.errors import Refused
from composer.memory.authorship import MIN_SUPPORT, support, words_of
from composer.model import Offer
from composer.text.notices import proposal_sentence
from composer.text.quoting import find_quote

REMEMBER_LABEL: Final = "Remember it"
SET_LABEL: Final = "Set it"
REMIND_LABEL: Final = "Remind"
WAITS: Final = "It is not done: the person is asked below your answer whether to do it. Say no more of it than that."
_NOT_SAID: Final = "Nothing was done: most of these words are none of the message to answer. Say that {} does it."
_OPTION: Final = "--"  # begins an option of a command


@dataclass(frozen=True, slots=True)
class ProposedWrite:
    """A question for who asks, and the button that says yes to it."""

    question: str
    offer: Offer


def proposal(what: str, words: str, message: str, label: str, command: str) -> ProposedWrite:
    """Ask whether to do `what` in their name. `words` of the message are what would be stored, and `command` does it.
    Raises Refused with the sentence for the model where the message does not say them, or the command would read them
    as something else."""
    is_said = find_quote(message, words) is not None or support(words_of(message), words) >= MIN_SUPPORT
    if not is_said or _OPTION in words or "\n" in command:
        raise Refused(_NOT_SAID.format(" ".join(command.split()[:2])))
    return ProposedWrite(proposal_sentence(what, command), Offer(label, command))
