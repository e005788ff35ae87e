"""Names that people choose: no person may be taken for an agent, and no name for a part of the prompt. Pure."""

import re
import unicodedata
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from itertools import takewhile
from typing import Final

from composer.text.cleaning import clean_line, normalised, shorten

AGENT_LABEL: Final = "You"  # an agent as a speaker in its own prompt
ROLES: Final = ("Assistant", "System")  # as models call the others of a conversation
# What is said of several people, of whoever speaks, or of what they decided, in a few languages and without accents.
# None that many people are called, such as "Ella".
NOT_ONE_PERSON: Final = (
    *("I", "we", "she", "he", "they", "everyone", "everybody", "team", "decision", "ich", "wir", "alle", "jeder"),
    *("entscheidung", "beschluss", "nous", "tous", "equipe", "nosotros", "todos", "equipo", "tutti", "squadra"),
    *("decisione", "decisao", "iedereen", "besluit"),
)
# What several people or an office are called, in names of no other words than these and those around them ("All of us",
# "The board"): "Lena (HR)" is one person.
SEVERAL: Final = (
    *("all", "we", "our", "everyone", "everybody", "team", "board", "management", "staff", "members", "people"),
    *("hr", "human", "resources", "ceo", "cto", "cfo", "administrator", "admin", "admins", "security", "consensus"),
    *("agreed", "channel", "slackbot", "vorstand", "mitglieder", "verwaltung", "leitung", "direction", "consejo"),
    *("\u0432\u0441\u0435", "\u043c\u044b", "\u5168\u54e1", "\u307f\u3093\u306a", "\u5927\u5bb6", "\u6211\u4eec"),
    *("\uc6b0\ub9ac", "\u0627\u0644\u062c\u0645\u064a\u0639"),
)
AROUND_SEVERAL: Final = frozenset(
    ["the", "of", "us", "here", "whole", "entire", "you", "in", "and", "at", "der", "die", "das", "la", "le"]
)
DECORATIONS: Final = ("the", "official", "real", "bot", "app", "ai", "agent", "assistant")  # "Nexus Bot"
NOBODY: Final = "someone"
UNNAMED: Final = "unnamed"
APP: Final = "app"  # the last word of an app's name, and of no person's: an app may call itself like a person
MAX_LABEL_CHARS: Final = 80  # of a name in a prompt
MAX_WORDS_WITHIN: Final = 6  # words of a name that is looked for within another
MAX_CACHED_AGENTS: Final = 100  # lists of agents, of as many organisations
MAX_CACHED_LETTERS: Final = 4_000  # as many as the names of a few languages take

_WORD: Final = re.compile(r"[^\W_]+")
# What sets off times, marks and headings in a prompt, and what Unicode has that looks like it.
_SIGNS: Final = re.compile(
    "[\\[\\]():|\uff3b\uff3d\uff08\uff09\uff1a\uff5c\u2768-\u2775\u27e6-\u27ef\u2985\u2986\u3010\u3011\u3014\u3015\u3018-\u301b"
    "\u02d0\u02f8\u0589\u05c3\u2236\ua789\ufe13\ufe30\ufe47\ufe48\ufe55\ufe59-\ufe5e\u207d\u207e\u208d\u208e\u2223\u23d0\u2758]"
)
_TOOL_OF: Final = re.compile(r" \(app [a-z0-9][a-z0-9_-]{0,31}\)\Z")  # ends a `tool_name`
# What closes a quotation, also to who reads fast: straight, curly, low, angled, full-width and ornamental double marks.
_QUOTES: Final = re.compile('["\u201c-\u201f\u00ab\u00bb\u2033\u2036\u275d\u275e\u301d-\u301f\uff02]')
_APOSTROPHE: Final = "'"
_TATWEEL: Final = "\u0640"
_RESERVED: Final = frozenset(each.casefold() for each in (AGENT_LABEL, *ROLES, *NOT_ONE_PERSON))
_PERSON: Final = "a person named "
# Letters and digits of ASCII that look alike. What are digits alone is a number, and no name in disguise.
_ALIKE: Final = str.maketrans("01i|23456789", "olllzeasbtbg")
# Signs and letters that stand for one of ASCII in names that imitate, and that Unicode's list does not have.
_MORE_ALIKE: Final[Mapping[str, str]] = dict(
    zip(
        "$\u20ac\u20a6\u20b3\u20bf\u20b5\u20ab\u20b2\u20ad\u20a5\u20b1\u20ae\u20a9\u00a5"
        "\u2200\u2203\u2208\u2229\u222a\u00d7\u2715\u2716\u2717\u2718"
        "\u014b\u03b7\u043f\u0438\u03b5\u03be\u03c7\u01a8\u144e\u144c\u13c1",
        "senabcdgkmptwyaeenuxxxxxnnnneexsnun",
        strict=True,
    )
)
# A letter of ASCII in a shape of its own, by its name in Unicode.
_LETTER: Final = re.compile(
    r"(?:LATIN|REGIONAL INDICATOR) .*LETTER (?:SMALL CAPITAL )?(?:(?:REVERSED|TURNED|OPEN) )*([A-Z])(?: WITH .*)?$"
)
_MARKS_OF_TRADE: Final = re.compile("[\u2122\u2120\u00ae\u00a9]")  # else their normal form is "TM"
_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")  # within "NexusBot"


