"""Plain pages, without a script: what people see who sign in."""

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from bot.web.pages.assets import ICON, STYLES, address_of
from bot.web.pages.rendering import Language, language_of

OUTLINE: Final = ' data-variant="outline"'

PAGE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    # With no-referrer a browser would say that its own form comes from nowhere, and old ones say nothing else. No other
    # site gets the address either way.
    "Referrer-Policy": "same-origin",
}
_PAGE: Final = """<!doctype html>
<html lang="{language}" dir="{direction}">
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


@dataclass(frozen=True, slots=True)
class PlainPages:
    """Makes plain pages for somebody who reads a language. Every sentence and label is given in English, with its names
    in it, and told in that language."""

    language: Language

    def page(self, said: str, *body: str, status: int = 200, head: str = "") -> Response:
        """A page that says something. `body` and `head` are HTML, made by the functions below."""
        styles = "".join(f'<link rel="stylesheet" href="{address_of(name)}">\n' for name in STYLES)
        text = _PAGE.format(
            language=self.language.code,
            direction=self.language.direction,
            said=self._told(said),
            body="".join(body),
            head=head,
            styles=styles,
            icon=address_of(ICON),
        )
        return HTMLResponse(text, status, PAGE_HEADERS)

    def button(self, address: str, label: str, **values: str) -> str:
        """A button that sends values to an address of ours."""
        return self.form(address, f'<button class="btn">{self._told(label)}</button>\n', **values)

    def form(self, address: str, *inside: str, **values: str) -> str:
        """A form that sends values to an address of ours, with what is inside it: fields and choices."""
        hidden = "".join(_hidden(name, value) for name, value in values.items())
        return f'<form method="post" action="{html.escape(address)}">\n{hidden}{"".join(inside)}</form>\n'

    def field(self, name: str, label: str, value: str, max_chars: int) -> str:
        """A line of a form that is filled in."""
        more = f'value="{html.escape(value)}" maxlength="{max_chars}" autocomplete="off" spellcheck="false"'
        line = f'<input class="input" name="{html.escape(name)}" {more}>'
        return f'<p><label class="field"><span>{self._told(label)}</span> {line}</label></p>\n'

    def choice(self, name: str, value: str, label: str, *, main: bool = False) -> str:
        """A button of a form that says which one was pressed; of a page one is the main one."""
        sent = f'name="{html.escape(name)}" value="{html.escape(value)}"'
        return f'<button class="btn"{"" if main else OUTLINE} {sent}>{self._told(label)}</button>\n'

    def items(self, said: Iterable[str]) -> str:
        """A list."""
        return "<ul>\n" + "".join(f"<li>{self._told(each)}</li>\n" for each in said) + "</ul>\n"

    def link(self, address: str, label: str) -> str:
        """A link."""
        return f'<p><a href="{html.escape(address)}">{self._told(label)}</a></p>\n'

    def text(self, said: str) -> str:
        """A paragraph."""
        return f"<p>{self._told(said)}</p>\n"

    def _told(self, sentence: str) -> str:
        return html.escape(self.language.told(sentence))


def plain_pages(request: Request) -> PlainPages:
    """Plain pages in the language of a browser."""
    return PlainPages(language_of(request))


def leading_to(address: str) -> str:
    """The part of a head that leads on to another address at once. A form can't be answered by leading to another site:
    browsers hold that against form-action."""
    return f'<meta http-equiv="refresh" content="0;url={html.escape(address)}">\n'


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">\n'
