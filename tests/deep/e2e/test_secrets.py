"""A secret of the settings is shown by nothing: no answer, check, error, log line, traceback or process list."""

import asyncio
import json
import re
import stat
import sys
import traceback
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from pydantic import ValidationError

from bot.console.hardening import MASK, MaskingStream, make_private
from composer.errors import Misconfigured, NexusError, for_operator
from composer.settings import KNOWN_VARIABLES, Settings, load_settings
from composer.settings.server_urls import ServerUrl
from composer.stores.audit_keys import AuditKeyRing
from composer.stores.backup.backup import DatabaseBackup
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.working_cache import RedisWorkingCache
from composer.stores.embedded.servers import Servers
from tests.support.databases import run_sql
from tests.support.harness import START
from tests.support.program import Program

# Every setting that can hold a secret, with a mark of its own in it.
SECRETS: Final = {
    "NEXUS_DATABASE_URL": "postgresql://nexus:zqdb-SECRET@127.0.0.1:1/nexus",
    "NEXUS_OWNER_DATABASE_URL": "postgresql://owner:zqowner-SECRET@127.0.0.1:1/nexus",
    "NEXUS_REDIS_URL": "redis://:zqredis-SECRET@127.0.0.1:1/0",
    "NEXUS_OPENAI_BASE_URL": "http://user:zqurl-SECRET@127.0.0.1:1/v1",
    "NEXUS_OPENAI_API_KEY": "zqkey-SECRET",
    "NEXUS_TRANSCRIPTION_BASE_URL": "http://user:zqspeech-SECRET@127.0.0.1:1/v1",
    "NEXUS_TRANSCRIPTION_API_KEY": "zqspeechkey-SECRET",
    "NEXUS_DISCORD_TOKEN": "zqdiscord-SECRET",
    "NEXUS_SLACK_BOT_TOKEN": "xoxb-zqbot-SECRET",
    "NEXUS_SLACK_APP_TOKEN": "xapp-zqapp-SECRET",
    "NEXUS_SLACK_SIGNING_SECRET": "zqsigning-SECRET",
    "NEXUS_AUDIT_KEY": "zqaudit-SECRET-of-32-characters-or-more",
    "NEXUS_OWNER_KEY": "zqmine-SECRET-of-32-characters-or-more",
    "NEXUS_KEY": "zqown-SECRET-of-32-characters-or-more",
    "NEXUS_TOOL_KEYS": "claude=zqclaude-SECRET-of-32-characters-or-more",
    "NEXUS_OIDC_CLIENT_SECRET": "zqoidc-SECRET-of-16-characters",
    "NEXUS_GATEWAY_API_KEY": "zqgateway-SECRET",
    "NEXUS_STRIPE_SECRET_KEY": "sk_test_zqcharge-SECRET",
    "NEXUS_STRIPE_WEBHOOK_SECRET": "whsec_zqhook-SECRET",
    "NEXUS_GATEWAY_KEYS": "ci=zqpass-SECRET-of-32-characters-or-more",
}
OIDC: Final = {
    "NEXUS_OIDC_ISSUER": "http://127.0.0.1:1",
    "NEXUS_OIDC_CLIENT_ID": "nexus",
    "NEXUS_OIDC_TENANT": "acme",
    "NEXUS_PUBLIC_URL": "http://localhost:8080",
}
ENVIRON: Final = {**SECRETS, **OIDC, "NEXUS_OWNER": "alice", "NEXUS_GATEWAY_TENANT": "acme"}
DATABASES: Final = (
    "postgresql:///nexus?user=nexus&password=hunter2SECRET&host=127.0.0.1&port=1",
    "postgresql://nexus:hunter2SECRET@127.0.0.1:1/nexus",
    "postgresql://nexus:hunter2%2FSECRET@127.0.0.1:1,127.0.0.1:2/nexus",
    "postgresql://nexus@127.0.0.1:1/nexus?password=hunter2SECRET&sslmode=SECRET",
    "postgresql://nexus:hunter2SECRET@127.0.0.1:1/nexus?sslpassword=SECRET",
    "postgresql://nexus:hunter2SECRET@[::1]:1/nexus",
)
CACHES: Final = (
    "redis://:ssSECRET@127.0.0.1:1/0",
    "rediss://u:ssSECRET@127.0.0.1:1",
    "redis://127.0.0.1:1?password=SECRET",
)
REFUSED: Final = {
    "NEXUS_DATABASE_URL": (
        "postgresql://nexus:hunter2/SECRET@127.0.0.1:1/nexus",
        "postgres+asyncpg://nexus:hunter2SECRET@127.0.0.1:1/nexus",
        "postgresql://nexus:hunter2#SECRET@127.0.0.1:1/nexus",
        "postgresql://nexus:hunter2?SECRET@127.0.0.1:1/nexus",
        "postgresql://nexus:hunter2@SECRET@127.0.0.1:SECRET/nexus",
        "nexus:hunter2SECRET@127.0.0.1:1/nexus",
        "postgresql://[SECRET/nexus",
    ),
    "NEXUS_REDIS_URL": (
        "redis://:pa/ssSECRET@127.0.0.1:1/0",
        "redisx://:ssSECRET@127.0.0.1:1/0",
        "redis://:ssSECRET@127.0.0.1:notaport/0",
        "redis://x:ssSECRET@127.0.0.1:1/0?foo=SECRET&socket_timeout=abcSECRET",
        "redis://x:ssSECRET@127.0.0.1:1/0?db=SECRET",
        ":ssSECRET@127.0.0.1",
    ),
}


