"""The keys that an operator sets: which are taken, whose memory they open, and what is refused by one sentence."""

from pathlib import Path

import pytest

from composer.errors import Misconfigured
from composer.settings import Settings, load_settings, owner_place

KEY, OTHER = "k" * 32, "l" * 40


def loaded(tmp_path: Path, **variables: str) -> Settings:
    return load_settings({f"NEXUS_{name.upper()}": value for name, value in variables.items()}, tmp_path)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("alice", ("console", "default", "alice")),
        ("@Alice", ("console", "default", "alice")),
        ("acme/Alice", ("console", "acme", "alice")),
        ("console:acme/alice", ("console", "acme", "alice")),
        ("slack:T0123ABCD/U0456EFGH", ("slack", "T0123ABCD", "U0456EFGH")),
        ("discord:900/17", ("discord", "900", "17")),
    ],
)
def test_an_owner_is_a_person_of_a_workspace(text: str, place: tuple[str, str, str], tmp_path: Path) -> None:
    assert owner_place(text) == place
    assert loaded(tmp_path, owner=text, owner_key=KEY).owner == text


@pytest.mark.parametrize("text", ["acme/", "slack:U0456", "slack:/U0456", "teams:a/b", "slack:T1/", ":a/b", "@"])
def test_what_names_nobody_is_no_owner(text: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"^NEXUS_OWNER is wrong: the owner is a person: "):
        loaded(tmp_path, owner=text, owner_key=KEY)


def test_tools_keys_come_from_a_variable_or_the_file(tmp_path: Path) -> None:
    found = loaded(tmp_path, owner="alice", tool_keys=f"claude={KEY}, cursor={OTHER}==,").tool_keys
    assert {name: key.get_secret_value() for name, key in found.items()} == {"claude": KEY, "cursor": f"{OTHER}=="}
    (tmp_path / "nexus.toml").write_text(f'owner = "alice"\n[tool_keys]\nclaude = "{OTHER}"\n', encoding="utf-8")
    assert [key.get_secret_value() for key in loaded(tmp_path).tool_keys.values()] == [OTHER]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("owner_key", "k" * 31, "a key has 32 to 1024 characters of ASCII"),
        ("owner_key", "k" * 1025, "a key has 32 to 1024 characters of ASCII"),
        ("owner_key", "k" * 20 + " " + "k" * 20, "a key has 32 to 1024 characters of ASCII"),
        ("owner_key", "\u043a" * 40, "a key has 32 to 1024 characters of ASCII"),
        ("tool_keys", "claude", "a key has 32 to 1024 characters of ASCII"),
        ("tool_keys", f"nexus={KEY}", "the name of a tool is 1 to 32 characters"),
        ("tool_keys", f"Claude={KEY}", "the name of a tool is 1 to 32 characters"),
        ("tool_keys", f"*={KEY}", "the name of a tool is 1 to 32 characters"),
        ("tool_keys", f"a={KEY},a={OTHER}", "a tool is named twice"),
    ],
)
def test_a_wrong_key_is_refused_and_not_shown(name: str, value: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured) as error:
        loaded(tmp_path, owner="alice", **{name: value})
    assert str(error.value).startswith(f"NEXUS_{name.upper()} is wrong: {reason}")
    assert KEY not in str(error.value)


def test_keys_open_somebodys_memory_and_each_is_one_credential(tmp_path: Path) -> None:
    for given in ({"owner_key": KEY}, {"tool_keys": f"claude={KEY}"}):
        with pytest.raises(Misconfigured, match=f"^NEXUS_{next(iter(given)).upper()} is set, but not whose memory"):
            loaded(tmp_path, **given)
    for given in ({"owner_key": KEY, "tool_keys": f"a={KEY}"}, {"tool_keys": f"a={KEY},b={KEY}"}):
        with pytest.raises(Misconfigured, match="are the same"):
            loaded(tmp_path, owner="alice", **given)
    assert loaded(tmp_path, owner="alice").owner == "alice"
