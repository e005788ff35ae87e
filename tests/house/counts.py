"""What is counted, and how. Nothing is timed, and nothing is run but a parser."""

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Final

from tests.house.source import PRODUCT, Checkout, Module

# The forms that a message of Slack has until it is a row. A name in several modules is written with its module.
FORMS: Final = (
    "the event, as Slack sends it",
    "bot.slack.reading.SlackMessage",
    "bot.platform.events.MessageReceived",
    "composer.model.Incoming",
    "composer.ingest.receive._NewMessage",
    "composer.model.Message",
    "the row",
)
# The forms that an answer has, from the words of the model to the row and the post.
ANSWER_FORMS: Final = (
    "composer.turn.answers.DraftAnswer",
    "composer.repositories.turns.Answer",
    "composer.turn.delivery.OutgoingAnswer",
    "composer.repositories.turns.Delivered",
    "the row",
)
# What such a message is given to on its way: from the request with Slack's event to the statement that stores it.
STEPS: Final = (
    "bot.web.routes.slack.receive",
    "bot.slack.signed_http.SlackHttp.receive",
    "bot.slack.requests.check_shape",
    "bot.slack.adapter.SlackAdapter._refuse_foreign",
    "bot.slack.adapter.SlackAdapter._on_event",
    "bot.slack.adapter.SlackAdapter._store_event",
    "bot.slack.channels.SlackChannels.named",
    "bot.slack.reading.read_event",
    "bot.slack.reading.read_message",
    "bot.slack.words.own_words",
    "bot.slack.words.other_words",
    "bot.slack.reading.attachment_of",
    "bot.slack.adapter.SlackAdapter._apply",
    "bot.slack.adapter.SlackAdapter._receive_message",
    "bot.slack.inbox.SlackInbox.receive_message",
    "bot.slack.inbox.SlackInbox._incoming",
    "bot.slack.inbox.SlackInbox.resolve",
    "bot.slack.inbox.SlackInbox._words",
    "bot.slack.inbox.SlackInbox.plain_text",
    "bot.slack.inbox.SlackInbox.place",
    "bot.slack.inbox.SlackInbox._files",
    "bot.platform.inbox.PlatformInbox._with_change",
    "bot.slack.inbox.SlackInbox._store_together",
    "bot.slack.inbox.SlackInbox._store_waiting",
    "bot.platform.inbox.PlatformInbox.receive",
    "bot.platform.inbox.PlatformInbox._receive_once",
    "composer.app.app.App.receive",
    "composer.ingest.receive.receive",
    "composer.ingest.validation.validate_message",
    "composer.ingest.resolution.resolve_users",
    "composer.ingest.resolution._as_known",
    "composer.ingest.receive._store",
    "composer.ingest.receive._split_at_privacy_changes",
    "composer.ingest.resolution.resolve_conversations",
    "composer.ingest.receive._find_new",
    "composer.ingest.receive._apply_recording",
    "composer.ingest.resolution.ensure_members",
    "composer.ingest.receive._number",
    "composer.ingest.receive._message",
    "composer.ingest.receive._follow_ups",
    "composer.repositories.messages.Messages.append",
)
# Where somebody who adds a route to the API has to name it: a file, and a text that it has while that is so.
ROUTE_PLACES: Final = {
    "its handler": ("bot/web/routes/teams.py", r'"/v1/teams'),
    "the app that includes it": ("bot/web/app.py", r"teams\.router"),
    "its shapes": ("bot/web/shapes/teams.py", r"class "),
    "what it counts as": ("bot/web/metering.py", r'"/v1/teams/'),
    "the client": ("nexus_client/aio.py", r'"/v1/teams'),
    "the client, synchronous": ("nexus_client/sync.py", r'"/v1/teams'),
    "who may use it (a test)": ("tests/integration/test_route_rights.py", r'\("GET", "/v1/teams"\)'),
    "its page": ("docs/api.md", r"/v1/teams"),
}
MOVED: Final = {"nexus_client/": "clients/python/nexus_client/"}
_LOCK: Final = re.compile(r"pg_(?:try_)?advisory_(xact_)?lock(?:_shared)?\(")


