"""The texts of keys, web sessions, links, invitations and tokens: made, read and digested. Pure: randomness is given.

`nx_<tenant>_<64 hexadecimal digits>`. The tenant stands in the text, so that what it opens is looked up within that
tenant alone. Only the SHA-256 of the whole text is stored. With 256 random bits no slow hash is needed: nobody can
guess them.
"""

import hashlib
import re
import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from composer.errors import BadInput
from composer.model import tenant_id

SECRET_BYTES: Final = 32
RENEWED_BYTES: Final = 16  # of these, in a refresh token: the other half stays the same
MAX_CREDENTIAL_CHARS: Final = 1_024  # of a credential; a longer one is none
SHOWN_DIGITS: Final = 8
NO_TENANT: Final = uuid.UUID(int=0)  # has no people, so nothing is found in it
_TEXT: Final = re.compile(r"(nx[slacri]?)_([A-Za-z0-9_~-]{1,900})_([0-9a-f]{64})", re.ASCII)
_ESCAPED: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_ESCAPE: Final = re.compile(r"((?:~[0-9a-f]{2})+)", re.ASCII)


class CredentialKind(StrEnum):
    """What a credential is. Its text begins with this, so none passes for another."""

    KEY = "nx"
    WEB_SESSION = "nxs"
    LOGIN_LINK = "nxl"
    APP_CODE = "nxc"  # gets an app its first tokens
    ACCESS_TOKEN = "nxa"
    REFRESH_TOKEN = "nxr"
    INVITATION = "nxi"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the text of a credential says: its kind and the slug of its tenant."""

    kind: CredentialKind
    tenant: str


def make(kind: CredentialKind, tenant: str, secret: bytes) -> str:
    """The text of a new credential, from the slug of its tenant and 32 random bytes.

    Characters of the slug that are not allowed in a bearer token are written as `~` and two hexadecimal digits for each
    byte. Raises ValueError for another number of bytes, and BadInput for a slug that is far too long.
    """
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a credential has {SECRET_BYTES} random bytes")
    text = f"{kind}_{_escaped(tenant)}_{secret.hex()}"
    if len(text) > MAX_CREDENTIAL_CHARS:
        raise BadInput("The name of this workspace is too long for a key: name a tenant for it in nexus.toml.")
    return text


def parse(text: str, kind: CredentialKind) -> Parsed | None:
    """What a text says if it is a credential of this kind, exactly as `make` writes it; else None."""
    found = _TEXT.fullmatch(text) if len(text) <= MAX_CREDENTIAL_CHARS else None
    if found is None or found[1] != kind:
        return None
    try:
        tenant = _ESCAPE.sub(lambda each: bytes.fromhex(each[1].replace("~", "")).decode(), found[2])
    except UnicodeDecodeError:
        return None
    return Parsed(kind, tenant) if _escaped(tenant) == found[2] else None


def tenant_of(parsed: Parsed | None) -> uuid.UUID:
    """The id of the tenant that a credential names. What is no credential (None) is looked up in a tenant without
    people: so it costs the same statement as a wrong one."""
    return NO_TENANT if parsed is None else tenant_id(parsed.tenant)


def digest(text: str) -> bytes:
    """The SHA-256 of a credential's text, as it is stored. One that is too long has that of no credential."""
    return hashlib.sha256(text[: MAX_CREDENTIAL_CHARS + 1].encode("utf-8", "surrogatepass")).digest()


def family(text: str) -> bytes:
    """The digest of the part that all refresh tokens of one sign-in begin with."""
    return digest(text[: -2 * RENEWED_BYTES])


def renewed(text: str, secret: bytes) -> str:
    """The refresh token that takes the place of this one, from 16 random bytes: it begins as the others of its sign-in
    do, so one of them that is used again is known though none is stored. Raises ValueError for another number."""
    if len(secret) != RENEWED_BYTES:
        raise ValueError(f"a refresh token is renewed with {RENEWED_BYTES} random bytes")
    return text[: -2 * RENEWED_BYTES] + secret.hex()


def shown(text: str) -> str:
    """The beginning of a credential's text, up to the 8th digit: by it people tell their keys apart."""
    return text[: SHOWN_DIGITS - 2 * SECRET_BYTES]


def _escaped(slug: str) -> str:
    return _ESCAPED.sub(lambda each: "".join(f"~{byte:02x}" for byte in each[0].encode("utf-8", "replace")), slug)
