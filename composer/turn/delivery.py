"""What the responder hands to an adapter, and how the adapter shows it to people. Adapters implement `Delivery`."""

from typing import Protocol

from composer.model import Turn
from composer.repositories.turns import Answer


class Delivery(Protocol):
    """How an adapter shows a turn to people: `on_start`, then `on_chunk` for each chunk, then `deliver`.

    The responder calls these, the worker calls `on_wait` and `on_delay`. For an answer that was stored earlier, and
    when no prompt could be composed, `deliver` is called alone. When the question is erased before that, `abandon` is
    called instead.

    When a person forgets the question or a source of the answer later, a notice replaces the text of the reply, in the
    log and on the platform (bot/delivery/retraction.py): the reply is *retracted*. An ephemeral question is erased
    because its answer was sent: that reply stays.
    """

    def on_wait(self, turn: Turn) -> None:
        """The question of the turn is stored, and its answer may not begin at once: show soon that it was heard. Must
        return at once and must not fail."""
        ...

    def on_start(self, turn: Turn) -> None:
        """The model is called next: show that a reply is being written. Must return at once and must not fail."""
        ...

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """The next chunk of the reply. An adapter may show it now or wait for `deliver`."""
        ...

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """The turn could not be finished because the database or the platform is unavailable. `sentence` says so, and
        whether the worker will try again. It is shown and not stored."""
        ...

    async def deliver(self, answer: Answer) -> None:
        """Show the whole answer.

        It may be called several times for the same turn: after a crash, by two processes, and when the reply was
        retracted meanwhile. There must be one message, with the text of the last call. The adapter stores the id of
        what it posts; if the question was erased by then, it retracts what it has just posted.

        Raises Unavailable (try again later) or Refused (the platform will never accept it).
        """
        ...

    async def abandon(self, turn: Turn) -> None:
        """The turn ends without a reply because its question was erased: remove what was shown of it."""
        ...
