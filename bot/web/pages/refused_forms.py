"""A form that was refused: its page again, with the sentence at the form and what was typed still in it; where somebody
has changed the same meanwhile, with what it says now beside that. One place for every form that a browser sends without
a script."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser
from typing import Any, Final
from urllib.parse import urlsplit

from fastapi import Request
from starlette.routing import Match, Route
from starlette.types import Message, Scope

_OF_BODY: Final = (b"content-type", b"content-length", b"transfer-encoding", b"accept-encoding", b"if-none-match")
_OF_PAGE: Final = ("csrf", "version")  # hidden values that are as of the page, not of what was chosen on it
_VERSION: Final = "version"
_TICKED: Final = ("checkbox", "radio")
_WITH_TEXT: Final = ("textarea", "option")
CHANGED_BY_OTHERS: Final = "This is what it says now. Saving puts what you typed in its place."
_NOT_TYPED: Final = ("hidden", "file", "password", "submit", "button")


async def page_of_form(request: Request, route_class: type[Route]) -> str | None:
    """The page from which a browser says that it sent a form, read again by whoever sent it. None where that is no page
    of ours, of these routes, which they may read."""
    came_from = urlsplit(request.headers.get("referer", ""))
    if came_from.netloc != request.headers.get("host"):
        return None
    scope: Scope = {
        **request.scope,
        "asgi": {"version": "3.0", "spec_version": "2.3"},  # by which streams look whether anybody reads on
        "method": "GET",
        "path": came_from.path,
        "raw_path": came_from.path.encode(),
        "query_string": came_from.query.encode(),
        "headers": [each for each in request.scope["headers"] if each[0] not in _OF_BODY],
    }
    for route in request.app.routes:
        if isinstance(route, route_class) and (found := route.matches(scope))[0] is Match.FULL:
            return await _body(route, {**scope, **found[1]})
    return None


async def _body(route: Route, scope: Scope) -> str | None:
    parts, is_page = list[bytes](), True

    async def receive() -> Message:
        return {"type": "http.disconnect"}  # it has no body, and a stream ends at once

    async def send(message: Message) -> None:
        nonlocal is_page
        if message["type"] == "http.response.start":
            kind = dict(message["headers"]).get(b"content-type", b"")
            is_page = message["status"] == 200 and kind.startswith(b"text/html")
        elif is_page:
            parts.append(message.get("body", b""))

    await route.handle(scope, receive, send)
    return b"".join(parts).decode() if is_page else None


@dataclass(slots=True)
class _Element:
    """A start tag of a page, and where it stands; of a textarea `until` is where its text ends. `of_select`: the name
    of the choice that an option is of; `label` and `text`: what stands before a field, and in a textarea or an
    option."""

    tag: str
    attrs: dict[str, str | None]
    start: int
    end: int
    until: int = 0
    of_select: str = ""
    label: str = ""
    text: str = ""

    @property
    def is_chosen(self) -> bool:
        """Whether it holds what somebody has typed or chosen, and not another choice that there is."""
        if self.tag in ("select", "option"):
            return "selected" in self.attrs
        return self.attrs.get("type") not in (*_NOT_TYPED, *_TICKED)

    def written(self, attrs: Mapping[str, str | None]) -> str:
        """The tag with these attributes."""
        said = (f" {name}" if value is None else f' {name}="{escape(value)}"' for name, value in attrs.items())
        return f"<{self.tag}{''.join(said)}>"


@dataclass(slots=True)
class _SentForm:
    """A form of a page, with its fields, and what it is folded up in."""

    element: _Element
    folds: Sequence[_Element]
    fields: list[_Element] = field(default_factory=list)

    def hidden(self) -> dict[str, str | None]:
        """What it sends that nobody types."""
        hidden = (each.attrs for each in self.fields if each.attrs.get("type") == "hidden")
        return {str(each.get("name")): each.get("value") for each in hidden if each.get("name") not in _OF_PAGE}

    def is_outdated(self, sent: Mapping[str, Sequence[str]]) -> bool:
        """Whether it is about another version by now than the one that was sent."""
        versions = (each.attrs.get("value") for each in self.fields if each.attrs.get("name") == _VERSION)
        return any(version not in sent.get(_VERSION, (version,)) for version in versions)

    def now(self, sent: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
        """What stands in its fields where something else was sent, each with its label."""
        for each in self.fields:
            value = each.text if each.tag == "textarea" else each.attrs.get("value") or ""
            for typed in sent.get(each.of_select or str(each.attrs.get("name")), ())[:1] if each.is_chosen else ():
                if value.split() != typed.split():
                    yield each.label, (each.text or value).strip() or "-"


class _Page(HTMLParser):
    """Reads the forms of a page of ours."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms = list[_SentForm]()
        self.main: _Element | None = None
        self.focused = list[_Element]()
        self._folds, self._select, self._form = list[_Element](), "", False
        self._label, self._filled = "", False
        self._lines = [0]
        for line in page.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """The beginning of an element."""
        start = self._at()
        end = start + len(self.get_starttag_text() or "")
        found = _Element(tag, dict(attrs), start, end, of_select=self._select, label=self._label.strip())
        if "autofocus" in found.attrs and not self._form:
            self.focused.append(found)
        if tag == "main":
            self.main = found
        elif tag == "details":
            self._folds.append(found)
        elif tag == "form":
            self._form = True
            self.forms.append(_SentForm(found, tuple(self._folds)))
        elif tag in ("input", "textarea", "select", "option") and self._form:
            self._select = str(found.attrs.get("name")) if tag == "select" else self._select
            self._filled = tag in _WITH_TEXT
            self.forms[-1].fields.append(found)
        elif tag == "label":
            self._label, self._filled = "", False

    def handle_data(self, data: str) -> None:
        """The text of a field, or of the label before it."""
        if self._filled:
            self.forms[-1].fields[-1].text += data
        else:
            self._label += data

    def handle_endtag(self, tag: str) -> None:
        """The end of one."""
        if tag == "details" and self._folds:
            self._folds.pop()
        elif tag == "form":
            self._form = False
        elif tag == "select":
            self._select = ""
        elif tag == "textarea" and self._form:
            self.forms[-1].fields[-1].until = self._at()
        if tag in (*_WITH_TEXT, "form"):
            self._filled = False

    def _at(self) -> int:
        line, offset = self.getpos()
        return self._lines[line - 1] + offset


