"""The text of a message or a document in HTML, as people read it."""

from html.parser import HTMLParser
from typing import Final

from composer.text.own_words import as_quotation

_LINES: Final = frozenset({"p", "br", "div", "li", "tr", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "pre"})
_SILENT: Final = frozenset({"script", "style", "template", "noscript"})
_QUOTED: Final = "\x01"  # before words in a blockquote
_HEADING_TAGS: Final = frozenset({"h1", "h2", "h3"})


class _HtmlReader(HTMLParser):
    def __init__(self, heading: str) -> None:
        super().__init__(convert_charrefs=True)
        self._heading = heading
        self.parts: list[str] = []
        self.images: list[str] = []
        self._silent = 0
        self._quoted = 0
        self._in_cell = False
        self._link = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._quoted += tag == "blockquote"
        values = {name: value or "" for name, value in attrs}
        if tag in _SILENT:
            self._silent += 1
        elif self._in_cell and tag in _LINES and tag != "tr":
            self.parts.append(" ")
        elif tag in _LINES:
            self._in_cell = False
            self.parts.append("\n- " if tag == "li" else f"\n{self._heading}" if tag in _HEADING_TAGS else "\n")
        elif tag in ("td", "th"):
            self._in_cell = True
            self.parts.append(" | ")
        elif tag == "emoji":
            self.parts.append(values.get("alt", ""))
        elif tag == "img" and values.get("itemscope") is None and "emoji" not in values.get("itemtype", "").lower():
            self.images.append(values.get("alt") or "image")
        elif tag == "img":
            self.parts.append(values.get("alt", ""))
        elif tag == "at":
            self.parts.append("@")
        elif tag == "a":
            self._link = values.get("href", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "blockquote":
            self._quoted = max(0, self._quoted - 1)
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in ("td", "th", "table"):
            self._in_cell = False
        elif tag in _LINES and tag != "li":
            self.parts.append(" " if self._in_cell else "\n")
        elif tag == "a":
            shown = self.parts[-1].removeprefix(_QUOTED).strip() if self.parts else ""
            if self._link.startswith(("http://", "https://")) and shown and shown not in self._link:
                self.parts.append(f" ({self._link})")
            self._link = ""

    def handle_data(self, data: str) -> None:
        if not self._silent:
            mark = _QUOTED if self._quoted else ""
            self.parts.append(mark + data.replace("\xa0", " ").replace("\r", "").replace("\n", " "))


def text_of_html(html: str, heading: str = "") -> tuple[str, list[str]]:
    """The text, line by line, and the names of the images in it. `heading` begins the line of a heading."""
    reader = _HtmlReader(heading)
    reader.feed(html)
    reader.close()
    lines = (" ".join(line.split()).removeprefix("| ") for line in "".join(reader.parts).split("\n"))
    shown = (line for line in lines if line.strip(f"| {_QUOTED}") and line != "-")
    marked = (as_quotation(line.replace(_QUOTED, "")) if _QUOTED in line else line for line in shown)
    return "\n".join(marked), reader.images
