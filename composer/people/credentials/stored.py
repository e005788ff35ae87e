"""What opens a person's memory from outside, as it is stored: keys, connected apps, web sessions and logins; in lines
for people, without any secret. Pure."""

from datetime import datetime

from composer.people.credentials.redirects import host_of
from composer.repositories.api_keys import KeyEntry
from composer.repositories.openid_logins import LoginEntry
from composer.repositories.web_sessions import SessionEntry

StoredCredential = KeyEntry | SessionEntry | LoginEntry


def credential_line(entry: StoredCredential, now: datetime) -> str:
    """A line of a list: the id by which the credential is ended, what it is, and when it was used."""
    id, used = entry.id.hex[:8], _used(entry)
    if isinstance(entry, SessionEntry):
        browser = entry.browser or "a browser"
        return f"{id}  web session, {browser}: since {entry.created_at:%Y-%m-%d %H:%M}, {used}"
    if isinstance(entry, LoginEntry):
        name = f" as {entry.name}" if entry.name else ""
        return f"{id}  login, an account at {entry.issuer}{name}: since {entry.created_at:%Y-%m-%d}, {used}"
    ended = " (revoked)" if entry.revoked_at is not None else " (expired)" if entry.ended(now) else ""
    since, permissions = f"since {entry.created_at:%Y-%m-%d}", ", ".join(entry.permissions)
    if entry.redirect_uri is not None:
        app = f"connected app '{entry.name}' at {host_of(entry.redirect_uri)}, as {entry.vendor}{ended}"
        return f"{id}  {app}: {since}, {used}; {permissions}"
    whose = f"of {entry.vendor}" if entry.vendor else "your own"
    until = "" if entry.expires_at is None else f", until {entry.expires_at:%Y-%m-%d}"
    name = "" if entry.name == entry.vendor else f" '{entry.name}'"
    return f"{id}  key {entry.prefix}…{name}, {whose}{ended}: {since}{until}, {used}; {permissions}"


def credential_name(entry: StoredCredential) -> str:
    """What a sentence calls a credential, such as "The key nx_acme_1a2b…"."""
    if isinstance(entry, KeyEntry):
        return f"The key {entry.prefix}…" if entry.client is None else f"The connected app '{entry.name}'"
    return "The web session" if isinstance(entry, SessionEntry) else "The login"


def _used(entry: StoredCredential) -> str:
    return "never used" if entry.last_used_at is None else f"last used {entry.last_used_at:%Y-%m-%d %H:%M}"
