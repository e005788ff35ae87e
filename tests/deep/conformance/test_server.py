"""The protocol's own conformance tests of servers, in both revisions of the protocol, against `/mcp` on a real port."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from mcp.server.mcpserver import MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.web.app import web_app
from bot.web.mcp.server import memory_server
from bot.web.metrics import Metrics
from tests.deep.conformance.asking import add_asking
from tests.deep.conformance.fixtures import add_fixtures
from tests.deep.conformance.programs import (
    CONFORMANCE_2025,
    CONFORMANCE_2026,
    FAILURES,
    expected_failures,
    installed_version,
    run,
)
from tests.support.api import key_of
from tests.support.harness import AppHarness
from tests.support.web import served_at

# The suites by the name under which the file lists what they are expected to fail.
SUITES: Final[Mapping[str, tuple[str, ...]]] = {
    "2025-11-25": (CONFORMANCE_2025, "server", "--suite", "all", "--spec-version", "2025-11-25"),
    "2026-07-28": (CONFORMANCE_2026, "server", "--requirements", "2026-07-28"),
}


class WithKey:
    """Adds a key to requests: the conformance tests send none."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._header = (b"authorization", f"Bearer {key}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


@pytest.fixture
async def url(harness: AppHarness, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The address of our server with the fixtures added, for whoever comes: a tool of alice's."""

    def with_fixtures(*given: Any) -> "MCPServer[Any]":
        server = memory_server(*given)
        add_fixtures(server)
        add_asking(server)
        return server

    monkeypatch.setattr("bot.web.mcp.transport.memory_server", with_fixtures)
    key = await key_of(harness, "alice", "claude")
    app = web_app(harness.app, Metrics([]), {}, None)
    async with served_at(WithKey(app, key)) as url:
        yield url


def test_each_expected_failure_has_its_reason_in_one_sentence() -> None:
    suites = list(yaml.safe_load(FAILURES.read_text("utf-8")))
    assert suites == [*SUITES, "authorization"]
    for suite in suites:
        for name, reason in expected_failures(suite).items():
            assert reason.endswith("."), name
            assert ". " not in reason, name


def test_what_is_installed_is_what_is_locked() -> None:
    named: dict[str, str] = json.loads(Path(__file__).with_name("package.json").read_text("utf-8"))["dependencies"]
    locked = Path(__file__).with_name("package-lock.json").read_text("utf-8")
    for package, version in named.items():
        assert installed_version(package) == version.rpartition("@")[2], "run `make pytest`, which installs it"
    for each in json.loads(locked)["packages"].values():
        assert each.get("integrity", "").startswith("sha512-") or "dependencies" in each
    assert "://" not in locked, "the registry is that of the machine"


@pytest.mark.parametrize("suite", SUITES)
async def test_the_conformance_tests_of_servers_pass_but_for_what_is_listed(
    url: str, suite: str, tmp_path: Path
) -> None:
    program, *arguments = SUITES[suite]
    failing = tmp_path / "failing.json"  # JSON is YAML
    failing.write_text(json.dumps({"server": list(expected_failures(suite))}), encoding="utf-8")
    results = tmp_path / "results"
    given = ("--url", f"{url}/mcp", "--expected-failures", str(failing), "--output-dir", str(results))
    said = await run(program, *arguments, *given, folder=tmp_path)
    # It fails for a failure that is not listed, and for a listed one that passes.
    assert said.status == 0, "\n".join([*failed_checks(results), said.output[said.output.rfind("=== SUMMARY") :]])


def failed_checks(results: Path) -> list[str]:
    """What failed, a line each, of the files that the program wrote."""
    found = []
    for path in sorted(results.glob("*/checks.json")):
        for check in json.loads(path.read_text("utf-8")):
            if check["status"] == "FAILURE":
                found.append(f"{path.parent.name}: {check['id']}: {check.get('errorMessage')}")
    return found


@pytest.mark.parametrize(("scenario", "listed"), [("completion-complete", []), ("ping", ["ping"])])
async def test_a_failure_that_is_not_listed_is_noticed_and_a_listed_one_that_passes(
    url: str, scenario: str, listed: list[str], tmp_path: Path
) -> None:
    failing = tmp_path / "failing.json"
    failing.write_text(json.dumps({"server": listed}), encoding="utf-8")
    given = ("--url", f"{url}/mcp", "--expected-failures", str(failing), "--spec-version", "2025-11-25")
    for program in (CONFORMANCE_2025, CONFORMANCE_2026):
        said = await run(program, "server", "--scenario", scenario, *given, folder=tmp_path)
        assert said.status == 1, said.output
