"""Settings: the environment overrides the file, and every error is one sentence that names the key."""

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.errors import Misconfigured
from composer.operations.doctor import Doctor
from composer.settings import KNOWN_VARIABLES, AgentSettings, Settings, is_vendor, load_settings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "nexus.toml"
    path.write_text(text)
    return path


def test_without_settings_there_is_one_offline_agent_and_embedded_servers(folder: Path) -> None:
    settings = load_settings({"HOME": str(folder)}, folder)
    assert (settings.database_url, settings.redis_url, settings.model, settings.embedder) == (
        None,
        None,
        None,
        None,
    )
    assert [(agent.slug, agent.name, agent.window) for agent in settings.agents] == [("nexus", "Nexus", 128_000)]
    assert settings.agents[0].persona.startswith("You are Nexus")
    assert (settings.log, settings.model_timeout, settings.warnings, settings.config) == ("warning", 120.0, (), None)


@pytest.mark.parametrize("value", ["abc", "80.5", "8" * 5000])
def test_a_whole_number_that_is_none_is_refused_with_what_it_may_be(folder: Path, value: str) -> None:
    numbers = [name for name, field in Settings.model_fields.items() if field.annotation is int]
    assert {"web_port", "backups", "audit_days", "concurrent_answers"} <= set(numbers)
    for name in numbers:
        variable = f"NEXUS_{name.upper()}"
        with pytest.raises(Misconfigured, match=rf"^{variable} is wrong: it must be a whole number from \d+ to \d+\.$"):
            load_settings({"HOME": str(folder), variable: value}, folder)
    with pytest.raises(Misconfigured, match=r"^NEXUS_WEB_PORT is wrong: it must be a whole number from 0 to 65535\.$"):
        load_settings({"HOME": str(folder), "NEXUS_WEB_PORT": value}, folder)
    write(folder, 'backups = "many"')
    with pytest.raises(Misconfigured, match=r"`backups` is wrong: it must be a whole number from 0 to 10000\.$"):
        load_settings({"HOME": str(folder)}, folder)


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("NEXUS_WEB_PORT", "99999", "it must be a whole number from 0 to 65535."),
        ("NEXUS_BACKUPS", "-1", "it must be a whole number from 0 to 10000."),
        ("NEXUS_USAGE_DAYS", "3", "it must be a whole number from 31 to 36500."),
        ("NEXUS_MODEL_TIMEOUT", "abc", "it must be a number above 0, at most 86400."),
        ("NEXUS_MODEL_TIMEOUT", "0", "it must be a number above 0, at most 86400."),
        ("NEXUS_MODEL_TIMEOUT", "nan", "it must be a number above 0, at most 86400."),
        ("NEXUS_AUDIT_KEY", "abc", "it must have 32 characters or more."),
    ],
)
def test_a_value_out_of_its_bounds_is_refused_with_these(folder: Path, variable: str, value: str, reason: str) -> None:
    with pytest.raises(Misconfigured, match=rf"^{variable} is wrong: {re.escape(reason)}$"):
        load_settings({"HOME": str(folder), variable: value}, folder)


