"""Reads JSON of any length in chunks: the fields of an object, and the elements of long lists in it.

Written here instead of with ijson, whose errors (3.6) name no line, quote the text of messages, and which refuses a
byte order mark; nor does it limit the length of one value.
"""

import codecs
import json
from collections.abc import Container, Iterator
from typing import IO, Any, Final

from bot.importers.archive import NotJson

JSON_CHUNK_BYTES: Final = 2**18
MAX_VALUE_CHARS: Final = 2**24
_SPACE: Final = " \t\r\n"
_DECODER: Final = json.JSONDecoder()
BEGIN: Final = object()  # an object is opened of which the parts follow


class StreamedObject:
    """The fields of a JSON object in a file, in order. `where` names the file in errors."""

    def __init__(self, file: IO[bytes], where: str) -> None:
        self._file = file
        self._where = where
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._line = 1
        self._ended = False

    def fields(self, *long: str) -> Iterator[tuple[str, Any]]:
        """Yield (key, value) for each field; for a list in a field of `long`, (key, element) for each element.

        Raises NotJson, with file and line.
        """
        self._expect("{", consume=False)
        for path, value in self.walk({(), *((key,) for key in long)}):
            if value is not BEGIN:
                yield path[0], value

    def walk(self, into: Container[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Yield each value with its path, such as ("messages", "*", "text"), in their order. Objects and lists whose
        path is in `into` are yielded in parts, an object after BEGIN, all others whole. Raises NotJson, with file and
        line."""
        yield from self._parts((), into)
        if self._next():
            raise self._error("there is more after the end of the object")

    def _parts(self, path: tuple[str, ...], into: Container[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Any]]:
        opened = self._next()
        if path not in into or opened not in ("{", "["):
            yield path, self._value()
            return
        self._at += 1
        closing = "}" if opened == "{" else "]"
        if opened == "{":
            yield path, BEGIN
        while self._next() != closing:
            key = "*"
            if opened == "{":
                key = self._value()
                if not isinstance(key, str):
                    raise self._error("the name of a field was expected")
                self._expect(":")
            yield from self._parts((*path, key), into)
            if self._next() == ",":
                self._at += 1
            elif self._next() != closing:
                raise self._error(f"a comma or the end of the {'object' if opened == '{' else 'list'} was expected")
        self._at += 1

    def _value(self) -> Any:
        """Read the value that begins here. One that ends with its chunk may go on in the next, as a number does."""
        self._next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                if end < len(self._text) or not self._more():
                    self._at = end
                    return value
            except json.JSONDecodeError as error:
                into = error.pos - self._at
                if len(self._text) - self._at > MAX_VALUE_CHARS or not self._more():
                    self._at += into
                    raise self._error(error.msg) from None
            except ValueError:  # a number of thousands of digits
                raise self._error("a number is too long") from None
            except RecursionError:
                raise self._error("it is nested too deeply") from None

    def _expect(self, character: str, *, consume: bool = True) -> None:
        if self._next() != character:
            raise self._error(f"'{character}' was expected")
        self._at += consume

    def _next(self) -> str:
        """The next character that is not white space, without consuming it; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def _more(self) -> bool:
        """Read the next chunk, at least as much as is buffered, so that a long value is parsed only a few times."""
        if self._ended:
            return False
        self._line += self._text.count("\n", 0, self._at)
        rest = self._text[self._at :]
        raw = self._file.read(max(JSON_CHUNK_BYTES, len(rest)))
        try:
            self._text, self._at = rest + self._decode.decode(raw, final=not raw), 0
        except UnicodeDecodeError:
            raise NotJson(f"{self._where}:{self._line}: the file is not UTF-8 from here on.") from None
        self._ended = not raw
        return bool(raw)

    def _error(self, what: str) -> NotJson:
        line = self._line + self._text.count("\n", 0, self._at)
        return NotJson(f"{self._where}:{line}: this is not JSON ({what}).")
