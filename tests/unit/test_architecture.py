"""Rules about the source code: one module decides who may read what, one reads the environment, one owns the clock."""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bot.console.cli.commands import LazyCommands
from bot.console.cli.contents import CONTENTS

ROOT = Path(__file__).parents[2]
PACKAGES = ("composer", "bot", "jobs", "sql")
VISIBILITY = "composer/visibility.py"

# Types that contain what people wrote, or their names.
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
    "SimilarMemory",
    "StoredSummary",
    "SupersededMemory",
    "ExtractedStatement",
    "StoredTurn",
    "StoredReply",
    "OwnText",
    "Conversation",
    "ConversationRow",
    "Project",
    "ProjectMember",
    "User",
    "AccessContext",
    "AnswerGround",
    "UnansweredCommand",
    "bytes",
}

# Methods of ports and repositories that return text without a Readable, and why each of them leaks nothing.
JUSTIFIED = {
    "Audit.counts": "words that we chose, and counts",
    "Audit.rooms": "names of rooms that the admin may enter now, by may_enter_room of visibility",
    "AuditKeys.current_id": "the id of a key",
    "AuditKeys.sign": "a signature",
    "AuditKeys.derive": "a secret that no row holds",
    "Requests.take_over": "interrupted commands, each answered only to the person who gave it",
    "Conversations.access_context": "the facts that visibility decides by",
    "Conversations.access_and_names": "the same, and whether a word is of a name",
    "Conversations.ensure": "for writing, as Conversations.lock; rows are never shown",
    "Conversations.get": "a conversation's place; no message of it",
    "Conversations.private_rooms": "ids of rooms on the platform, which somebody leaves",
    "Conversations.workspace_of": "a conversation's platform and workspace, to file another one there",
    "Conversations.lock": "for writing; rows are never shown",
    "SpeechModel.name": "the name of a model",
    "Database.tenants": "slugs of tenants, for the workers",
    "Deliveries.posted": "ids of messages on the platform",
    "Embedder.name": "the name of a model",
    "Erasure.changed_sources": "sources of an answer, to decide whether it may still be sent; never shown",
    "Erasure.derived_items": "kinds and ids",
    "Erasure.erase": "counts by kind",
    "Erasure.find_replies": "answers to retract; never shown",
    "Erasure.find_unerased": "ids of rooms that their platform deleted, to erase what is left in them",
    "Erasure.own_texts": "the asker's own, to compare them with words, and to show the asker what would be erased",
    "Erasure.select": "kinds and ids",
    "Erasure.sources_of": "ids",
    "Erasure.summaries_shown": "summaries in prompts, to find answers that repeat them; never shown",
    "LearningScope.key": "ids, a namespace and the name of a tool",
    "ExtractionQueue.messages": "for the extractor, whose results are filed with the messages' own access tags",
    "Extractor.extract": "statements, which the indexer files with the access tags of their messages",
    "FileSource.fetch": "a file of a message that is in the prompt, or stored, already",
    "TableStatistics.rows_written": "names of tables",
    "TableStatistics.refresh": "names of tables",
    "Landmarks.find_settled": "decisions that a person settled, so that they are not proposed again; never shown",
    "TenantFigures.counts": "counts, by names of ours",
    "OperationTotals.note_requests": "digests of requests",
    "Memories.find_moved": "memories of an edited message, to decide which stay; never shown",
    "Memories.find_comparable": "for the indexer, which compares statements of the same scope; never shown",
    "Memories.find_nearest": "for the extractor: memories of the scope that it reads",
    "Memories.find_similar": "for the indexer, which merges memories of the same scope; never shown",
    "Messages.on_platform": "ids of messages on the platform, compared with those still there",
    "Messages.get": "a turn's own question or reply, by id",
    "Notices.pending": "ids of rooms, and of messages on the platform",
    "People.every_name": "compared with the name that somebody chooses; never shown",
    "People.admins": "the admins of an organisation, of whom whoever runs Nexus signs the first one in",
    "People.stored_names": "names of people who are being erased",
    "People.ensure_tenant": "user ids by the adapter's external ids, and conversations for writing; never shown",
    "People.find_user": "the speaker, by the id that the platform vouches for",
    "People.find_user_ids": "user ids by the external ids that the adapter gave",
    "People.chat_accounts": "the accounts of a person, whose platforms are asked where they are",
    "People.holders": "ids of people on the platform, which is asked whether they are still there",
    "OwnData.items": "what one person owns, by an Owned, which visibility makes; every row is checked by it",
    "OwnData.namespaces": "where the items of one person are filed, by an Owned; names of namespaces are ids",
    "People.known_in": "ids of people on the platform, which is asked for their roles",
    "People.home": "the platform and workspace of a user, to file their DM there",
    "People.workspaces": "names of workspaces, to find their tenants",
    "People.names": "names of people whom the prompt may mention already",
    "Projects.find_member": "who is named among the members of a project that the asker is in",
    "Projects.find_for": "projects that the asker is a member of; all for an admin",
    "Projects.members": "names of a project's members; commands check the role first",
    "Recall.unembedded_items": "for the embedder, which returns numbers",
    "Recall.unindexed_messages": "for the indexer, which files every message with its own access tag",
    "Reembedding.pending": "texts to embed; the result is a vector",
    "Order.by": "words of ours",
    "Order.parameters": "words of ours",
    "SettingOverrides.all": "settings, which hold nothing that people wrote",
    "UnreadFiles.unowned": "ids of messages with the names of their adapters; nothing that was written",
    "Summaries.messages_in": "for the writer of summaries, which files each one in the namespace of its messages",
    "Summaries.overlapping": "for the writer of summaries, which replaces them",
    "Turns.get": "the worker's own turn, by id, for its own conversation",
    "Turns.lock_for_answer": "sources of an answer, compared with its prompt, and the prompt before; never shown",
    "WorkingCache.read": "a cache of messages; the working layer checks each against its Readable",
}


