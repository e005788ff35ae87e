"""The sentences that the core writes for who did something wrong, as pages translate them: what is filled in stands in
them as %(1)s, %(2)s."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from composer import errors

ROOT: Final = Path(__file__).parents[2]
ERRORS: Final = {name for name, value in vars(errors).items() if isinstance(value, type)} | {"RequestRefused"}
# Where what pages call writes such sentences. Others are of commands.
MODULES: Final = (
    *("bot/web/pages/*.py", "bot/web/problems.py", "bot/web/routes/login.py", "bot/web/sessions.py"),
    *("bot/web/operating.py", "bot/importers/uploads.py", "bot/importers/slack_export.py"),
    *("composer/entries/bulk.py", "composer/entries/draft.py", "composer/entries/entries.py"),
    *("composer/entries/import_plan.py", "composer/entries/imports.py", "composer/entries/keys.py"),
    *("composer/entries/teams.py", "composer/entries/tools.py", "composer/layers/*_settings.py"),
    *("composer/operations/changing_settings.py", "composer/operations/billing.py"),
    *("composer/stores/billing/stripe.py", "bot/web/routes/billing.py"),
    *(
        "composer/memory/remember.py",
        "composer/memory/review.py",
        "composer/people/*.py",
        "composer/people/projects/*.py",
    ),
    *("composer/people/sessions/*.py", "composer/people/credentials/invitations.py"),
    *("composer/people/credentials/issuing.py", "composer/people/credentials/own_credentials.py"),
    *(
        "composer/people/credentials/principal.py",
        "composer/people/credentials/sign_in.py",
        "composer/people/credentials/openid.py",
        "bot/web/routes/oauth.py",
        "bot/web/routes/openid.py",
        "bot/web/oauth/clients.py",
        "bot/web/oauth/consent.py",
        "composer/stores/database/postgres.py",
        "composer/text/cursors.py",
    ),
    *(
        "composer/text/moments.py",
        "composer/text/zones.py",
        "composer/usage/*.py",
        "composer/turn/drafting.py",
        "composer/turn/worker.py",
    ),
)
# Of the rights and of what may be seen all sentences are shown, wherever they stand.
RIGHTS: Final = ("composer/rights/table.py", "composer/visibility.py")
# In sentences that nobody reads on a page: of keys, tools and commands, of requests that no form of ours makes, and for
# whoever runs Nexus.
NOT_ON_PAGES: Final = (
    *(
        "NEXUS_",
        "the price of the plan",
        "has paid for changes",
        "key that asks",
        "This key may",
        "bearer token",
        "metadata",
        "allowed_vendors",
        "send it with",
        "A tool ",
    ),
    *("a tool ", "reembed", "docs/settings.md", "RFC 9457", "Row-level", "after which to ask", "header Allow", "--"),
    *("application/json", "A fact's", "The value", "older_than", "catch-up", "nexus why", "PATCH /v1"),
    *("digits 0-9", "09:00:00Z", "expected for example", "head of the request", "web session signs out", "That id was"),
    *(
        "with that id was",
        "nexus jobs list",
        "That is no name",
        " permissions.",
        "the permission %",
        "may have a key with",
        "nexus keys create",
        "by revoking",
    ),
    *(
        "tables; its admin",
        "his conversation",
        "can then",
        "is then used",
        "That code",
        "Leave out the flag",
        "nexus agents",
    ),
    *(
        "digest: ask",
        "threads: ask",
        "compact",
        "From then on",
        "opt-out",
        "That landmark",
        "To erase your own",
        "limit of a",
    ),
    *(
        "name one as",
        "no such permission",
        "may do this. %",
        "Several begin",
        "There is no such user",
        "What you say in",
        "conversation may",
        "recall nothing",
        "without you, each",
        "There is no such agent",
    ),
)
MIN_CHARS: Final = 12  # without what is filled in: of a shorter one it is not known what it says
_VALUE: Final = re.compile(r"%\(\d\)s")
_SENTENCE: Final = re.compile(r"[A-Z`'%].* .*(?:[.…:?]|%\(\d\)s|})$", re.DOTALL)
_BRACES: Final = re.compile(r"{\w*(?::[^}]*)?}")


def sentences() -> list[str]:
    """All of them, each once."""
    paths = sorted({path for pattern in MODULES for path in ROOT.glob(pattern)})
    found = [each for path in paths for each in _of(path)]
    found += [each for name in RIGHTS for each in _all_of(ROOT / name)]
    shown = (each for each in dict.fromkeys(found) if not any(part in each for part in NOT_ON_PAGES))
    return [each for each in shown if len(_VALUE.sub("", each)) >= MIN_CHARS]


def _all_of(path: Path) -> Iterator[str]:
    """Every sentence of a module that is no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    left |= {id(part) for each in ast.walk(tree) if isinstance(each, ast.JoinedStr) for part in each.values}
    for node in ast.walk(tree):
        if id(node) not in left and isinstance(node, ast.Constant | ast.JoinedStr):
            yield from (_numbered(each) for each in told_texts(node) if _SENTENCE.match(each))


def _of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
            told = node.args[0] if node.func.id != "RequestRefused" else node.args[-1]
            yield from filter(_SENTENCE.match, told_texts(told))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            if node.targets[0].attr == "failure":  # of an answer
                yield from filter(_SENTENCE.match, told_texts(node.value))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id.isupper():
            values = [node.value, *getattr(node.value, "elts", ()), *getattr(node.value, "values", ())]
            yield from (_numbered(each) for each in _all_texts(values) if _SENTENCE.match(each))


def _all_texts(values: list[ast.expr | None]) -> Iterator[str]:
    for value in values:
        if value is not None:
            yield from told_texts(value)


def told_texts(told: ast.expr) -> Iterator[str]:
    """The texts that an expression may be, with what is filled in as %(1)s, %(2)s."""
    if isinstance(told, ast.IfExp):
        yield from (*told_texts(told.body), *told_texts(told.orelse))
    elif isinstance(told, ast.Constant) and isinstance(told.value, str):
        yield told.value
    elif isinstance(told, ast.JoinedStr):
        parts, number = [], 0
        for part in told.values:
            number += isinstance(part, ast.FormattedValue)
            parts.append(str(part.value) if isinstance(part, ast.Constant) else f"%({number})s")
        yield "".join(parts)


def _numbered(text: str) -> str:
    """A text with {names} to fill in, by numbers."""
    parts = _BRACES.split(text)
    return "".join(part if not n else f"%({n})s{part}" for n, part in enumerate(parts))
