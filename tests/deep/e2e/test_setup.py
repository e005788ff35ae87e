"""`nexus setup` as a new user runs it: every answer is checked, nothing is written before, and no secret is shown."""

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pexpect
import pytest
from pydantic import SecretStr

from bot.discord.doctor import BAD_TOKEN, NO_TOKEN, may_be_token
from bot.setup.answers import SLACK_BOT_TOKEN, Answers
from bot.setup.checks import NO_URL, Checked, check_all, check_discord, check_model, check_slack
from bot.setup.dialogue import Dialogue
from composer import __version__
from composer.settings import Settings, load_settings
from composer.settings.server_urls import ServerUrl
from tests.support.discord.harness import point_at
from tests.support.discord.server import DiscordServer
from tests.support.model_server import ModelServer
from tests.support.program import NEXUS, Program
from tests.support.slack.harness import office_on
from tests.support.waiting import TIMEOUT_SECONDS

KEY = "sk-zqSECRET-key"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, {"NEXUS_HOME": str(tmp_path / "home")})


def files_of(program: Program) -> list[str]:
    return sorted(str(path.relative_to(program.folder)) for path in program.folder.rglob("*") if path.is_file())


def test_the_program_says_its_version(program: Program) -> None:
    assert program.run("--version").out == f"nexus {__version__}\n"


