"""The port to a chat platform, and the idempotency keys of posted messages. A key is `<owner>-<part>` (a part of an
answer) or `<owner>-0<letter>` (a notice: `t` delay, `n` first notice, `o` offers). The owner is a turn, or for a first
notice its conversation. At most 25 characters, Discord's limit for a nonce.
"""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Protocol

from composer.app import App
from composer.model import Offer, Turn
from composer.repositories.deliveries import Destination

DELAY_SUFFIX: Final = "t"  # ends the key of the sentence that an answer is delayed
OFFER_SUFFIX: Final = "o"  # ends the key of the buttons below an answer
PRIVACY_SUFFIX: Final = "n"  # ends the key of a room's privacy notice
CLOCK_SKEW: Final = timedelta(minutes=1)  # between us and a platform, where a post is looked for by its time
_OWNER_CHARS: Final = 21


class Outbox(Protocol):
    """One chat platform. Each call raises Unavailable when it may succeed later, and Refused when it never will."""

    @property
    def limit(self) -> int:
        """How many characters one message may have."""
        ...

    @property
    def edit_interval(self) -> float:
        """Seconds between two edits of one message."""
        ...

    async def post(self, to: Destination, text: str, key: str, offers: Sequence[Offer] = ()) -> str:
        """Post a message and return its id on the platform. A second call with the same key posts no second one.
        `offers` are buttons below it, for the person of `to`."""
        ...

    async def edit(self, to: Destination, message: str, text: str) -> None:
        """Replace the text of one of our messages; do nothing if somebody has deleted it."""
        ...

    async def find(self, to: Destination, key: str) -> str | None:
        """The id of the message that was posted with this key by an earlier process or an interrupted call, if any."""
        ...

    async def show_typing(self, to: Destination, key: str) -> None:
        """Show that an answer is being written whose first part will have this key, unless that part is posted."""
        ...


def turn_key(turn: Turn) -> str:
    """What the keys of all messages of a turn begin with."""
    return _owner(turn.id)


def part_key(turn: Turn, part: int) -> str:
    """The key of one part of an answer, counted from 0."""
    return part_key_of(turn.id, part)


def part_key_of(turn: uuid.UUID, part: int) -> str:
    """The same by the id of the turn, which may be gone."""
    return f"{_owner(turn)}-{part}"


def delay_key(turn: Turn) -> str:
    """The key of the sentence that the answer to a turn is delayed."""
    return f"{_owner(turn.id)}-0{DELAY_SUFFIX}"


def offer_key(turn: Turn) -> str:
    """The key of the buttons below the answer to a turn."""
    return f"{_owner(turn.id)}-0{OFFER_SUFFIX}"


def privacy_key(room: uuid.UUID) -> str:
    """The key of the privacy notice of a room."""
    return f"{_owner(room)}-0{PRIVACY_SUFFIX}"


def owner_of(key: str) -> str:
    """The beginning of a key, which all messages of its turn or room share."""
    return key.partition("-")[0]


def is_answer_part(key: str) -> bool:
    """Whether a key is that of a part of an answer, and not of a notice."""
    return key[-1].isdigit()


def part_of(key: str) -> int:
    """The number of the part that a key is for."""
    return int(key.rpartition("-")[2])


def _owner(id: uuid.UUID) -> str:
    return id.hex[:_OWNER_CHARS]


class PostedMessages:
    """Knows whether a message on a platform was posted by Nexus."""

    def __init__(self, app: App) -> None:
        self._app = app

    def may_have(self, key: str) -> bool:
        """Whether a message with this key may have been posted by an earlier attempt, in this process or another: only
        then is it searched for."""
        return all(_owner(turn) != owner_of(key) for turn in self._app.turns.unposted)

    async def contain(self, to: Destination, message: str) -> bool:
        """Whether a message is stored as a part of an answer or as a notice."""
        workspace = self._app.directory.workspace(to.platform, to.workspace)
        async with self._app.database.transaction(workspace.tenant_id, "read") as tx:
            return await tx.deliveries.is_ours(message)
