"""No text that a person can write makes a function over text raise: one message would stop the memory of a tenant."""

import inspect
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import ModuleType
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from composer.ingest import addressing
from composer.memory import decisions, patterns, rules, wording
from composer.memory import index as indexing
from composer.model import Agent, Attachment, Item, Message, Visibility
from composer.prompt import lines
from composer.summaries import extractive, summariser
from composer.summaries.texts import SummaryInput
from composer.text import (
    asked,
    cleaning,
    copies,
    digests,
    first_person,
    for_oneself,
    forgetting,
    languages,
    marks,
    masking,
    names,
    notices,
    own_words,
    pairs,
    plain_questions,
    quoting,
    rarity,
    repetition,
    requests,
    terms,
    wishes,
)
from composer.text.dates import deadlines, meant, named_days, periods, vocabulary, when

ID = uuid.UUID(int=1)
AGENT = Agent(ID, "nexus", "Nexus", "", "model", 8_000)
MODULES = (
    asked,
    cleaning,
    deadlines,
    digests,
    first_person,
    for_oneself,
    forgetting,
    marks,
    masking,
    meant,
    named_days,
    names,
    notices,
    pairs,
    periods,
    plain_questions,
    quoting,
    rarity,
    repetition,
    requests,
    terms,
    when,
    wishes,
    patterns,
    decisions,
    wording,
    lines,
)
KINDS = ("preference", "decision", "habit", "action item", "fact")
MOMENTS = (
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 23, 59, tzinfo=ZoneInfo("Pacific/Kiritimati")),
    datetime(2026, 5, 4, 9, 30, tzinfo=UTC),
    datetime(2199, 12, 31, 23, 59, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, tzinfo=UTC),
)


def message(text: str) -> Message:
    attachment = Attachment(name=text, type=text, text=text)
    return Message(ID, "m1", 1, MOMENTS[2], ID, None, text, text, "room:x", Visibility.PUBLIC, (attachment,))


def item(text: str) -> Item:
    return Item("semantic", "episode", text, text, MOMENTS[2], "room:x", Visibility.PUBLIC)


def dates_of(text: str) -> None:
    for at in MOMENTS:
        for deadline in (deadlines.named_deadline(text), text):
            if deadline is not None:
                deadlines.deadline_end(deadline, at)
        named_days.named_periods(text, at)
        periods.asked_periods(text, at)
        meant.days_meant(text, at)


def asked_of(text: str) -> None:
    said = asked.Asked(text)
    for at in MOMENTS:
        said.wish(at, at.tzinfo or UTC)
    said.to_remember(text)
    pairs.paired_value(said.to_set(), text, text)
    assert isinstance(said.for_oneself or said.to_store or said.for_reminder() or said.reminds_all(), bool)


def rules_of(text: str) -> None:
    for kind in KINDS:
        rules.is_worth_storing(kind, text)
        for at in MOMENTS[:4]:  # those that a message can have
            rules.expiry_of(kind, text, at)


