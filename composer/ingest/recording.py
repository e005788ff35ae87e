"""Decide whether a message is stored, from the room's recording policy and the sender's opt-out. Pure."""

from enum import StrEnum
from typing import Final

from composer.model import RecordingPolicy


class Recording(StrEnum):
    """What happens to one message: stored, stored until its answer is sent, or not stored."""

    STORE = "store"
    EPHEMERAL = "ephemeral"
    DROP = "drop"


_POLICY_TEXT: Final = {
    RecordingPolicy.ON: "I remember what is said in this room, to answer here later. Its admins can change that: "
    "`/nexus memory mentions` or `/nexus memory off`.",
    RecordingPolicy.MENTIONS: "I store messages to me in this room, to answer here later. Its admins can change "
    "that: `/nexus memory off`.",
    RecordingPolicy.OFF: "I store nothing from this room, except a question until it is answered. Its admins "
    "can change that: "
    "`/nexus memory on`.",
}


def privacy_notice(policy: RecordingPolicy) -> str:
    """The notice that a room gets once, with its first stored message: what is remembered, and how to stop it."""
    return (
        f"{_POLICY_TEXT[policy]} To stop me storing your own messages: `/nexus opt-out`. To erase them: `/nexus "
        "forget`."
    )


def decide_recording(policy: RecordingPolicy, *, opted_out: bool, wants_answer: bool) -> Recording:
    """What happens to a message under a room's policy. `opted_out`: its sender has opted out of being remembered.

    A message that an agent has to answer must exist until the answer is sent, so it is never dropped.
    """
    if policy is RecordingPolicy.ON and not opted_out:
        return Recording.STORE
    if not wants_answer:
        return Recording.DROP
    return Recording.EPHEMERAL if policy is RecordingPolicy.OFF or opted_out else Recording.STORE
