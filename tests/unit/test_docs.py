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
from typer.main import get_command

from bot.console.cli.left_out import arguments
from bot.console.command_line import cli
from composer.settings import KNOWN_VARIABLES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
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
            check_nexus(" ".join(words[2:]))
        elif words[0] in ("logs", "restart"):
            assert {word for word in words[1:] if not word.startswith("-")} <= services, line
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