@pytest.mark.parametrize(
    ("line", "found"),
    [("nexus ex", {"export"}), ("nexus jobs ", {"list", "run"}), ("nexus setup --off", {"--offline"})],
)
def test_a_shell_completes_commands_and_options(line: str, found: set[str], program: Program) -> None:
    words = line.split(" ")
    # The program finds its name, and so the variable by which a shell asks, in its first word.
    code = "import sys; sys.argv[0] = 'nexus'; from bot.console.main import main; main()"
    shell = {"_NEXUS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    environment = program.environment | shell
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    assert set(done.stdout.split()) == found


def test_without_a_terminal_and_without_answers_it_says_what_to_give(program: Program) -> None:
    done = program.run("setup")
    assert (done.status, done.out) == (2, "")
    assert "give the answers as options (nexus setup --help), and --yes" in done.err
    assert files_of(program) == []


def test_offline_takes_one_command_and_leads_on(program: Program) -> None:
    done = program.run("setup", "--offline", "--yes")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "Next: nexus doctor checks everything, then nexus chat talks to the agent here."
    assert files_of(program) == ["home/nexus.toml"]
    again = program.run("setup", "--offline", "--yes")
    assert "nothing changes" in again.out


@pytest.mark.parametrize("where", ["secrets.env", "nexus.toml"])
def test_offline_takes_out_a_key_that_is_stored(program: Program, where: str) -> None:
    home = Path(program.settings["NEXUS_HOME"])
    home.mkdir(mode=0o700)
    line = f'openai_api_key = "{KEY}"\n' if where == "nexus.toml" else f"NEXUS_OPENAI_API_KEY={KEY}\n"
    (home / where).write_text(line)
    (home / where).chmod(0o600)
    done = program.run("setup", "--offline", "--yes", "--no-weights")
    assert (done.status, done.err) == (0, "")
    assert not load_settings({"NEXUS_HOME": str(home)}, program.folder).has_model_api
    assert KEY not in done.out


def test_offline_says_that_a_key_of_the_environment_still_counts(program: Program) -> None:
    done = program.run("setup", "--offline", "--yes", "--no-weights", NEXUS_OPENAI_API_KEY=KEY)
    assert done.status == 0
    assert "NEXUS_OPENAI_API_KEY is set in the environment" in done.out
    assert KEY not in done.out + done.err


def test_the_link_that_makes_the_slack_app_is_printed_alone(program: Program) -> None:
    done = program.run("setup", "--slack-link")
    assert done.out.startswith("https://api.slack.com/apps?new_app=1&manifest_yaml=")
    assert len(done.out.splitlines()) == 1


async def test_the_model_is_asked_before_anything_is_written(program: Program) -> None:
    async with ModelServer(key=KEY, models={"large", "small"}) as server:

        async def run(*words: str, key: str = KEY) -> tuple[int, str]:
            options = ("setup", "--yes", "--base-url", server.url, "--secrets", "-", *words)
            given = f"NEXUS_OPENAI_API_KEY={key}\n"
            done = await asyncio.to_thread(program.run, *options, input=given)
            assert "SECRET" not in done.out + done.err
            return done.status, done.out

        status, said = await run("--model", "large", key="sk-zqSECRET-wrong")
        assert (status, files_of(program)) == (1, [])
        assert "✗ the model API does not accept the key (401): copy it again" in said
        status, said = await run("--model", "middling")
        assert (status, files_of(program)) == (1, [])
        assert "✗ the API has no model middling; it has large, small" in said
        status, said = await run("--model", "large")
        assert status == 0
        assert server.requests == [], "no answer was asked for, so nothing was paid"
    assert files_of(program) == ["home/nexus.toml", "home/secrets.env"]
    settings = load_settings({"NEXUS_HOME": program.settings["NEXUS_HOME"]}, program.folder)
    assert settings.openai_api_key is not None
    assert (settings.model, settings.openai_api_key.get_secret_value()) == ("large", KEY)
    for path in (program.folder / "home").iterdir():
        assert path.stat().st_mode & 0o077 == 0


async def test_a_server_that_is_no_model_api_is_said_so(settings: Settings) -> None:
    async with ModelServer() as server:
        wrong = settings.model_copy(update={"openai_base_url": ServerUrl(server.url + "/deeper"), "model": "m"})
        assert not (await check_model(wrong)).ok
        assert "(404): check the base URL" in (await check_model(wrong)).found[0][1]
        gone = settings.model_copy(update={"openai_base_url": ServerUrl("http://127.0.0.1:1/v1"), "model": "m"})
        assert "no model API answers at that base URL" in (await check_model(gone)).found[0][1]


@pytest.mark.parametrize("typed", ["localhost:11434/v1", "api.openai.com", "nope", "http://"])
async def test_a_base_url_without_http_is_said_so(settings: Settings, typed: str) -> None:
    named = settings.model_copy(update={"openai_base_url": ServerUrl(typed), "model": "m"})
    assert (await check_model(named)).found == ((False, NO_URL),)


async def test_a_discord_token_is_looked_up_and_its_application_invited(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = f"{'A1b2' * 6}.Xy_9-z.{'C3d4' * 7}"
    async with DiscordServer(token) as server:
        point_at(server, monkeypatch)
        good = await check_discord(settings.model_copy(update={"discord_token": SecretStr(token)}))
        bad = await check_discord(settings.model_copy(update={"discord_token": SecretStr(token[:-1] + "5")}))
    assert good.ok
    assert "client_id=" in good.link
    assert (bad.found, bad.link) == (((False, BAD_TOKEN),), "")


@pytest.mark.parametrize(
    "text", ["n", "discord-test-token", "an.other.word", "https://discord.com/api/webhooks/1/a.b.c"]
)
async def test_what_cannot_be_a_discord_token_is_sent_nowhere(text: str, settings: Settings) -> None:
    assert not may_be_token(text)
    found = await check_discord(settings.model_copy(update={"discord_token": SecretStr(text)}))
    assert found.found == ((False, NO_TOKEN),), "without a server it would be: Discord can't be reached"


async def test_slack_tokens_are_asked_whose_they_are(settings: Settings) -> None:
    async with office_on(settings) as office:
        assert (await check_slack(office.settings, office.slack.base_url)).ok
        wrong = office.settings.model_copy(update={"slack_bot_token": SecretStr("xoxb-wrong")})
        _, _, found = await check_all(wrong, office.slack.base_url)
        assert not found.ok
        alone = office.settings.model_copy(update={"slack_bot_token": None})
        assert not (await check_slack(alone, office.slack.base_url)).ok


def test_in_a_terminal_a_wrong_answer_is_typed_again_and_the_rest_is_skipped(program: Program) -> None:
    environment = {key: value for key, value in program.environment.items() if key != "NEXUS_HOME"}
    screen: list[str] = []
    dialogue: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        [*NEXUS[1:], "setup"],
        cwd=str(program.folder),
        env=environment | {"XDG_DATA_HOME": str(program.folder / "default"), "COLUMNS": "4000"},
        timeout=TIMEOUT_SECONDS,
        encoding="utf-8",
        dimensions=(50, 4000),
    )

    def answer(question: str, typed: str) -> None:
        dialogue.expect_exact(question)
        screen.append(str(dialogue.before) + str(dialogue.after))
        dialogue.sendline(typed)

    try:
        answer("Data folder", str(program.folder / "mine"))
        answer("Time zone (Europe/Berlin, or a city)", "Atlantis")
        answer("zones are named like Europe/Berlin, or UTC.", "berlin")
        answer("Base URL", "127.0.0.1:1/v1")
        answer("Type it again, keep it as it is, or skip this", "n")
        answer("Answer again, keep or skip.", "AGAIN")
        answer("Base URL", "http://127.0.0.1:1/v1")
        answer("Type it again, keep it as it is, or skip this", "keep")
        answer("API key (Enter for none)", KEY)
        answer("Name of the model", "gpt-x")
        answer("Type it again, keep it as it is, or skip this", "again")
        answer("Base URL", "http://127.0.0.1:1/v1")
        answer("Type it again, keep it as it is, or skip this", "keep")
        answer("API key", "n")
        answer("Name of the model", "gpt-x")
        answer("Type it again, keep it as it is, or skip this", "again")
        answer("Base URL", "-")
        answer("Discord token (Enter for none)", "no token at all")
        answer("Type it again, keep it as it is, or skip this", "skip")
        answer("Connect Slack?", "n")
        answer("Write this?", "y")
        dialogue.expect(pexpect.EOF)
        screen.append(str(dialogue.before))
    finally:
        dialogue.close()
    assert dialogue.exitstatus == 0
    shown = "".join(screen)
    assert KEY not in shown
    assert shown.count("no model API answers at that base URL") == 4, "an n is no secret"
    assert shown.index(NO_URL) < shown.index("API key"), "an address is judged when it is typed"
    assert f"\u2717 {NO_TOKEN}" in shown
    assert "manifest_yaml=" not in shown, "it is for those who want Slack"
    assert f"Next: export NEXUS_HOME={program.folder / 'mine'}" in shown
    assert files_of(program) == ["mine/nexus.toml"]
    assert 'timezone = "Europe/Berlin"' in (program.folder / "mine" / "nexus.toml").read_text()


def test_the_time_zone_is_an_option_and_a_wrong_one_is_refused(program: Program) -> None:
    done = program.run("setup", "--yes", "--offline", "--unchecked", "--no-weights", "--timezone", "Asia/Tokyo")
    assert done.status == 0
    assert any('timezone = "Asia/Tokyo"' in (program.folder / name).read_text() for name in files_of(program))
    done = program.run("setup", "--yes", "--offline", "--no-weights", "--timezone", "Atlantis")
    assert done.status != 0
    assert "a time zone is named like Europe/Berlin" in done.err


def test_a_wrong_flag_value_and_a_file_of_secrets_that_is_none_are_one_sentence(program: Program) -> None:
    (program.folder / "mine.env").write_text("NEXUS_MODEL=m\n")
    for words in (
        ("--secrets", "missing.env"),
        ("--secrets", "mine.env"),
        ("--compose", "."),
        ("--base-url", "ftp://x"),
    ):
        done = program.run("setup", "--yes", *words)
        assert done.status in (1, 2), words
        assert len(done.sentences) <= 1, done.err
        assert files_of(program) == ["mine.env"]


def test_what_is_given_unseen_is_in_no_process_list(program: Program) -> None:
    done = program.run("setup", "--help", COLUMNS="200")
    assert done.status == 0
    for option in ("token", "key"):
        assert f"--{option}" not in done.out.lower()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--model", "gpt-4o"], "no server is set yet"),
        (["--offline", "--model", "gpt-4o"], "Give either --offline, or --base-url and --model"),
        (["--offline", "--base-url", "http://127.0.0.1:1/v1"], "Give either --offline, or --base-url and --model"),
    ],
)
def test_options_that_would_leave_the_model_out_are_refused(program: Program, given: list[str], sentence: str) -> None:
    done = program.run("setup", *given, "--yes", "--unchecked")
    assert (done.status, done.out) == (2, "")
    assert sentence in done.err
    assert files_of(program) == []