def test_every_documented_name_is_known() -> None:
    reference = """NEXUS_HOME NEXUS_DATABASE_URL NEXUS_REDIS_URL NEXUS_OPENAI_BASE_URL NEXUS_OPENAI_API_KEY NEXUS_MODEL
        NEXUS_EMBEDDER NEXUS_DISCORD_TOKEN NEXUS_SLACK_BOT_TOKEN NEXUS_SLACK_APP_TOKEN NEXUS_SLACK_SIGNING_SECRET
        NEXUS_WEB_HOST NEXUS_WEB_PORT NEXUS_CONFIG NEXUS_LOG NEXUS_LOG_FORMAT NEXUS_MODEL_TIMEOUT
        NEXUS_FOLLOW_UP_MINUTES NEXUS_TIMEZONE NEXUS_PLAN NEXUS_BACKUPS
        NEXUS_EXTRACTION NEXUS_AUDIT_KEY NEXUS_OWNER_DATABASE_URL
        NEXUS_AUDIT_DAYS NEXUS_USAGE_DAYS NEXUS_PROMPT_DAYS NEXUS_EXTRACTION_MODEL NEXUS_EXTRACTION_BATCH
        NEXUS_SUMMARY_MODEL NEXUS_EXTRACTION_EFFORT NEXUS_CURRENCY NEXUS_TRANSCRIPTION_MODEL
        NEXUS_OWNER NEXUS_OWNER_KEY NEXUS_TOOL_KEYS NEXUS_KEY NEXUS_OIDC_ISSUER NEXUS_OIDC_CLIENT_ID
        NEXUS_OIDC_CLIENT_SECRET NEXUS_OIDC_TENANT NEXUS_OIDC_NAME_CLAIM NEXUS_OIDC_EMAIL_DOMAINS
        NEXUS_PUBLIC_URL NEXUS_WEB_PROXIES NEXUS_WEB_ORIGINS NEXUS_REQUESTS_PER_MINUTE NEXUS_ADMIN_REQUESTS_PER_MINUTE
        NEXUS_WEBHOOKS NEXUS_WEBHOOK_HOSTS
        NEXUS_GATEWAY_BASE_URL NEXUS_GATEWAY_API_KEY NEXUS_GATEWAY_KEYS NEXUS_GATEWAY_TENANT
        NEXUS_CONCURRENT_ANSWERS NEXUS_TRANSCRIPTION_BASE_URL NEXUS_TRANSCRIPTION_API_KEY
        NEXUS_STRIPE_SECRET_KEY NEXUS_STRIPE_WEBHOOK_SECRET"""
    assert set(KNOWN_VARIABLES) == set(reference.split())


def test_the_environment_wins_over_the_file(folder: Path) -> None:
    write(folder, 'model = "from-file"\nweb_port = 1\nembedder = "from-file"\n')
    settings = load_settings({"NEXUS_MODEL": "from-environment", "NEXUS_WEB_PORT": "2"}, folder)
    assert (settings.model, settings.web_port, settings.embedder) == ("from-environment", 2, "from-file")


def test_summaries_have_their_own_model_from_the_agent_or_from_the_common_setting(folder: Path) -> None:
    write(folder, '[[agents]]\nslug = "a"\nsummary_model = "own"\n[[agents]]\nslug = "b"\n')
    settings = load_settings({"NEXUS_SUMMARY_MODEL": "common", "NEXUS_MODEL": "m"}, folder)
    assert [agent.summary_model for agent in settings.agents] == ["own", "common"]


def test_a_model_is_known_by_the_settings_that_name_it(folder: Path) -> None:
    assert load_settings({"NEXUS_MODEL": "m"}, folder).settings_that_name("m") == "NEXUS_MODEL"
    write(
        folder,
        'model = "m"\nextraction_model = "e"\nsummary_model = "s"\n[[agents]]\nslug = "a"\nfallback_models = ["f"]\n'
        '[[agents]]\nslug = "b"\nmodel = "own"\nsummary_model = "e"\n',
    )
    settings = load_settings({}, folder)
    assert {model: settings.settings_that_name(model) for model in ("m", "e", "s", "f", "own")} == {
        "m": "NEXUS_MODEL (model in nexus.toml)",
        "e": "NEXUS_EXTRACTION_MODEL (extraction_model in nexus.toml) and summary_model of the agent b in nexus.toml",
        "s": "NEXUS_SUMMARY_MODEL (summary_model in nexus.toml)",
        "f": "fallback_models of the agent a in nexus.toml",
        "own": "model of the agent b in nexus.toml",
    }


def test_every_model_without_a_price_is_named_with_its_table(folder: Path) -> None:
    write(folder, '[[budgets]]\nper = "day"\nmoney = 1\n')
    environ = {"NEXUS_MODEL": "m", "NEXUS_SUMMARY_MODEL": "s", "NEXUS_OPENAI_API_KEY": "sk-1"}
    (warning,) = load_settings(environ, folder).warnings
    assert warning.endswith('Set [prices."m"], [prices."s"] in nexus.toml.')


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("tokens = 1_300", "the budget of 1,300 tokens a day: even a short question may use about 1,324 tokens, so"),
        ('tokens = 1_300\nkind = "answers"', "about 1,324 tokens"),
        (
            "money = 0.001",
            "the budget of 0.001 USD a day: even a short question may use about 1,324 tokens, 0.001324 USD",
        ),
        ("tokens = 1_324", None),
        ("money = 0.0014", None),
        ('tokens = 10\nkind = "extraction"', None),
    ],
)
def test_a_budget_that_no_answer_fits_into_is_pointed_out(folder: Path, budget: str, said: str | None) -> None:
    write(folder, f'[prices.m]\ninput = 1\noutput = 1\n[[budgets]]\nper = "day"\n{budget}\n')
    warnings = load_settings({"NEXUS_MODEL": "m", "NEXUS_OPENAI_API_KEY": "sk-1"}, folder).warnings
    assert [said in warning for warning in warnings if said] == [True] if said else not warnings


