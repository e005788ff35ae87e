"""Every attack of tests/attacks/api-*.yaml fails, and what it is after is seen by those who may."""

import itertools
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml

from composer.settings import Settings
from tests.support.api_answers import Leaked
from tests.support.api_attack_cases import FAMILIES, Case, all_cases, read_cases
from tests.support.api_stage import ApiStage, Broken, open_api_stage
from tests.support.case_files import BadCase

CASES: Final = all_cases()
_numbers = itertools.count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(shared_settings: Settings) -> AsyncIterator[ApiStage]:
    """One web app for all cases: each has a tenant of its own."""
    async with open_api_stage(shared_settings) as opened:
        yield opened


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
async def test_an_attack_fails(stage: ApiStage, case: Case) -> None:
    await stage.play(case)


def test_there_are_many_attacks_of_every_family() -> None:
    count = Counter(case.family for case in CASES)
    assert {family: count[family] for family in FAMILIES if count[family] < 6} == {}
    assert count.total() >= 120


# --- what would make the files prove nothing --------------------------------------------------------------------------

WRITES: Final = {
    "as": "alice",
    "do": "POST /v1/entries",
    "json": {"content": "zqtest"},
    "status": 201,
    "shows": "zqtest",
    "keep": {"entry": "id"},
}
STEALS: Final = {"as": "bob", "do": "GET /v1/entries/<<entry>>", "status": 404}


def _written(folder: Path, *script: dict[str, Any], family: str = "identity") -> Path:
    path = folder / "api-some.yaml"
    path.write_text(yaml.safe_dump({"family": family, "cases": [{"name": "case", "script": list(script)}]}))
    return path


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ((WRITES,), "no step attacks"),
        ((STEALS,), "it has no control"),
        (({**WRITES, "shows": []}, STEALS), "nobody ever sees zqtest"),
        ((WRITES, {**STEALS, "same_as": "none"}), "no earlier step has the label none"),
        ((WRITES, {**STEALS, "stauts": 404}), "Extra inputs"),
        ((WRITES, {"as": "bob", "do": "GET /v1/entries"}), "Field required"),
        ((WRITES, {"as": "bob", "status": 404}), "either `do` or `wire`"),
    ],
)
def test_a_case_that_can_prove_nothing_is_refused(
    tmp_path: Path, script: tuple[dict[str, Any], ...], sentence: str
) -> None:
    with pytest.raises(BadCase, match=sentence):
        read_cases(_written(tmp_path, *script))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("last", "error", "sentence"),
    [
        ({**STEALS, "status": 403}, Leaked, "403"),
        ({**STEALS, "as": "alice", "status": 200}, Leaked, "zqtest"),
        ({**STEALS, "as": "alice", "status": 200, "shows": "zqtest", "lacks": "version"}, Leaked, "version"),
        ({**STEALS, "shows": "zqtest"}, Broken, "is not shown"),
        ({**STEALS, "do": "GET /v1/entries/<<nothing>>"}, Broken, "nothing is called nothing"),
        ({**STEALS, "same_as": "written"}, Leaked, "this is not as"),
    ],
)
async def test_what_goes_wrong_in_a_case_is_noticed(
    stage: ApiStage, tmp_path: Path, last: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    script = ({**WRITES, "label": "written"}, STEALS, last)
    (case,) = read_cases(_written(tmp_path, *script))
    with pytest.raises(error, match=sentence):
        await stage.play(case.model_copy(update={"number": 90 + next(_numbers) % 10}))
