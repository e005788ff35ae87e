"""The key of the audit log and the end of its chains, in files of the data folder (or the key in a setting).

`audit.key` holds one key a line; the first one signs, and all of them verify. `audit.heads` is JSON.
"""

import hashlib
import hmac
import json
import secrets
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from composer.errors import Misconfigured
from composer.ports.audit import Head
from composer.settings import Settings, private_files

KEY_FILE: Final = "audit.key"
HEADS_FILE: Final = "audit.heads"


class AuditKeyRing:
    """The keys of the audit log (composer.ports.audit.AuditKeys): HMAC-SHA-256. The first one signs."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = {hashlib.sha256(b"id:" + key.encode()).hexdigest()[:16]: key.encode() for key in reversed(keys)}
        self.current_id = list(self._keys)[-1]

    @classmethod
    def load(cls, settings: Settings) -> Self:
        """The keys of an installation: of the setting, then of the file. One is made when there is none: where a log
        may have rows, call `key_ring` (composer/stores/installation_keys.py) instead.

        Raises Misconfigured when the file can't be read or written.
        """
        path = settings.home / KEY_FILE
        own = [] if settings.audit_key is None else [settings.audit_key.get_secret_value()]
        try:
            if not own:
                _make(path)
            stored = path.read_text(encoding="ascii").split() if path.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise Misconfigured(f"{path}, the key of the audit log, can't be used: {error}.") from error
        if not own and not stored:
            raise Misconfigured(f"{path}, the key of the audit log, is empty: restore it, or delete it to start anew.")
        return cls([*own, *stored])

    def has(self, key_id: str) -> bool:
        """Whether a key is known here."""
        return key_id in self._keys

    def sign(self, data: bytes) -> bytes:
        """The signature of some data, with the current key."""
        return hmac.digest(self._keys[self.current_id], data, "sha256")

    def derive(self, key_id: str, data: bytes) -> bytes | None:
        """A secret of 32 bytes for what `data` names, which no signature is; None when the key is not known here."""
        key = self._keys.get(key_id)
        return None if key is None else hmac.digest(hmac.digest(key, b"derived secrets", "sha256"), data, "sha256")

    def verify(self, key_id: str, data: bytes, signature: bytes) -> bool | None:
        """Whether a key made this signature; None when the key is not known here."""
        key = self._keys.get(key_id)
        return None if key is None else hmac.compare_digest(hmac.digest(key, data, "sha256"), signature)


def _make(path: Path) -> None:
    """Make a key unless the file exists. Of several processes that do so at once, one wins."""
    if not path.exists():
        with suppress(FileExistsError):
            private_files.make(path, f"{secrets.token_hex(32)}\n".encode())


class AuditHeadsFile:
    """The ends of the chains that were sealed from this data folder (composer.ports.audit.AuditHeads)."""

    def __init__(self, home: Path) -> None:
        self._path = home / HEADS_FILE

    def get(self, tenant: uuid.UUID) -> Head | None:
        """The end of a tenant's chain."""
        found = self._read().get(str(tenant))
        return None if found is None else Head(found[0], bytes.fromhex(found[1]))

    def set(self, tenant: uuid.UUID, head: Head) -> None:
        """Remember the end of a tenant's chain, unless a later end is known: another process may have sealed more
        meanwhile. The file is exchanged as a whole."""
        known = self._read()
        if str(tenant) in known and known[str(tenant)][0] >= head.number:
            return
        heads = {**known, str(tenant): [head.number, head.digest.hex()]}
        try:
            with private_files.replaced(self._path) as file:
                file.write(json.dumps(heads, indent=1).encode())
        except OSError as error:
            raise Misconfigured(f"{self._path} can't be written: {error.strerror or error}.") from error

    def clear(self) -> None:
        """Forget all, after a restore of an older state."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> dict[str, tuple[int, str]]:
        try:
            heads: dict[str, tuple[int, str]] = json.loads(self._path.read_text(encoding="ascii"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise Misconfigured(
                f"{self._path}, the ends of the audit logs, can't be read ({error}): restore it, or delete it to go on "
                "without this check."
            ) from error
        return heads
