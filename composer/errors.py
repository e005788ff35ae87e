"""The errors that a person can act on. Each adapter maps this one family to what its platform shows."""

import traceback
from pathlib import Path


class NexusError(Exception):
    """An error whose text is one plain sentence, safe to show to whoever asked: it names no server, path or key.

    `operator` says the same to those who run Nexus, with the server's place and what it answered. The command line and
    the program log show that one (`for_operator`); chats never do.
    """

    def __init__(self, sentence: str = "", *, operator: str | None = None) -> None:
        super().__init__(sentence)
        self.operator = operator or sentence


class NotFound(NexusError):
    """It does not exist, or the asker may not know that it exists. The two look exactly the same."""


class Refused(NexusError):
    """The asker may know of it, but may not do this."""


class AdminNeeded(Refused):
    """Only an admin of the workspace may do this."""


class BadInput(NexusError):
    """The input is wrong. The text says what was wrong and what would be right."""


class Conflict(NexusError):
    """Somebody has changed it meanwhile, or it stands in the way of something else. Reading it again shows how it
    is."""


class Outdated(Conflict):
    """Somebody has changed it since the version that was read: reading it again shows the one that it has now."""


class Unavailable(NexusError):
    """A server that Nexus needs (database, cache, model, platform) does not answer. Trying again later may work."""


class Overtaken(Unavailable):
    """A change met another one of the same data, and was undone. Trying again works, unless Nexus has a bug."""


class EmptyAnswer(Unavailable):
    """A model has answered without a word."""


class BudgetUsedUp(NexusError):
    """A budget has no room for this call of a model. It has room again in the next day or month."""


class QuotaUsedUp(BudgetUsedUp):
    """A tenant has used all of something that its plan gives it in a month. `seconds` until the next one."""

    def __init__(self, sentence: str, *, seconds: int) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class EntriesFull(NexusError):
    """A tenant has as many entries as its plan is for. There is room once some are gone."""


class Misconfigured(NexusError):
    """A setting is wrong, or does not fit what is stored. Trying again will not help."""


class PromptTooLong(Misconfigured):
    """A prompt is longer than the model takes: the agent's window is set too large. A smaller one may be answered."""


def for_operator(error: BaseException) -> str:
    """The error's sentence for those who run Nexus."""
    return error.operator if isinstance(error, NexusError) else str(error)


def skip_reason(error: BaseException) -> str:
    """Why a message is skipped, as it is stored and shown to an operator: the error's class and line, no text."""
    where = where_raised(error)
    return f"{where['error']} at {where['at']}"


def where_raised(error: BaseException) -> dict[str, str]:
    """What the program log says of an unexpected error: its class and its line. Never its sentence, which may quote
    what somebody wrote."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return {"error": type(error).__name__, "at": place}
