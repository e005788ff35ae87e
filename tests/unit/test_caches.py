"""Every cache of what people wrote knows whose it is, and erasing empties it (composer/text/caches.py). A cache
anywhere else is found here and has to be reviewed: it holds no words of people, or only in their own place."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from composer.text.caches import OwnedCache, empty_caches

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("composer", "bot", "jobs", "sql")
KEEPERS: Final = frozenset(
    {
        "cache",
        "lru_cache",
        "alru_cache",
        "cached",
        "cachedmethod",
        "Cache",
        "FIFOCache",
        "LFUCache",
        "LRUCache",
        "RRCache",
        "TTLCache",
        "TLRUCache",
        "WeakKeyDictionary",
        "WeakValueDictionary",
    }
)
MADE: Final = frozenset(name for name in KEEPERS if name[0].isupper())
CONTAINERS: Final = frozenset(["dict", "set", "list", "defaultdict", "deque", "OrderedDict", "Counter"])
FILLING: Final = frozenset(["add", "append", "appendleft", "extend", "insert", "setdefault", "update"])
PATTERNS: Final = frozenset(["compile", "sub", "subn", "search", "match", "fullmatch", "split", "findall", "finditer"])

# Constants of the program and of its libraries: worked out from no word of anybody.
CONSTANTS: Final = frozenset(
    {
        "bot/web/pages/assets.py:assets",  # files of the program
        "bot/web/pages/rendering.py:_environment",
        "bot/web/pages/rendering.py:_languages",
        "composer/prompt/counting.py:tokens_of_settings",  # our rules, and personas of the settings
        "composer/stores/database/typed_rows.py:_columns",  # the fields of dataclasses
        "composer/stores/embedded/service_account.py:binaries",
        "composer/stores/models/tokens.py:_tables",  # the tables, whose own caches erasing empties
        "composer/text/dates/tongues.py:_saying",
        "composer/text/dates/tongues.py:_small",
        "composer/text/dates/tongues.py:_steps",
        "composer/text/dates/tongues.py:_vocabulary",
        "composer/text/examples.py:examples",
        "composer/text/instructions/__init__.py:template",
        "composer/text/languages.py:_languages_of_words",  # words of languages, from a file of the program
        "composer/text/languages.py:function_words",
        "composer/text/masking.py:_rules",
        "composer/text/names.py:_ascii_letter",  # single characters
        "composer/text/names.py:_confusable_with_ascii",
        "composer/text/names.py:_reserved_looks",  # the names of the settings' agents
        "composer/text/forgetting.py:_around",
        "composer/text/forgetting.py:_lengths",
        "composer/text/forgetting.py:_verbs",
        "composer/text/plain_questions.py:_frame",
        "composer/text/small_talk.py:_examples",
        "composer/text/rarity.py:_common_words",
        "composer/text/zones.py:_cities",
        "composer/text/zones.py:_names",
        "composer/text/zones.py:_zones",
        "sql/loader.py:migrations",
        "sql/loader.py:queries",
        "sql/loader.py:upgrade",
    }
)
# Ids, counts and states of one adapter, and what is public.
WITHOUT_WORDS: Final = {
    "bot/commands/confirmations.py:Confirmations": "what waits for a yes: found by its random id, by its person, there",
    "bot/discord/events.py:DiscordEvents": "ids of users, by DM",
    "bot/platform/inbox.py:PlatformInbox": "edits that came before their message, until it is stored; counts",
    "bot/slack/channels.py:SlackChannels": "ids of channels",
    "bot/slack/commands.py:SlackCommands": "ids of messages",
    "bot/slack/directory.py:CachedLookup": "names as Slack gives them, by id, for minutes",
    "bot/slack/outbox.py:SlackOutbox": "ids of what was posted",
    "bot/web/gateway/gateway.py:Gateway": "which role a model refused, by server and model",
    "bot/web/gateway/models.py:ModelLists": "names of models, as an upstream lists them",
    "bot/web/limits.py:FairUse": "counts, by who asks",
    "bot/web/oauth/documents.py:ClientDocuments": "what apps publish of themselves, at their public address",
    "composer/text/caches.py:OwnedCache": "the caches with owners",
    "composer/stores/embedded/servers.py:EmbeddedServers.in_use": "the servers of this process",
    "composer/ingest/file_texts.py:FileTexts": "tasks, by message",
    "composer/repositories/recall.py:episode_id_of": "ids, by ids that nobody else knows",
    "composer/turn/memberships.py:Memberships": "ids of rooms, by organisation and account",
}
# Patterns that are no constants: `re` keeps the last 512 of them. None is made from people's words.
PATTERNS_MADE: Final = frozenset(
    {
        "bot/console/hardening.py:__init__",  # the installation's secrets
        "bot/slack/adapter.py:_make_bolt",  # prefixes of ours
        "composer/text/answer_text.py:_judge_code",  # marks of code
        "composer/text/masking.py:_rules",  # those of a library
        "composer/text/dates/tongues.py:_saying",  # words of languages
        "composer/text/dates/tongues.py:steps",
    }
)


def _named(node: ast.expr) -> str:
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _makes(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether something that is called, or is the base of a class, has one of these names."""
    match node:
        case ast.Call():
            return _named(node) in names
        case ast.ClassDef():
            return any(_named(base) in names for base in node.bases)
    return False