def test_organisations_are_written_by_options_and_nothing_else_is(program: Program) -> None:
    for given in (
        ["--organisation", "acme"],
        ["--organisation", "A b", "--workspace", "slack:T1"],
        ["--workspace", "x"],
    ):
        assert program.run("setup", *given, "--yes").status == 2
    assert files_of(program) == []
    ids = ["--workspace", "T0123ABCD", "--workspace", "discord:112233445566778899"]
    assert program.run("setup", "--organisation", "acme", *ids).status == 2, "without a terminal it takes --yes"
    done = program.run("setup", "--organisation", "acme", *ids, "--yes", NEXUS_DISCORD_TOKEN="a secret token")
    assert (done.status, done.err) == (0, "")
    assert files_of(program) == ["home/nexus.toml"], "no secret is copied from the environment"
    more = program.run("setup", "--organisation", "labs", "--workspace", "T0123ABCD", "--yes")
    assert '+workspaces = ["slack:T0123ABCD"]' in more.out
    alone = program.run("setup", "--workspace", "slack:T0123ABCD", "--yes")
    assert "Next: nexus doctor says whether memory lies elsewhere now" in alone.out
    settings = load_settings({"NEXUS_HOME": str(program.folder / "home")}, program.folder)
    assert settings.tenant_of("discord", "112233445566778899") == "acme"
    assert settings.tenant_of("slack", "T0123ABCD") is None


async def test_in_a_terminal_the_connected_workspaces_are_offered_for_an_organisation(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed = {"Name of an organisation (Enter: as it is)": ["Acme Inc", "acme", ""], "Its servers and workspaces": []}
    said: list[str] = []

    def prompt(question: str, default: str = "", **_: object) -> str:
        said.append(f"{question}: {default}")
        return typed[question].pop(0) if typed[question] else default

    monkeypatch.setattr("bot.setup.dialogue.typer.prompt", prompt)
    dialogue = Dialogue(lambda sentence, _: said.append(sentence), lambda *_: Checked(()), lambda _: None)
    alone = Answers(tmp_path, tmp_path / "nexus.toml", None, None, {})
    assert dialogue.ask_organisations(alone) == alone, "nothing is connected"
    async with office_on(settings) as office:
        checked = await check_slack(office.settings, office.slack.base_url)
        dialogue = Dialogue(lambda sentence, _: said.append(sentence), lambda *_: checked, lambda _: None)
        dialogue._checked_once(lambda _: None, alone)  # type: ignore[arg-type,return-value]
        known = replace(alone, secrets={SLACK_BOT_TOKEN: "xoxb-1"})
        answers = dialogue.ask_organisations(known)
        assert answers.organisations == {"acme": (f"slack:{office.team.id}",)}
    assert any("is no name of an organisation" in sentence for sentence in said)
