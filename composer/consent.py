"""What is kept of what someone says: as the room and the person want it. Pure."""

from enum import StrEnum
from typing import Final


class Memory(StrEnum):
    """What a room wants kept: everything, what is said to an agent, or nothing beyond an answer."""

    ON = "on"
    MENTIONS = "mentions"
    OFF = "off"


class Keep(StrEnum):
    """What becomes of a message: kept; kept for its answer alone and then erased; not kept at all."""

    KEPT = "kept"
    PASSING = "passing"
    DROPPED = "dropped"


_REMEMBERED: Final = {
    Memory.ON: "I remember what is said in this room, to answer here later. Its admins can change that: "
    "`/nexus memory mentions` or `/nexus memory off`.",
    Memory.MENTIONS: "I remember what is said to me in this room, to answer here later. Its admins can change that: "
    "`/nexus memory off`.",
    Memory.OFF: "I keep nothing of what is said in this room beyond an answer. Its admins can change that: "
    "`/nexus memory on`.",
}


def first_notice(memory: Memory) -> str:
    """What a room is told once, when the first message is kept there: what is remembered, and how to stop it."""
    return f"{_REMEMBERED[memory]} For what you say yourself: `/nexus opt-out`, and `/nexus forget` takes it back."


def keep(memory: Memory, *, opted_out: bool, asked: bool) -> Keep:
    """What becomes of a message in a room with this wish, by someone who may have opted out; `asked`: it wants
    an answer, for which it must be there as long as that takes."""
    if memory is Memory.ON and not opted_out:
        return Keep.KEPT
    if not asked:
        return Keep.DROPPED
    return Keep.KEPT if memory is not Memory.OFF and not opted_out else Keep.PASSING