# Every public function of MODULES, and others that read whole messages, with how each is called.
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "named_days.asks_when": named_days.asks_when,
    "named_days.says_when": named_days.says_when,
    "named_days.named_periods": dates_of,
    "named_days.days_near": dates_of,
    "periods.asked_periods": dates_of,
    "periods.periods_of": dates_of,
    **{f"periods.{name}": dates_of for name in ("matches_of", "in_utc", "days_from", "units_ago", "count_of")},
    "periods.is_past": periods.is_past,
    "periods.lies_ahead": periods.lies_ahead,
    "meant.days_meant": dates_of,
    "meant.meant_periods": dates_of,
    "deadlines.named_deadline": dates_of,
    "deadlines.deadline_end": dates_of,
    "vocabulary.day_or_none": lambda text: vocabulary.day_or_none(len(text), len(text), len(text) * 400, later=10**9),
    "when.why_unread": lambda text: [
        when.why_unread(text, at, at.tzinfo or UTC, timedelta(days=732)) for at in MOMENTS
    ],
    "when.read_when": lambda text: [when.read_when(text, at, at.tzinfo or UTC) for at in MOMENTS],
    "when.read_since": lambda text: [when.read_since(text, at, at.tzinfo or UTC) for at in MOMENTS],
    "digests.text_digest": digests.text_digest,
    "digests.text_hash": digests.text_hash,
    "cleaning.is_storable": cleaning.is_storable,
    "cleaning.storable": cleaning.storable,
    "cleaning.clean_text": cleaning.clean_text,
    "notices.without_notices": lambda text: notices.without_notices(f"{text} {notices.undo_sentence(ID)}"),
    "notices.proposal_sentence": lambda text: notices.proposal_sentence(text, text),
    "notices.undo_sentence": lambda _: notices.undo_sentence(ID),
    "quoting.find_quote": lambda text: quoting.find_quote(f"{text} {text}", text),
    "forgetting.asked_to_forget": forgetting.asked_to_forget,
    "wishes.asks_for_reminder": wishes.asks_for_reminder,
    "plain_questions.plain_kind": plain_questions.plain_kind,
    "plain_questions.may_ask_what_was_said": plain_questions.may_ask_what_was_said,
    "plain_questions.asks_what_was_said": plain_questions.asks_what_was_said,
    "plain_questions.is_example": plain_questions.is_example,
    "plain_questions.topic_terms": plain_questions.topic_terms,
    "wishes.reminds_all": wishes.reminds_all,
    "wishes.is_one_sentence": wishes.is_one_sentence,
    "wishes.reminder_wish": lambda text: [wishes.reminder_wish(text, at, at.tzinfo or UTC) for at in MOMENTS],
    "requests.asks_to_store": requests.asks_to_store,
    "asked.are_all": lambda text: asked.are_all(text, text),
    "requests.after_greeting": requests.after_greeting,
    "requests.without_thanks": lambda text: requests.without_thanks(text, named=True),
    "requests.opening": lambda text: requests.opening(text, 0, len(text)),
    "pairs.paired_value": lambda text: pairs.paired_value(f"{text} is {text}", text, text),
    "cleaning.clean_line": cleaning.clean_line,
    "cleaning.shorten": lambda text: cleaning.shorten(text, 9),
    "cleaning.normalised": cleaning.normalised,
    "masking.mask": masking.mask,
    "names.app_name": lambda text: names.app_name(text, ["Nexus"]),
    "names.is_of_app": names.is_of_app,
    "names.looks_within": names.looks_within,
    "names.person_name": lambda text: names.person_name(text, ["Nexus"]),
    "names.speaker_label": names.speaker_label,
    "marks.replace_marks": lambda text: marks.replace_marks(f"{text} (s1)", lambda match: match["marks"]),
    "marks.marks_in": lambda text: list(marks.marks_in(text)),
    "marks.without_marks": lambda text: marks.without_marks(f"{text} (s1)"),
    "marks.without_any_marks": lambda text: marks.without_any_marks(f"{text} (s1)"),
    "names.title_label": names.title_label,
    "names.tool_name": lambda text: names.tool_name(text, "claude"),
    "names.in_quotes": names.in_quotes,
    "names.looks": names.looks,
    "repetition.words_of": repetition.words_of,
    "rarity.is_rare": lambda text: [rarity.is_rare(word) for word in repetition.words_of(text)],
    "repetition.matches": lambda text: repetition.matches(text, text[1:]),
    "repetition.comparable": repetition.comparable,
    "languages.stems": lambda text: [languages.stems(word, "german") for word in text.split()],
    "terms.folded": terms.folded,
    "terms.terms": terms.terms,
    "terms.tongue": terms.tongue,
    "terms.query_terms": lambda text: terms.query_terms(text, {text[:9]}),
    "terms.with_plain_mentions": lambda text: terms.with_plain_mentions(text, {text[:20], "bob"}),
    "first_person.without_genitive": first_person.without_genitive,
    "first_person.in_first_person": lambda text: first_person.in_first_person(text, {text[:9]}, {text[9:18]}),
    "terms.sentences": terms.sentences,
    "patterns.extract": patterns.extract,
    "patterns.is_question": patterns.is_question,
    "summariser.numbers_in": lambda text: list(summariser.numbers_in(text)),
    "own_words.own_words": own_words.own_words,
    "own_words.quotations": lambda text: list(own_words.quotations(text)),
    "own_words.as_quotation": own_words.as_quotation,
    "copies.copy_starts": lambda text: copies.copy_starts(text.splitlines()),
    "asked.Asked": asked_of,
    "for_oneself.is_for_oneself": for_oneself.is_for_oneself,
    "for_oneself.is_plainly_for_oneself": for_oneself.is_plainly_for_oneself,
    "own_words.without_quotations": own_words.without_quotations,
    "decisions.is_group_decision": decisions.is_group_decision,
    "wording.content_terms": wording.content_terms,
    "wording.repeats": lambda text: wording.repeats(text, text[1:]),
    "wording.paraphrases": lambda text: wording.paraphrases(text, text[1:], 0.99),
    "wording.contradicts": lambda text: wording.contradicts(text, "fact", text[1:], "fact"),
    "rules.is_worth_storing": rules_of,
    "rules.expiry_of": rules_of,
    "lines.quote": lines.quote,
    "lines.numbers_of_namesakes": lambda text: lines.numbers_of_namesakes([(text, ID), (text, None)]),
    "lines.structured_item": lambda text: lines.structured_item(replace(item(text), user_id=ID), {ID: " [1]"}),
    "lines.named_label": lambda text: lines.named_label(text, ID, {ID: " [1]"}),
    "lines.author_label": lambda text: lines.author_label(message(text), {}),
    "lines.numbers_in": lambda text: lines.numbers_in([item(text)]),
    "lines.message_line": lambda text: lines.message_line(message(text)),
    "lines.question_line": lambda text: lines.question_line(message(text), ()),
    "lines.is_own": lambda text: lines.is_own(AGENT, message(text)),
    "lines.view_line": lambda text: lines.view_line(AGENT, message(text)),
    "lines.related_line": lambda text: lines.related_line(AGENT, message(text)),
    "lines.minute_words": lambda _: lines.minute_words(MOMENTS[1]),
    "lines.period_words": lambda text: lines.period_words(replace(item(text), starts_at=MOMENTS[1])),
    "lines.recall_line": lambda text: lines.recall_line(item(text), [], f"in {names.in_quotes(text)}"),
    "lines.said_in": lambda text: lines.said_in(text, "episode") + lines.said_in(text, "fact"),
    "lines.apart": lambda text: lines.apart([text, text]),
    "lines.summary_line": lambda text: lines.summary_line(item(text)),
    "index.without_mentions": indexing.without_mentions,
    "index.embedding_text": indexing.embedding_text,
    "index.extracted_memories": lambda text: indexing.extracted_memories(message(text)),
    "index.episode_entries": lambda text: indexing.episode_entries(message(text)),
    "addressing.is_for_others": addressing.is_for_others,
    "addressing.find_addressed_agents": lambda text: addressing.find_addressed_agents(text, ()),
    "extractive.candidate_excerpts": lambda text: extractive.candidate_excerpts([SummaryInput("a", MOMENTS[2], text)]),
}

