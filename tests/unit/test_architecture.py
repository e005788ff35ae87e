"""What the shape of the code promises: one judge of who may read what, one reader of the environment, one clock."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("composer", "bot", "jobs", "sql")
VISIBILITY = "composer/visibility.py"

# Types of composer.ports and composer.model that carry what someone said, wrote or is called.
WORDS = {
    "str",
    "Message",
    "Item",
    "Background",
    "EmbeddingInput",
    "Found",
    "Fact",
    "Landmark",
    "StoredMemory",
    "SupersededMemory",
    "ExtractedStatement",
    "StoredTurn",
    "StoredReply",
    "Conversation",
    "ConversationRow",
    "Project",
    "User",
    "AccessContext",
    "UnansweredCommand",
    "bytes",
}

# Methods of the ports that return words without a Readable, and why that gives nobody anything to read.
JUSTIFIED = {
    "Embedder.name": "of the model, not of a person",
    "Log.identities": "finds ids by the names that the door itself gave; no words come back",
    "Log.ensure_tenant": "finds ids by the names that the door itself gave, as above; no words come back",
    "Log.user": "the one who speaks, by the id that the platform vouches for",
    "Log.names": "names, and only of people whom the prompt may speak about already",
    "Log.lock": "for writing; rows are never shown",
    "Log.conversation": "where someone is; no words said there",
    "Log.access_context": "the facts that visibility judges by",
    "Log.message": "the message that a turn answers and its stored reply, both by id, for their own conversation",
    "Turns.open": "states of the worker's own turns",
    "Turns.get": "the worker's own turn, by id, for the conversation that it came from",
    "Turns.prompt_before": "to be compared with the next prompt; a number comes of it, and nobody is shown it",
    "Projects.find": "a project by the name that the asker gave, with their role in it",
    "Projects.all": "names of projects that the asker is in; all for an admin",
    "Projects.members": "names of a project's members; commands ask for the role first",
    "Projects.rooms": "names of rooms that the asker may know of; the statement takes the asker",
    "Summaries.said": "for the writer of summaries, which files every one in the very run that it was said in",
    "Ledger.last_done": "names of jobs",
    "Recall.to_index": "for the indexer, which files every message under its own marks",
    "Recall.to_embed": "for the embedder, which returns numbers",
    "Memories.held": "for the indexer, which holds new statements against those of their very scope; never shown",
    "Memories.near": "for the extractor: memories of the very run, visibility and owner of the talk that it reads",
    "Memories.claim": "for the extractor: messages, which it files under their own marks",
    "Reembedding.waiting": "what is to be embedded anew; the result is a vector",
    "Memories.backlog": "counts, and a sentence of ours about a failure",
    "TenantSettings.all": "settings, which nobody said",
    "Extractor.extract": "statements, which the indexer files under the marks of the messages that it gave",
    "Doors.delivered": "ids of messages on the platform",
    "Doors.open_notices": "ids of rooms, and of messages on the platform",
    "Doors.adopt_commands": "commands that were cut off, each answered to whoever gave it alone",
    "Images.fetch": "an image of a message that stands in the prompt already, judged there",
    "Doors.said_since": "ids of messages on the platform, held against what still stands there",
    "Erasing.closure": "kinds and ids",
    "Erasing.owned": "kinds and ids",
    "Erasing.erase": "counts by kind",
    "Erasing.replies": "answers that are to be withdrawn; never shown",
    "Erasing.changed": "what an answer was made from, to see whether it may still be told; never shown",
    "Erasing.texts": "what is being erased, to find answers that repeat it; never shown",
    "Erasing.matching": "kinds and ids of the asker's own, in runs that visibility names",
    "Store.tenants": "slugs of tenants, for the workers",
    "WorkingCache.read": "a cache of the log; the working layer checks every message against its Readable",
}


def modules(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    """Every module of these packages, by its path from the root."""
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def names(node: ast.AST) -> set[str]:
    """Every name and attribute that stands in a piece of code, also within quoted annotations."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.alias):
            found.add(part.name.rpartition(".")[2])
    return found


def called(tree: ast.Module) -> set[str]:
    """The names of all functions and classes that a module calls."""
    functions = (part.func for part in ast.walk(tree) if isinstance(part, ast.Call))
    return {f.id if isinstance(f, ast.Name) else f.attr for f in functions if isinstance(f, ast.Name | ast.Attribute)}


def test_only_visibility_makes_a_readable_or_touches_its_seal() -> None:
    judged = dict(modules(*PACKAGES))
    assert "Readable" in called(judged.pop(VISIBILITY))
    for path, tree in judged.items():
        assert "Readable" not in called(tree), path
        assert not {"_SEAL", "_readable"}.intersection(names(tree)), path


def test_nobody_goes_around_a_frozen_value() -> None:
    for path, tree in modules(*PACKAGES):
        assert not {"__setattr__", "__new__", "__setstate__", "__reduce__"}.intersection(names(tree)), path
        assert not {"pickle", "shelve", "marshal"}.intersection(names(tree)), path


def test_every_port_that_returns_words_takes_a_readable_or_is_listed_with_its_reason() -> None:
    unlisted, needless = [], set(JUSTIFIED)
    ports = [tree for path, tree in modules("composer") if path.startswith("composer/ports/")]
    assert len(ports) > 10
    for cls in [node for tree in ports for node in tree.body]:
        if not isinstance(cls, ast.ClassDef) or "Protocol" not in {b.id for b in cls.bases if isinstance(b, ast.Name)}:
            continue
        for method in cls.body:
            if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) or method.returns is None:
                continue
            name = f"{cls.name}.{method.name}"
            judged = any(a.annotation is not None and "Readable" in names(a.annotation) for a in method.args.args)
            if judged or not WORDS.intersection(names(method.returns)):
                continue
            needless.discard(name)
            if name not in JUSTIFIED:
                unlisted.append(name)
    assert not unlisted, f"these return words and take no Readable: {unlisted}"
    assert not needless, f"these need no reason any more: {needless}"


def test_the_layers_check_every_row_again() -> None:
    for path, tree in modules("composer/layers"):
        if path.endswith("__init__.py"):
            continue
        for function in ast.walk(tree):
            if isinstance(function, ast.AsyncFunctionDef) and function.name == "read":
                assert "admits" in names(function), f"{path} gives on what the store returned unchecked"


def test_only_settings_reads_the_environment() -> None:
    for path, tree in modules(*PACKAGES):
        if path != "composer/settings.py":
            assert not {"environ", "getenv", "environb"}.intersection(names(tree)), path


def test_the_core_has_the_time_and_randomness_given() -> None:
    for path, tree in modules("composer"):
        if path == "composer/app.py" or path.startswith("composer/stores/"):
            continue
        for call in (part.func for part in ast.walk(tree) if isinstance(part, ast.Call)):
            written = ast.unparse(call)
            assert written not in {"datetime.now", "datetime.utcnow", "time.time", "uuid.uuid4", "uuid.uuid1"}, path
            assert not written.startswith(("random.", "secrets.")), path


def test_a_module_is_never_named_like_a_package_it_could_use() -> None:
    known = set(sys.stdlib_module_names) | {
        "discord",
        "redis",
        "openai",
        "asyncpg",
        "slack_sdk",
        "mcp",
        "mem0",
        "tokenizers",
    }
    for path, _ in modules(*PACKAGES):
        assert Path(path).stem not in known - {"__init__", "__main__"}, path
