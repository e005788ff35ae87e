"""No text that a person can write makes a pattern or a text function work much longer than its length.

Every compiled pattern of the product is tried on adversarial texts of 100,000 characters: on the beginnings of all, and
whole on those where it was slowest. Only those are left out that never read people's text. What is bounded is
the CPU time of this process: a linear pattern takes a few milliseconds, one that isn't takes minutes, and the limit is
far from both.
"""

import ast
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import bot
import composer
import jobs
from bot.delivery.splitting import split
from bot.script.places import mentions
from bot.slack import text as slack_text
from composer.entries.draft import recalled_text
from composer.ingest.addressing import find_addressed_agents, is_for_others
from composer.layers import plain, relevance
from composer.layers.ranking import is_question, without_duplicates
from composer.memory import patterns, rules, wording
from composer.memory.index import embedding_text, without_mentions
from composer.model import Item, Visibility
from composer.prompt.lines import quote
from composer.summaries.extractive import candidate_excerpts
from composer.summaries.summariser import numbers_in
from composer.summaries.texts import SummaryInput, attributed_line
from composer.text import (
    asked,
    cleaning,
    copies,
    excerpts,
    first_person,
    for_oneself,
    forgetting,
    html_text,
    marks,
    names,
    notices,
    own_words,
    pairs,
    passages,
    plain_questions,
    quoting,
    repetition,
    requests,
    terms,
    wishes,
)
from composer.text.dates import deadlines, meant, named_days, periods, when
from composer.text.room_names import rooms_named

SIZE = 100_000
BEGINNING = 20_000  # on which a text is tried first: what is not linear takes ten ticks of the clock, all else none
SLOWEST = 6  # texts that are read whole
LIMIT_SECONDS = 2.0  # of CPU time for one text; linear ones take 0.2 at most
AT = datetime(2026, 5, 4, tzinfo=UTC)

