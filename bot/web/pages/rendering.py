"""Turn templates into pages: the language, the dates, and the headers that keep a page private and without scripts of
anybody else."""

import gettext as catalogues
import gzip
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

from babel import Locale, negotiate_locale
from babel.dates import format_date, format_datetime, format_skeleton, format_time
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_compact_decimal, format_decimal
from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.ext import InternationalizationExtension
from jinja2.runtime import Context
from markdown_it import MarkdownIt
from markupsafe import Markup

from bot.web.credentials import only_cookie
from bot.web.links import message_link
from bot.web.pages.assets import address_of
from bot.web.pages.quoted import quoted_decision, quoted_fact
from bot.web.pages.sources import cards_of, with_links
from composer.layers.structured import plain_value
from composer.people.places import NamedPlace
from composer.text.file_kinds import file_kind
from composer.text.offline import OFFLINE
from composer.text.small_talk import SMALL_TALK_ANSWERS

_HERE: Final = Path(__file__).parent
SOURCE_LANGUAGE: Final = "en"
_VALUE: Final = re.compile(r"%\(\d\)s")  # in a text that the core fills in
LANGUAGE_COOKIE: Final = "nexus-language"
# What an item or a source is, as templates show it: their own words, in the reader's language.
KINDS: Final = (
    *(
        "preference",
        "habit",
        "fact",
        "decision",
        "to do",
        "note",
        "event",
        "how-to",
        "knowledge",
    ),
    *("proposed decision", "lapsed decision", "retired decision"),
    *("memory", "message", "summary", "day", "week", "session", "thread"),
)
# Labels and kinds that people know by other words.
_LABELS: Final = {
    "factual": "fact",
    "episodic": "event",
    "procedural": "how-to",
    "semantic": "knowledge",
    "action item": "to do",
    "episode": "message",
    "landmark": "decision",
    "pinned": "decision",
    "proposed": "proposed decision",
    "lapsed": "lapsed decision",
    "retired": "retired decision",
}
MIN_COMPRESSED_BYTES: Final = 1_000
_FROM_A_FILE: Final = ", from a file "
_TO_ITS_READER: Final = {
    "from the asker's own entries": "from your own entries",
    "from a DM of the same person's other account": "from a DM of your other account",
}
_QUOTED_FACT: Final = "- (facts) "
_QUOTED_DECISION: Final = "- (landmarks) "
MAX_OFFLINE_LINES: Final = 50  # of an answer without a model, in which sentences of ours are looked for
PAGE_HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-store",
    "Vary": "Cookie, Accept-Encoding, Accept-Language",
}


@dataclass(frozen=True, slots=True)
class Language:
    """The language of a page: its code, the texts in it, and whether its reader chose it (`/you`)."""

    code: str
    texts: catalogues.NullTranslations
    chosen: bool = False
    filled: Sequence[tuple[Sequence[str], str]] = ()

    def told(self, sentence: str) -> str:
        """A sentence of an error, or of a page for who is not signed in, in this language. The core writes it in
        English with its values in it: it is found by the parts around them (`filled`: of each such text the parts
        around %(1)s, %(2)s, and the translation). As it is where it is not known."""
        found = self.texts.gettext(sentence) if sentence else ""
        if found != sentence:
            return found
        for parts, text in self.filled:
            values = _between(sentence, parts)
            if values is not None:
                told = (self.told(value) if value.endswith(".") else value for value in values)
                return text % {str(number): value for number, value in enumerate(told, 1)}
        return sentence

    @property
    def locale(self) -> Locale:
        """For dates and numbers."""
        return Locale.parse(self.code)

    @property
    def own_name(self) -> str:
        """What it is called by those who speak it."""
        return str(self.locale.get_display_name(self.code)).capitalize()

    @property
    def direction(self) -> str:
        """How it is written: ltr or rtl."""
        return str(self.locale.text_direction)


@dataclass(frozen=True, slots=True)
class Chrome:
    """What the frame of every page shows: who is signed in, where, how much waits for them to decide, and what forms
    send along. `path` is the page's; `has_command_key`: they are at a Mac, whose keys have other names."""

    name: str
    organisation: str
    admin: bool
    waiting: int
    platforms: list[str]
    zone: tzinfo
    csrf: str
    path: str
    theme: str = ""
    has_command_key: bool = False

    @property
    def initials(self) -> str:
        """Of the name, for the avatar."""
        return initials(self.name)