def person_name(name: str, agents: Collection[str]) -> str:
    """A person's name as it is stored: cleaned, on one line. May be empty.

    Whoever is called like one of `agents` (their names and slugs), also with other letters that look the same, or like
    "You", "Assistant" or "System", like several people ("Everyone", "The team") or like an app ("alice (app)"), becomes
    "a person named …". A name has no brackets as that of a tool has.
    """
    cleaned = clean_line(name)
    if _TOOL_OF.search(cleaned):
        cleaned = clean_line(_SIGNS.sub(" ", cleaned))
    is_taken = _is_taken(cleaned, agents) or (_ends_like_an_app(cleaned) and not cleaned.startswith(_PERSON))
    return _PERSON + cleaned if is_taken else cleaned


def app_name(name: str, agents: Collection[str]) -> str:
    """The name of an app, a bot or a webhook as it is stored: as a `person_name`, with the badge that chat platforms
    show."""
    badge = f" ({APP})"
    cleaned = clean_line(name).removesuffix(badge)
    named = _PERSON + cleaned if _is_taken(cleaned, agents) else cleaned
    return f"{shorten(named, MAX_LABEL_CHARS - len(badge))}{badge}"


def tool_name(person: str, tool: str) -> str:
    """The name under which a tool of a person writes: "alice (app claude)"."""
    return f"{person} ({APP} {tool})"


def is_of_app(name: str) -> bool:
    """Whether a stored name is an `app_name` or a `tool_name`: no person's is."""
    return name.endswith(f" ({APP})") or _TOOL_OF.search(name) is not None


def _is_taken(name: str, agents: Collection[str]) -> bool:
    """Whether a name looks like that of an agent, of a role, or of no one person."""
    named = _reserved_looks(tuple(agents))
    return bool(looks(name) & (_NOT_ONE_PERSON | named) or _undecorated(name) & named) or _is_of_several(name)


def _is_of_several(name: str) -> bool:
    words = [word for word in _plain_words(name.casefold()) if word not in AROUND_SEVERAL and not word.isdecimal()]
    return bool(words) and _SEVERAL.issuperset(words)


def _ends_like_an_app(name: str) -> bool:
    """Whether a name ends as those of apps do, also in other letters or before other words that decorate."""
    for each in (name, _without_signs(name)):
        endings = (_DECORATIONS.get(_shape(word)) for word in reversed(_plain_words(each)))
        if APP in takewhile(bool, endings):
            return True
    return False


@lru_cache(maxsize=MAX_CACHED_AGENTS)
def _reserved_looks(agents: tuple[str, ...]) -> frozenset[str]:
    """What the names of the settings' agents and those of roles look like."""
    return frozenset(map(_look, (*ROLES, *agents)))


def speaker_label(name: str) -> str:
    """A name at the beginning of a line of a prompt: one line, without the characters that set off headings, marks and
    times, but for those of a `tool_name`. A person whose name was stored before it was cleaned so is not called "You"
    or "Everyone" either."""
    tool = _TOOL_OF.search(name)
    label = _label(name if tool is None else name[: tool.start()]) or NOBODY
    label = _PERSON + label if label.casefold() in _RESERVED else label
    return label if tool is None else f"{label}{tool[0]}"


def title_label(title: str) -> str:
    """The title of a room or a project in a prompt or an answer: one line, without the characters that set off
    headings, marks and times. A room may be called "system": a title is never the speaker of a line."""
    return _label(title) or UNNAMED


def _label(name: str) -> str:
    line = clean_line(name, MAX_LABEL_CHARS)
    plain = shorten(_SIGNS.sub(" ", line), MAX_LABEL_CHARS) if _SIGNS.search(line) else line
    return plain.lstrip("- ")


def in_quotes(text: str, max_chars: int = MAX_LABEL_CHARS) -> str:
    """A name, title or text of somebody's within a sentence: one line in quotation marks, which it can't leave."""
    return f'"{_QUOTES.sub(_APOSTROPHE, clean_line(text, max_chars))}"'