@pytest.mark.parametrize("name", ["NEXUS_MODEL", "NEXUS_EXTRACTION_MODEL", "NEXUS_SUMMARY_MODEL"])
def test_a_model_without_a_server_is_pointed_out(folder: Path, name: str) -> None:
    (warning,) = load_settings({name: "some-model"}, folder).warnings
    assert warning.startswith("The model some-model is named but no model API is set")


def test_an_empty_variable_counts_as_unset(folder: Path) -> None:
    write(folder, 'model = "from-file"\n')
    settings = load_settings({"NEXUS_MODEL": " ", "NEXUS_WEB_PORT": "", "NEXUS_CONFIG": ""}, folder)
    assert (settings.model, settings.web_port) == ("from-file", 8080)


def test_the_file_is_the_named_one_or_that_of_the_working_folder_or_that_of_the_data_folder(folder: Path) -> None:
    here, home, elsewhere = folder / "here", folder / "home", folder / "elsewhere.toml"
    here.mkdir()
    home.mkdir()
    environ = {"NEXUS_HOME": str(home)}
    write(home, 'model = "home"\n')
    assert load_settings(environ, here).model == "home"
    write(here, 'model = "here"\n')
    assert load_settings(environ, here).model == "here"
    elsewhere.write_text('model = "elsewhere"\n')
    settings = load_settings({**environ, "NEXUS_CONFIG": "../elsewhere.toml"}, here)
    assert settings.model == "elsewhere"


def test_a_named_file_that_is_missing_is_refused(folder: Path) -> None:
    with pytest.raises(Misconfigured, match=r"missing\.toml cannot be read: No such file"):
        load_settings({"NEXUS_CONFIG": "missing.toml"}, folder)


@pytest.mark.parametrize(("text", "expected"), [("~/data", "{home}/data"), ("data", "{cwd}/data"), ("/data", "/data")])
def test_the_data_folder_is_an_absolute_path(folder: Path, text: str, expected: str) -> None:
    settings = load_settings({"NEXUS_HOME": text, "HOME": "/home/someone"}, folder)
    assert str(settings.home) == expected.format(home="/home/someone", cwd=folder)


