"""The page on which a person allows an app to use their memory: who asks, where it leads, for what, as which tool."""

import hashlib
import hmac
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

from fastapi.responses import Response

from bot.web.oauth.clients import Client
from bot.web.oauth.metadata import CONSENT
from bot.web.plain_pages import PlainPages
from composer.people.credentials.connected_apps import AuthorizationRequest
from composer.people.credentials.redirects import host_of, leads_to_loopback
from composer.settings import is_vendor
from composer.text.names import in_quotes, looks

MAX_VENDOR_CHARS: Final = 32
# What is sent along with a request, and kept from page to page.
PARAMETERS: Final = (
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
    "resource",
)
IN_WORDS: Final[Mapping[str, str]] = {
    "entries:read": "read your own entries, those that you let a tool of this name read",
    "entries:write": "write entries for you, and erase those that it wrote",
    "teams:read": "read what your teams share",
    "projects:read": "read what is remembered of your projects",
}
LEADS: Final = "It leads back to {host}."
LOCAL: Final = (
    "It leads back to {host}, a program on this computer. Any program here can ask in this name: go on only if you "
    "have just started this yourself."
)
SELF_NAMED: Final = (
    "It calls itself so, and nobody has checked that: go on only if you have just started this yourself."
)
IS_TAKEN: Final = (
    "You have a tool of the name {name} already. Under that name this app would read what only that one may, and "
    "replace and erase what it wrote: give it that name only if it is the same tool."
)
LOOKS_LIKE: Final = "Its name is written with letters that look like others: it may want to be taken for {name}."
# What is wrong with a request of an app, for the person, by the code that the app is told (RFC 6749, RFC 8707).
MISTAKES: Final = {
    "invalid_scope": "it asks for rights that there are not here.",
    "invalid_target": "it asks for something else than this Nexus.",
    "server_error": "something went wrong here. Try again.",
    "": "its request is not as it should be. Have it sign in anew, from its beginning.",
}
# Kept by a page in front, which opens this one in a window of its own and waits for it.
CONSENT_HEADERS: Final = {"Cross-Origin-Opener-Policy": "unsafe-none"}
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with a request of an app: its `code`, and what the app is told (`said`). `back` is the address that
    tells the app so, one of those that it has registered (`redirect_uri`)."""

    client: Client
    code: str
    said: str
    redirect_uri: str
    back: str


def token_of(cookie: str, said: Mapping[str, str], client: Client, asked: AuthorizationRequest) -> str:
    """What shows that a form came from the page that this web session was shown for this very request, when the app
    said of itself what it says now. `cookie` is the text of the session's cookie, which no other page can read."""
    shown = [client.name, asked.redirect_uri, *asked.permissions]
    request = json.dumps([[said.get(name) for name in PARAMETERS], shown]).encode()
    return hmac.new(cookie.encode(), b"nexus consent " + request, hashlib.sha256).hexdigest()


def mistake_page(pages: PlainPages, mistake: Mistake) -> Response:
    """The page for an app whose request is wrong, with a link that tells the app. It leads nobody there by itself:
    anybody can register an app, and the person has not chosen this one."""
    answer = pages.page(
        f"{in_quotes(mistake.client.name)} can't be connected: {MISTAKES.get(mistake.code, MISTAKES[''])}",
        pages.text(f"For whoever makes it: {mistake.said}"),
        pages.link(mistake.back, f"Go back to {host_of(mistake.redirect_uri)}"),
        status=400,
    )
    answer.headers.update(CONSENT_HEADERS)
    return answer


def vendor_of(name: str, used: Collection[str] = ()) -> tuple[str, str]:
    """The name of a tool that fits what an app calls itself (empty where none does; the person may write another), and
    of the tool of theirs (one of `used`) that has the name which fitted better, so that it gets another one."""
    found = _NO_WORD.sub("-", name.lower()).strip("-")[:MAX_VENDOR_CHARS].strip("-")
    if not is_vendor(found):
        return "", ""
    numbered = (f"{found[: MAX_VENDOR_CHARS - len(f'-{n}')]}-{n}" for n in count(2))
    return (next(each for each in numbered if each not in used), found) if found in used else (found, "")


def consent_page(
    pages: PlainPages,
    client: Client,
    asked: AuthorizationRequest,
    person: tuple[str, str],
    vendor: str,
    token: str,
    said: Mapping[str, str],
    wrong: str = "",
    taken: str = "",
) -> Response:
    """The page. `person` is whose memory it is about, with their tenant; `vendor` what the field holds, `wrong` what is
    wrong with it, `taken` the tool of theirs that is called as the app would be."""
    parts = [pages.text(wrong)] if wrong else []
    if client.has_address:
        parts.append(pages.text(f"It is the app described at {client.id}"))
    else:
        parts.append(pages.text(SELF_NAMED))
    if any(each.isalpha() and not each.isascii() for each in client.name):
        alike = " or ".join(sorted(looks(client.name)))
        parts.append(pages.text(LOOKS_LIKE.format(name=alike)) if alike else "")
    said_where = LOCAL if leads_to_loopback(asked.redirect_uri) else LEADS
    parts.append(pages.text(said_where.format(host=host_of(asked.redirect_uri))))
    parts.append(pages.text("It could:"))
    parts.append(pages.items(IN_WORDS[each] for each in asked.permissions))
    if taken:
        parts.append(pages.text(IS_TAKEN.format(name=in_quotes(taken))))
    kept = {name: said[name] for name in PARAMETERS if name in said}
    parts.append(
        pages.form(
            CONSENT,
            pages.field(
                "vendor",
                "Name it, for your lists and as the tool that its entries come from:",
                vendor,
                MAX_VENDOR_CHARS,
            ),
            pages.choice("decision", "allow", "Allow", main=True),
            pages.choice("decision", "deny", "Cancel"),
            **kept,
            token=token,
        )
    )
    parts.append(pages.text("You end it with /nexus keys revoke; /nexus keys list shows it."))
    name, tenant = person
    answer = pages.page(f"{in_quotes(client.name)} wants to use the memory of {name} of {tenant}.", *parts)
    answer.headers.update(CONSENT_HEADERS)
    return answer
