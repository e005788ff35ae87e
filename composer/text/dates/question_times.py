"""The times that the texts of one question name: every layer asks for them, and each text is told once."""

from datetime import datetime

from composer.text.dates.meant import meant_periods
from composer.text.dates.named_days import days_near
from composer.text.dates.periods import MAX_CHARS_WITH_PERIODS, periods_of
from composer.text.dates.tongues import Told, told_in_english
from composer.text.dates.vocabulary import Period


class QuestionTimes:
    """Remembers, for as long as one question is read, what its texts are in English and which periods they name."""

    __slots__ = ("_periods", "_told")

    def __init__(self) -> None:
        self._told: dict[str, list[Told]] = {}
        self._periods: dict[tuple[str, datetime], list[Period]] = {}

    def periods(self, text: str, now: datetime) -> list[Period]:
        """The periods that a text asks for, as `asked_periods`."""
        if (text, now) not in self._periods:
            self._periods[text, now] = periods_of(self._tellings(text), now)
        return self._periods[text, now]

    def meant(self, text: str, now: datetime) -> list[Period]:
        """What a text asks for, and what it means that is to come: "who comes on Friday?" says which Friday by its verb
        alone, and where that does not, it is the latest and the next one."""
        named = self.periods(text, now)
        later = [period for period in meant_periods(self._tellings(text), now) if period[1] > now]
        return list(dict.fromkeys([*named, *later]))

    def near(self, text: str, now: datetime) -> list[Period]:
        """The days near which a text asks, as `named_periods`."""
        return days_near(self._tellings(text), now)

    def _tellings(self, text: str) -> list[Told]:
        if text not in self._told:
            self._told[text] = list(told_in_english(text[:MAX_CHARS_WITH_PERIODS], ahead=False))
        return self._told[text]