def _is_container(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Dict | ast.Set | ast.List | ast.DictComp | ast.SetComp | ast.ListComp) or (
        value is not None and _makes(value, CONTAINERS)
    )


def _containers(body: list[ast.stmt]) -> set[str]:
    """The names that a module or a class gives to things that can be filled later."""
    found = set()
    for node in body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                if _is_container(value):
                    found.add(name)
    return found


def _filled(tree: ast.AST) -> set[str]:
    """The names of what is filled inside functions."""
    found = set()
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in (each for function in functions for each in ast.walk(function)):
        match node:
            case ast.Call(func=ast.Attribute(value=kept, attr=attr)) if attr in FILLING:
                found.add(_named(kept))
            case ast.Assign(targets=targets):
                found |= {_named(each) for each in targets if isinstance(each, ast.Subscript)}
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                found |= {_named(target)} if isinstance(target, ast.Subscript) else set()
    return found


def caches_in(source: str) -> Iterator[str]:
    """The functions, classes and names of a module that keep what they are given, as far as their form shows it."""
    tree = ast.parse(source)
    filled = _filled(tree)
    yield from _containers(tree.body) & filled
    decorators = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            decorators |= {id(inner) for decorator in each.decorator_list for inner in ast.walk(decorator)}
            if any(_named(decorator) in KEEPERS for decorator in each.decorator_list) or _makes(each, KEEPERS):
                yield each.name
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            yield from (f"{statement.name}.{name}" for name in _containers(statement.body) & filled)
        if any(_makes(each, MADE) and id(each) not in decorators for each in ast.walk(statement)):
            yield _name_of(statement)


def _name_of(statement: ast.stmt) -> str:
    """What a statement of a module defines."""
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return f"line {statement.lineno}"


def patterns_made_in(source: str) -> Iterator[str]:
    """The functions that give `re` a pattern which is no constant."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attr), args=[pattern, *_]):
                        if attr in PATTERNS and not isinstance(pattern, ast.Constant):
                            yield function.name


def _sources() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            yield file.relative_to(ROOT).as_posix(), file.read_text("utf-8")


def test_every_cache_has_an_owner_or_was_reviewed() -> None:
    found = {f"{path}:{name}" for path, source in _sources() for name in caches_in(source)}
    assert found == CONSTANTS | WITHOUT_WORDS.keys()


def test_no_pattern_is_made_from_peoples_words() -> None:
    found = {f"{path}:{name}" for path, source in _sources() for name in patterns_made_in(source)}
    assert found == PATTERNS_MADE


@pytest.mark.parametrize(
    "source",
    [
        "@cache\ndef found(text): ...",
        "@functools.lru_cache(maxsize=9)\ndef found(text): ...",
        "class found:\n  def __init__(self):\n    self._kept: X = LRUCache(9)",
        "class found(TTLCache): ...",
        "found: dict[str, int] = {}\ndef keep(text):\n  found[text] = 1",
        "found = defaultdict(list)\ndef keep(text):\n  found[text].append(1)",
        "found = set()\ndef keep(text):\n  found.add(text)",
        "found: Final = WeakValueDictionary()",
    ],
)
def test_a_cache_is_found_in_every_form(source: str) -> None:
    assert set(caches_in(source)) == {"found"}


def test_a_pattern_that_is_made_in_a_function_is_found() -> None:
    assert list(patterns_made_in("def found(name):\n  return re.sub(rf'@{name}', '', text)")) == ["found"]
    assert list(patterns_made_in("def fixed(name):\n  return re.sub('@x', '', text)")) == []


def test_what_one_owner_keeps_another_does_not_find() -> None:
    kept = OwnedCache[int](4)
    kept.put("room:1", 1, "the same words")
    assert kept.get("room:1", "the same words") == 1
    assert kept.get("room:2", "the same words") is None
    kept.drop("room:2", "the same words")
    assert len(kept) == 1


def test_erasing_empties_every_cache_and_none_is_kept_alive() -> None:
    one, other = OwnedCache[int](4), OwnedCache[str](4)
    one.put("a", 1)
    other.put("b", "x")
    empty_caches()
    assert (len(one), len(other)) == (0, 0)


def test_a_cache_is_bounded() -> None:
    kept = OwnedCache[int](4)
    for n in range(9):
        kept.put("a", n, n)
    assert len(kept) == 4
    assert kept.get("a", 8) == 8