def shown(error: BaseException) -> str:
    """All that an error can show: its sentences, and the traceback with all of its causes."""
    operator = for_operator(error) if isinstance(error, NexusError) else ""
    return f"{error} {error!r} {operator} {''.join(traceback.format_exception(error))}"


def test_every_setting_that_may_hold_a_secret_is_tried() -> None:
    plain = {"HOME", "CONFIG", "MODEL", "MODEL_TIMEOUT", "EMBEDDER", "EXTRACTION", "WEB_HOST", "WEB_PORT", "TIMEZONE"}
    plain |= {"BACKUPS", "LOG", "LOG_FORMAT", "PROMPT_DAYS", "AUDIT_DAYS", "USAGE_DAYS", "SUMMARY_MODEL", "CURRENCY"}
    plain |= {
        "OWNER",
        "EXTRACTION_MODEL",
        "EXTRACTION_BATCH",
        "EXTRACTION_EFFORT",
        "TRANSCRIPTION_MODEL",
        "CONCURRENT_ANSWERS",
        "FOLLOW_UP_MINUTES",
    }
    plain |= {f"OIDC_{name}" for name in ("ISSUER", "CLIENT_ID", "TENANT", "NAME_CLAIM", "EMAIL_DOMAINS")}
    plain |= {"GATEWAY_BASE_URL", "GATEWAY_TENANT"}  # an address with a login is refused
    plain |= {"PLAN", "PUBLIC_URL", "WEB_PROXIES", "WEB_ORIGINS", "REQUESTS_PER_MINUTE", "ADMIN_REQUESTS_PER_MINUTE"}
    plain |= {"WEBHOOKS", "WEBHOOK_HOSTS"}
    assert {name for name in KNOWN_VARIABLES if name.removeprefix("NEXUS_") not in plain} == set(SECRETS)


def test_settings_know_their_secrets_and_print_none(tmp_path: Path) -> None:
    settings = load_settings(ENVIRON, tmp_path)
    assert "SECRET" not in repr(settings) + str(settings) + f"{settings.database_url} {settings.openai_base_url!r:>9}"
    for name, value in SECRETS.items():
        mark = next(part for part in re.split("[@:=]|//", value) if "SECRET" in part)
        assert any(mark in secret for secret in settings.secrets), name


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values])
def test_an_address_that_cannot_be_read_is_refused_without_being_quoted(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(Misconfigured, match=f"^{name} is wrong: it") as caught:
        load_settings({name: value}, tmp_path)
    assert "SECRET" not in shown(caught.value)
    with pytest.raises(ValidationError) as direct:
        Settings.model_validate({"home": tmp_path, name.removeprefix("NEXUS_").lower(): value})
    assert "SECRET" not in str(direct.value)
    assert "SECRET" not in f"{ServerUrl(value)} {ServerUrl(value)!r}", "also where nothing validates it"


async def test_errors_of_the_drivers_name_the_place_to_the_operator_alone(tmp_path: Path) -> None:
    for text in DATABASES:
        url = load_settings({"NEXUS_DATABASE_URL": text}, tmp_path).database_url
        assert url is not None
        with pytest.raises(NexusError) as caught:
            await PostgresDatabase.open(url)
        assert "SECRET" not in shown(caught.value), text
        assert "127.0.0.1" not in str(caught.value)
    for text in CACHES:
        found = load_settings({"NEXUS_REDIS_URL": text}, tmp_path).redis_url
        assert found is not None
        cache = RedisWorkingCache(found)
        with pytest.raises(NexusError) as caught:
            await cache.ping()
        await cache.close()
        assert "SECRET" not in shown(caught.value), text
        assert "127.0.0.1" not in str(caught.value)
        assert "127.0.0.1:1" in for_operator(caught.value)


@pytest.mark.parametrize("toml", ['openai_api_key = 5\nslack_bot_token = ["xoxbSECRET"]', "database_url = 'SECRET'"])
def test_an_error_in_the_file_does_not_quote_a_secret(tmp_path: Path, toml: str) -> None:
    (tmp_path / "nexus.toml").write_text(toml)
    with pytest.raises(Misconfigured) as caught:
        load_settings({}, tmp_path)
    assert "SECRET" not in shown(caught.value)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, ENVIRON | {"NEXUS_HOME": str(tmp_path / "home"), "NEXUS_MODEL": "m", "NEXUS_LOG": "debug"})