def test_the_default_data_folder_is_never_in_the_private_home_of_root(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("HOME", "/private")
    monkeypatch.setenv("XDG_DATA_HOME", "/private/data")
    assert load_settings({}, folder).home == Path("/var/lib/nexus")


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms have data folders of their own")
@pytest.mark.parametrize(
    ("xdg_data_home", "expected"),
    [("", "/home/a/.local/share/nexus"), ("/data", "/data/nexus"), ("data", "/home/a/.local/share/nexus")],
)
def test_the_default_data_folder_follows_the_xdg_standard(
    folder: Path, monkeypatch: pytest.MonkeyPatch, xdg_data_home: str, expected: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home/a")
    monkeypatch.setenv("XDG_DATA_HOME", xdg_data_home)
    assert load_settings({}, folder).home == Path(expected)


@pytest.mark.parametrize(
    ("name", "nearest"), [("NEXUS_DATABSE_URL", "NEXUS_DATABASE_URL"), ("NEXUS_SLACK_TOKEN", "NEXUS_SLACK_BOT_TOKEN")]
)
def test_an_unknown_variable_is_reported_with_the_nearest_known_one(folder: Path, name: str, nearest: str) -> None:
    warnings = load_settings({name: "x", "OTHER_NAME": "x"}, folder).warnings
    assert len(warnings) == 1
    assert name in warnings[0]
    assert warnings[0].rstrip("?.").endswith(nearest)


def test_an_api_without_a_model_is_reported(folder: Path) -> None:
    environ = {"NEXUS_OPENAI_API_KEY": "sk-1"}
    assert "NEXUS_MODEL" in load_settings(environ, folder).warnings[0]
    assert load_settings({**environ, "NEXUS_MODEL": "m"}, folder).warnings == ()


async def test_a_model_without_an_api_is_a_warning_and_does_not_answer(folder: Path) -> None:
    settings = load_settings({"NEXUS_MODEL": "gpt-4o"}, folder)
    assert "so answers are made offline: set NEXUS_OPENAI_BASE_URL" in settings.warnings[0]
    with pytest.raises(Misconfigured, match="The model gpt-4o is named but no model API is set"):
        await Doctor(settings).model(settings.agents[0], stored=False)
    assert "offline" in await Doctor(load_settings({}, folder)).model(AgentSettings(), stored=False)


def test_agents_use_the_common_model_unless_they_name_their_own(folder: Path) -> None:
    write(folder, '[[agents]]\nslug = "scout"\nname = "Scout"\n[[agents]]\nslug = "sage"\nmodel = "large"\n')
    agents = load_settings({"NEXUS_MODEL": "small"}, folder).agents
    assert [(agent.slug, agent.model) for agent in agents] == [("scout", "small"), ("sage", "large")]
    assert "You are Scout" in agents[0].persona


def test_a_tenant_overrides_only_the_settings_that_it_names(folder: Path) -> None:
    write(
        folder,
        "[retrieval]\ntop_k = 5\nrecall_tokens = 900\n"
        '[tenants.acme]\nworkspaces = ["T01", "guild-2"]\nretrieval = { top_k = 7 }\n[tenants.other]\n',
    )
    settings = load_settings({}, folder)
    acme, other, unnamed = (settings.retrieval_of(slug) for slug in ("acme", "other", "unnamed"))
    assert (acme.strategy, acme.top_k, acme.recall_tokens) == ("hybrid", 7, 900)
    assert other == unnamed == settings.retrieval
    assert (settings.tenant_of("discord", "guild-2"), settings.tenant_of("slack", "T02")) == ("acme", None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("model = ", "is not valid TOML: "),
        ('modle = "x"', "`modle` is not a key that Nexus knows; did you mean model?"),
        ('home = "/x"', "`home` cannot be set: set NEXUS_HOME in the environment."),
        ("[[agents]]\nwindw = 2000", "`agents[0].windw` is not a key that Nexus knows; did you mean window?"),
        ("[retrieval]\ntopk = 3", "`retrieval.topk` is not a key that Nexus knows; did you mean top_k?"),
        (
            "[tenants.a]\nworkspace = []",
            "`tenants.a.workspace` is not a key that Nexus knows; did you mean workspaces?",
        ),
        ("[tenants.a.retrieval]\ntop = 1", "`tenants.a.retrieval.top` is not a key that Nexus knows"),
        ('[[agents]]\nwindow = "wide"', "`agents[0].window` is wrong: it must be a whole number."),
        ("[[agents]]\nwindow = 999", "`agents[0].window` is wrong: input should be greater than or equal to 1000."),
        ('[[agents]]\nslug = "a b"', "`agents[0].slug` is wrong: a slug is 1 to 32 characters"),
        ('[tenants."Acme!"]', "`tenants.Acme!` is wrong: a slug is 1 to 32 characters"),
        ("[[agents]]\n[[agents]]", "two `agents` have the slug 'nexus': give each its own."),
        ("agents = []", "`agents` is empty: name one, or leave it out."),
        ("agents = 3", "`agents` is wrong: "),
        ("tenants = 3", "`tenants` is wrong: "),
        ("retrieval = 3", "`retrieval` is wrong: "),
        ("[tenants]\na = 3", "`tenants.a` is wrong: "),
        (
            '[tenants.a]\nworkspaces = ["w"]\n[tenants.b]\nworkspaces = ["w"]',
            "workspace 'w' is listed under two `tenants`",
        ),
        ('[retrieval]\nstrategy = "luck"', "`retrieval.strategy` is wrong: input should be 'hybrid', 'semantic' or"),
    ],
)
def test_an_error_in_the_file_is_one_sentence_that_names_the_key(folder: Path, text: str, sentence: str) -> None:
    path = write(folder, text)
    with pytest.raises(Misconfigured) as raised:
        load_settings({}, folder)
    message = str(raised.value)
    assert sentence in message
    assert str(path) in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "value"), [("NEXUS_WEB_PORT", "http"), ("NEXUS_LOG", "loud"), ("NEXUS_MODEL_TIMEOUT", "-77")]
)
def test_an_error_in_a_variable_names_it_without_its_value(folder: Path, name: str, value: str) -> None:
    with pytest.raises(Misconfigured, match=rf"^{name} is wrong: ") as raised:
        load_settings({name: value}, folder)
    assert value not in str(raised.value)


