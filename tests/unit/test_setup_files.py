"""The files of `nexus setup`: what they held stays, what was answered is in them, and each is complete or as it was."""

import re
import stat
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bot.discord.doctor import invitation
from bot.setup import files
from bot.setup.answers import API_KEY, DISCORD_TOKEN, Answers, stored_answers
from bot.setup.dialogue import MANIFEST_FILE, slack_app_link
from composer.errors import BadInput, Misconfigured
from composer.settings import load_settings
from composer.settings.secrets_file import format_secrets, parse_secrets

PRINTABLE = st.text(st.characters(categories=("L", "N", "P", "S", "Zs"), exclude_characters="'\\"), min_size=1).filter(
    lambda text: text == text.strip() and text.isprintable()
)
OWN = """\
# ours
model = "old"   # the old one
timezone = "Europe/Berlin"

[[agents]]
slug = "nexus"
model = "its own"
"""


def answers(folder: Path, **changed: object) -> Answers:
    home = folder / "home"
    values = {"base_url": "http://model/v1", "model": "new", "secrets": {DISCORD_TOKEN: "a token"}, **changed}
    return Answers(home, home / "nexus.toml", **values)  # type: ignore[arg-type]


@given(st.dictionaries(st.from_regex(r"NEXUS_[A-Z]{1,9}", fullmatch=True), PRINTABLE))
def test_what_is_written_as_secrets_is_what_is_read(variables: dict[str, str]) -> None:
    assert parse_secrets(format_secrets(variables), "x") == variables


@pytest.mark.parametrize("value", ["it's", "two\nlines", "back\\slash", "\x07"])
def test_a_secret_that_readers_would_read_in_different_ways_is_refused(value: str) -> None:
    with pytest.raises(BadInput, match="NEXUS_X has"):
        format_secrets({"NEXUS_X": value})


def test_a_line_that_is_no_secret_is_named_by_its_number_alone(tmp_path: Path) -> None:
    (tmp_path / "secrets.env").write_text("# ours\nNEXUS_MODEL=m\nxoxb-SECRET\n")
    with pytest.raises(Misconfigured) as caught:
        load_settings({"NEXUS_HOME": str(tmp_path)}, tmp_path)
    assert "line 3: write NAME=value" in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_secrets_are_read_from_their_file_below_the_environment_and_above_the_toml(tmp_path: Path) -> None:
    (tmp_path / "secrets.env").write_text("NEXUS_DISCORD_TOKEN='from the file'\nNEXUS_MODEL=of-the-file\n")
    (tmp_path / "nexus.toml").write_text('discord_token = "of the toml"\n')
    settings = load_settings({"NEXUS_HOME": str(tmp_path), "NEXUS_MODEL": "of-the-environment"}, tmp_path)
    assert settings.discord_token is not None
    assert settings.discord_token.get_secret_value() == "from the file"
    assert settings.model == "of-the-environment"


def test_the_file_of_secrets_cannot_name_the_data_folder(tmp_path: Path) -> None:
    (tmp_path / "secrets.env").write_text("NEXUS_HOME=/elsewhere\n")
    with pytest.raises(Misconfigured, match="NEXUS_HOME cannot be set"):
        load_settings({"NEXUS_HOME": str(tmp_path)}, tmp_path)


def test_an_answer_replaces_its_key_and_nothing_else(tmp_path: Path) -> None:
    new = files.set_keys(OWN, {"model": 'a "quoted" one', "openai_base_url": "http://m/v1"}, tmp_path)
    assert tomllib.loads(new) == tomllib.loads(OWN) | {"model": 'a "quoted" one', "openai_base_url": "http://m/v1"}
    assert new.replace("\n", "\n").startswith("# ours\n")
    assert 'timezone = "Europe/Berlin"\n' in new
    assert tomllib.loads(files.set_keys(OWN, {"model": None}, tmp_path))["agents"] == [
        {"slug": "nexus", "model": "its own"}
    ]
    assert "model" not in tomllib.loads(files.set_keys(OWN, {"model": None}, tmp_path))


def test_a_file_that_cannot_be_changed_line_by_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="set model in it yourself"):
        files.set_keys('model = """\nold\n"""\n', {"model": "new"}, tmp_path / "nexus.toml")


def test_setup_writes_what_the_program_reads_and_changes_nothing_the_second_time(tmp_path: Path) -> None:
    told = answers(tmp_path, secrets={DISCORD_TOKEN: "a $token #1", API_KEY: "sk-1"})
    files.write(files.planned_settings(told))
    for name in ("nexus.toml", "secrets.env"):
        assert stat.S_IMODE((told.home / name).stat().st_mode) == 0o600
    environ = {"NEXUS_HOME": str(told.home)}
    assert stored_answers(environ, tmp_path) == told
    settings = load_settings(environ, tmp_path)
    assert settings.model == "new"
    assert settings.discord_token is not None
    assert settings.discord_token.get_secret_value() == "a $token #1"
    assert settings.warnings == ()
    assert not any(each.changes for each in files.planned_settings(told))


