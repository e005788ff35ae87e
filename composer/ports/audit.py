"""Keys and marks of the audit log, which lie outside the database, where its administrators can't change them."""

import uuid
from dataclasses import dataclass
from typing import Protocol


class AuditKeys(Protocol):
    """Signs rows of the audit log with a secret key. Older keys still verify what they signed."""

    @property
    def current_id(self) -> str:
        """The id of the key that signs."""
        ...

    def sign(self, data: bytes) -> bytes:
        """The signature of some data, with the current key."""
        ...

    def derive(self, key_id: str, data: bytes) -> bytes | None:
        """A secret of 32 bytes for what `data` names, which no signature is; None when the key is not known here."""
        ...

    def verify(self, key_id: str, data: bytes, signature: bytes) -> bool | None:
        """Whether a key made this signature; None when the key is not known here."""
        ...


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a tenant's chain as it was last sealed: the number of the seal and its digest."""

    number: int
    digest: bytes


class AuditHeads(Protocol):
    """Remembers the end of each tenant's chain, so that rows which are removed from the end are missed."""

    def get(self, tenant: uuid.UUID) -> Head | None:
        """The end of a tenant's chain; None when nothing was sealed from here."""
        ...

    def set(self, tenant: uuid.UUID, head: Head) -> None:
        """Remember the end of a tenant's chain, unless a later end is known."""
        ...

    def clear(self) -> None:
        """Forget all, after a restore of an older state."""
        ...