def test_secrets_are_not_shown(folder: Path) -> None:
    secret = [
        name
        for name in KNOWN_VARIABLES
        if re.search("KEY|TOKEN|SECRET|_URL", name) and not re.search("_BASE_|PUBLIC", name)
    ]
    values = dict.fromkeys(secret, "hush-hush" * 4) | dict.fromkeys(
        ("NEXUS_DATABASE_URL", "NEXUS_OWNER_DATABASE_URL"), "postgresql://u:hush-hush@db:5432/nexus"
    )
    of_tools = {"NEXUS_OWNER": "alice", "NEXUS_TOOL_KEYS": "claude=" + "hush-tool" * 4}
    of_tools |= {"NEXUS_GATEWAY_KEYS": "ci=" + "hush-pass" * 4, "NEXUS_GATEWAY_TENANT": "acme"}
    provider = {"NEXUS_OIDC_ISSUER": "https://a.example", "NEXUS_OIDC_CLIENT_ID": "n", "NEXUS_OIDC_TENANT": "t"}
    of_tools |= provider | {"NEXUS_PUBLIC_URL": "https://b.example"}
    of_tools |= {"NEXUS_STRIPE_SECRET_KEY": "sk_hush-key", "NEXUS_STRIPE_WEBHOOK_SECRET": "whsec_hush-hook"}
    settings = load_settings(values | of_tools | {"NEXUS_REDIS_URL": "redis://:hush%2Dhush@cache:6379/0"}, folder)
    assert len(secret) == 18
    assert "hush" not in repr(settings)
    assert "hush" not in f"{settings.database_url} {settings.redis_url!s} {settings.owner_database_url!r}"
    assert {"hush-hush", "hush-hush" * 4, "hush-tool" * 4, "hush-pass" * 4, "hush%2Dhush"} <= settings.secrets
    assert {"sk_hush-key", "whsec_hush-hook"} <= settings.secrets
    assert settings.discord_token is not None
    assert settings.discord_token.get_secret_value() == "hush-hush" * 4


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("https://nexus.example.com", "https://nexus.example.com"),
        (" https://Nexus.example.com/ ", "https://nexus.example.com"),
        ("https://nexus.example.com:8443", "https://nexus.example.com:8443"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_the_public_address_is_kept_without_its_last_slash(folder: Path, written: str, kept: str) -> None:
    settings = load_settings({"NEXUS_PUBLIC_URL": written}, folder)
    assert (settings.public_url, settings.web_address) == (kept, kept)


def test_links_lead_to_this_machine_unless_the_public_address_is_set(folder: Path) -> None:
    assert load_settings({"NEXUS_WEB_PORT": "9000"}, folder).web_address == "http://localhost:9000"


@pytest.mark.parametrize(
    ("written", "trusted"),
    [
        ("", ["127.0.0.1", "::1"]),
        ("10.0.0.7", ["10.0.0.7/32"]),
        ("172.18.0.5/16, ::1", ["172.18.0.0/16", "::1/128"]),
    ],
)
def test_only_proxies_of_this_machine_are_believed_unless_others_are_named(
    folder: Path, written: str, trusted: list[str]
) -> None:
    assert load_settings({"NEXUS_WEB_PROXIES": written}, folder).trusted_proxies == trusted


@pytest.mark.parametrize(
    ("written", "allowed"),
    [
        ("", []),
        ("*", ["*"]),
        ("https://a.example, http://localhost:6274/", ["https://a.example", "http://localhost:6274"]),
    ],
)
def test_no_page_of_others_may_ask_unless_it_is_named(folder: Path, written: str, allowed: list[str]) -> None:
    assert load_settings({"NEXUS_WEB_ORIGINS": written}, folder).allowed_origins == allowed


@pytest.mark.parametrize(
    "written", ["a.example", "https://a.example/page", "ftp://a.example", "https://", "https://a@b"]
)
def test_origins_are_named_as_browsers_do(folder: Path, written: str) -> None:
    with pytest.raises(Misconfigured, match=r"^NEXUS_WEB_ORIGINS is wrong: "):
        load_settings({"NEXUS_WEB_ORIGINS": written}, folder)


@pytest.mark.parametrize("written", ["*", "proxy", "10.0.0.7,", "10.0.0.0/33", "10.0.0.7 10.0.0.8"])
def test_proxies_are_named_by_address(folder: Path, written: str) -> None:
    with pytest.raises(Misconfigured, match=r"^NEXUS_WEB_PROXIES is wrong: "):
        load_settings({"NEXUS_WEB_PROXIES": written}, folder)


@pytest.mark.parametrize(
    "written",
    [
        "nexus.example.com",
        "http://nexus.example.com",
        "https://nexus.example.com/hub",
        "https://alice:secret@nexus.example.com",
        "https://@nexus.example.com",
        "https://nexus.example.com?a=b",
        "https://nexus.example.com#a",
        "https://",
        "ftp://localhost",
        "http://localhost.example.com",
        "https://nexus.example.com:port",
        "http://127.0.0.1.example.com",
    ],
)
def test_a_public_address_over_which_no_key_may_travel_is_refused(folder: Path, written: str) -> None:
    with pytest.raises(Misconfigured, match=r"^NEXUS_PUBLIC_URL is wrong: "):
        load_settings({"NEXUS_PUBLIC_URL": written}, folder)


@given(
    st.dictionaries(st.sampled_from(KNOWN_VARIABLES), st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"])))
)
def test_any_environment_gives_settings_or_an_error_of_one_sentence(environ: dict[str, str]) -> None:
    try:
        shown = str(load_settings(environ, Path("/nowhere")).home.absolute())
    except Misconfigured as error:
        shown = str(error)
    assert shown
    assert "\n" not in shown


def test_usage_is_kept_for_as_long_as_a_budget_of_a_month_counts(folder: Path) -> None:
    assert load_settings({"HOME": str(folder), "NEXUS_USAGE_DAYS": "31"}, folder).usage_days_of("acme") == 31
    with pytest.raises(Misconfigured):
        load_settings({"HOME": str(folder), "NEXUS_USAGE_DAYS": "30"}, folder)


@pytest.mark.parametrize("name", ["NEXUS_AUDIT_DAYS", "NEXUS_USAGE_DAYS", "NEXUS_PROMPT_DAYS"])
def test_days_that_reach_before_the_calendar_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(Misconfigured):
        load_settings({"HOME": str(folder), name: "999999"}, folder)


def server(folder: Path, text: str, **environ: str) -> Settings:
    """Settings with one MCP server, `wiki`."""
    write(folder, f"[mcp.wiki]\n{text}\n")
    return load_settings({"NEXUS_HOME": str(folder), **environ}, folder)


def test_an_mcp_server_offers_nothing_nowhere_unless_told(folder: Path) -> None:
    wiki = server(folder, 'url = "https://wiki.example.com/mcp"').mcp["wiki"]
    assert (wiki.tools, wiki.tenants, wiki.rooms, wiki.private, wiki.guests, wiki.timeout) == (
        (),
        (),
        (),
        False,
        False,
        10,
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "`mcp.wiki` is wrong: a server needs an address: set url or command, and only one of them."),
        ('url = "https://w.example/mcp"\ncommand = "w"', "a server needs an address"),
        ('url = "ftp://w.example/zqmark"', "`mcp.wiki.url` is wrong: it must be a URL like"),
        ('url = "https://u:zqmark@w.example/mcp"', "it may hold no login: set token or headers instead"),
        ('url = "https://w.example/mcp"\nargs = ["a"]', "args goes with command: remove it"),
        ('command = "w"\ntoken = "zqmark"', "token goes with url: remove it"),
        ('url = "https://w.example/mcp"\ntoken = "zqmark\\n"', "`mcp.wiki.token` is wrong: it holds a character"),
        ('url = "https://w.example/mcp"\nheaders = { "X Y" = "zqmark" }', "the name of a header is made of letters"),
        ('url = "https://w.example/mcp"\nheaders = { X = "zqmark\\u00e9" }', "it holds a character that no header has"),
        ('url = "https://w.example/mcp"\nrooms = ["general"]', "a room is named with its platform and workspace"),
        ('url = "https://w.example/mcp"\nrooms = ["general"]', "of the terminal by its name: console:sample/general"),
        ('url = "https://w.example/mcp"\nrooms = ["terminal:sample/general"]', "there is no platform terminal, only"),
        ('url = "https://w.example/mcp"\ntimeout = 0', "`mcp.wiki.timeout` is wrong"),
        ('url = "https://w.example/mcp"\ntool = ["a"]', "`mcp.wiki.tool` is not a key that Nexus knows; did you mean"),
        ('url = "https://w.example/mcp"\ntools = ["a.b", "a/b"]', "has two names that a model can't tell apart"),
    ],
)
def test_an_mcp_server_that_is_set_wrongly_is_refused_with_a_sentence(folder: Path, text: str, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=re.escape(sentence)) as refused:
        server(folder, text)
    assert "zqmark" not in str(refused.value)


