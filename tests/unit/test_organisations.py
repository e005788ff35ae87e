"""The organisations that `nexus setup` writes into nexus.toml."""

import tomllib
from pathlib import Path

import pytest

from bot.setup.organisations import Organisations, listed_in, organised, set_organisations, workspaces_of
from composer.errors import BadInput, Misconfigured
from composer.settings import load_settings

WHERE = Path("nexus.toml")
WRITTEN = """\
# ours
model = "m"

[tenants.acme]  # the first
timezone = "Europe/Berlin"
workspaces = [
    "slack:T0123ABCD",  # Slack
    "112233445566778899",
]
quarantine = []

[tenants.acme.retrieval]
top_k = 20

[tenants."labs"]
keep_days = 30

[[agents]]
slug = "nexus"
"""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["slack:T0123ABCD"], ("slack:T0123ABCD",)),
        (["T0123ABCD", "112233445566778899"], ("slack:T0123ABCD", "discord:112233445566778899")),
        (["T0123ABCD,", "slack:T0123ABCD", " "], ("slack:T0123ABCD",)),
        (["console:acme"], ("console:acme",)),
    ],
)
def test_an_id_says_its_platform(words: list[str], found: tuple[str, ...]) -> None:
    assert workspaces_of(words) == found


@pytest.mark.parametrize("word", ["acme", "irc:acme", "slack:", "12345", ":T0123ABCD"])
def test_what_is_no_workspace_is_refused(word: str) -> None:
    with pytest.raises(BadInput, match="is no workspace: write it like slack:T0123ABCD"):
        workspaces_of([word])


def test_a_workspace_is_in_one_organisation_alone_or_by_itself() -> None:
    before: Organisations = {"acme": ("slack:T1", "7", "discord:8"), "labs": ("slack:T2",)}
    moved = organised(before, "labs", ["discord:7", "slack:T1"])
    assert moved == {"acme": ("discord:8",), "labs": ("slack:T2", "discord:7", "slack:T1")}
    assert organised(before, None, ["slack:T2"]) == {"acme": ("slack:T1", "7", "discord:8"), "labs": ()}
    assert organised({}, "new", ["slack:T1"]) == {"new": ("slack:T1",)}
    with pytest.raises(BadInput, match="is no name of an organisation"):
        organised({}, "Acme Inc", ["slack:T1"])


def test_sections_are_added_and_changed_and_the_rest_stays(tmp_path: Path) -> None:
    before = listed_in(tomllib.loads(WRITTEN))
    assert before == {"acme": ("slack:T0123ABCD", "112233445566778899")}
    wanted = organised(before, "labs", ["discord:112233445566778899"])
    wanted = organised(wanted, "other", ["slack:T9999"])
    new = set_organisations(WRITTEN, wanted, WHERE)
    assert listed_in(tomllib.loads(new)) == wanted
    assert "# ours\n" in new
    assert "[tenants.acme]  # the first\n" in new
    (tmp_path / "nexus.toml").write_text(new)
    settings = load_settings({"NEXUS_HOME": str(tmp_path)}, tmp_path)
    assert settings.tenant_of("discord", "112233445566778899") == "labs"
    assert settings.tenant_of("slack", "T0123ABCD") == "acme"
    assert (settings.tenants["labs"].keep_days, settings.tenants["acme"].retrieval.top_k) == (30, 20)
    assert set_organisations(new, wanted, WHERE) == new


@pytest.mark.parametrize("text", ["", 'model = "m"', "[tenants]\n", "[tenants.acme]\n"])
def test_a_missing_section_is_written(text: str) -> None:
    new = set_organisations(text, {"acme": ("slack:T1",)}, WHERE)
    assert tomllib.loads(new)["tenants"]["acme"] == {"workspaces": ["slack:T1"]}


@pytest.mark.parametrize(
    "text",
    ["tenants = { acme = { keep_days = 3 } }\n", "tenants.acme.keep_days = 3\n", "[ tenants . acme ]\nkeep_days = 3\n"],
)
def test_what_cannot_be_changed_line_by_line_is_left_and_said(text: str) -> None:
    with pytest.raises(Misconfigured, match=r"set workspaces in \[tenants.acme\] yourself"):
        set_organisations(text, {"acme": ("slack:T1",)}, WHERE)
