"""The references in the docs are complete: settings with their defaults, events of scripts with their keys."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from bot.script import events
from composer.settings import (
    FILE_ONLY_FIELDS,
    KNOWN_VARIABLES,
    AgentSettings,
    BillingSettings,
    BudgetSettings,
    GatewaySettings,
    McpSettings,
    PlanSettings,
    PriceSettings,
    RetrievalSettings,
    Settings,
    TenantSettings,
    load_settings,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
SETTINGS = (DOCS / "settings.md").read_text(encoding="utf-8")
JSON_LINES = (DOCS / "json-lines.md").read_text(encoding="utf-8")
TABLES: dict[str, type[BaseModel]] = {
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
EVENTS: dict[str, type[BaseModel]] = {
    "message": events.MessageEvent,
    "command": events.CommandEvent,
    "edit": events.EditEvent,
    "delete": events.DeleteEvent,
    "join": events.MoveEvent,
    "leave": events.MoveEvent,
    "job": events.JobEvent,
    "settle": events.SettleEvent,
}
EVERYWHERE = {"type", "at", "workspace"}


def rows(page: str, section: str) -> list[list[str]]:
    """The cells of the first table of a section, without its head."""
    text = re.split(r"^#+ ", page.split(f" {section}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def variable_rows() -> list[list[str]]:
    """The cells of the tables of variables, one below each heading of that chapter."""
    chapter = SETTINGS.split("\n## Variables\n", 1)[1].split("\n## ", 1)[0]
    return [row for heading in re.findall(r"^### (.*)$", chapter, re.MULTILINE) for row in rows(SETTINGS, heading)]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def shown(default: Any) -> str | None:
    """How a default stands in the docs; None where words say it."""
    match default:
        case bool():
            return str(default).lower()
        case int() | float():
            return f"{default:g}" if isinstance(default, float) else str(default)
        case str() if default:
            return f'`"{default}"`'
        case tuple() if default:
            return f"`{json.dumps(default)}`"
    return None


def test_every_setting_of_the_environment_is_in_the_reference_and_no_other() -> None:
    named = [name for row in variable_rows() for name in quoted(row[0])]
    assert sorted(named) == sorted(KNOWN_VARIABLES)


def test_every_default_of_the_environment_is_in_the_reference() -> None:
    for row in variable_rows():
        for place, name in enumerate(quoted(row[0])):
            if name == "NEXUS_CONFIG":  # no setting, but where the file of settings is
                continue
            default = Settings.model_fields[name.removeprefix("NEXUS_").lower()].default
            if default not in (None, PydanticUndefined):
                said = row[2].split(",")[min(place, row[2].count(","))]
                assert str(shown(default)).strip('`"') in said, name


def test_every_table_of_the_file_is_in_the_reference() -> None:
    assert set(TABLES) == set(FILE_ONLY_FIELDS)


@pytest.mark.parametrize("table", TABLES)
def test_every_key_of_a_table_is_in_the_reference_with_its_default(table: str) -> None:
    found = {name: row for row in rows(SETTINGS, table) for name in quoted(row[0])}
    fields = TABLES[table].model_fields
    assert set(found) == set(fields)
    for name, field in fields.items():
        if field.is_required():
            assert found[name][2] == "required", name
        elif (default := shown(field.default)) is not None:
            assert found[name][2] == default, name
        else:
            assert found[name][2] not in ("required", ""), name
        for value in re.findall(r"'(\w+)'", str(field.annotation)) if "Literal" in str(field.annotation) else ():
            assert value in found[name][1], (name, value)


def test_every_example_of_the_file_is_valid(tmp_path: Path) -> None:
    examples = re.findall(r"^```toml\n(.*?)^```", SETTINGS, re.MULTILINE | re.DOTALL)
    assert len(examples) > 1
    for example in examples:
        tomllib.loads(example)
        (tmp_path / "nexus.toml").write_text(example)
        load_settings({"NEXUS_HOME": str(tmp_path)}, tmp_path)


@pytest.mark.parametrize("kind", EVENTS)
def test_every_key_of_an_event_is_in_the_reference(kind: str) -> None:
    [row] = [row for row in rows(JSON_LINES, "Scripts") if kind in quoted(row[0])]
    model = EVENTS[kind]
    assert set(quoted(row[2])) == set(model.model_fields) - EVERYWHERE
    required = {name for name, field in model.model_fields.items() if field.is_required()} - {"type"}
    places = {"room", "dm", "session"} & set(model.model_fields) if "dm" in model.model_fields else set()
    assert set(re.findall(r"\*\*`(\w+)`\*\*", row[2])) == required | places


def test_the_examples_of_questions_are_read(tmp_path: Path) -> None:
    text = JSON_LINES.split("## Many questions at once", 1)[1]
    block = re.search(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    (tmp_path / "batch.jsonl").write_text(block[1])
    assert [entry.id for _, entry in events.read_questions(tmp_path / "batch.jsonl")] == ["q1", "q2"]
