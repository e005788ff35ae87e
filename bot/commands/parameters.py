"""The parameters of commands: each is declared once, with the type of its value.

Help, completion, Discord's slash command, validation and the value that a handler receives all come from the same
declaration.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar, cast

from composer.errors import BadInput
from composer.text.dates.named import day_or_words

T = TypeVar("T")
C = TypeVar("C", bound=StrEnum)

_ITEM_ID: Final = re.compile(r"[0-9a-f]{8,32}")
_MENTION: Final = re.compile(r"<@!?([A-Za-z0-9]+)(?:\|[^<>]*)?>")


class ParameterKind(StrEnum):
    """What a parameter's value is. Adapters choose their input field by it, and suggestions their source."""

    AGENT = "agent"
    CHOICE = "choice"
    COMMAND = "command"
    FACT_KEY = "fact key"
    FORGET_TARGET = "forget target"
    LANDMARK = "landmark"
    MESSAGE = "message"
    PROJECT = "project"
    SETTING_VALUE = "setting value"
    TEXT = "text"
    USER = "user"
    WORD = "word"


SUGGESTED: Final = frozenset(
    {
        ParameterKind.AGENT,
        ParameterKind.COMMAND,
        ParameterKind.FACT_KEY,
        ParameterKind.FORGET_TARGET,
        ParameterKind.LANDMARK,
        ParameterKind.PROJECT,
        ParameterKind.SETTING_VALUE,
    }
)


@dataclass(frozen=True, slots=True)
class Parameter(Generic[T]):
    """One argument of a command.

    A parameter takes one word; the last one of a command takes the text to the end of the line. `read` turns that text
    into the value and raises BadInput, with a sentence, when it can't. `label` is what usage lines call the parameter;
    by default its choices, else its name in capitals. `omittable`: a word that is none of the choices belongs to the
    next parameter. `missing`: the sentence for a call without it, by default that its label is missing.
    """

    name: str
    kind: ParameterKind
    read: Callable[[str], T]
    help: str
    label: str = ""
    required: bool = True
    choices: tuple[str, ...] = ()
    omittable: bool = False
    missing: str = ""

    @property
    def usage(self) -> str:
        """The parameter as a usage line shows it: optional ones in brackets."""
        label = self.label or "|".join(self.choices) or self.name.upper()
        return label if self.required else f"[{label}]"

    @property
    def suggested(self) -> bool:
        """Whether values are suggested while somebody types (bot/commands/suggestions.py)."""
        return self.kind in SUGGESTED and not self.choices

    def accepts(self, text: str) -> bool:
        """Whether `text` is a value of this parameter."""
        try:
            self.read(text)
        except BadInput:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Arguments:
    """The typed values of one call. `arguments[PARAMETER]` is a value that must be there, `arguments.get(PARAMETER)`
    one that may have been left out."""

    values: Mapping[str, Any]
    texts: Mapping[str, str]
    flags: frozenset[str]

    def __getitem__(self, parameter: Parameter[T]) -> T:
        return cast(T, self.values[parameter.name])

    def get(self, parameter: Parameter[T]) -> T | None:
        """The value of a parameter, or None."""
        return cast(T | None, self.values.get(parameter.name))

    def exchanged(self, one: Parameter[Any], other: Parameter[Any]) -> "Arguments":
        """The same call with the texts of two parameters exchanged, for commands that accept them in either order.

        Raises BadInput when a text can't be a value of its new parameter.
        """
        texts = {**self.texts, one.name: self.texts[other.name], other.name: self.texts[one.name]}
        values = {**self.values, one.name: one.read(texts[one.name]), other.name: other.read(texts[other.name])}
        return Arguments(values, texts, self.flags)


@dataclass(frozen=True, slots=True)
class UserReference:
    """A user as somebody typed it: `external_ids` are the platform ids to look up, the likeliest first."""

    text: str
    external_ids: tuple[str, ...]


class ForgetScope(StrEnum):
    """How much a `forget` erases."""

    MATCHING = "matching"
    MESSAGE = "message"
    ITEM = "item"
    HERE = "here"
    EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """What is to be erased. `text`: the words to match, the id of a message, or the beginnings of those of items."""

    scope: ForgetScope
    text: str

    @property
    def shown_first(self) -> bool:
        """Whether it may be more than its writer thinks of, so that it is shown first and needs --yes."""
        return self.scope is not ForgetScope.MESSAGE


def text(name: str, help: str, *, label: str = "", required: bool = True) -> Parameter[str]:
    """Any text, exactly as typed."""
    return Parameter(name, ParameterKind.TEXT, str, help, label, required)