def test_names_of_mcp_servers_leave_the_names_of_tools_unambiguous(folder: Path) -> None:
    for name in ("a_b", "A", "a__b", "x" * 33):
        write(folder, f'[mcp.{name}]\nurl = "https://w.example/mcp"\n')
        with pytest.raises(Misconfigured, match="the name of a server is"):
            load_settings({}, folder)
    write(folder, '[mcp.a-1]\nurl = "https://w.example/mcp"\ntools = ["b.c", "b.c", "' + "d" * 100 + '"]\n')
    offered = load_settings({}, folder).mcp["a-1"].offered_tools("a-1")
    assert offered == {"a-1__b_c": "b.c", "a-1__" + "d" * 59: "d" * 100}


def test_the_token_of_an_mcp_server_may_come_from_the_environment(folder: Path) -> None:
    write(folder, '[mcp.my-wiki]\nurl = "https://w.example/mcp"\n')
    settings = load_settings({"NEXUS_MCP_MY_WIKI_TOKEN": "zqtoken", "NEXUS_MCP_MY_WIKY_TOKEN": "zqother"}, folder)
    token = settings.mcp["my-wiki"].token
    assert token is not None
    assert token.get_secret_value() == "zqtoken"
    assert settings.warnings == (
        "NEXUS_MCP_MY_WIKY_TOKEN is not a setting of Nexus; did you mean NEXUS_MCP_MY_WIKI_TOKEN?",
    )


