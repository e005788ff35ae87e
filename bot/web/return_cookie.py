"""The cookie by which a browser, once it is signed in, comes back to the request of an app that brought it."""

import base64
import binascii
from typing import Final

from fastapi import Request
from fastapi.responses import Response

from bot.web.credentials import cookie_name, only_cookie
from bot.web.oauth.metadata import AUTHORIZE

SUFFIX: Final = "-return"
COOKIE_SECONDS: Final = 600
MAX_COOKIE_CHARS: Final = 3_000  # of the parameters: a browser keeps 4,096 bytes of a cookie


def store(answer: Response, query: str, public_url: str | None) -> bool:
    """Store the parameters of an app's request in the browser; False where they are too long for a cookie."""
    if len(query) > MAX_COOKIE_CHARS:
        return False
    name, secure = _name(public_url)
    text = base64.urlsafe_b64encode(query.encode()).decode()
    answer.set_cookie(name, text, COOKIE_SECONDS, path="/", secure=secure, httponly=True, samesite="lax")
    return True


def return_address(request: Request, public_url: str | None) -> str | None:
    """The address of the app's request that brought the browser; None where none did."""
    text = only_cookie(request, _name(public_url)[0])
    if text is None:
        return None
    try:
        query = base64.b64decode(text.strip('"'), altchars=b"-_", validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        return None
    return f"{AUTHORIZE}?{query}" if query.isprintable() and " " not in query else None


def delete(answer: Response, public_url: str | None) -> None:
    """Delete the cookie."""
    name, secure = _name(public_url)
    answer.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")


def _name(public_url: str | None) -> tuple[str, bool]:
    name, secure = cookie_name(public_url)
    return name + SUFFIX, secure
