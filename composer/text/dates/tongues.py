"""Words of time of other languages, told in English, for the readers of this package. Pure.

The names of days, months and units, and words such as "yesterday", are those of dateparser's tables (of CLDR); what
these lack is in `tongue_words`. dateparser itself reads none of it: it takes a part of the words for the whole, and
makes 11:00 of "morgen um 9" at eleven. Here what is not told in English stays what it was, and its reader sees that
it is left over.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, partial
from typing import Any, Final

from composer.text.dates.tongue_words import COMMON, SAYING, TONGUE_WORDS
from composer.text.dates.vocabulary import MONTHS, WEEKDAYS

UNKNOWN: Final = "\u00b7"  # a letter of what is not told in English
SMALL: Final = "~"  # one of a small word, such as an article
FRACTION: Final = "quarter past"  # part of an hour whose rest is not understood
MAX_TOLD_CHARS: Final = 2_000  # of a text; a time is named in a sentence
_MAX_GUESSES: Final = 2  # languages that one text is read in
_UNITS: Final = ("minute", "hour", "day", "week", "month", "year")
_MIN_NAME: Final = 4  # letters of the name of a weekday that others begin with: shorter ones are words of their own
_SCRIPTS: Final = (
    (re.compile("[\u3040-\u30ff]"), ("ja",)),
    (re.compile("[\uac00-\ud7af]"), ("ko",)),
    (re.compile("[\u3400-\u9fff]"), ("zh", "ja")),
    (re.compile("[\u0400-\u04ff]"), ("ru", "uk")),
    (re.compile("[\u0600-\u06ff]"), ("ar",)),
    (re.compile("[\u0900-\u097f]"), ("hi",)),
    (re.compile("[\u0590-\u05ff]"), ("he",)),
)
_UNSPACED: Final = frozenset({"ja", "zh"})
_RUNS: Final = frozenset({"ja", "zh", "ko"})
_OTHER_SCRIPTS: Final = frozenset(code for _, codes in _SCRIPTS for code in codes)
_WORD: Final = re.compile(r"(?:[^\W\d_]|[\u0900-\u0963])+")
_LETTER: Final = r"[\w\u0900-\u097f]"  # the vowel signs of Devanagari are no \w
_NO_LETTER: Final = r"(?![^\W\d_])"
_MARKS: Final = re.compile("[\u064b-\u0652]")
_ALEF: Final = re.compile("[\u0623\u0625\u0622]")
_EAST_ASIAN_DAY: Final = re.compile(r"(?:(\d{4})\s?[年년]\s?)?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号號일]")
_YEAR_FIRST: Final = re.compile(r"(?<![\d./-])((?:19|20)\d\d)[./](\d{1,2})[./](\d{1,2})(?![\d/])")
_DOTTED: Final = re.compile(
    r"(?:\b(?:am|den|le|el|il|op|dne)\s)?(?<![\d.,:/-])(\d{1,2})[.](\d{1,2})[.]((?:19|20)\d\d|(?:2\d)(?=\s|$))?(?![\d.])"
)
SLASHED: Final = re.compile(r"(?<![\d/.,-])(\d{1,2})/(\d{1,2})(?:/((?:19|20)\d\d|2\d))?(?![\d/%])")
_MONTHS_SHORT: Final = "(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
_SHORT_MONTH: Final = re.compile(
    rf"\b(\d{{1,2}}(?:st|nd|rd|th)?\s)({_MONTHS_SHORT})\b\.?|\b({_MONTHS_SHORT})\b\.?(?=\s\d{{1,2}}(?:st|nd|rd|th)?(?![\w:.]))",
    re.IGNORECASE | re.ASCII,
)
_BEFORE_DAY: Final = re.compile(r"(?:\b(?:on|of|since|from|by|until)|~)\s$")
_OTHER_DIGIT: Final = re.compile(r"(?![0-9])\d")
_ANY_LETTER: Final = re.compile(r"[^\W\d_]")


class Told:
    """A text with its words of time in English. `text` is what is read; `origin` says where in the given text
    something of it began."""

    def __init__(self, text: str, at: list[int], own: list[bool]) -> None:
        """`at`: for each character of `text`, and for its end, where it was; `own`: whether it was put there."""
        self.text, self._at, self._own = text, at, own

    @classmethod
    def of(cls, text: str) -> "Told":
        """A text as it was given."""
        return cls(text, list(range(len(text) + 1)), [False] * len(text))

    def origin(self, place: int) -> int:
        """Where in the given text the character of a place was."""
        return self._at[place]

    @property
    def foreign(self) -> bool:
        """Whether anything was told in other words."""
        return any(self._own)

    def replaced(self, pattern: re.Pattern[str], told: Callable[[re.Match[str]], str | None]) -> "Told":
        """With what `told` makes of each match; None leaves it, and so does a word in it that was put
        there before."""
        pieces: list[str] = []
        at: list[int] = []
        own: list[bool] = []
        end = 0
        for match in pattern.finditer(self.text):
            if not match[0] or self._told_in(match.start(), match.end()):
                continue
            try:
                words = told(match)
            except KeyError:  # a letter that case folding makes several of
                continue
            if words is None:
                continue
            pieces += [self.text[end : match.start()], words]
            at += [*self._at[end : match.start()], *[self._at[match.start()]] * len(words)]
            own += [*self._own[end : match.start()], *[not words.isdecimal()] * len(words)]
            end = match.end()
        if not pieces:
            return self
        pieces.append(self.text[end:])
        return Told("".join(pieces), [*at, *self._at[end:]], [*own, *self._own[end:]])

    def others(self) -> list[str]:
        """The words that are not told in English, in lower case."""
        return [m[0].casefold() for m in _WORD.finditer(self.text) if not self._told_in(m.start(), m.end())]

    def _told_in(self, start: int, end: int) -> bool:
        """Whether a word or a number between two places was put there."""
        return any(self._own[place] and self.text[place].isalnum() for place in range(start, end))

    @property
    def unknown(self) -> int:
        """How many letters are not told in English."""
        return self.text.count(UNKNOWN)

    def blanked(self, small: frozenset[str]) -> "Told":
        """With a mark in place of each letter that is not told in English, so that no other word is read as English.
        Small words have another mark."""
        text = _WORD.sub(
            lambda m: (
                SMALL * len(m[0]) if m[0].casefold() in small and not any(self._own[m.start() : m.end()]) else m[0]
            ),
            self.text,
        )
        letters = (
            UNKNOWN if not own and _ANY_LETTER.match(letter) else letter
            for letter, own in zip(text, self._own, strict=True)
        )
        return Told("".join(letters), self._at, self._own)


_Step = tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]]


def told_in_english(text: str, *, ahead: bool) -> Iterator[Told]:
    """A text as the languages that it may be of have it, the likeliest first; English as it is. `ahead`: a word that
    means tomorrow as well as yesterday means tomorrow."""
    text = _plain(text)
    codes = _languages(text)
    foreign = [told for code in codes if code != "en" and (told := _told(text, code, ahead)).foreign]
    foreign.sort(key=lambda told: told.unknown)
    english = [_with_dates(Told.of(text), ahead)]
    yield from (*english, *foreign) if codes[0] == "en" else (*foreign, *english)


def _plain(text: str) -> str:
    """A text with the digits and apostrophes that are read here."""
    return _OTHER_DIGIT.sub(lambda m: str(unicodedata.decimal(m[0])), text[:MAX_TOLD_CHARS]).replace("\u2019", "'")


def says_only_when(text: str, names: Collection[str]) -> bool:
    """Whether a question of another language than English has no words but those of a time and of whatever was said
    then. `names`, in lower case, say nothing."""
    text = _plain(text)
    for code in _languages(text):
        told = _words_told(text, code, ahead=False) if code != "en" else Told.of(text)
        if told.foreign and all(word in names or _says_nothing(word, code) for word in told.others()):
            return True
    return False


def _says_nothing(word: str, code: str) -> bool:
    if code in _RUNS:  # of words without a space between them
        return not _saying(code).sub("", word)
    return word in TONGUE_WORDS[code].get(COMMON, "").split("|") or _saying(code).fullmatch(word) is not None


@cache
def _saying(code: str) -> re.Pattern[str]:
    words = sorted(TONGUE_WORDS[code].get(SAYING, "").split("|"), key=lambda word: (-len(word), word))
    return re.compile("|".join(map(re.escape, words)))


def _words_told(text: str, code: str, *, ahead: bool) -> Told:
    told = Told.of(text)
    for pattern, words in _steps(code, ahead):
        told = told.replaced(pattern, words)
    return told


def _told(text: str, code: str, ahead: bool) -> Told:
    told = _words_told(text, code, ahead=ahead)
    return _with_dates(told.blanked(_small(code)), ahead) if told.foreign else told


def _with_dates(told: Told, ahead: bool) -> Told:
    """With dates in numbers as days of months: 31.05.2026, 31/05, 5/31, 2026/05/31. What may be two days
    stays where one is to come, and is both where one is over. There a fraction is no day: "24/7"."""
    if not told.foreign:
        told = told.replaced(_SHORT_MONTH, lambda m: f"{m[1] or ''}{_month_of(m[2] or m[3])}")
    told = told.replaced(_YEAR_FIRST, lambda m: _day(m[3], m[2], m[1]))
    told = told.replaced(_DOTTED, lambda m: _day(m[1], m[2], m[3] or ""))

    def slashed(match: re.Match[str]) -> str | None:
        first, second, year = match[1], match[2], match[3] or ""
        if not ahead and not year and not _BEFORE_DAY.search(match.string, 0, match.start()):
            return None
        if int(first) <= 12 and int(second) <= 12 and int(first) != int(second):
            both = _day(first, second, year), _day(second, first, year)
            return None if ahead or None in both else " ".join(filter(None, both))
        return _day(first, second, year) if int(first) > 12 else _day(second, first, year)

    return told.replaced(SLASHED, slashed)


def _month_of(name: str) -> str:
    return next(month for month in MONTHS if month.startswith(name[:3].lower()))


def _day(day: str, month: str, year: str) -> str | None:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    return f"{int(day)} {MONTHS[int(month) - 1]}{' ' if year else ''}{'20' if len(year) == 2 else ''}{year}"


def _languages(text: str) -> list[str]:
    """The languages that a text may be of, the likeliest first: at most _MAX_GUESSES, and English."""
    for letters, codes in _SCRIPTS:
        if letters.search(text):
            return [*codes, "en"]
    words = {word.casefold() for word in _WORD.findall(text)}
    known = {code: len(words & _vocabulary(code)) for code in TONGUE_WORDS if code not in _OTHER_SCRIPTS}
    best = max(known.values())
    likely = sorted((code for code, count in known.items() if count >= max(best, 1)), key=lambda code: code != "en")
    return [*likely[:_MAX_GUESSES], "en"] if "en" not in likely[:_MAX_GUESSES] else likely[:_MAX_GUESSES]


@cache
def _vocabulary(code: str) -> frozenset[str]:
    words = [word for row in TONGUE_WORDS[code].values() for word in row.split("|")]
    info = _table(code)
    words += [name for key in (*WEEKDAYS, *_UNITS) for name in info.get(key, ()) if len(name) >= _MIN_NAME]
    words += [name for key in MONTHS for name in info.get(key, ()) if len(name) > 2]
    words += [name for names in info["relative-type"].values() for name in names]
    return frozenset(each.casefold() for word in words for each in _WORD.findall(word))


@cache
def _small(code: str) -> frozenset[str]:
    row = TONGUE_WORDS[code]
    words = (word.casefold() for key in (COMMON, "on", "at") for word in row.get(key, "").split("|"))
    return frozenset(word for word in words if 0 < len(word) < (_MIN_NAME + 2 * (code == "hi")))


def _table(code: str) -> dict[str, Any]:
    from dateparser.languages.loader import default_loader  # noqa: PLC0415  # 30 ms, which a first question takes

    found: dict[str, Any] = default_loader.get_locale_map(languages=[code])[code].info
    return found


def _normal(words: str) -> str:
    """Words as they are compared."""
    return " ".join(_ALEF.sub("\u0627", _MARKS.sub("", words.casefold())).split())


def _pattern(words: str) -> str:
    """A pattern of words, with any space between them, and of Arabic with and without marks."""
    parts = (re.escape(word) for word in _normal(words).split())
    return r"\s{1,4}".join(
        "".join(
            "[\u0627\u0623\u0625\u0622]"
            if c == "\u0627"
            else c + "[\u064b-\u0652]?"
            if "\u0621" <= c <= "\u064a"
            else c
            for c in part
        )
        for part in parts
    )


class _Writer:
    """Makes the steps of one language from its words."""

    def __init__(self, code: str, ahead: bool) -> None:
        self.code, self.ahead, self.row, self.table = code, ahead, TONGUE_WORDS[code], _table(code)
        self.spaced = code not in _UNSPACED
        # Korean and Turkish words end in what English puts before them; Arabic and Hebrew ones begin with it.
        self.left = rf"(?<!{_LETTER})" if self.spaced else ""
        if code in ("ar", "he"):
            self.left += "[\u0648\u0628\u0644\u05d5\u05d1\u05d4\u05dc\u05de]?"
        self.right = rf"(?!{_LETTER})" if self.spaced and code != "ko" else ""
        if code == "tr":
            self.right = rf"(?:'{_LETTER}{{1,5}}|[dt][ae]n?|[dt][ae]ki|k[i\u00fc])?(?!{_LETTER})"
        if code == "fi":
            self.right = rf"{_LETTER}{{0,4}}(?!{_LETTER})"
        self.phrases = self._phrases(ahead)
        self.weekdays = {_normal(name): day for day in WEEKDAYS for name in self._names(day)}
        # Short names are words of their own as well: they count beside a number alone.
        self.months_with_day = {
            _normal(name): month for month in MONTHS for name in self.table.get(month, ()) if not name[:1].isdigit()
        }
        self.months = {
            name: month
            for name, month in self.months_with_day.items()
            if len(name) >= _MIN_NAME
            or not any(other != name and other.startswith(name) for other in self.months_with_day)
        }
        self.units = {
            _normal(name): unit for unit in _UNITS for name in (*self.table.get(unit, ()), *self.words(f"{unit}s"))
        }
        self.numbers = dict(pair.split("=") for pair in self.words("numbers"))
        for each in self.table.get("simplifications", ()):
            self.numbers |= {name: digits for name, digits in each.items() if name.isalpha() and digits.isdigit()}

    def words(self, key: str) -> list[str]:
        """The words of the row with a meaning."""
        return [word for word in self.row.get(key, "").split("|") if word]

    def any_of(self, names: Iterable[str]) -> str:
        """A pattern of any of these, the longest first; it matches nothing without any."""
        return "|".join(_pattern(name) for name in sorted(set(names), key=lambda each: (-len(each), each))) or "(?!)"

    def _names(self, day: str) -> list[str]:
        names = self.table.get(day, ())
        long = [
            n
            for n in names
            if len(n) >= _MIN_NAME or not any(m != n and m.casefold().startswith(n.casefold()) for m in names)
        ]
        return [*(n for n in long if len(n) > 1 + self.spaced and n.isprintable() and "(" not in n), *self.words(day)]

    def _phrases(self, ahead: bool) -> dict[str, str]:
        """Words that stand for themselves, and what they are in English."""
        found: dict[str, str] = {}
        told = [(_told_relative(key), names) for key, names in self.table["relative-type"].items()]
        told.sort(key=lambda each: each[0].startswith(("in ", "tomorrow")) == ahead)
        for english, names in told:
            if english:
                found |= {_normal(name): english for name in names if len(name) > 1}
        for key in _ALONE:
            found |= {_normal(name): _TOLD_AS.get(key, key) for name in self.words(key)}
        return found

    def steps(self) -> Iterator[_Step]:
        """The steps, in the order in which they are made."""
        left, right, any_of = self.left, self.right, self.any_of
        gap = r"\s{1,4}" if self.spaced and self.code != "ko" else r"\s{0,2}"
        unit, number = any_of(self.units), any_of(self.numbers)
        hour = any_of(self.words("hour"))
        at = any_of(self.words("at"))
        half_before, half_after = any_of(self.words("half-before")), any_of(self.words("half-after"))
        before, past = any_of(_PREFIXED.get(self.code, {}).get("in", self.words("in"))), any_of(self.words("ago"))
        every, last, next_ = any_of(self.words("every")), any_of(self.words("last")), any_of(self.words("next"))
        on = any_of(self.words("on"))
        weekday, month = any_of(self.weekdays), any_of(self.months)
        months_with_day = month if self.code in ("tr", "fi") else any_of(self.months_with_day)
        bare = dict.fromkeys(self.weekdays) if self.ahead else dict.fromkeys(self.weekdays.keys() - _ORDINARY)
        flags = re.IGNORECASE

        # "Every" takes the article of Arabic away.
        each_day = {name.removeprefix("\u0627\u0644"): day for name, day in self.weekdays.items()} | self.weekdays
        if self.code in ("ja", "zh", "ko"):
            yield (
                _EAST_ASIAN_DAY,
                lambda m: f" {m[2 + 1]} {MONTHS[int(m[2]) - 1]} {m[1] or ''} " if 1 <= int(m[2]) <= 12 else None,
            )
        yield (
            re.compile(rf"{left}(?:{every})\s{{0,3}}(?:(?:{on})\s{{1,3}})?(?P<day>{any_of(each_day)})s?{right}", flags),
            lambda m: f" every {each_day[_normal(m['day'])]} ",
        )
        other = any_of(self.words("every-other"))
        yield (
            re.compile(
                rf"{left}(?:{other}){gap}(?:(?P<n>\d{{1,3}})|(?:{number})){gap}(?:{unit}|{weekday})s?{right}", flags
            ),
            lambda m: f" every {m['n'] or 'other'} ",
        )
        yield re.compile(rf"{left}(?:{any_of(self.words('every-second'))}){right}", flags), lambda _: " every other "
        for side, words in (("last", last), ("next", next_)):
            yield (
                re.compile(
                    rf"{left}(?:{words})\s{{0,3}}(?P<day>{weekday})s?{right}|{left}(?P<day2>{weekday if self.spaced else '(?!)'})\s{{0,3}}(?:{words}){right}",
                    flags,
                ),
                partial(self._sided, side),
            )
        # A unit comes later: of Russian "дня" in "через три дня" is of days, in "в 3 часа дня" the afternoon.
        phrases = [each for each in self.phrases if each not in self.units]
        whole = any_of([each for each in phrases if " " in each or not self.spaced or len(each) > 2])
        yield (
            re.compile(rf"{left}(?P<word>{whole})" + right, flags),
            lambda m: f" {self.phrases[_normal(m['word'])]} " if _normal(m["word"]) in self.phrases else None,
        )
        yield (
            re.compile(rf"{left}(?P<n>{number})(?={gap}(?:{unit}|{hour}|{half_after}){right})", flags),
            lambda m: self.numbers.get(_normal(m["n"])),
        )
        leads = "|".join(rf"(?<=\b{re.escape(word)} )" for word in (*self.words("at"), *self.words("half-before")))
        yield (
            re.compile(rf"(?:{leads or '(?!)'})(?P<n>{number}){right}", flags),
            lambda m: self.numbers.get(_normal(m["n"])),
        )
        fixed = {_normal(name): told for told in _LENGTHS for name in self.words(told)}
        length = (
            rf"(?:(?P<fixed>{any_of(fixed)})|(?P<n>\d{{1,4}})(?P<part>[.,]5|\s{{0,2}}(?:{half_after}))?\s{{0,2}}(?P<unit>{unit})"
            rf"(?:\s{{0,2}}(?P<part2>{half_after}))?)"
        )

        def span(m: re.Match[str]) -> str | None:
            found = m.groupdict()
            if found["fixed"]:
                size = fixed[_normal(found["fixed"])]
            else:
                name = self.units[_normal(found["unit"])]
                size = f"{found['n']} {name}"
                if found["part"] or found["part2"]:
                    size = f"{int(found['n']) * 60 + 30} minute" if name == "hour" else size
            if found.get("pre_ago") or found.get("post_ago"):
                return f" {size} ago "
            return f" in {size} "

        spaces = r"\s{1,4}" if self.spaced and self.code not in ("ko",) else r"\s{0,2}"
        yield (
            re.compile(rf"{left}(?:{before})\s{{1,4}}(?P<h>\d{{1,2}})\s?[h:]\s?(?P<m>[0-5]\d)(?!\d)", flags),
            lambda m: f" in {int(m['h']) * 60 + int(m['m'])} minute ",
        )
        yield re.compile(rf"{left}(?:(?P<pre_in>{before})|(?P<pre_ago>{past})){spaces}{length}{right}", flags), span
        yield (
            re.compile(
                rf"{left}{length}(?:\s{{0,2}})(?:(?P<post_in>{any_of(self.words('in') + self.table.get('in', []) if self.code in _SUFFIXED else [])})|(?P<post_ago>{past})){right}",
                flags,
            ),
            span,
        )
        if self.code in _ONE_UNSAID:
            yield (
                re.compile(rf"{left}(?:{before})\s(?P<unit>{unit}){right}", flags),
                lambda m: f" in 1 {self.units[_normal(m['unit'])]} ",
            )
        for side in ("past", "to"):
            before_hour = any_of(self.words(f"quarter-{side}-before"))
            yield (
                re.compile(rf"{left}(?:{before_hour})\s{{1,4}}(?:(?P<h>\d{{1,2}})|(?P<n>{number})){right}", flags),
                partial(self._quarter, side),
            )
        quarter, less = any_of(self.words("quarter-after")), any_of(self.words("quarter-less"))
        yield (
            re.compile(rf"{left}(?:{half_before})\s{{1,4}}(?P<h>\d{{1,2}}){right}", flags),
            lambda m: f" half past {(int(m['h']) - 2) % 12 + 1} ",
        )
        yield (
            re.compile(
                rf"{left}(?P<d>\d{{1,2}})(?:\.|\u00ba|\u00b0|er|-?\u0433\u043e)?\s{{0,3}}(?:(?:de|di|d'|of|th\u00e1ng)\s)?\u05d1?(?P<month>{months_with_day})(?:'?{_LETTER}{{0,3}}\b)?(?:\s{{0,3}}(?:de|del|,)?\s?(?P<year>(?:19|20)\d\d)(?!\d))?",
                flags,
            ),
            self._day_of_month,
        )
        yield (
            re.compile(
                rf"{left}(?:(?P<at>{at})\s{{0,2}})?(?P<h>\d{{1,2}})(?!\d)(?:[:.](?P<m>\d\d)(?![\d.]))?(?:\s{{0,2}}(?P<mark>{hour}){'' if not self.spaced or self.code == 'ko' else _NO_LETTER}(?:\s{{0,2}}(?P<m2>\d\d?)\s{{0,2}}(?:{any_of(self.words('minute-mark'))})?)?)?(?:\s{{0,2}}(?:(?P<half>{half_after})|(?P<quarter>{quarter})|(?P<less>{less})){right})?",
                flags,
            ),
            _clock,
        )
        yield (
            re.compile(rf"{left}(?P<month>{month}){right}\s(?:de\s|del\s)?(?P<year>(?:19|20)\d\d)(?!\d)", flags),
            lambda m: f" {self.months[_normal(m['month'])]} {m['year']} ",
        )
        yield (
            re.compile(rf"{left}(?:{_IN_MONTH.get(self.code, '(?!)')})\s(?P<month>{month}){right}", flags),
            lambda m: f" in {self.months[_normal(m['month'])]} ",
        )
        yield (
            re.compile(
                rf"{left}(?:(?:(?:{on})\s{{0,2}})?(?P<day>{any_of(bare)})|(?:{on})\s{{1,2}}(?P<day2>{weekday}))(?P<s>s)?{right}",
                flags,
            ),
            self._weekday,
        )
        # What is left over of an hour: its reader asks.
        yield re.compile(rf"{left}(?:{any_of(self.words('fraction'))}){right}", flags), lambda _: f" {FRACTION} "
        short = any_of(self.phrases)
        yield (
            re.compile(rf"{left}(?P<word>{short}){right}", flags),
            lambda m: f" {self.phrases.get(_normal(m['word']), '')} ",
        )

    def _sided(self, side: str, match: re.Match[str]) -> str:
        if (whole := self.phrases.get(_normal(match[0]))) is not None:  # in Indonesian a week and Sunday are one word
            return f" {whole} "
        day = self.weekdays[_normal(match["day"] or match["day2"])]
        return f" {day} next week " if self.ahead and match[0].startswith(_OF_NEXT_WEEK) else f" {side} {day} "

    def _weekday(self, match: re.Match[str]) -> str:
        each = self.ahead and self.code == "de" and match["s"] is not None  # montags
        return f" {'every' if each else 'on'} {self.weekdays[_normal(match['day'] or match['day2'])]} "

    def _quarter(self, side: str, match: re.Match[str]) -> str:
        return f" quarter {side} {int(match['h'] or self.numbers[_normal(match['n'])])} "

    def _day_of_month(self, match: re.Match[str]) -> str:
        return f" {match['d']} {self.months_with_day[_normal(match['month'])]} {match['year'] or ''} "


def _clock(match: re.Match[str]) -> str | None:
    found = match.groupdict()
    if not (found["at"] or found["mark"] or found["half"]):
        return None
    if found["less"]:
        return f" at {(int(found['h']) - 1) % 24}:45 "
    minute = found["m"] or found["m2"] or ("30" if found["half"] else "15" if found["quarter"] else "00")
    return f" at {found['h']}:{minute.zfill(2)} "


def _told_relative(key: str) -> str:
    """What a key of dateparser's table of relative words is in the English that is read here; "" for what is not."""
    words = key.split()
    if len(words) != 3 or (words[1] if words[0] == "in" else words[0]).isalpha():
        return key if words[0] in ("last", "next") and len(words) == 2 and words[1] in WEEKDAYS else ""
    over = words[2] == "ago"
    count, unit = (words[0], words[1]) if over else (words[1], words[2])
    if unit not in ("day", "week", "month", "year"):
        return ""
    near = {("0", True): "this {}", ("1", True): "last {}", ("1", False): "next {}"}.get((count, over))
    if unit == "day":
        near = {
            ("0", True): "today",
            ("1", True): "yesterday",
            ("2", True): "the day before yesterday",
            ("1", False): "tomorrow",
            ("2", False): "the day after tomorrow",
        }.get((count, over))
    return (near or ("{} {{}} ago" if over else "in {} {{}}").format(count)).format(unit)