def test_a_wrong_token_of_the_environment_is_refused_by_its_variable(folder: Path) -> None:
    with pytest.raises(Misconfigured, match=r"^NEXUS_MCP_WIKI_TOKEN is wrong: it holds a character that no header has"):
        server(folder, 'url = "https://w.example/mcp"', NEXUS_MCP_WIKI_TOKEN="zq\u00e9")


def test_what_may_be_a_secret_of_an_mcp_server_is_one(folder: Path) -> None:
    text = 'url = "https://w.example/zqpath?key=zqquery"\ntoken = "zqtoken"\nheaders = { X-Key = "zqheader-0123456" }'
    settings = server(folder, text)
    assert settings.secrets == {"https://w.example/zqpath?key=zqquery", "zqtoken", "zqheader-0123456"}
    assert "zq" not in repr(settings.mcp)
    command = server(folder, 'command = "w"\nenv = { KEY = "zqkey-0123456789", MODE = "read" }')
    assert command.secrets == {"zqkey-0123456789"}
    assert "zq" not in repr(command.mcp)


def test_an_mcp_server_for_an_agent_that_there_is_not_is_pointed_out(folder: Path) -> None:
    (warning,) = server(folder, 'url = "https://w.example/mcp"\nagents = ["sage"]').warnings
    assert warning == "The MCP server wiki is set for the agent sage, which there is not: set one of nexus."


@pytest.mark.parametrize(
    "name", ["*", "", "nexus", "api", "slack", "discord", "console", "extracted", "Claude", "a b", "ä"]
)
def test_a_tool_is_not_called_like_something_else_that_memories_come_from(name: str) -> None:
    assert not is_vendor(name)
    assert is_vendor("claude")