def modules(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    """Return the syntax tree of every module of these packages, by its path from the root."""
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def names(node: ast.AST) -> set[str]:
    """Return every name and attribute used in a piece of code, quoted annotations included."""
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
    """Return the names of all functions and classes that a module calls."""
    functions = (part.func for part in ast.walk(tree) if isinstance(part, ast.Call))
    return {f.id if isinstance(f, ast.Name) else f.attr for f in functions if isinstance(f, ast.Name | ast.Attribute)}


def test_only_visibility_creates_a_readable_or_uses_its_seal() -> None:
    judged = dict(modules(*PACKAGES))
    assert "Readable" in called(judged.pop(VISIBILITY))
    for path, tree in judged.items():
        assert "Readable" not in called(tree), path
        assert not {"_SEAL", "_readable"}.intersection(names(tree)), path


def test_no_module_modifies_a_frozen_value() -> None:
    for path, tree in modules(*PACKAGES):
        modifying = {"__setattr__", "__new__", "__setstate__", "__reduce__"}
        if path == "composer/settings/server_urls.py":
            modifying.remove("__new__")  # a string is made there
        assert not modifying.intersection(names(tree)), path
        assert not {"pickle", "shelve", "marshal"}.intersection(names(tree)), path


def test_every_read_that_returns_text_takes_a_readable_or_is_listed_with_its_reason() -> None:
    unlisted, needless = [], set(JUSTIFIED)
    trees = [tree for path, tree in modules("composer/ports", "composer/repositories")]
    assert len(trees) > 20
    for cls in [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]:
        if cls.decorator_list:
            continue  # a dataclass
        for method in cls.body:
            if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) or method.returns is None:
                continue
            name = f"{cls.name}.{method.name}"
            judged = any(a.annotation is not None and "Readable" in names(a.annotation) for a in method.args.args)
            if method.name.startswith("_") or judged or not WORDS.intersection(names(method.returns)):
                continue
            needless.discard(name)
            if name not in JUSTIFIED:
                unlisted.append(name)
    assert not unlisted, f"these methods return text and take no Readable: {unlisted}"
    assert not needless, f"these methods need no reason any more: {needless}"


def test_the_layers_check_every_row_that_the_store_returns() -> None:
    for path, tree in modules("composer/layers"):
        if path.endswith("__init__.py"):
            continue
        checking = {f.name for f in ast.walk(tree) if isinstance(f, ast.AsyncFunctionDef) and "admits" in names(f)}
        for function in ast.walk(tree):
            if isinstance(function, ast.AsyncFunctionDef) and function.name == "read":
                reads = checking & {"read", *names(function)}
                assert reads, f"{path} returns rows of the store unchecked"


def test_only_settings_reads_the_environment() -> None:
    """The entry point sets what numpy reads, before anything is loaded."""
    for path, tree in modules(*PACKAGES):
        if path not in ("composer/settings/loading.py", "composer/settings/libraries.py", "bot/console/main.py"):
            assert not {"environ", "getenv", "environb"}.intersection(names(tree)), path


def test_the_core_is_passed_its_clock_and_randomness() -> None:
    for path, tree in modules("composer"):
        if path.startswith(("composer/app/", "composer/stores/")):
            continue
        for call in (part.func for part in ast.walk(tree) if isinstance(part, ast.Call)):
            written = ast.unparse(call)
            assert written not in {"datetime.now", "datetime.utcnow", "time.time", "uuid.uuid4", "uuid.uuid1"}, path
            assert not written.startswith(("random.", "secrets.")), path


def test_no_module_is_named_like_a_package_that_it_could_import() -> None:
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


def test_help_shows_of_each_command_what_its_own_help_says_first() -> None:
    for name, command in LazyCommands().items():
        assert CONTENTS[name].summary == inspect.cleandoc(command.help).split("\n\n")[0], name