def definitions(checkout: Checkout) -> dict[str, ast.AST]:
    """Functions and classes of the product by their full names."""
    found: dict[str, ast.AST] = {}

    def look(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[f"{prefix}.{node.name}"] = node
                if isinstance(node, ast.ClassDef):
                    look(node.body, f"{prefix}.{node.name}")

    for module in checkout.modules:
        look(module.tree.body, module.name)
    return found


def several_meanings(checkout: Checkout) -> dict[str, list[str]]:
    """Names of classes that two or more modules define, with these modules. The client is a distribution of its own:
    its users never see the server's."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in checkout.modules:
        if module.name.startswith("clients."):
            continue
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module.name)
    return {name: modules for name, modules in sorted(found.items()) if len(modules) > 1}


def several_values(checkout: Checkout) -> dict[str, list[str]]:
    """Constants that two or more modules define with different values, with these values."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in checkout.modules:
        for node in module.tree.body:
            for name, value in _constants(node):
                found[name].add(value)
    return {name: sorted(values) for name, values in sorted(found.items()) if len(values) > 1}


def _constants(node: ast.stmt) -> list[tuple[str, str]]:
    if isinstance(node, ast.Assign):
        return [(t.id, ast.unparse(node.value)) for t in node.targets if isinstance(t, ast.Name) and t.id.isupper()]
    if (
        isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.value
        and node.target.id.isupper()
    ):
        return [(node.target.id, ast.unparse(node.value))]
    return []


def locks(checkout: Checkout) -> tuple[set[str], set[str]]:
    """The families of advisory locks: those that a transaction holds, by the text that its key is made of, and those
    that a session holds, by their files."""
    of_transactions, of_sessions = set[str](), set[str]()
    made = [checkout.root / "sql/schema.sql", *checkout.files("sql", "sql/migrations")]
    for path in (*checkout.files("sql", "sql/queries"), *checkout.files("py", *PRODUCT), *made):
        text = path.read_text(encoding="utf-8")
        for match in _LOCK.finditer(text):
            key = _arguments(text[match.end() :])
            literal = re.search(r"'([^']+)'", key)
            name = literal[1].strip(" :") if literal else " ".join(key.split())
            if match[1]:
                of_transactions.add(name)
            else:
                of_sessions.add(f"{path.name} {name}")
    return of_transactions, of_sessions


def _arguments(text: str) -> str:
    """What stands before the bracket that closes a call."""
    depth = 1
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[:i]
    return text


def rooms(checkout: Checkout) -> dict[str, set[str]]:
    """The rooms of composer/ (its packages, and the modules directly below it), with those that each imports."""
    found: dict[str, set[str]] = {}
    for module in checkout.modules:
        parts = module.name.split(".")
        if parts[0] != "composer" or parts[1] == "__init__":
            continue
        imported = {target.split(".")[1] for target in _imports(module) if target.startswith("composer.")}
        found.setdefault(parts[1], set()).update(imported - {parts[1]})
    return {name: imported & found.keys() for name, imported in found.items()}


def _imports(module: Module) -> list[str]:
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found += [f"{node.module}.{name.name}" for name in node.names]
    return found


def floors(graph: Mapping[str, set[str]]) -> int:
    """On how many floors the rooms stand: the longest chain of rooms of which each imports the next one."""

    @cache
    def height(room: str) -> int:
        return 1 + max((height(below) for below in graph[room]), default=0)

    return max(map(height, graph))


def route_places(checkout: Checkout) -> list[str]:
    """The places of ROUTE_PLACES that name a route."""
    return [
        place
        for place, (file, pattern) in ROUTE_PLACES.items()
        if any(re.search(pattern, checkout.text(name)) for name in _also_as(file))
    ]


def _also_as(file: str) -> list[str]:
    return [file, *(new + file.removeprefix(old) for old, new in MOVED.items() if file.startswith(old))]


def count(checkout: Checkout) -> dict[str, int]:
    """All counts by their names."""
    known, graph = definitions(checkout), rooms(checkout)
    of_transactions, of_sessions = locks(checkout)
    return {
        "glossary rows": len(list(checkout.glossary())),
        "tables": len(checkout.tables()),
        "named queries": len(checkout.queries()),
        "advisory lock families": len(of_transactions),
        "advisory locks of sessions": len(of_sessions),
        "steps of a Slack event until it is a row": sum(name in known for name in STEPS),
        "forms of a Slack event until it is a row": sum(name in known or " " in name for name in FORMS),
        "forms of an answer until it is a row": sum(name in known or " " in name for name in ANSWER_FORMS),
        "class names with several meanings": len(several_meanings(checkout)),
        "constants with several values": len(several_values(checkout)),
        "composer/: rooms": len(graph),
        "composer/: floors": floors(graph),
        "composer/: imports between rooms": sum(map(len, graph.values())),
        "places where a route is declared": len(route_places(checkout)),
        "lines: product": checkout.lines("py", *PRODUCT) + checkout.lines("sql", *PRODUCT),
        "lines: tests": checkout.lines("py", "tests"),
        "lines: CHANGELOG": checkout.text("CHANGELOG.md").count("\n"),
    }


def sizes(checkout: Checkout) -> dict[str, int]:
    """Lines of Python and SQL by package, one level below composer/ and bot/."""
    found: dict[str, int] = defaultdict(int)
    for path in (*checkout.files("py", *PRODUCT), *checkout.files("sql", *PRODUCT)):
        parts = path.relative_to(checkout.root).parts
        deep = parts[0] in ("composer", "bot", "sql") and len(parts) > 2
        name = "/".join(parts[:2] if deep else parts[:1])
        found["clients" if name == "nexus_client" else name] += path.read_bytes().count(b"\n")
    return dict(sorted(found.items()))