def word(
    name: str,
    help: str,
    read: Callable[[str], T],
    *,
    required: bool = True,
    kind: ParameterKind = ParameterKind.WORD,
    label: str = "",
) -> Parameter[T]:
    """One word, turned into a value by `read`."""
    shown = label or name.upper()
    return Parameter(name, kind, lambda given: read(_one_word(shown, given)), help, label, required)


def choice(
    name: str,
    help: str,
    values: Iterable[C],
    *,
    aliases: dict[str, C] | None = None,
    required: bool = True,
    omittable: bool = False,
) -> Parameter[C]:
    """One of some words, in any case. `aliases` are further spellings, which help doesn't show."""
    members = tuple(values)
    spellings = {str(member): member for member in members} | (aliases or {})

    def read(given: str) -> C:
        found = spellings.get(" ".join(given.lower().removeprefix("--").split()))
        if found is None:
            raise BadInput(f"'{given}' is not possible here: write {_any_of(map(str, members))}.")
        return found

    return Parameter(
        name, ParameterKind.CHOICE, read, help, required=required, choices=tuple(map(str, members)), omittable=omittable
    )


def user(name: str, help: str, *, required: bool = True) -> Parameter[UserReference]:
    """A person: a mention as platforms write it (`<@U123>`, `<@!123>`), an id, or a name in the terminal."""

    def read(given: str) -> UserReference:
        mention = _MENTION.fullmatch(given)
        external = mention[1] if mention else given.lstrip("@")
        return UserReference(given.lstrip("@"), tuple(dict.fromkeys((external, external.casefold()))))

    return word(name, help, read, required=required, kind=ParameterKind.USER)


def project(name: str, help: str) -> Parameter[str]:
    """A project's name, in lower case."""
    return word(name, help, str.lower, kind=ParameterKind.PROJECT)


def agent(name: str, help: str) -> Parameter[str]:
    """An agent's slug, with or without @. May be left out."""
    return word(name, help, lambda given: given.removeprefix("@").lower(), kind=ParameterKind.AGENT, required=False)


def fact_key(name: str, help: str) -> Parameter[str]:
    """A fact's key."""
    return word(name, help, str, kind=ParameterKind.FACT_KEY)


def landmark(name: str, help: str) -> Parameter[str]:
    """The beginning of a landmark's id: hexadecimal digits, dashes left out."""
    return word(name, help, lambda given: given.lower().replace("-", ""), kind=ParameterKind.LANDMARK)


def message(name: str, help: str) -> Parameter[str]:
    """A message's id on its platform. May be left out."""
    return word(name, help, str, kind=ParameterKind.MESSAGE, label="MESSAGE_ID", required=False)


def day(name: str, help: str) -> Parameter[date | str]:
    """A day: 2026-05-01, or a word such as yesterday. Which day that is depends on when the command was given
    (bot/commands/days.py)."""
    return word(name, help, day_or_words, label="DAY")


def item_id(given: str) -> str:
    """The beginning of an item's id, at least as much as lists show: hexadecimal digits, dashes left out."""
    id = given.lower().replace("-", "")
    if not _ITEM_ID.fullmatch(id):
        raise BadInput(f"'{given}' is no id of an item: it has 8 to 32 of the digits 0-9 and a-f.")
    return id


def forget_target(name: str, help: str) -> Parameter[ForgetTarget]:
    """`here`, `everything`, `message ID`, `item ID`, or words to match."""

    def read(given: str) -> ForgetTarget:
        first, _, id = given.strip().partition(" ")
        match first.lower(), id.strip():
            case ForgetScope.HERE | ForgetScope.EVERYTHING as scope, "":
                return ForgetTarget(ForgetScope(scope), scope)
            case "all", "":
                raise BadInput(
                    "Write 'everything' for all that you ever said or stored, 'here' for all of yours in this "
                    "conversation, or more of the words that you look for."
                )
            case ForgetScope.MESSAGE | ForgetScope.ITEM as scope, "":
                raise BadInput(f"The id is missing: write '{scope} ID', or more of the words that you look for.")
            case ForgetScope.MESSAGE, id:
                return ForgetTarget(ForgetScope.MESSAGE, id)
            case ForgetScope.ITEM, id:
                return ForgetTarget(ForgetScope.ITEM, " ".join(map(item_id, id.replace(",", " ").split())))
        return ForgetTarget(ForgetScope.MATCHING, given)

    label = "WORDS | message ID | item ID | here | everything"
    return Parameter(name, ParameterKind.FORGET_TARGET, read, help, label, missing="Say what to forget.")


def _one_word(label: str, given: str) -> str:
    if len(given.split()) > 1:
        raise BadInput(f"{label} is one word; '{given}' has several.")
    return given


def _any_of(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