def _between(sentence: str, parts: Sequence[str]) -> list[str] | None:
    """What stands between the parts of a text; None where the sentence is of another one."""
    first, *between, last = parts
    if not (sentence.startswith(first) and sentence.endswith(last) and len(sentence) >= len(first) + len(last)):
        return None
    values, rest = list[str](), sentence[len(first) : len(sentence) - len(last)]
    for part in between:
        value, found, rest = rest.partition(part)
        if not found:
            return None
        values.append(value)
    return [*values, rest]


def _filled_texts(catalogue: Catalog) -> Sequence[tuple[Sequence[str], str]]:
    """The parts and the translations of texts that the core fills in, those that say most first."""
    ids = ((each.id, each.string) for each in catalogue if isinstance(each.id, str) and "%(1)s" in each.id)
    found = [(tuple(_VALUE.split(id)), str(text)) for id, text in ids]
    return sorted(found, key=lambda each: -len("".join(each[0])))


def initials(name: str) -> str:
    """The letters that stand for a name in an avatar."""
    words = [word for word in name.split() if word[:1].isalnum()]
    return "".join(word[0] for word in (words[:1] + words[1:][-1:])).upper() or "?"


@cache
def _languages() -> dict[str, Language]:
    """English, and every language that has a catalogue."""
    found = {SOURCE_LANGUAGE: Language(SOURCE_LANGUAGE, catalogues.NullTranslations())}
    for path in sorted((_HERE / "languages").glob("*.po")):
        with path.open("rb") as file:
            catalogue, compiled = read_po(file, path.stem), io.BytesIO()
        write_mo(compiled, catalogue)
        compiled.seek(0)
        texts = catalogues.GNUTranslations(compiled)
        found[path.stem] = Language(path.stem, texts, filled=_filled_texts(catalogue))
    return found


def languages() -> Sequence[Language]:
    """All that there are."""
    return list(_languages().values())


def language_of(request: Request) -> Language:
    """The language that was chosen in a browser, or else the one that it asks for, of those that there are."""
    if (chosen := _languages().get(only_cookie(request, LANGUAGE_COOKIE) or "")) is not None:
        return replace(chosen, chosen=True)
    asked = [each.partition(";")[0].strip() for each in request.headers.get("accept-language", "").split(",")[:10]]
    known = _languages()
    return known[negotiate_locale([each for each in asked if each], list(known), sep="-") or SOURCE_LANGUAGE]


@cache
def _environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        extensions=[InternationalizationExtension],
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.newstyle_gettext = True  # type: ignore[attr-defined]
    env.globals["asset"] = address_of
    env.filters |= {
        "markdown": markdown,
        "cards": cards_of,
        "link": message_link,
        "with_links": with_links,
        "links_with": links_with,
        "value": plain_value,
        "initials": initials,
        "kind_of_file": lambda file: "picture" if file.is_image else file_kind(file.name, file.type) or "text",
        "browser": browser_in_words,
        "label": lambda label: _LABELS.get(label, label),
        "told": sentence_told,
        "origin_told": origin_told,
        "offline_told": answer_told,
        "fact_told": fact_told,
        "called": place_called,
        "read_by": place_read_by,
    }
    return env


def render(template: str, language: Language, **values: Any) -> str:
    """A template with its values, in a language."""
    texts = language.texts
    return (
        _environment()
        .get_template(template)
        .render(
            gettext=_newstyle(texts.gettext),
            ngettext=_newstyle_plural(texts.ngettext),
            _=_newstyle(texts.gettext),
            language=language,
            dates=Dates(
                language, values["chrome"].zone if values.get("chrome") is not None else UTC, values.get("now")
            ),
            **values,
        )
    )


def page(request: Request, template: str, language: Language, *, status: int = 200, **values: Any) -> Response:
    """A page, or the part of one that a script asks for."""
    return html_page(request, render(template, language, **values), status)


def html_page(request: Request, text: str, status: int) -> Response:
    """A page, with the headers of all pages, compressed where its browser takes that."""
    body = text.encode()
    headers = dict(PAGE_HEADERS)
    if len(body) >= MIN_COMPRESSED_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = gzip.compress(body, 5, mtime=0), "gzip"
    return Response(body, status, headers)


def error_page(request: Request, status: int, sentence: str) -> Response:
    """What is shown where something is wrong: one sentence, and a way on."""
    is_part = request.headers.get("hx-request") == "true"
    template, language = "parts/error.html" if is_part else "error.html", language_of(request)
    told = language.told(sentence)
    return page(request, template, language, status=status, sentence=told, chrome=None, status_code=status)


