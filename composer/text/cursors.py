"""Cursors of lists: the moment and the id of the last row that was shown, and the order, as one opaque word."""

import base64
import binascii
import uuid
from datetime import datetime, timedelta
from typing import Final

from composer.errors import BadInput
from composer.text.moments import FIRST_YEAR, moment

NOT_EARLIER: Final = timedelta()


def cursor_of(at: datetime, id: uuid.UUID, order: str = "") -> str:
    """The cursor with which a list of some order goes on after this row."""
    return base64.urlsafe_b64encode(f"{at.isoformat()} {id} {order}".strip().encode()).decode().rstrip("=")


def read_cursor(cursor: str, order: str = "", earlier: timedelta = NOT_EARLIER) -> tuple[datetime, uuid.UUID]:
    """The row that a cursor names. `earlier`: times of the list may be so much earlier than any moment. Raises
    BadInput, also for the cursor of a list of another order."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        at, id, *of = text.split(" ")
        if of != ([order] if order else []):
            raise ValueError(order)
        when = datetime.fromisoformat(at)
        by = earlier if when.year < FIRST_YEAR else NOT_EARLIER
        return moment(when + by) - by, uuid.UUID(id)
    except (ValueError, binascii.Error, BadInput):
        raise BadInput(
            "This cursor is not valid: send one that this list gave, or none to start at the beginning."
        ) from None
