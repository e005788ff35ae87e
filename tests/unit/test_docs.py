"""What the docs tell people to type exists: commands with their options, settings, tasks, services, paths."""

import configparser
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
import yaml
from pydantic import BaseModel
from typer.main import get_command

from bot.commands.table import COMMANDS
from bot.console.cli.optional_values import arguments
from bot.console.command_line import cli
from bot.web.metrics import Metrics
from composer.repositories.audit import AuditAct
from composer.settings import (
    KNOWN_VARIABLES,
    AgentSettings,
    BillingSettings,
    BudgetSettings,
    GatewaySettings,
    McpSettings,
    PlanSettings,
    PriceSettings,
    RetrievalSettings,
    TenantSettings,
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
OURS = ("nexus", "jobs", "migrate")  # the services that run our image, whose entry point is nexus
PLACEHOLDER = re.compile(r"[…|\[\]]")


def typed(text: str) -> list[str]:
    """The lines of a page that people type, and the code in its sentences that begins with a program."""
    blocks = [line.strip() for kind, block in FENCE.findall(text) if kind in ("", "sh") for line in block.splitlines()]
    return blocks + [code for code in CODE.findall(FENCE.sub("", text)) if not PLACEHOLDER.search(code)]


def commands_of(program: str) -> list[str]:
    """Every command line of the docs that runs a program, without what stands before the program."""
    found = set()
    for page in PAGES:
        for line in typed(page.read_text(encoding="utf-8")):
            match = re.match(rf"(?:sudo -u \S+ |[A-Z_]+=\S+ |export [A-Z_]+=\S+ )*(?:[\w./~-]+/)?({program} .*)", line)
            if match:
                found.add(match[1].partition("#")[0].strip())
    return sorted(found)


def check_nexus(line: str) -> None:
    """Parse a command line as the program does, without running it."""
    words = arguments(shlex.split(line)[1:], {"nexus"})
    command = get_command(cli)
    context = typer.Context(command, info_name="nexus")
    while hasattr(command, "commands"):
        assert words, f"{line}: which command?"
        assert words[0] in command.commands, line
        command = command.commands[words[0]]
        words = words[1:]
        if hasattr(command, "commands") and not words:
            return  # the name of a group of commands
    command.make_context(command.name, words, parent=context)


@pytest.mark.parametrize("line", commands_of("nexus"))
def test_every_command_of_the_docs_can_be_parsed(line: str) -> None:
    if re.match(r"nexus (-|COMMAND\b)", line):
        return  # of the program itself, or a place for a name
    with suppress_incomplete():
        check_nexus(line)


@contextmanager
def suppress_incomplete() -> Iterator[None]:
    """Accept a command that a sentence names without its values."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ not in ("MissingParameter", "BadOptionUsage"):
            raise


def test_a_command_that_does_not_exist_would_be_found() -> None:
    assert len(commands_of("nexus")) > 20
    for line in ("nexus rnu", "nexus run --wbe", "nexus import x --format csv"):
        with pytest.raises(Exception, match=r"."):
            check_nexus(line)


def test_every_setting_of_the_docs_exists() -> None:
    for page in PAGES:
        named = set(re.findall(r"\bNEXUS_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8")))
        ours = {name for name in named if not name.startswith("NEXUS_TESTS")}
        assert ours <= set(KNOWN_VARIABLES), page.name


def test_every_task_of_the_docs_exists() -> None:
    tasks = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in commands_of("make"):
        words = [word for word in shlex.split(line)[1:] if "=" not in word]
        if words[:1] == ["-C"]:
            words = words[2:]
        assert not words or words[0] in tasks, line


def test_every_service_of_the_docs_exists() -> None:
    services = set(yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"])
    lines = commands_of("docker compose")
    assert lines
    for line in lines:
        words = shlex.split(line)[2:]
        if words[0] == "exec":
            assert words[1] in services, line
            if words[1] in OURS:
                check_nexus(shlex.join(words[2:]))
        elif words[0] == "run":
            assert words[1] == "--rm", line
            rest = [word for word in words[2:] if word not in ("--no-deps", "-T")]
            if rest[0] == "--entrypoint":
                assert rest[2] in OURS, line
                continue
            assert rest[0] in OURS, line
            check_nexus(shlex.join(["nexus", *rest[1:]]))
            # What the service waits for would migrate the database, which has to be empty.
            assert "restore" not in rest or "--no-deps" in words, line
        elif words[0] in ("logs", "restart", "stop"):
            assert {word for word in words[1:] if not word.startswith("-")} <= services, line
        elif words[0] == "cp" and ":" in words[1]:
            assert words[1].partition(":")[0] in services, line
        elif words[0] == "cp":
            assert words[2].partition(":")[0] in services, line
        else:
            assert words[0] in ("up", "ps", "build"), line


def test_the_unit_of_systemd_starts_a_command_that_exists() -> None:
    text = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    [unit] = [block for kind, block in FENCE.findall(text) if kind == "ini"]
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment, method-assign]
    parsed.read_string(unit)
    service = parsed["Service"]
    check_nexus(service["ExecStart"].rpartition("/")[2])
    assert service["KillMode"] == "mixed", "else the servers are told to stop together with Nexus"
    names = {pair.partition("=")[0] for pair in service["Environment"].split()}
    assert names <= set(KNOWN_VARIABLES)


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def headings_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain}


def test_every_link_to_a_heading_leads_to_one() -> None:
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                led_to = (page.parent / target) if target else page
                assert anchor in headings_of(led_to), f"{page.name}: {target}#{anchor}"


def test_the_page_of_the_audit_log_names_every_act() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    table = text.partition("| acts | recorded when |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z_.]+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if line)))
    assert named == set(AuditAct)


def test_every_line_of_the_log_that_the_docs_name_is_written() -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8") for part in ("composer", "bot", "jobs") for path in (ROOT / part).rglob("*.py")
    )
    for page in ("operations", "tool-servers", "troubleshooting", "deployment", "slack", "discord"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        for event in re.findall(r"`([a-z_]+\.[a-z_]+)`", text):
            if event not in set(AuditAct) and not re.search(r"\.(py|md|key|heads|env|toml|json|yml|yaml|log)$", event):
                assert f'"{event}"' in code, f"{page}.md: {event}"


def test_the_page_of_the_commands_has_the_usage_of_each() -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    cells = [re.split(r"(?<!\\)\|", line)[1] for line in text.splitlines() if line.startswith("| `")]
    assert sorted(cell.strip(" `").replace("\\|", "|") for cell in cells) == sorted(
        command.usage for command in COMMANDS.values()
    )


def test_the_page_of_the_settings_names_every_one() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert set(KNOWN_VARIABLES) <= set(re.findall(r"\bNEXUS_[A-Z_]*[A-Z]\b", text))
    tables: dict[str, type[BaseModel]] = {
        "agents": AgentSettings,
        "retrieval": RetrievalSettings,
        "tenants": TenantSettings,
        "prices": PriceSettings,
        "budgets": BudgetSettings,
        "plans": PlanSettings,
        "billing": BillingSettings,
        "mcp": McpSettings,
        "gateway": GatewaySettings,
    }
    for title, table in tables.items():
        section = text.partition(f"\n### {title}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
        cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
        assert set(re.findall(r"`([a-z_]+)`", " ".join(cells))) == set(table.model_fields), title


def test_the_page_of_operations_names_every_metric() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^# TYPE (nexus_[a-z_]+)", Metrics(()).text().decode(), re.MULTILINE))
    assert {name for name in told if not name.endswith("_created")} == set(re.findall(r"`(nexus_[a-z_]+)`", text)) - {
        "nexus_service"
    }
