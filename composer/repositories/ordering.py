"""Orders of lists, and where the next page of one begins."""

import uuid
from datetime import datetime
from enum import StrEnum
from typing import Any


class Order(StrEnum):
    """By when things were created, updated, or last used in an answer to their reader (what never was counts as used
    before all that was); with `-` the latest first."""

    NEWEST = "-created"
    OLDEST = "created"
    LATEST_UPDATED = "-updated"
    LONGEST_UNCHANGED = "updated"
    LATEST_USED = "-used"
    LONGEST_UNUSED = "used"

    @property
    def by(self) -> str:
        """Which time counts: created, updated or used."""
        return self.removeprefix("-")

    @property
    def is_latest_first(self) -> bool:
        """Whether the latest come first."""
        return self.startswith("-")

    def parameters(self, after: tuple[datetime, uuid.UUID] | None) -> dict[str, Any]:
        """Those of a statement that lists in this order, `after` the item of this time and id."""
        after_at, after_id = after or (None, None)
        direction = 1 if self.is_latest_first else -1
        return {"by": self.by, "direction": direction, "after_at": after_at, "after_id": after_id}
