"""Buttons below a message that give a command for whoever presses: what stands in a button, and what a press means.

A button carries its command itself, so that it works after a restart, and as long as the message is there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from composer.model import Offer, derived_id

OFFER_PREFIX: Final = "nexus-do:"  # of the id of a button on its platform
ASKED_AGAIN: Final = "You have pressed this button before: this press did nothing."
NOT_YOURS: Final = "That button is for another person. You can type the command that stands there."


@dataclass(frozen=True, slots=True)
class Press:
    """What a button says: for whom it is (the id on the platform), and the command."""

    user: str
    command: str


def button(user: str, offer: Offer, max_chars: int) -> str | None:
    """What the button of an offer carries; None if the platform takes no button of that length: then the command can
    be typed."""
    carried = f"{OFFER_PREFIX}{user}:{offer.command}"
    return carried if len(carried) <= max_chars else None


def read_press(carried: str) -> Press | None:
    """The meaning of a button; None for one that is no offer."""
    user, found, command = carried.removeprefix(OFFER_PREFIX).partition(":")
    return Press(user, command) if found and carried.startswith(OFFER_PREFIX) else None


def offer_id(message: str, press: Press) -> str:
    """The id of the command that a button of a message gives: the same for every press, so that it is done once."""
    return f"{message}:{derived_id('offer', press.user, press.command)}"


def buttons(user: str, offers: Sequence[Offer], max_chars: int) -> list[tuple[str, str]]:
    """The label of each button, and what it carries."""
    found = ((offer.label, button(user, offer, max_chars)) for offer in offers)
    return [(label, carried) for label, carried in found if carried is not None]
