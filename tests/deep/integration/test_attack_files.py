"""Every attack of tests/attacks fails, and what it is after is seen by those who may."""

import itertools
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import redis
import yaml

from composer.settings import Settings
from composer.stores.embedded.servers import Servers
from tests.support.attack_cases import FAMILIES, Case, Step, all_cases, read_cases
from tests.support.attack_stage import Broken, Leaked, Stage, open_stage
from tests.support.case_files import BadCase
from tests.support.databases import clone

# Jobs go through all tenants: those that run them come while there are few.
CASES: Final = sorted(all_cases(), key=lambda case: not case.runs_jobs)
_numbers = itertools.count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(servers: Servers) -> AsyncIterator[Stage]:
    """One app for all cases: each has a tenant of its own."""
    redis.Redis.from_url(servers.redis_url).flushall()
    with tempfile.TemporaryDirectory(prefix="nexus-attacks-") as folder:
        async with clone(servers.database_url, f"attacks{next(_numbers)}") as url:
            settings = Settings(home=Path(folder), database_url=url, redis_url=servers.redis_url)
            async with open_stage(settings, CASES, Path(folder)) as opened:
                yield opened


def _marked(case: Case) -> object:
    marks = [] if case.open is None else [pytest.mark.xfail(raises=Leaked, reason=case.open, strict=True)]
    return pytest.param(case, id=case.id, marks=marks)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", [_marked(case) for case in CASES])
async def test_an_attack_fails(stage: Stage, case: Case) -> None:
    await stage.play(case)


def test_there_are_many_attacks_of_every_family() -> None:
    count = Counter(case.family for case in CASES)
    assert {family: count[family] for family in FAMILIES if count[family] < 8} == {}
    assert count.total() >= 200


# --- what would make the files prove nothing --------------------------------------------------------------------------

TOLD: Final = {"type": "message", "dm": "nexus", "user": "alice", "text": "the word is zqtest"}
STRANGER: Final = {"type": "message", "dm": "nexus", "user": "eve", "text": "which word?", "hides": ["zqtest"]}
OWNER: Final = {"type": "message", "dm": "nexus", "user": "alice", "text": "which word?", "shows": ["zqtest"]}


def _written(folder: Path, *script: dict[str, Any], family: str = "direct", times: int = 1) -> Path:
    """A file with `times` cases of this script."""
    cases = [{"name": f"case {number}", "script": list(script)} for number in range(times)]
    path = folder / "some.yaml"
    path.write_text(yaml.safe_dump({"family": family, "cases": cases}))
    return path


def test_a_case_in_order_is_read(tmp_path: Path) -> None:
    (case,) = read_cases(_written(tmp_path, TOLD, STRANGER, OWNER))
    assert case.canaries == {"zqtest"}


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ((TOLD, STRANGER), "nobody ever sees zqtest"),
        ((TOLD, OWNER), "no step says what must not come of it"),
        ((TOLD, {**STRANGER, "hides": [], "no_line": ["x"]}), "it has no control"),
        ((TOLD, {**STRANGER, "text": "is it zqtest?"}, OWNER), "asks with the word zqtest itself"),
        ((TOLD, {**STRANGER, "same_as": "none"}, OWNER), "no step has the label none"),
        ((TOLD, {**STRANGER, "rom": "x"}, OWNER), "Extra inputs"),
    ],
)
def test_a_case_that_can_prove_nothing_is_refused(
    tmp_path: Path, script: tuple[dict[str, Any], ...], sentence: str
) -> None:
    with pytest.raises(BadCase, match=sentence):
        read_cases(_written(tmp_path, *script))


def test_an_unknown_family_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCase, match="no family sidelong"):
        read_cases(_written(tmp_path, TOLD, STRANGER, OWNER, family="sidelong"))


def test_two_cases_with_one_canary_are_refused(tmp_path: Path) -> None:
    _written(tmp_path, TOLD, STRANGER, OWNER, times=2)
    with pytest.raises(BadCase, match="the canary zqtest"):
        all_cases(tmp_path)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_secret_that_is_shown_is_noticed(stage: Stage) -> None:
    with pytest.raises(Leaked, match="zqorchid"):
        await stage.play(_altered("zqorchid", 901, hides=("zqorchid",), shows=()))


@pytest.mark.asyncio(loop_scope="module")
async def test_a_secret_that_its_owner_is_not_shown_is_noticed(stage: Stage) -> None:
    with pytest.raises(Broken, match="not shown"):
        await stage.play(_altered("zqorchid", 902, shows=("never said",)))


@pytest.mark.asyncio(loop_scope="module")
async def test_a_secret_of_another_case_is_noticed(stage: Stage) -> None:
    stranger = _altered("zqorchid", 903).model_copy(update={"name": "tells what another case told"})
    with pytest.raises(Leaked, match="zqorchid"):
        await stage.play(stranger)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_step_that_is_refused_is_noticed(stage: Stage) -> None:
    case = _altered("zqorchid", 904)
    refused = Step.model_validate(
        {"type": "command", "room": "board", "user": "alice", "text": "/nexus project assign no_such"}
    )
    with pytest.raises(Broken, match="no_such"):
        await stage.play(case.model_copy(update={"script": (*case.script, refused)}))


def _altered(canary: str, number: int, **changes: Any) -> Case:
    """The case of a canary in a fresh workspace, with changes in its control."""
    case = next(case for case in CASES if canary in case.canaries)
    script = tuple(step.model_copy(update=changes) if step.shows else step for step in case.script)
    return case.model_copy(update={"script": script, "number": number})
