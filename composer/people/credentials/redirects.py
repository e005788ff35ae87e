"""Where an app may be led back to. Pure.

Addresses are compared as texts, character by character, so no two readings of one address meet. The port of a loopback
address does not count (RFC 8252, section 7.3): a program takes any port that is free.
"""

import re
from typing import Final

from composer.errors import BadInput

MAX_REDIRECT_CHARS: Final = 500
LOOPBACKS: Final = frozenset({"127.0.0.1", "[::1]", "localhost"})
RULE: Final = (
    "a redirect URI begins with https, or with http where it leads to 127.0.0.1, [::1] or localhost; it has at most "
    f"{MAX_REDIRECT_CHARS} visible ASCII characters, and no login and no fragment"
)
# Nothing that browsers and libraries read in two ways: no backslash, no white space, no login, no fragment.
_ADDRESS: Final = re.compile(
    r"""(?P<scheme>https?)://
        (?P<host>\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)
        (?::(?P<port>[1-9][0-9]{0,4}))?
        (?P<rest>(?:/[!$-;=?-\[\]_a-z~%]*)?(?:\?[!$-;=?-\[\]_a-z~%]*)?)""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)


def check_redirect_uri(text: str) -> str:
    """An address that an app may be led back to, as it is. Raises BadInput for any other one."""
    found = _ADDRESS.fullmatch(text) if len(text) <= MAX_REDIRECT_CHARS else None
    if found is None or (found["scheme"] != "https" and not _is_loopback(found)):
        raise BadInput(f"That is no address to lead back to: {RULE}.")
    return text


def same_redirect(asked: str, registered: str) -> bool:
    """Whether an app that has registered one address may be led back to the other one."""
    if asked == registered:
        return True
    one, other = _ADDRESS.fullmatch(asked), _ADDRESS.fullmatch(registered)
    if one is None or other is None or not _is_loopback(one) or not _is_loopback(other):
        return False
    return (one["scheme"], one["host"], one["rest"]) == (other["scheme"], other["host"], other["rest"])


def leads_to_loopback(address: str) -> bool:
    """Whether an address leads to a program on the machine of whoever opens it."""
    found = _ADDRESS.fullmatch(address)
    return found is not None and _is_loopback(found)


def host_of(address: str) -> str:
    """The host of an address, as a person is shown it: ASCII, with its port if it has one. Empty for no address."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return ""
    return found["host"].lower() + (f":{found['port']}" if found["port"] else "")


def _is_loopback(found: re.Match[str]) -> bool:
    return found["scheme"] == "http" and found["host"] in LOOPBACKS
