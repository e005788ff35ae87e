"""docs/troubleshooting.md explains the errors that a new user can meet, in the words of the program."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
# What is started, read or connected before the first answer.
STARTED_BY_EVERYONE = (
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "composer/settings").glob("*.py"))),
    "composer/settings/secrets_file.py",
    "composer/stores/models/minilm.py",
    "composer/stores/models/openai_connection.py",
    "composer/stores/database/postgres.py",
    "composer/stores/database/schema.py",
    "composer/stores/database/working_cache.py",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "composer/stores/embedded").glob("*.py"))),
    "bot/discord/adapter.py",
    "bot/slack/adapter.py",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "bot/setup").glob("*.py"))),
    "bot/web/server.py",
)
SIGN = "\N{HORIZONTAL ELLIPSIS}"


def quotes() -> list[str]:
    """What the page quotes of the program, without its marks."""
    cells = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| ")]
    return [quote for cell in cells for quote in re.findall(r'"([^"]+)"', cell)]


def template(node: ast.expr) -> str | None:
    """A text of the source, with a sign where a value is put in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else SIGN for part in node.values)
    return None


def quoted_by(quote: str, text: str) -> bool:
    """Whether a text has the words of a quote, in order, with anything in the places of its signs."""
    end = 0
    for part in map(str.strip, quote.split(SIGN)):
        begin = text.find(part, end)
        if begin < 0:
            return False
        end = begin + len(part)
    return True


def texts() -> Iterator[str]:
    for package in ("composer", "bot"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.expr) and (text := template(node)) is not None:
                    yield text


def test_the_program_says_what_the_page_quotes() -> None:
    known = list(texts())
    assert len(quotes()) > 50
    assert [quote for quote in quotes() if not any(quoted_by(quote, text) for text in known)] == []


@pytest.mark.parametrize("module", STARTED_BY_EVERYONE)
def test_every_error_of_starting_is_on_the_page(module: str) -> None:
    missing = []
    for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id not in ("Misconfigured", "Unavailable", "BadInput") or not node.args:
            continue
        operator = next((word.value for word in node.keywords if word.arg == "operator"), node.args[0])
        text = template(operator)
        if text is not None and not any(quoted_by(quote, text) for quote in quotes()):
            missing.append(text)
    assert missing == []
