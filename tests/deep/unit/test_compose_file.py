"""docker-compose.yml and the Dockerfile name only settings, commands and services that exist."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.routing import APIRoute

from bot.web.routes import health
from composer.settings import KNOWN_VARIABLES, load_settings
from tests.support import fork_server, runs

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OURS = sorted(name for name, service in SERVICES.items() if "build" in service)
# Programs that third-party images contain.
THEIR_PROGRAMS = {"postgres": {"postgres", "pg_isready"}, "valkey": {"valkey-server", "valkey-cli"}}


def health_program(service: dict[str, Any]) -> list[str]:
    kind, *command = service["healthcheck"]["test"]
    assert kind == "CMD"
    return list(command)


def test_every_nexus_variable_is_a_setting_and_every_setting_is_passed_to_the_container() -> None:
    named = set(re.findall(r"NEXUS_[A-Z_]+", TEXT + DOCKERFILE))
    assert named
    assert named == set(KNOWN_VARIABLES)


def test_the_settings_of_the_containers_are_valid(tmp_path: Path) -> None:
    for name in OURS:
        environ = {key: re.sub(r"\$\{[^}]*\}", "", value) for key, value in SERVICES[name]["environment"].items()}
        settings = load_settings({**environ, "NEXUS_HOME": str(tmp_path)}, tmp_path)
        assert settings.warnings == ()
        assert settings.database_url
        assert settings.redis_url


def test_no_secret_has_a_value_in_the_file() -> None:
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|TOKEN|SECRET|KEY", key):
                assert re.fullmatch(r"\$\{\w+(:-|:\?[^}]+)\}", value), key
    urls = {"NEXUS_DATABASE_URL": "nexus_service:${SERVICE_", "NEXUS_OWNER_DATABASE_URL": "nexus:${POSTGRES_"}
    for name, login in urls.items():
        assert re.search(rf"//{re.escape(login)}PASSWORD:\?[^}}]+\}}@", SERVICES["migrate"]["environment"][name])


def test_only_containers_that_listen_to_nobody_have_the_owners_login() -> None:
    with_owner = {name for name in OURS if "NEXUS_OWNER_DATABASE_URL" in SERVICES[name]["environment"]}
    assert with_owner == {"migrate", "jobs"}
    assert not any("ports" in SERVICES[name] for name in with_owner)


def test_the_databases_publish_no_port_and_have_volumes_for_their_data() -> None:
    for name in THEIR_PROGRAMS:
        assert "ports" not in SERVICES[name]
    mounted = {
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
        if isinstance(volume, str)
    }
    assert mounted == set(COMPOSE["volumes"])
    # Mounted deeper, the data of PostgreSQL 18 would end up in an anonymous volume.
    assert SERVICES["postgres"]["volumes"] == ["postgres:/var/lib/postgresql"]


@pytest.mark.parametrize("named", ["", "./nexus.toml"])
def test_a_nexus_toml_of_the_host_is_mounted_where_it_is_read(tmp_path: Path, named: str) -> None:
    (tmp_path / "mounted.toml").write_text('timezone = "Europe/Berlin"\n')
    (tmp_path / "nexus.toml").write_text('timezone = "Asia/Tokyo"\n')  # in the volume
    for name in OURS:
        (bind,) = (volume for volume in SERVICES[name]["volumes"] if not isinstance(volume, str))
        assert (bind["type"], bind["read_only"], bind["bind"]) == ("bind", True, {"create_host_path": False})
        assert bind["source"] == "${CONFIG_FILE:-/dev/null}", "an empty file where none is named"
        given = SERVICES[name]["environment"]["NEXUS_CONFIG"]
        assert given == f"${{CONFIG_FILE:+{bind['target']}}}"
        environ = {"NEXUS_HOME": str(tmp_path), "NEXUS_CONFIG": str(tmp_path / "mounted.toml") if named else ""}
        assert str(load_settings(environ, tmp_path / "elsewhere").timezone) == (
            "Europe/Berlin" if named else "Asia/Tokyo"
        )
    docs = (ROOT / "docs" / "deployment.md").read_text()
    assert "CONFIG_FILE=./nexus.toml" in docs
    assert bind["target"] in docs


def test_images_are_pinned_to_a_version() -> None:
    for name in THEIR_PROGRAMS:
        assert re.search(r":\d+\.\d+", SERVICES[name]["image"])


def test_urls_name_services_of_the_file() -> None:
    environ = SERVICES["nexus"]["environment"]
    for url in (environ["NEXUS_DATABASE_URL"], environ["NEXUS_REDIS_URL"]):
        host = re.search(r"(?:@|//)([a-z]+):\d+/", url)
        assert host is not None
        assert host[1] in SERVICES


def test_every_dependency_of_a_service_can_be_met() -> None:
    for service in SERVICES.values():
        for name, wait in service.get("depends_on", {}).items():
            other = SERVICES[name]
            if wait["condition"] == "service_healthy":
                assert "healthcheck" in other
            else:
                assert wait["condition"] == "service_completed_successfully"
                assert other["restart"] == "no"
    assert SERVICES["nexus"]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_health_checks_run_programs_that_exist_in_the_image() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for name, service in SERVICES.items():
        if "test" in service.get("healthcheck", {}):
            assert health_program(service)[0] in THEIR_PROGRAMS.get(name, {*scripts, "python"})


@pytest.mark.parametrize("command", [SERVICES[name]["command"] for name in OURS])
def test_each_command_in_the_file_exists_in_the_command_line(command: list[str]) -> None:
    assert re.search(r'^ENTRYPOINT \["nexus"\]$', DOCKERFILE, re.MULTILINE)
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["nexus"]
    module, _, function = entry.partition(":")
    assert function == "main"  # as it is started by `python -m`
    started = fork_server.command(module, runs.current())
    done = subprocess.run([*started, *command, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert command[0] in done.stdout


def test_the_containers_that_serve_are_healthy_when_they_are_ready() -> None:
    for name in ("nexus", "jobs"):
        program, _, code = health_program(SERVICES[name])
        assert program == "python"
        compile(code, name, "exec")
        assert "'http://127.0.0.1:8080/ready'" in code
    found = re.search(r"^HEALTHCHECK .*?CMD (\[.*?\])$", DOCKERFILE, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert "'http://127.0.0.1:8080/health'" in json.loads(found[1])[2]
    assert {"/health", "/ready"} <= {route.path for route in health.router.routes if isinstance(route, APIRoute)}
    assert re.search(r"^ENV .*NEXUS_WEB_PORT=8080", DOCKERFILE, re.MULTILINE)
    assert SERVICES["jobs"]["environment"]["NEXUS_WEB_HOST"] == "127.0.0.1", "it has the owner's login"


def pins(file: str) -> set[str]:
    return set(re.findall(r"^([\w.-]+==\S+)", (ROOT / file).read_text(), re.MULTILINE))


def test_the_image_holds_the_same_versions_and_no_test_tools() -> None:
    assert re.search(
        r"^RUN pip install --no-deps --require-hashes -r requirements.image.lock", DOCKERFILE, re.MULTILINE
    )
    inside, locked = pins("requirements.image.lock"), pins("requirements.lock")
    assert inside < locked
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names = {re.sub(r"[._]", "-", pin.partition("==")[0].lower()) for pin in inside}
    needed = {re.split(r"[<>=\[]", each)[0].lower().replace(".", "-") for each in project["project"]["dependencies"]}
    tools = {re.split(r"[<>=\[]", each)[0].lower() for each in project["dependency-groups"]["dev"]}
    assert needed <= names
    assert not tools & names - {"pyyaml", "cryptography", "httpcore2", "httpx", "httpx2"}  # which libraries need too


def test_the_image_runs_without_root() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    users = re.findall(r"^USER (\S+)$", last, re.MULTILINE)
    assert users == ["nexus"]
    assert "useradd --system --uid 10001" in last
    assert not re.search(r"^RUN ", last.partition("\nUSER ")[2], re.MULTILINE)


def test_the_image_copies_every_package() -> None:
    copied = set(re.findall(r"^COPY (\w+) \1$", DOCKERFILE, re.MULTILINE))
    include = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    assert copied == {pattern.rstrip("*") for pattern in include}
    for path in re.findall(r"^COPY ([\w. ]+) \./$", DOCKERFILE, re.MULTILINE):
        for name in path.split():
            assert (ROOT / name).exists(), name