# Names of weekdays that mean something else as often: in Vietnamese "second" to "seventh", in Turkish "market". A
# question names such a day with a word before it.
_ORDINARY: Final = frozenset(
    _normal(name)
    for name in (
        *(
            "th\u1ee9 hai",
            "th\u1ee9 ba",
            "th\u1ee9 t\u01b0",
            "th\u1ee9 n\u0103m",
            "th\u1ee9 s\u00e1u",
            "th\u1ee9 b\u1ea3y",
        ),
        *(f"th\u1ee9 {number}" for number in range(1, 9)),
        *("pazar", "segunda", "ter\u00e7a", "quarta", "quinta", "sexta"),
    )
)
# Where "next" is said of the week, not of the day.
_OF_NEXT_WEEK: Final = ("\u6765\u9031", "\u4e0b", "\ub2e4\uc74c \uc8fc", "\ub2e4\uc74c\uc8fc")
_PARTS: Final = (
    "morning",
    "afternoon",
    "evening",
    "night",
    "noon",
    "midnight",
    "tonight",
    "yesterday evening",
    "this morning",
)
_ALONE: Final = (
    *_PARTS, "today", "tomorrow", "yesterday", "the day after tomorrow", "the day before yesterday", "every day", "every weekday", "every month", "every morning", "every evening",
    "last week", "next week", "last month", "next month", "last year", "weekend", "ahead",
    *(f"{how} {day}" for how in ("last", "every") for day in WEEKDAYS),
)  # fmt: skip
_TOLD_AS: Final = {  # as the readers of periods and of clocks have them
    "ahead": "planned",
    "weekend": "over the weekend",
    **{part: f"in the {part}" for part in ("morning", "afternoon", "evening", "night")},
}
_LENGTHS: Final = (
    *("half an hour", "15 minutes", "45 minutes", "1 hour", "1 hour 30 minutes", "2 hours 30 minutes", "2 hours"),
    *("1 day", "2 days", "2 weeks", "2 minutes"),
)
_PREFIXED: Final[dict[str, dict[str, list[str]]]] = {code: {"in": []} for code in ("ja", "zh", "ko", "tr", "hi", "fi")}
_SUFFIXED: Final = frozenset(("ja", "zh", "ko", "tr", "hi", "fi", "id", "vi"))
_ONE_UNSAID: Final = frozenset(("ru", "uk", "pl", "cs"))
# Before a month. Of Romanian none: there May is "more" too.
_IN_MONTH: Final = {
    **dict.fromkeys(("de", "nl"), "im|in"), "fr": "en|au mois de|au mois d'", "es": "en", "pt": "em", "it": "in|a|nel mese di",
    "pl": "w", "ru": "\u0432", "uk": "\u0443|\u0432", "sv": "i", "da": "i", "nb": "i", "cs": "v", "id": "bulan|pada", "vi": "th\u00e1ng",
    "ar": "\u0641\u064a", "he": "\u05d1", "hi": "\u092e\u0947\u0902",
}  # fmt: skip


@cache
def _steps(code: str, ahead: bool) -> tuple[_Step, ...]:
    return tuple(_Writer(code, ahead).steps())
