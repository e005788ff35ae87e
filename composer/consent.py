"""What is kept of what someone says: as the room and the person want it. Pure."""

from enum import StrEnum


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


def keep(memory: Memory, *, opted_out: bool, asked: bool) -> Keep:
    """What becomes of a message in a room with this wish, by someone who may have opted out; `asked`: it wants
    an answer, for which it must be there as long as that takes."""
    if memory is Memory.ON and not opted_out:
        return Keep.KEPT
    if not asked:
        return Keep.DROPPED
    return Keep.KEPT if memory is not Memory.OFF and not opted_out else Keep.PASSING