def test_no_command_prints_a_secret(program: Program) -> None:
    script = program.script({"type": "message", "room": "general", "user": "alice", "id": "m1", "text": "hi"})
    commands: list[list[Any]] = [
        ["doctor", "--json"],
        ["play", script],
        ["run"],
        ["backup"],
    ]
    for words in commands:
        ran = program.run(*words, NEXUS_SLACK_TOKEN="zqunknown-SECRET")
        assert "SECRET" not in ran.out + ran.err, words
        assert ran.status == 1, (words, ran.err)
    for path in program.folder.rglob("*"):
        assert not path.is_file() or b"SECRET" not in path.read_bytes(), path


class Written:
    """A stream that remembers."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)


def test_whatever_is_written_is_masked_last_of_all(tmp_path: Path) -> None:
    settings, written = load_settings(ENVIRON, tmp_path), Written()
    stream = MaskingStream(written, settings.secrets)
    for value in SECRETS.values():
        stream.write(f"RuntimeError: cannot use {value} for anything\n")
        stream.writelines([json.dumps({"said": value[-40:]}), "\n"])
    assert "SECRET" not in written.text
    assert written.text.count(MASK) >= 2 * len(SECRETS)
    assert not hasattr(MaskingStream(sys.stdout, {"abcd"}), "buffer"), "nothing writes past the mask"
    assert MaskingStream(written, {"a.c"}).write("abc") == 3
    assert written.text.endswith("abc"), "secrets are texts, not patterns"


async def test_no_argument_of_a_program_shows_a_password(
    servers: Servers, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = asyncio.create_subprocess_exec

    async def recorded(*words: str, **options: Any) -> asyncio.subprocess.Process:
        process = await real(*words, **options)
        seen.append(" ".join(psutil.Process(process.pid).cmdline()) + " ".join(words))
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", recorded)
    await run_sql(servers.database_url, "CREATE ROLE keeper2 LOGIN SUPERUSER PASSWORD 'hunter2SECRET'")
    try:
        assert settings.database_url is not None
        plain = settings.database_url.with_login("keeper2")
        for url in (plain.replace("keeper2@", "keeper2:hunter2SECRET@"), plain[:] + "&password=hunter2SECRET"):
            await DatabaseBackup(url, AuditKeyRing.load(settings)).write(tmp_path / f"{len(seen)}.backup", START)
    finally:
        await run_sql(servers.database_url, "DROP ROLE keeper2")
    assert len(seen) == 2
    assert "SECRET" not in "".join(seen)


def test_what_the_data_folder_holds_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir(mode=0o755)
    for path in (folder / "old.backup", tmp_path / "audit.key", tmp_path / "nexus.toml"):
        path.write_text("x")
        path.chmod(0o644)
    other = tmp_path / "elsewhere"
    other.write_text("x")
    other.chmod(0o644)
    (folder / "link").symlink_to(other)
    make_private(tmp_path)
    made = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if not path.is_symlink()}
    assert made.pop("elsewhere") == 0o644, "links are not followed"
    assert made.pop("backups") == 0o700
    assert set(made.values()) == {0o600}


def test_everything_that_a_run_leaves_in_its_data_folder_is_private(tmp_path: Path, cluster: Path) -> None:
    home = tmp_path / "home"
    program = Program(tmp_path, {"NEXUS_HOME": str(home)})
    assert program.run("backup").status == 0
    open_to_others = [
        str(path.relative_to(home)) for path in (home, *home.rglob("*")) if stat.S_IMODE(path.lstat().st_mode) & 0o077
    ]
    assert open_to_others == []