class Dates:
    """Dates and times as a reader writes them, in their zone."""

    def __init__(self, language: Language, zone: tzinfo, now: datetime | None) -> None:
        self._locale, self._zone, self._now = language.locale, zone, now
        # Those of English stand as in Britain, whatever the browser says: a day before its month, 24 hours as in chat.
        is_english = language.locale.language == SOURCE_LANGUAGE
        self._calendar = Locale(SOURCE_LANGUAGE, "GB") if is_english else language.locale
        self._texts = language.texts

    def day(self, at: datetime) -> str:
        """A day as a heading: today, yesterday, or its date."""
        there, today = at.astimezone(self._zone).date(), self._today()
        if there == today:
            return self._texts.gettext("Today")
        if there == today - timedelta(days=1):
            return self._texts.gettext("Yesterday")
        return self._date(there)

    def time(self, at: datetime) -> str:
        """The time of day."""
        return str(format_time(at, "short", tzinfo=self._zone, locale=self._calendar))

    def short(self, at: datetime) -> str:
        """A day and a time, short: the time alone where it was today."""
        there = at.astimezone(self._zone).date()
        return self.time(at) if there == self._today() else f"{self._date(there)}, {self.time(at)}"

    def exact(self, at: datetime) -> str:
        """The exact moment, for who points at it."""
        return str(format_datetime(at, "full", tzinfo=self._zone, locale=self._calendar))

    def long(self, day: date) -> str:
        """A day, in full."""
        return str(format_date(day, "long", locale=self._calendar))

    def month(self, day: date) -> str:
        """The month that a day is in."""
        return str(format_skeleton("yMMMM", day, locale=self._calendar))

    def on(self, day: date) -> str:
        """A day with its weekday."""
        return str(format_date(day, "full", locale=self._calendar))

    def weekdays(self) -> list[tuple[str, str]]:
        """The days of a week from Monday on, short and whole."""
        monday = date(2024, 1, 1)
        days = [monday + timedelta(days=number) for number in range(7)]
        return [
            (str(format_date(day, "ccc", locale=self._calendar)), str(format_date(day, "cccc", locale=self._calendar)))
            for day in days
        ]

    def is_today(self, day: date) -> bool:
        """Whether a day is today."""
        return day == self._today()

    def iso(self, at: datetime) -> str:
        """For machines."""
        return at.isoformat()

    def number(self, value: float) -> str:
        """A number with the reader's separators."""
        return str(format_decimal(value, locale=self._locale))

    def compact(self, value: float) -> str:
        """A large number in few characters, such as 1.2M."""
        if value < 10_000:
            return self.number(value)
        short = str(format_compact_decimal(value, fraction_digits=1, locale=self._locale))
        return short if any(each.isalpha() for each in short) else self.number(value)  # German has no word for it

    def size(self, length: int) -> str:
        """A length in bytes, in the largest unit that fits."""
        for unit in ("bytes", "kB", "MB"):
            if length < 1_000:
                return f"{self.number(length)} {unit}"
            length = round(length / 1_000)
        return f"{self.number(length)} GB"

    def of_date(self, there: date) -> str:
        """A date."""
        return self._date(there)

    def _date(self, there: date) -> str:
        skeleton = "MMMd" if there.year == self._today().year else "yMMMd"
        return str(format_skeleton(skeleton, there, locale=self._calendar))

    def _today(self) -> date:
        return (self._now or datetime.now(UTC)).astimezone(self._zone).date()


@pass_context
def answer_told(context: Context, answer: str) -> str:
    """An answer that no model wrote, with our own sentences in the reader's language; any other as it is."""
    language = context.resolve("language")
    assert isinstance(language, Language)
    if answer in SMALL_TALK_ANSWERS.values():
        return language.told(answer)
    if OFFLINE not in answer:
        return answer
    return "\n".join(_offline_line(context, language, line) for line in answer.split("\n", MAX_OFFLINE_LINES))


def _offline_line(context: Context, language: Language, line: str) -> str:
    """A line of such an answer. What is no message is quoted there under the name of its section."""
    if line.startswith(_QUOTED_FACT):
        return f"- {fact_told(context, line.removeprefix(_QUOTED_FACT))}"
    if line.startswith(_QUOTED_DECISION):
        return f"- {_decision_told(context, line.removeprefix(_QUOTED_DECISION))}"
    return language.told(line)


