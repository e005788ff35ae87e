"""Leave out of the component sheet what no page uses: `python -m tests.vendored ORIGINAL`, where ORIGINAL is the sheet
of its package. Run it when a page uses something that was left out (tests/unit/test_vendored.py says which)."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PAGES: Final = Path(__file__).parent.parent / "bot" / "web" / "pages"
SHEET: Final = PAGES / "static" / "basecoat-1.0.2.part.css"
LEFT_OUT: Final = Path(__file__).parent / "vendored_left_out.txt"  # beside the tests: no browser needs it
_CLASS: Final = re.compile(r"\.-?[A-Za-z_][\w-]*")
_ATTRIBUTE: Final = re.compile(r"\[([a-z][a-z-]*)(?:=\"?([\w-]+)\"?)?\]")
_VALUED: Final = ("role", "type")  # attributes of which pages have few values
_CLASSES: Final = re.compile(r"class=\\?[\"']([^\"']*)|className = [\"']([^\"']*)")
_LIST: Final = re.compile(r":(?:is|where|has|not)\(")
_GROUPS: Final = ("@layer", "@media", "@supports", "@container")
_ASKED: Final = re.compile(r"var\((--[\w-]+)")
_PROPERTY: Final = re.compile(r"@property (--[\w-]+)\{[^}]*\}")
_VALUE: Final = re.compile(r"(?<=[{;])(--[\w-]+):(?:[^;{}\"]|\"[^\"]*\")*(?:;|(?=\}))")
_EMPTY: Final = re.compile(r"[^{};]*[^{};\s]\{\}")


def _files() -> str:
    """All that makes elements, or gives them something."""
    files = [*PAGES.rglob("*.html"), *PAGES.glob("static/*.js"), *PAGES.parent.rglob("*.py")]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def used_classes() -> set[str]:
    """The words of all classes that templates and scripts give to elements, as a selector has them: `.btn`."""
    found = [match[1] or match[2] or "" for match in _CLASSES.finditer(_files())]
    return {f".{word}" for words in found for word in re.findall(r"[\w-]+", words)}


def used_attributes() -> set[str]:
    """The names of attributes that templates and scripts may give to elements, and `role=…` and `type=…` as they stand
    there."""
    text = _files()
    valued = re.findall(rf'\b((?:{"|".join(_VALUED)})=)"([\w-]+)"', text)
    return set(re.findall(r"[a-z][a-z-]*", text)) | {name + value for name, value in valued}


def left_out() -> set[str]:
    """The classes and attributes that the sheet was made without."""
    return set(LEFT_OUT.read_text(encoding="utf-8").split())


def without_unused(sheet: str, used: set[str]) -> str:
    """A sheet without the rules that fit no element of a page, and without the values that no rule left asks for."""
    pruned = "".join(_pruned(sheet, used))
    while (shorter := _without_values(pruned, set(_ASKED.findall(pruned)))) != pruned:
        pruned = shorter
    return pruned


def _without_values(sheet: str, asked: set[str]) -> str:
    def kept(value: re.Match[str]) -> str:
        return value[0] if value[1] in asked else ""

    return _EMPTY.sub("", _VALUE.sub(kept, _PROPERTY.sub(kept, sheet)))


def _pruned(text: str, used: set[str]) -> Iterator[str]:
    """The rules of a sheet, or of a group in it, that may fit."""
    for head, body in _rules(text):
        if body is None:
            yield head
        elif head.startswith(_GROUPS):
            inner = "".join(_pruned(body, used))
            if inner:
                yield f"{head}{{{inner}}}"
        elif head.startswith("@"):
            yield f"{head}{{{body}}}"
        elif selectors := _fitting(head, used):
            yield f"{selectors}{{{body}}}"


def _rules(text: str) -> Iterator[tuple[str, str | None]]:
    """The rules of a text with their bodies; None for a statement that has none."""
    start = at = 0
    while at < len(text):
        if text.startswith("/*", at):
            at = start = text.index("*/", at) + 2
        elif text[at] == ";":
            yield text[start : at + 1], None
            at = start = at + 1
        elif text[at] == "{":
            end = _closed(text, at, "{", "}")
            yield text[start:at], text[at + 1 : end]
            at = start = end + 1
        else:
            at += 1


def _closed(text: str, at: int, opening: str, closing: str) -> int:
    """Where what opens at a place is closed."""
    depth, quoted = 0, ""
    for index in range(at, len(text)):
        each = text[index]
        if quoted:
            quoted = "" if each == quoted and text[index - 1] != "\\" else quoted
        elif each in "\"'":
            quoted = each
        elif each == opening:
            depth += 1
        elif each == closing:
            depth -= 1
            if not depth:
                return index
    raise ValueError(text[at : at + 80])


def _fitting(selectors: str, used: set[str]) -> str:
    """Those of some selectors that may fit an element of a page."""
    found = []
    for selector in _parts(selectors):
        kept, rest = _with_lists(selector, used)
        if kept is not None and set(_CLASS.findall(rest)) | _asked(rest) <= used:
            found.append(kept)
    return ",".join(found)


def _asked(selector: str) -> set[str]:
    """The attributes that a selector asks for, as `used_attributes` has them."""
    return {f"{name}={value}" if name in _VALUED and value else name for name, value in _ATTRIBUTE.findall(selector)}


def _with_lists(selector: str, used: set[str]) -> tuple[str | None, str]:
    """A selector whose lists (`:is(…)`) hold what may fit alone, None where one holds nothing any more; and what stands
    outside of them."""
    kept, outside, at = "", "", 0
    while (found := _LIST.search(selector, at)) is not None:
        end = _closed(selector, found.end() - 1, "(", ")")
        inner = _fitting(selector[found.end() : end], used)
        kept += selector[at : found.start()]
        outside += selector[at : found.start()]
        if inner:
            kept += f"{found[0]}{inner})"
        elif found[0] != ":not(":
            return None, ""
        at = end + 1
    return kept + selector[at:], outside + selector[at:]


def _parts(selectors: str) -> Iterator[str]:
    """Selectors of a list, one by one."""
    depth = start = 0
    for at, each in enumerate(selectors):
        depth += (each in "([") - (each in ")]")
        if each == "," and not depth:
            yield selectors[start:at]
            start = at + 1
    yield selectors[start:]


def main(original: str) -> None:
    """Write the sheet."""
    sheet, used = Path(original).read_text(encoding="utf-8"), used_classes() | used_attributes()
    licence = re.match(r"/\*!.*?\*/\n?", sheet, re.S)
    outside = "".join(head for head, _ in _selectors(sheet))
    gone = (set(_CLASS.findall(outside)) | _asked(outside)) - used
    LEFT_OUT.write_text("\n".join(sorted(gone)) + "\n", encoding="utf-8")
    SHEET.write_text((licence[0] if licence else "") + without_unused(sheet, used), encoding="utf-8")


def _selectors(text: str) -> Iterator[tuple[str, str | None]]:
    for head, body in _rules(text):
        if head.startswith(_GROUPS):
            yield from _selectors(body or "")
        elif not head.startswith("@"):
            yield head, body


if __name__ == "__main__":
    main(sys.argv[1])
