"""Plain pages, without a script: what people see who sign in."""

import html
from collections.abc import Iterable
from typing import Final

from fastapi.responses import HTMLResponse, Response

from bot.web.pages.assets import ICON, STYLES, address_of

PAGE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    # With no-referrer a browser would say that its own form comes from nowhere, and old ones say nothing else. No other
    # site gets the address either way.
    "Referrer-Policy": "same-origin",
}
_PAGE: Final = """<!doctype html>
<html lang="{language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
{head}<title>Nexus</title>
<link rel="icon" href="{icon}" type="image/svg+xml">
{styles}<main class="alone">
<section class="card joining">
<h1 class="brand"><span class="mark" aria-hidden="true"></span>Nexus</h1>
<p>{said}</p>
{body}</section>
</main>
</html>
"""


def page(said: str, *body: str, status: int = 200, head: str = "", language: str = "en") -> Response:
    """A page that says something, in a language. `said` is text; `body` and `head` are HTML, made by the functions
    below."""
    styles = "".join(f'<link rel="stylesheet" href="{address_of(name)}">\n' for name in STYLES)
    text = _PAGE.format(
        language=language, said=html.escape(said), body="".join(body), head=head, styles=styles, icon=address_of(ICON)
    )
    return HTMLResponse(text, status, PAGE_HEADERS)


def button(address: str, label: str, **values: str) -> str:
    """A button that sends values to an address of ours."""
    return form(address, f'<button class="btn">{html.escape(label)}</button>\n', **values)


def form(address: str, *inside: str, **values: str) -> str:
    """A form that sends values to an address of ours, with what is inside it: fields and choices."""
    hidden = "".join(_hidden(name, value) for name, value in values.items())
    return f'<form method="post" action="{html.escape(address)}">\n{hidden}{"".join(inside)}</form>\n'


def field(name: str, label: str, value: str, max_chars: int) -> str:
    """A line of a form that is filled in."""
    more = f'value="{html.escape(value)}" maxlength="{max_chars}" autocomplete="off" spellcheck="false"'
    return f'<p><label>{html.escape(label)} <input class="input" name="{html.escape(name)}" {more}></label></p>\n'


def choice(name: str, value: str, label: str) -> str:
    """A button of a form that says which one was pressed."""
    sent = f'name="{html.escape(name)}" value="{html.escape(value)}"'
    return f'<button class="btn" data-variant="outline" {sent}>{html.escape(label)}</button>\n'


def items(said: Iterable[str]) -> str:
    """A list."""
    return "<ul>\n" + "".join(f"<li>{html.escape(each)}</li>\n" for each in said) + "</ul>\n"


def link(address: str, label: str) -> str:
    """A link."""
    return f'<p><a href="{html.escape(address)}">{html.escape(label)}</a></p>\n'


def text(said: str) -> str:
    """A paragraph."""
    return f"<p>{html.escape(said)}</p>\n"


def leading_to(address: str) -> str:
    """The part of a head that leads on to another address at once. A form can't be answered by leading to another site:
    browsers hold that against form-action."""
    return f'<meta http-equiv="refresh" content="0;url={html.escape(address)}">\n'


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">\n'