# Patterns that never read what people write, each with what it reads instead.
NOT_OVER_PEOPLES_TEXT = {
    "composer.settings.values": "the operator's settings",
    "composer.stores.embedded.daemon": "log lines of our own servers",
    "composer.stores.embedded.servers": "paths of this machine",
    "composer.stores.models.openai_connection": "error messages of the model's API",
    "sql.loader": "our own queries",
}
UNITS = (
    *('"', '."', "@", "@a", "a-", "we decided to ", "I prefer ", "I would much ", "my name ", "`", "`. a", "```", "\n"),
    *("(", "1,", "1.", "1 ", "\u0e01", "i always ", "a's", "! x", "a", "word ", "in ", "by the ", "a b ", ".", "?!"),
    *(" ", "\t", "let's ", "my x favourite ", "a: ", "<@", "<", "[", "\u201e", "\u2018", "'a ", "\u0301\u0327"),
    *("<:a", "prefer ", "prefer to ", "please x ", "i will x ", "\n> ", "> ", "?", "? a", "is ", "until ", "\u3002"),
    *("\u200b", "\U0001f469\u200d", "|a", "--a ", "# ", "the the ", "not ", "1:1", "it ", "ok ", "-", "_", "\r\n"),
    *("e.g. ", "it. ", "a\u0e01", "``a\n", "\u0130", "https://a."),
)
TEXTS = {unit: (unit * (SIZE // len(unit) + 1))[:SIZE] for unit in UNITS}
STARTS = (("i", " "), ("i ", "really "), ("my favourite", "a"), (">", " "), ("ok", "!"), ("a@", "a"), ("1", " "))
TEXTS |= {f"{start}{unit}": f"{start}{(unit * SIZE)[:SIZE]}x" for start, unit in STARTS}

# What these patterns are given: one sentence, on one line and cut.
ONE_SENTENCE = ("composer.memory.patterns._PATTERNS", "composer.memory.patterns._HYPO", "composer.memory.rules.")


def given_to(name: str, text: str) -> str:
    """The part of a text that a pattern is given."""
    return " ".join(text.split())[: patterns.MAX_PATTERN_SENTENCE_CHARS] if name.startswith(ONE_SENTENCE) else text


def compiled_patterns() -> dict[str, re.Pattern[str]]:
    """Every text pattern of the product's modules, by module and name."""
    found: dict[str, re.Pattern[str]] = {}
    for package in (composer, bot, jobs):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            loaded = importlib.import_module(module.name)
            for name, value in vars(loaded).items():
                for n, pattern in enumerate(_patterns_in(value)):
                    if module.name not in NOT_OVER_PEOPLES_TEXT:
                        found[f"{module.name}.{name}" + (f"[{n}]" if value is not pattern else "")] = pattern
    return found


def _patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    match value:
        case re.Pattern() if isinstance(value.pattern, str):
            yield value
        case dict():
            for each in value.values():
                yield from _patterns_in(each)
        case tuple() | list():
            for each in value:
                yield from _patterns_in(each)


PATTERNS = compiled_patterns()


def _input(author: str, text: str) -> SummaryInput:
    return SummaryInput(author, AT, text)


def _item(text: str) -> Item:
    return Item("semantic", "episode", text[:9], text, AT, "room:x", Visibility.PUBLIC, messages=(text[:9],))


# Every function that reads a whole text of a person. Those that cut it first cost even less.
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "clean_text": cleaning.clean_text,
    "clean_line": cleaning.clean_line,
    "find_quote": lambda text: quoting.find_quote(text, text[:1_000]),
    "asked_to_forget": forgetting.asked_to_forget,
    "asks_for_reminder": wishes.asks_for_reminder,
    "plain_kind": lambda text: plain.kind_with(["Bob"], text, plain_questions.plain_kind(text)),
    "has_topic": lambda text: plain.has_topic(text, ["Bob"]),
    "topic_terms": plain_questions.topic_terms,
    "asks_to_store": requests.asks_to_store,
    "is_for_oneself": for_oneself.is_for_oneself,
    "is_plainly_for_oneself": for_oneself.is_plainly_for_oneself,
    "opening": lambda text: requests.opening(text, 0, len(text)),
    "quotations": lambda text: list(own_words.quotations(text, own_words.MIN_QUOTED_WORDS)),
    "Asked.for_reminder": lambda text: asked.Asked(text, "Nexus").for_reminder(),
    "Asked.to_remember": lambda text: asked.Asked(text, "Nexus").to_remember(text),
    "paired_value": lambda text: [pairs.paired_value(each, "a", "b") for each in (text, asked.Asked(text).to_set())],
    "without_thanks": lambda text: requests.without_thanks(text, named=True),
    "without_notices": lambda text: notices.without_notices(f"{text} To undo it: /nexus forget item "),
    "look": names.looks,
    "looks_within": names.looks_within,
    "terms": terms.terms,
    "tongue": terms.tongue,
    "query_terms": lambda text: terms.query_terms(text, {text[:200]}),
    "in_first_person": lambda text: first_person.in_first_person(text, {"a b", text[:200]}, {"c"}),
    "with_plain_mentions": lambda text: terms.with_plain_mentions(text, {"a b", text[:200]}),
    "sentences": terms.sentences,
    "words_of": repetition.words_of,
    "matches": lambda text: repetition.matches(text, "4711 x"),
    "extract": patterns.extract,
    "own_words": own_words.own_words,
    "copy_starts": lambda text: copies.copy_starts(text.splitlines()),
    "text_of_html": html_text.text_of_html,
    "Asked": lambda text: asked.Asked(text).wish(AT, UTC),
    "Asked.reminds_all": lambda text: asked.Asked(text).reminds_all(),
    "numbers_in": lambda text: list(numbers_in(text)),
    "lines of a summary": lambda text: candidate_excerpts([_input("", text)]),
    "embedding_text": embedding_text,
    "without_mentions": without_mentions,
    "why_unread": lambda text: when.why_unread(text, AT, UTC, timedelta(days=732)),
    "read_when": lambda text: when.read_when(text, AT, UTC),
    "read_since": lambda text: when.read_since(text, AT, UTC),
    "asks_when": named_days.asks_when,
    "says_when": named_days.says_when,
    "named_periods": lambda text: named_days.named_periods(text, AT),
    "asked_periods": lambda text: periods.asked_periods(text, AT),
    "days_meant": lambda text: meant.days_meant(text, AT),
    "is_question": is_question,
    "is_small_talk": lambda text: relevance.is_small_talk(text[: relevance.MAX_RELEVANT_CHARS], ["Nexus"]),
    "asks_only_for_a_time": lambda text: relevance.asks_only_for_a_time(text, ["Nexus"]),
    "named_deadline": deadlines.named_deadline,
    "is_worth_storing": lambda text: rules.is_worth_storing("preference", text[:1000]),
    "repeats": lambda text: wording.repeats(text[:500], text[1:501]),
    "contradicts": lambda text: wording.contradicts(text[:500], "fact", text[1:501], "fact"),
    "quote": quote,
    "speaker_label": names.speaker_label,
    "title_label": names.title_label,
    "without_marks": lambda text: marks.without_marks(f"{text} (s1)"),
    "attributed_line": lambda text: attributed_line("a", text),
    "candidate_excerpts": lambda text: candidate_excerpts([SummaryInput("a", AT, text)]),
    "without_duplicates": lambda text: list(without_duplicates([_item(text), _item(text + "x")])),
    "rooms_named": lambda text: rooms_named(text, ["ops"]),
    "is_for_others": is_for_others,
    "find_addressed_agents": lambda text: find_addressed_agents(text, ()),
    "mentions": mentions,
    "split": lambda text: split(text, 2000),
    "passages": passages.passages,
    "terms of a long text": lambda text: terms.terms(text, 120_000),
    "excerpt": lambda text: excerpts.excerpt(text, ["4711", "x"]),
    "recalled_text": lambda text: recalled_text("a title", text),
    "slack plain": lambda text: slack_text.plain(text, {}),
}


@contextmanager
def cpu_limit(what: str, seconds: float = LIMIT_SECONDS) -> Iterator[None]:
    """Fail when the body takes more CPU time than that; patterns look for signals while they work."""

    def fail(*_: object) -> None:
        raise AssertionError(f"more than {seconds} s of CPU time: {what}")

    before = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def check_linear(what: str, read: Callable[[str], object], seconds: float = LIMIT_SECONDS) -> None:
    """Let `read` read the beginnings of all texts, and those whole on which it was slowest."""
    times = {}
    for unit, text in TEXTS.items():
        with cpu_limit(f"{what} over {unit!r}", seconds):
            began = time.process_time()
            read(text[:BEGINNING])
            times[unit] = time.process_time() - began
    for unit in sorted(times, key=times.__getitem__)[-SLOWEST:]:
        with cpu_limit(f"{what} over {unit!r}", seconds):
            read(TEXTS[unit])


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_reads_every_text_in_linear_time(name: str) -> None:
    check_linear(name, lambda text: sum(1 for _ in PATTERNS[name].finditer(given_to(name, text))))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_reads_every_text_in_linear_time(name: str) -> None:
    check_linear(name, FUNCTIONS[name])


def test_the_limit_notices_a_pattern_that_is_not_linear() -> None:
    with pytest.raises(AssertionError, match="CPU time"), cpu_limit("dots", seconds=0.1):
        re.compile(r"[.]+(?=x)").search("." * SIZE)


@pytest.mark.parametrize(
    "pattern",
    [r"(?:we )?decided to .* instead", r"<@?\w*[^>]*>", r"\W+\w", r"my \w+ (?:\w+ )*is", r"(?:the )+end", r"\(.*\)"],
)
def test_a_pattern_that_is_slow_on_one_text_is_read_whole_on_it(pattern: str) -> None:
    slow = re.compile(pattern)
    with pytest.raises(AssertionError, match="CPU time"):
        check_linear(pattern, lambda text: sum(1 for _ in slow.finditer(text)), seconds=0.1)


def test_every_pattern_is_compiled_where_the_tests_find_it() -> None:
    """`re.search` with a pattern of its own inside a function would not be tried."""
    inline = [
        f"{path}:{node.lineno}"
        for package in (composer, bot, jobs)
        for path in Path(package.__path__[0]).rglob("*.py")
        if path.parent.name != "settings" and path.name != "server_urls.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in ("search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split")
    ]
    assert not inline
