"""What the billing provider says of a customer."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription that has not ended. `price` is that of its `item`; `until` is the end of the time that is paid,
    and with `ends` it is not renewed then."""

    id: str
    item: str
    price: str
    status: str
    created: datetime
    until: datetime
    ends: bool = False
