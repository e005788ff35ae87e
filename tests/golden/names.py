"""Makes two recordings comparable: what is made up by chance gets a name that follows from what it stands for.

Times of the tests' own clocks, texts, counts and orders stay as they are.
"""

import base64
import json
import re
import uuid
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

NOW: Final = datetime.now(UTC)
NEAR_DAYS: Final = 2
AUDIT: Final = "Audit log of the last"
_FOUND: Final = re.compile(
    r"""
      (?P<url>\b(?:127\.0\.0\.1|localhost):\d+)
    | (?P<key>\b[nN][xX][a-zA-Z]*_[A-Za-z0-9.-]+?_[0-9a-fA-F]{4,64}(?![0-9a-fA-F]))
    | (?P<cursor>\bMjAy[A-Za-z0-9_-]{40,})
    | (?P<folder>(?:/[\w.-]+)*/nexus-tests-\w+)
    | (?P<uuid>(?:(?<![0-9a-fA-F])|(?<=%[0-9a-fA-F]{2}))
        [0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F]))
    | (?P<time>\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)
    | (?P<stamped>\b20\d{6}T\d{6}Z)
    | (?P<hex>(?<![0-9a-zA-Z])[0-9a-f]{16,128}(?![0-9a-zA-Z]))
    | (?P<receipt>(?<![0-9a-zA-Z-])[0-9a-f]{12}(?![0-9a-zA-Z]))
    | (?P<short>(?<![0-9a-zA-Z])[0-9a-f]{8}(?![0-9a-zA-Z]))
    | (?P<code>(?<=\blink\ )[A-Z2-9]{8}\b)
    | (?P<stamp>\b\d{10}\.\d{6}\b)
    | (?P<link>(?<=/p)\d{16}\b)
    | (?P<flake>(?<![0-9a-zA-Z.])\d{17,20}(?![0-9a-zA-Z]))
    | (?P<ms>\b\d+\.\d+(?=\ m?s\b))
    """,
    re.VERBOSE,
)
_CHANCE: Final = re.compile(r"[0-9a-f]{12,}|\d{10}\.\d{6}|.*[0-9a-f]{16,}.*")
KEY_DIGITS: Final = 4  # of a key, which people are shown
SHORT: Final = 8  # digits of an id, as people see it


class Names:
    """The names of one trace. `know` says what an id stands for; the others are numbered as they come up."""

    def __init__(self, *, seconds: bool = False, ahead: bool = False) -> None:
        """`seconds`: times are told to the second, where the rest counts what a platform's server did. `ahead`: times
        to come are told by their distance from now, where the real clock gave them."""
        self._seconds, self._ahead = seconds, ahead
        self._names: dict[str, str] = {}
        self._short: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def know(self, id: uuid.UUID, name: str) -> None:
        """Give the name of an id, and of its beginning."""
        self._names[id.hex] = f"<{name}>"
        self._short[id.hex[:SHORT]] = f"<{name}…>"

    def know_text(self, text: str, name: str) -> None:
        """Give the name of something else that is made up by chance: hexadecimal digits, or an id of a platform."""
        self._names[text] = f"<{name}>"

    def name_of(self, text: str) -> str:
        """What a text is called in a name: as it is, by the name that is known of it, or "" where it is made up."""
        return self._names.get(text, "" if _CHANCE.fullmatch(text) else text).strip("<>")

    def text(self, text: str) -> str:
        """A text with names in place of what differs between runs."""
        named = _FOUND.sub(self._name, text)
        if AUDIT in named:  # of what happened in one moment, which is first is made up by chance
            head, _, lines = named.partition(AUDIT)
            named = "\n".join([head + AUDIT, *sorted(lines.splitlines())])
        return named

    def value(self, value: Any) -> Any:
        """The same for all texts of a value of JSON, and its keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value

    def _name(self, found: re.Match[str]) -> str:
        kind, text = str(found.lastgroup), found[0]
        if kind == "url":
            return "<host>"
        if kind == "ms":
            return "<n>"
        if kind in ("time", "stamped"):
            return _time(text, seconds=self._seconds, ahead=self._ahead)
        if kind == "short":
            return self._short_name(text)
        if kind == "receipt" and text not in self._names and (text.isdecimal() or text.isalpha()):
            return text
        if kind == "key":
            head, _, digits = text.rpartition("_")
            return f"{head}_{self._numbered(f'{head} {digits[:KEY_DIGITS]}'.lower(), 'key')}"
        if kind == "folder":
            return "<folder>"
        if kind == "cursor":
            return self._cursor(text)
        if kind == "link":  # Slack's, of a message's time
            return self._numbered(f"{text[:10]}.{text[10:]}", "stamp")
        digits = text.replace("-", "").lower()
        return self._numbered(digits, "id" if kind == "hex" and len(digits) == 32 else "id" if kind == "uuid" else kind)

    def _cursor(self, text: str) -> str:
        try:
            said = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        except ValueError:
            return text
        return f"<cursor {self.text(said)}>"

    def _short_name(self, text: str) -> str:
        if text in self._short:
            return self._short[text]
        if text.isdecimal() or text.isalpha():  # a date, a number, a word
            return text
        self._short[text] = f"<short {self._next('short')}>"
        return self._short[text]

    def _numbered(self, key: str, kind: str) -> str:
        if key not in self._names:
            name = f"{kind} {self._next(kind)}"
            self._names[key] = f"<{name}>"
            if kind == "id":
                self._short.setdefault(key[:SHORT], f"<{name}…>")
        return self._names[key]

    def _next(self, kind: str) -> int:
        self._counts[kind] += 1
        return self._counts[kind]


def _time(text: str, *, seconds: bool, ahead: bool) -> str:
    """A time as it is, or, where the real clock gave it, by its distance from now in days."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    days = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - NOW).total_seconds() / 86_400
    if abs(days) < NEAR_DAYS:
        return "<now>"
    if days > 0 and ahead:
        return f"<now{round(days):+d}d>"
    return re.sub(r"\.\d+", "", text) if seconds else text


def unordered(values: list[Any]) -> list[Any]:
    """Values whose order means nothing, in the order of their texts."""
    return sorted(values, key=lambda value: json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))