def test_a_secret_in_the_toml_moves_to_the_file_of_secrets(tmp_path: Path) -> None:
    told = answers(tmp_path)
    told.home.mkdir()
    told.config.write_text('discord_token = "a token"\ntimezone = "UTC"\n')
    files.write(files.planned_settings(told))
    assert "a token" not in told.config.read_text()
    assert stored_answers({"NEXUS_HOME": str(told.home)}, tmp_path).secrets == {DISCORD_TOKEN: "a token"}


def test_a_difference_shows_no_secret(tmp_path: Path) -> None:
    told = answers(tmp_path, secrets={DISCORD_TOKEN: "zqSECRET", API_KEY: "zqSECRET2"})
    told.home.mkdir()
    (told.home / "secrets.env").write_text(f"{DISCORD_TOKEN}=zqSECRET-old\nNEXUS_SLACK_BOT_TOKEN=zqSECRET-gone\n")
    shown = "\n".join(each.difference() for each in files.planned_settings(told))
    assert "SECRET" not in shown
    for line in (f"+{API_KEY}=", f"+{DISCORD_TOKEN}=(another", "-NEXUS_SLACK_BOT_TOKEN", '+model = "new"'):
        assert line in shown


def test_when_one_file_cannot_be_written_none_is(tmp_path: Path) -> None:
    told = answers(tmp_path)
    told.home.mkdir()
    told.config.write_text("# before\n")
    planned = [*files.planned_settings(told), files.planned_unit(told, tmp_path / "taken" / "nexus.service", "")]
    (tmp_path / "taken").write_text("a file where a folder is needed")
    with pytest.raises(OSError, match="taken"):
        files.write(planned)
    assert told.config.read_text() == "# before\n"
    assert [each.name for each in told.home.iterdir()] == ["nexus.toml"]


def test_the_unit_names_the_folder_the_user_and_a_config_elsewhere(tmp_path: Path) -> None:
    told = answers(tmp_path / "a 100% $ folder")
    unit = files.planned_unit(told, tmp_path / "nexus.service", "ada").new
    assert "User=ada\n" in unit
    escaped = str(told.home).replace("%", "%%").replace("$", "$$")
    assert f'Environment="NEXUS_HOME={escaped}"\n' in unit
    assert "NEXUS_CONFIG" not in unit
    assert re.search(r'^ExecStart="/\S+"( .+)? run$', unit, re.MULTILINE)
    elsewhere = Answers(told.home, tmp_path / "nexus.toml", None, None, {})
    assert f'"NEXUS_CONFIG={tmp_path}/nexus.toml"' in files.planned_unit(elsewhere, tmp_path / "x", "").new


def test_the_compose_file_gets_its_passwords_once_and_the_answers(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="name the folder of the checkout"):
        files.planned_compose(answers(tmp_path), tmp_path)
    root = Path(__file__).resolve().parents[2]
    (tmp_path / "docker-compose.yml").write_text((root / "docker-compose.yml").read_text())
    (tmp_path / ".env").write_text("POSTGRES_PASSWORD=ours\nOTHER=kept\n")
    files.write(files.planned_compose(answers(tmp_path), tmp_path))
    written = parse_secrets((tmp_path / ".env").read_text(), ".env")
    assert written["POSTGRES_PASSWORD"] == "ours"
    assert re.fullmatch(r"[0-9a-f]{48}", written["SERVICE_PASSWORD"])
    assert (written["OTHER"], written["NEXUS_MODEL"], written[DISCORD_TOKEN]) == ("kept", "new", "a token")
    required = set(re.findall(r"\$\{(\w+):\?", (root / "docker-compose.yml").read_text()))
    assert required <= set(written)
    assert not any(each.changes for each in files.planned_compose(answers(tmp_path), tmp_path))


def test_the_invitation_asks_for_four_permissions_and_two_scopes() -> None:
    parts = urlsplit(invitation(1234))
    asked = {key: value[0] for key, value in parse_qs(parts.query).items()}
    assert parts.hostname == "discord.com"
    assert asked["client_id"] == "1234"
    assert set(asked["scope"].split()) == {"bot", "applications.commands"}
    # View Channels, Send Messages, Read Message History, Send Messages in Threads: bits 10, 11, 16, 38 of Discord's API
    assert int(asked["permissions"]) == 1 << 10 | 1 << 11 | 1 << 16 | 1 << 38


def test_the_link_to_slack_brings_the_whole_manifest() -> None:
    asked = parse_qs(urlsplit(slack_app_link()).query)
    assert asked["new_app"] == ["1"]
    assert yaml.safe_load(asked["manifest_yaml"][0]) == yaml.safe_load(MANIFEST_FILE.read_text())
    assert len(slack_app_link()) < 8_000
