"""Settings that a tenant's admins change: kept in the database over nexus.toml, until the configured value is taken
again. A change is recorded in the audit log. What belongs together is a group: the fields of one frozen dataclass."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from composer.errors import BadInput
from composer.repositories.database import Transaction

AS_CONFIGURED: Final = "default"  # in a chat
UNLIMITED: Final = "unlimited"
MAX_DIGITS: Final = 15  # of a number that somebody types, leading zeros included
FLAGS: Final = {"on": True, "off": False}
Values = TypeVar("Values")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: what it does, and what it takes: one of some `choices`, a text of at most `chars` characters (and at
    least one, if `required`), at most `most` such texts with commas between them, on or off (`flag`), or else a whole
    number from `minimum` to `maximum`. `optional`: or none of that (None). `operator`: whoever looks after the
    installation changes it alone, since it costs them."""

    name: str
    help: str
    minimum: int = 0
    maximum: int = 0
    choices: tuple[str, ...] = ()
    chars: int = 0
    required: bool = False
    most: int = 0
    flag: bool = False
    optional: bool = False
    operator: bool = False

    def read(self, value: str | int | bool | list[str]) -> str | int | bool | tuple[str, ...] | None:
        """A value as somebody wrote it, as it is kept. Raises BadInput with a sentence that says which there are."""
        if self.most:
            parts = value if isinstance(value, list) else str(value).split(",")
            texts = tuple(filter(None, (each.strip() for each in parts)))
            if len(texts) > self.most or any(len(each) > self.chars or "\0" in each for each in texts):
                raise BadInput(f"{self.name} are at most {self.most} names of at most {self.chars:,} characters.")
            return texts
        text = str(value)
        if self.optional and text.strip().lower() in ("", UNLIMITED):
            return None
        if self.flag:
            if isinstance(value, bool) or text.lower() in FLAGS:
                return value if isinstance(value, bool) else FLAGS[text.lower()]
            raise BadInput(f"{self.name} is on or off.")
        if self.choices:
            near = (each for each in self.choices if each.lower() == text.lower())
            found = min(near, key=lambda each: each != text, default=None)
            if found is None:
                known = ", ".join(filter(None, self.choices))
                raise BadInput(f"There is no {self.name} '{text}': choose one of {known}.")
            return found
        if self.chars:
            if len(text) > self.chars or "\0" in text:
                raise BadInput(f"{self.name} has at most {self.chars:,} characters.")
            if self.required and not text.strip():
                raise BadInput(f"{self.name} may not be empty.")
            return text.strip()
        digits = text.replace(",", "").replace("_", "")
        if (
            not (digits.isascii() and digits.isdigit())
            or len(digits) > MAX_DIGITS
            or not self.minimum <= int(digits) <= self.maximum
        ):
            raise BadInput(f"{self.name} is a whole number from {self.minimum:,} to {self.maximum:,}.")
        return int(digits)


@dataclass(frozen=True, slots=True)
class Group:
    """Settings by their names. `prefix`: of their keys in the database."""

    prefix: str
    settings: Mapping[str, Setting]

    def find(self, name: str) -> Setting:
        """The setting of this name, in any case and with `-` or `_`. Raises BadInput, with the nearest name."""
        wanted = name.lower().replace("-", "_")
        if wanted in self.settings:
            return self.settings[wanted]
        near = difflib.get_close_matches(wanted, self.settings, n=1)
        hint = f"; did you mean {near[0]}?" if near else f": choose one of {', '.join(self.settings)}."
        raise BadInput(f"There is no setting '{name}'{hint}")

    def over(self, configured: Values, stored: Mapping[str, str]) -> Values:
        """The configured values with what the admins changed. `stored`: JSON texts by their keys. An older version took
        larger numbers."""
        chosen = dict[str, Any]()
        for name, setting in self.settings.items():
            if (text := stored.get(self.prefix + name)) is not None:
                value = json.loads(text)
                value = tuple(value) if isinstance(value, list) else value
                is_number = setting.maximum and isinstance(value, int)
                chosen[name] = min(value, setting.maximum) if is_number else value
        return replace(configured, **chosen) if chosen else configured  # type: ignore[type-var]


def group(prefix: str, settings: Iterable[Setting]) -> Group:
    """A group of settings."""
    return Group(prefix, {setting.name: setting for setting in settings})


async def chosen(tx: Transaction, of: Group, configured: Values) -> Values:
    """The values that hold now: as configured, but for what admins have changed."""
    return of.over(configured, await tx.settings.all())


async def change(
    tx: Transaction, of: Group, wanted: Mapping[str, Any], configured: object, now: datetime, *, lasting: bool = False
) -> None:
    """Set some settings of a group; with None let the configured value apply again. What is so already is not
    set again, but for what is `lasting`, and only configured so. Raises BadInput with a sentence that says which names
    and values there are."""
    stored = await tx.settings.all()
    before = of.over(configured, stored)
    for name, value in wanted.items():
        setting = of.find(name)
        if value is None:
            await tx.settings.reset(of.prefix + setting.name)
            continue
        found, is_stored = setting.read(value), of.prefix + setting.name in stored
        if found != getattr(before, setting.name) or (lasting and not is_stored):
            await tx.settings.set(of.prefix + setting.name, json.dumps(found), now)
