"""Cursors of lists: the moment and the id of the last row that was shown, and the order, as one opaque word."""

import base64
import binascii
import uuid
from datetime import datetime

from composer.errors import BadInput
from composer.text.moments import moment_of


def cursor_of(at: datetime, id: uuid.UUID, order: str = "") -> str:
    """The cursor with which a list of some order goes on after this row."""
    return base64.urlsafe_b64encode(f"{at.isoformat()} {id} {order}".strip().encode()).decode().rstrip("=")


def read_cursor(cursor: str, order: str = "") -> tuple[datetime, uuid.UUID]:
    """The row that a cursor names. Raises BadInput, also for the cursor of a list of another order."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        at, id, *of = text.split(" ")
        if of != ([order] if order else []):
            raise ValueError(order)
        return moment_of(at), uuid.UUID(id)
    except (ValueError, binascii.Error, BadInput):
        raise BadInput(
            "This cursor is not valid: send one that this list gave, or none to start at the beginning."
        ) from None