def with_refusal(
    page: str, action: str, sent: Mapping[str, Sequence[str]], sentence: str, by_others: str, address: str
) -> str:
    """A page with a sentence at the form that was sent to `action`, and with what was typed there; at its beginning
    where the form is not on it any more. Where the form is about another version by now, what that says stands beside
    it, below the sentence `by_others`. `address` is the page's: a browser shows that of the form."""
    read = _Page(page)
    alert = f'<p class="alert" role="alert" tabindex="-1" autofocus dir="auto">{escape(sentence)}</p>'
    edits = list[tuple[int, int, str]]()
    for each in read.focused:  # one looks at the sentence now
        without = {name: value for name, value in each.attrs.items() if name != "autofocus"}
        edits.append((each.start, each.end, each.written(without)))
    if read.main is not None:
        edits.append((read.main.start, read.main.end, read.main.written({**read.main.attrs, "data-address": address})))
    if (form := _form_of(read.forms, action, sent)) is not None:
        edits.append((form.element.end, form.element.end, alert + _as_now(form, sent, by_others)))
        edits += [(each.start, each.end, each.written({**each.attrs, "open": None})) for each in form.folds]
        edits += _filled(form, sent)
    elif read.main is not None:
        edits.append((read.main.end, read.main.end, alert))
    for start, end, text in sorted(edits, reverse=True):
        page = page[:start] + text + page[end:]
    return page


def _as_now(form: _SentForm, sent: Mapping[str, Sequence[str]], sentence: str) -> str:
    said = [(escape(label), escape(text)) for label, text in form.now(sent)] if form.is_outdated(sent) else []
    rows = "".join(f'<dt>{label}</dt><dd dir="auto">{text}</dd>' for label, text in said)
    return f'<div class="as-now"><p>{escape(sentence)}</p><dl>{rows}</dl></div>' if rows else ""


def _form_of(forms: Sequence[_SentForm], action: str, sent: Mapping[str, Sequence[str]]) -> _SentForm | None:
    """The form of those that go to an address whose hidden values were sent, or else the first."""
    there = [each for each in forms if each.element.attrs.get("action") == action]
    same = (each for each in there if all(value in sent.get(name, ()) for name, value in each.hidden().items()))
    return next(same, next(iter(there), None))


def _filled(form: _SentForm, sent: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, int, str]]:
    """The changes that put into a form what was sent of its fields."""
    for each in form.fields:
        name, kind, attrs = str(each.attrs.get("name")), each.attrs.get("type") or "", dict[str, Any](each.attrs)
        values = sent.get(each.of_select or name, ())
        if each.tag == "textarea":
            if values:
                yield each.end, each.until, f"\n{escape(values[0])}"
        elif each.tag == "option":
            if values and "value" in attrs:
                yield each.start, each.end, each.written(_marked(attrs, "selected", attrs["value"] in values))
        elif kind in _TICKED:
            yield each.start, each.end, each.written(_marked(attrs, "checked", (attrs.get("value") or "on") in values))
        elif each.tag == "input" and values and kind not in _NOT_TYPED:
            yield each.start, each.end, each.written({**attrs, "value": values[0]})


def _marked(attrs: Mapping[str, Any], name: str, is_so: bool) -> Mapping[str, Any]:
    without = {each: value for each, value in attrs.items() if each != name}
    return {**without, name: None} if is_so else without