# What the patterns look for, and what is like it for `re.IGNORECASE` or at the ends of the calendar.
WORDS = (
    *("we decided to", "I prefer", "I usually", "please call her", "todo:", "my deadline is", "tea", "over", "coffee"),
    *("by", "until", "before", "in", "since", "the", "next", "end of", "last", "on", "of", "@nexus", "/nexus", "not"),
    *(
        "today",
        "ton\u0131ght",
        "tomorrow",
        "eod",
        "wee\u212a",
        "month",
        "year",
        "friday",
        "fr\u0131day",
        "Sunday",
        "\u017funday",
    ),
    *(
        "april",
        "Apr\u0131l",
        "augu\u017ft",
        "may",
        "December",
        "j\u00fcly",
        "31",
        "0",
        "29",
        "99",
        "\u0663",
        "\u00b2",
        "\u2460",
    ),
    *("0000", "0001", "9998", "9999", "2024", "0000-00-00", "0001-01-01", "9999-12-31", "9999-12-30", "2026-02-30"),
    *(
        "\u0664\u0665\u0666\u0667-01-01",
        "4111 1111 1111 1111",
        "sk-proj-abcdefghijklmnop",
        "```",
        "`",
        '"',
        "'",
        "\u2019",
        "> ",
    ),
    *(
        ".",
        "!",
        "?",
        ",",
        "\n",
        "\t",
        "\u00a0",
        "\u2028",
        "\u200b",
        "\u0301",
        "\ud800",
        "\x00",
        "\U000e0041",
        "\u0130",
        "\ufdfa",
        "\u0e33",
    ),
)
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
TEXTS = st.one_of(SENTENCES, st.text(max_size=40), st.tuples(SENTENCES, st.text(max_size=5)).map("".join))


@given(TEXTS)
@settings(max_examples=100, deadline=None)
@example("We decided to keep the old API running until 9999-12-31.")
@example("We decided to ship it by fr\u0131day.")
@example("We agreed to wait until augu\u017ft 5.")
@example("what did we decide in Apr\u0131l 9999?")
@example("9999-12-31 and 0001-01-01, 31 december 9999, in december 9999, 1 january 0001")
def test_no_function_over_text_fails(text: str) -> None:
    for name, function in FUNCTIONS.items():
        try:
            function(text)
        except Exception as error:
            raise AssertionError(f"{name} of {text!a}") from error


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_function_over_text_is_tried(module: ModuleType) -> None:
    public = [
        name
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    ]
    assert {f"{module.__name__.rpartition('.')[2]}.{name}" for name in public} <= FUNCTIONS.keys()


@pytest.mark.parametrize(
    ("text", "deadline"),
    [
        ("until 9999-12-30", "9999-12-31"),
        ("until 9999-12-31", None),
        ("by friday", "2026-05-16"),
        ("until august 5", "2026-08-06"),
        ("by May 0", "2026-06-01"),
        ("until april", "2027-05-01"),
        ("by the end of december", "2027-01-01"),
    ],
)
def test_a_deadline_ends_with_its_day(text: str, deadline: str | None) -> None:
    named = deadlines.named_deadline(text)
    assert named is not None
    end = deadlines.deadline_end(named, MOMENTS[2])
    assert (end and f"{end:%Y-%m-%d}") == deadline