@pass_context
def fact_told(context: Context, line: str) -> str:
    """A fact as prompts have it, with what stands in brackets in the reader's language, and its day."""
    language, dates, fact = context.resolve("language"), context.resolve("dates"), quoted_fact(line)
    assert isinstance(language, Language)
    if fact.day is None:
        return fact.words
    assert isinstance(dates, Dates)
    about = f"{language.told(fact.subject)}; {fact.author}, {dates.of_date(fact.day)}"
    return f"{fact.words} ({'; '.join(filter(None, (about, language.told(fact.conflict))))})"


def _decision_told(context: Context, line: str) -> str:
    language, dates, decision = context.resolve("language"), context.resolve("dates"), quoted_decision(line)
    assert isinstance(language, Language)
    if decision.day is None:
        return decision.words
    assert isinstance(dates, Dates)
    proposed = language.told("proposed") if decision.proposed else ""
    about = ", ".join(filter(None, (proposed, origin_told(context, decision.origin))))
    return f"{dates.of_date(decision.day)}, {decision.author}{f' ({about})' if about else ''}: {decision.words}"


@pass_context
def sentence_told(context: Context, sentence: str) -> str:
    """A sentence of the core, in the reader's language."""
    language = context.resolve("language")
    assert isinstance(language, Language)
    return language.told(sentence)


@pass_context
def origin_told(context: Context, came_from: str) -> str:
    """Where a source came from (composer.prompt.borders.came_from), and from whose file, in the reader's language and
    to them."""
    language = context.resolve("language")
    assert isinstance(language, Language)
    origin, comma, file = came_from.partition(_FROM_A_FILE)
    told = language.told(_TO_ITS_READER.get(origin, origin))
    return f"{told}, {language.told(f'{_FROM_A_FILE[2:]}{file}')}" if comma else told


@pass_context
def place_called(context: Context, place: NamedPlace) -> Markup:
    """What a place is, in the reader's language."""
    return Markup(context.resolve("_")(place.called, **dict(place.names)))


@pass_context
def place_read_by(context: Context, place: NamedPlace) -> Markup:
    """Who reads what is filed in a place, in the reader's language."""
    return Markup(context.resolve("_")(place.read_by, **dict(place.names)))


# What browsers call themselves has parts of several: the first that is there is right.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def browser_in_words(agent: str) -> str:
    """What a browser calls itself, as people name it: `Firefox, Linux`. Empty where it says neither."""
    known = (next((name for part, name in table if part in agent), "") for table in (_BROWSERS, _SYSTEMS))
    return ", ".join(filter(None, known))


class _Links(HTMLParser):
    """The links of a list of ours: their addresses, and the texts of their spans."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._address, self._is_label = "", False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """The beginning of an element."""
        if tag == "a":
            self._address = dict(attrs).get("href") or ""
        self._is_label = tag == "span"

    def handle_endtag(self, tag: str) -> None:
        """The end of one."""
        self._is_label = False
        self._address = "" if tag == "a" else self._address

    def handle_data(self, data: str) -> None:
        """Text."""
        if self._is_label and self._address:
            self.found[self._address] = data


def links_with(navigation: str, words: str) -> list[tuple[str, str, str]]:
    """The pages that the navigation leads to, whose names have all of some words: addresses and names."""
    reading = _Links()
    reading.feed(navigation)
    wanted = words.casefold().split()
    return [(path, name, "") for path, name in reading.found.items() if all(word in name.casefold() for word in wanted)]


_MARKDOWN: Final = (
    MarkdownIt("commonmark", {"html": False, "breaks": True})
    .enable(["table", "strikethrough"])
    .disable(["image", "html_inline", "html_block"])
)


def markdown(text: str) -> Markup:
    """An answer's Markdown as HTML: what it holds of HTML is shown as text, and it loads nothing."""
    return Markup(_MARKDOWN.render(text))


def _newstyle(translate: Any) -> Any:
    def translated(text: str, /, **names: Any) -> Markup | str:
        return _filled(translate(text), names)

    return translated


def _newstyle_plural(translate: Any) -> Any:
    def translated(one: str, many: str, number: int, /, **names: Any) -> Markup | str:
        return _filled(translate(one, many, number), {"num": number} | names)

    return translated


def _filled(text: str, names: Mapping[str, Any]) -> Markup:
    """A text of ours with names filled in, which are escaped."""
    return Markup(text) % names if names else Markup(text.replace("%%", "%"))
