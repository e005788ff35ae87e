"""The texts of the pages: each is in the catalogue of every language, with the same names to fill in."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from babel.messages.pofile import read_po
from jinja2.ext import babel_extract

from bot.web import operating
from bot.web.oauth import consent, provider
from bot.web.pages import rendering, usage
from bot.web.routes import login, oauth, openid
from composer.layers import structured
from composer.operations import health
from composer.people import places, readers
from composer.prompt import borders
from composer.stores.models import offline_model
from composer.text import small_talk
from composer.turn import explanation
from tests.support.page_sentences import sentences, told_texts

PAGES: Final = Path(rendering.__file__).parent
LANGUAGES: Final = sorted((PAGES / "languages").glob("*.po"))
NAMES: Final = re.compile(r"%\((\w+)\)s")
# The functions of PlainPages, and where their text stands.
PLAIN: Final = {"page": 0, "text": 0, "button": 1, "link": 1, "field": 1, "choice": 2}


def _of_templates() -> Iterator[str | tuple[str, str]]:
    for path in sorted((PAGES / "templates").rglob("*.html")):
        with path.open("rb") as file:
            options = {"newstyle_gettext": "true", "trimmed": "true"}
            for _, function, message, _ in babel_extract(file, ("_", "gettext", "ngettext"), [], options):
                found = [message] if isinstance(message, str) else [each for each in message or () if each]
                if function == "ngettext" and len(found) == 2:
                    yield found[0], found[1]
                elif found:  # else it is one of KINDS, or a sentence of the table of readers
                    yield found[0]


def _of_readers() -> Iterator[str]:
    """The sentences of the table of readers: of each call of WhoReads, its texts."""
    tree = ast.parse(Path(readers.__file__).read_text(encoding="utf-8"))
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "WhoReads":
            for given in call.args[1:3]:
                yield from (
                    str(each.value) for each in ast.walk(given) if isinstance(each, ast.Constant) and each.value
                )


def _of_places() -> Iterator[str]:
    """What places are called, and who reads them: of each call of NamedPlace its first two texts, and what takes the
    place of the second."""
    tree = ast.parse(Path(places.__file__).read_text(encoding="utf-8"))
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "NamedPlace":
            for given in call.args[:2]:
                yield from (str(each.value) for each in ast.walk(given) if isinstance(each, ast.Constant))
    yield from (places.LEFT_ROOM, places.SESSION, *places.POOLED.values())


def _of_health() -> Iterator[str]:
    """The sentences of lines of health: the third argument of each HealthLine, by itself or as `sentence`."""
    for module in (health, operating):
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "HealthLine"
            told = node.args[2] if called and isinstance(node, ast.Call) else None
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                told = node.value if node.targets[0].id == "sentence" else None
            if isinstance(told, ast.Constant):
                yield str(told.value)


def _of_pairs() -> Iterator[tuple[str, str]]:
    """The sentences of lines of health that have a plural: those that are called `one` and `many`."""
    found: dict[str, list[str]] = {"one": [], "many": []}
    for node in ast.walk(ast.parse(Path(str(health.__file__)).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign):
            [target] = node.targets
            names, values = (getattr(each, "elts", [each]) for each in (target, node.value))
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and name.id in found:
                    found[name.id].append(ast.literal_eval(value))
    yield from zip(found["one"], found["many"], strict=True)


def _of_dates() -> Iterator[str]:
    yield from ("Today", "Yesterday")


def _of_plain_pages() -> Iterator[str]:
    """What pages of signing in say: the texts of each call of PlainPages, and constants that are their labels."""
    for module in (login, oauth, openid, consent, usage):
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PLAIN:
                for told in node.args[PLAIN[node.func.attr] :][:1]:
                    yield from filter(str.strip, told_texts(told))
    yield from (
        login.YES,
        login.BY_ACCOUNT.format(host="%(1)s"),
        *consent.IN_WORDS.values(),
        *consent.MISTAKES.values(),
        provider.NOT_REGISTERED,
    )
    yield from (text.format(host="%(1)s", name="%(1)s") for text in (consent.LOCAL, consent.LOOKS_LIKE, consent.LEADS))


def _of_origins() -> Iterator[str]:
    """Where sources of answers came from."""
    tree = ast.parse(Path(borders.__file__).read_text(encoding="utf-8"))
    [named] = (
        each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == borders.came_from.__name__
    )
    for node in ast.walk(named):
        if isinstance(node, ast.Return) and node.value is not None:
            for text in filter(None, told_texts(node.value)):
                yield rendering._TO_ITS_READER.get(text, text)
    yield from ("from another conversation of project %(1)s", explanation.UPLOADED.format(who="%(1)s"))


def _of_quotes() -> Iterator[str]:
    """What stands in brackets about facts and decisions that answers quote."""
    tree = ast.parse(Path(structured.__file__).read_text(encoding="utf-8"))
    [named] = (
        each
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and each.name == structured.fact_subject.__name__
    )
    for node in ast.walk(named):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
            called = node.value
            assert isinstance(called.func, ast.Attribute)
            for text in (*getattr(called.func.value, "values", ()), called.args[1]):
                yield ast.literal_eval(text)
        elif isinstance(node, ast.Return) and node.value is not None:
            yield from told_texts(node.value)
    yield from ("proposed", *(f"conflicts with another value, {each} is newer" for each in ("this", "that")))


def _of_answers() -> Iterator[str]:
    """What an agent without a model answers, besides what it quotes."""
    yield from (offline_model.QUOTING, offline_model.NOTHING_REMEMBERED, offline_model.HELLO.format(name="%(1)s"))
    yield from (
        offline_model.NO_QUESTION,
        offline_model.NOBODY_ELSE,
        offline_model.REMINDERS,
        offline_model.MORE.format(count="%(1)s"),
    )
    yield from sorted(small_talk.SMALL_TALK_ANSWERS.values())


def texts() -> list[str | tuple[str, str]]:
    """All texts of the pages, those with a plural in pairs."""
    return list(
        dict.fromkeys(
            (
                *_of_templates(),
                *_of_readers(),
                *_of_places(),
                *_of_health(),
                *_of_pairs(),
                *_of_dates(),
                *rendering.KINDS,
                *_of_plain_pages(),
                *_of_answers(),
                *_of_origins(),
                *_of_quotes(),
                *sentences(),
            )
        )
    )


# Numbers that are never one: they are settings of ours.
_NEVER_ONE: Final = (
    *("for %(days)s days", "latest %(count)s things", "newest is %(days)s days", "%(days)s days ago"),
    *("latest %(count)s memories", "%(count)s memories that were looked through"),
)


def test_a_number_before_what_it_counts_has_a_plural() -> None:
    counted = re.compile(r"%\((?:count|num|number|days|rows|tokens|waiting|parked)\)s [a-z]+s\b")
    alone = [each for each in texts() if isinstance(each, str) and counted.search(each)]
    assert [each for each in alone if not any(never in each for never in _NEVER_ONE)] == []


def test_german_has_one_word_for_one_thing() -> None:
    """Entscheidung and Direktnachricht: neither Beschluss nor DM."""
    with (PAGES / "languages" / "de.po").open("rb") as file:
        told = [each for message in read_po(file, "de") if message.id for each in _texts(message.string)]
    assert [each for each in told if re.search(r"[Bb]eschl[uüo]|\bDMs?\b", each)] == []


def test_there_are_texts_and_german() -> None:
    assert len(texts()) > 60
    assert "de" in [path.stem for path in LANGUAGES]


@pytest.mark.parametrize("path", LANGUAGES, ids=lambda path: path.stem)
def test_a_language_has_every_text_and_no_other(path: Path) -> None:
    with path.open("rb") as file:
        catalogue = read_po(file, path.stem)
    known = {_texts(message.id): _texts(message.string) for message in catalogue if message.id}
    assert set(known) == {_texts(each) for each in texts()}
    for source, translated in known.items():
        assert all(translated), f"{source} is not translated"
        names = {name for each in source for name in NAMES.findall(each)} - {"num"}
        for each in translated:
            assert set(NAMES.findall(each)) - {"num"} == names, source


def _texts(text: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text or ())


def test_what_the_core_says_is_told_in_german() -> None:
    [german] = [each for each in rendering.languages() if each.code == "de"]
    assert len(sentences()) > 150
    for sentence, told in (
        ("There is no such entry.", "Diesen Eintrag gibt es nicht."),
        ("A name has at most 60 characters.", "Ein Name hat höchstens 60 Zeichen."),
        ("You may read apollo but not add to it; ask one of its admins for the role write.", "Du darfst apollo lesen"),
        ("1 of 2 are done. There is no such team.", "1 von 2 sind erledigt. Dieses Team gibt es nicht."),
        ("Only an admin of 5% may rename it: ask one.", "Nur ein Admin von 5% darf es umbenennen"),
        ("Something of an extension.", "Something of an extension."),
    ):
        assert german.told(sentence).startswith(told)
    assert german.told("") == ""


def test_where_a_source_came_from_is_told_to_its_reader_in_their_language() -> None:
    english, german = (next(each for each in rendering.languages() if each.code == code) for code in ("en", "de"))
    told = rendering._environment().from_string("{{ said | origin_told }}")
    said = 'from "#general" of project launch, from a file that root uploaded'
    in_german = "aus &#34;#general&#34; des Projekts launch, aus einer Datei, die root hochgeladen hat"
    assert told.render(said=said, language=german) == in_german
    assert told.render(said="from the asker's own entries", language=english) == "from your own entries"