def looks_within(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a name looks like at first sight, by which two people may be taken for one another: as it is written and in
    small letters, with its words in their order and sorted. And the same with what each run of at most MAX_WORDS_WITHIN
    of its words looks like: "alice and carol" has the looks of alice and of carol. The tool of a `tool_name`, and what
    only makes Arabic letters longer, do not count."""
    name = _TOOL_OF.sub("", name).replace(_TATWEEL, "")
    whole, within = set[str](), set[str]()
    for each in {name} if name.isascii() else {name, name.casefold()}:
        words = _shaped_words(each)
        lengths = range(2, min(MAX_WORDS_WITHIN + 1, len(words)))
        runs = (words[start : start + length] for length in lengths for start in range(len(words) - length + 1))
        whole |= {_shape("".join(words)) or name.casefold(), _shape("".join(sorted(words))) or name.casefold()}
        within |= {*words, *(_shape("".join(run)) for run in runs)}
    return frozenset(whole), frozenset(whole | within)


def looks(name: str) -> frozenset[str]:
    """What a name looks like: it can be taken for any name whose look is among them.

    Case, accents, punctuation, spaces and decorating words do not count, and every letter and digit counts as the
    letter of ASCII that it can be confused with (Unicode's confusables, as UTS #39 uses them; small capitals, letters
    in circles, squares and flags). A sign may stand for a letter, or be an ornament.
    """
    return frozenset({_look(each) for each in {name, _without_signs(name)}} - {""})


def _without_signs(name: str) -> str:
    if name.isalnum():
        return name
    return "".join(each for each in name if unicodedata.category(each)[0] != "S")


def _look(name: str) -> str:
    return _shape("".join(_shaped_words(name)))


def _shaped_words(name: str) -> list[str]:
    """The words of a name as they look, without those that decorate it, unless it has no others."""
    words = [_shape(word) for word in _plain_words(name)]
    return [word for word in words if word not in _DECORATIONS] or words


def _undecorated(name: str) -> set[str]:
    """What a name looks like without one or more decorations at its ends, also those that are joined to it in lower
    case ("nexusbot") or are a name themselves ("the assistant")."""
    found = set[str]()
    waiting = [
        "".join(_DECORATIONS.get(_shape(word), word) for word in _plain_words(each))
        for each in {name, _without_signs(name)}
    ]
    while waiting:
        joined = waiting.pop()
        if joined and joined not in found:
            found.add(joined)
            waiting += [joined.removeprefix(each) for each in DECORATIONS]
            waiting += [joined.removesuffix(each) for each in DECORATIONS]
    return set(map(_shape, found))


def _plain_words(name: str) -> list[str]:
    """The words of a name in lower case, in the letters of ASCII that theirs look like."""
    folded = normalised(_MARKS_OF_TRADE.sub(" ", name), "NFKC")
    return _WORD.findall(_WORD_START.sub(" ", "".join(map(_ascii_letter, folded))).casefold())


def _shape(word: str) -> str:
    """A word in which letters that look alike are one. Applied to its own result, it changes nothing."""
    return word if word.isdecimal() else word.translate(_ALIKE).replace("rn", "m").replace("vv", "w")


_DECORATIONS: Final = {_shape(word): word for word in DECORATIONS}


@lru_cache(maxsize=MAX_CACHED_LETTERS)
def _ascii_letter(character: str) -> str:
    """What a character looks like in ASCII: a letter or a few, nothing for an accent, or itself where nothing does."""
    if character in _MORE_ALIKE or character.isascii():
        return _MORE_ALIKE.get(character, character)
    alike = _confusable_with_ascii()
    base = unicodedata.normalize("NFKD", character)[0]
    for candidate in (character, base, character.casefold(), base.casefold()):
        if candidate in alike or candidate in _MORE_ALIKE:
            return alike.get(candidate) or _MORE_ALIKE[candidate]
        if found := _LETTER.search(unicodedata.name(candidate[0], "")):
            return found[1].lower()
    return base if not unicodedata.combining(base) else ""


@cache
def _confusable_with_ascii() -> dict[str, str]:
    """ASCII characters by those that look like them. Loaded with the first name that is not ASCII: it takes 0.1 s."""
    from confusable_homoglyphs import confusables  # type: ignore[import-untyped] # noqa: PLC0415

    return {
        character: glyph["c"]
        for character, alike in confusables.confusables_data.items()
        if not character.isascii()
        for glyph in alike
        if glyph["c"].isascii()
    }


_SEVERAL: Final = frozenset(word for name in SEVERAL for word in _plain_words(name))
_NOT_ONE_PERSON: Final = frozenset(map(_look, (AGENT_LABEL, *NOT_ONE_PERSON)))
