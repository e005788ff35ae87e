"""Before an import, what a model's work on it will cost is said, and confirmed when it is much; and who starts Nexus is
told that a model extracts."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from bot.console.cli import talk
from composer.operations.import_estimate import ImportEstimator
from composer.settings import AgentSettings, PriceSettings, Settings
from composer.stores.models.tokens import tokenizer_for
from tests.support.harness import START, open_harness
from tests.support.model_server import ModelServer, Say
from tests.support.program import Program
from tests.support.waiting import TIMEOUT_SECONDS

MODEL = {"NEXUS_OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "NEXUS_MODEL": "gpt-4o"}


@pytest.fixture
def program(settings: Settings, tmp_path: Path) -> Program:
    """The program over this worker's servers and a fresh database."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    urls = {"NEXUS_DATABASE_URL": settings.database_url, "NEXUS_REDIS_URL": settings.redis_url}
    return Program(tmp_path, {"NEXUS_HOME": str(tmp_path / "home"), **urls})


def settings_of(tmp_path: object, **changes: object) -> Settings:
    given = {"home": tmp_path, "openai_base_url": "http://127.0.0.1:1/v1", "agents": [{"model": "gpt-4o"}], **changes}
    return Settings.model_validate(given)


def test_an_estimate_counts_batches_sessions_days_and_weeks(tmp_path: object) -> None:
    estimator = ImportEstimator(settings_of(tmp_path))
    for day in range(2):
        for n in range(30):
            at = datetime(2026, 5, 4 + day, 9, tzinfo=UTC) + timedelta(seconds=n)
            estimator.add("general", "alice", at, "we decided to ship the parser on the twelfth of June")
    estimator.add("lobby", "alice", datetime(2026, 5, 4, 9, tzinfo=UTC), "hello")
    estimate = estimator.result()
    assert estimate is not None
    extraction, summaries = estimate.parts
    assert (extraction.kind, extraction.calls) == ("extraction", 2)
    assert (summaries.kind, summaries.calls) == ("summaries", (2 + 2 + 1) + (0 + 1 + 1))
    said = tokenizer_for("gpt-4o").count("we decided to ship the parser on the twelfth of June") * 60
    assert extraction.usage.prompt_tokens > said
    assert summaries.usage.prompt_tokens > 2 * said
    assert estimate.messages == 61


def test_an_estimate_counts_each_author_apart_as_they_are_read(tmp_path: object) -> None:
    estimator = ImportEstimator(settings_of(tmp_path))
    for n in range(6):
        estimator.add("general", ("alice", "bob")[n % 2], START + timedelta(seconds=n), "we decided to ship")
    estimate = estimator.result()
    assert estimate is not None
    assert next((part.kind, part.calls) for part in estimate.parts) == ("extraction", 2)


def test_an_estimate_is_priced_by_each_model_and_asks_above_a_limit(tmp_path: object) -> None:
    prices = {"small": PriceSettings(input=Decimal(1), output=Decimal(10))}
    settings = settings_of(tmp_path, prices=prices, extraction_model="small")
    estimator = ImportEstimator(settings)
    for n in range(2_000):
        estimator.add("general", "alice", START + timedelta(seconds=n), "word " * 200)
    estimate = estimator.result()
    assert estimate is not None
    extraction, summaries = estimate.parts
    used = extraction.usage
    assert extraction.cost == Decimal(used.prompt_tokens + 10 * used.completion_tokens) / 1_000_000
    assert summaries.cost is None
    assert estimate.cost == extraction.cost
    assert estimate.needs_confirmation
    assert "without a price" in estimate.sentence(settings)


@pytest.mark.parametrize(
    ("budget", "held"),
    [
        ({"tokens": 1_000_000, "kind": "extraction"}, True),
        ({"tokens": 1_000, "kind": "extraction"}, False),
        ({"money": 0, "kind": "extraction"}, False),
        ({"tokens": 1_000}, False),
        ({"tokens": 1_000, "kind": "answers"}, True),
        ({"tokens": 1_000, "agent": "other"}, True),
    ],
)
def test_an_estimate_names_the_budgets_that_cannot_hold_the_extraction(
    tmp_path: object, budget: dict[str, object], held: bool
) -> None:
    prices = {"gpt-4o": PriceSettings(input=Decimal(1), output=Decimal(1))}
    settings = settings_of(tmp_path, prices=prices, budgets=[{"per": "day", **budget}])
    estimator = ImportEstimator(settings)
    for n in range(30):
        estimator.add("general", "alice", START + timedelta(seconds=n), "we decided to ship the parser")
    estimate = estimator.result()
    assert estimate is not None
    assert ("can't hold that" in estimate.sentence(settings)) is not held
    assert ("raise the budget first" in estimate.sentence(settings)) is not held
    assert len(estimate.as_json(settings)["warnings"]) == (0 if held else 1)


@pytest.mark.parametrize("changes", [{"agents": [{}]}, {"openai_base_url": None}])
def test_without_a_model_there_is_no_estimate(tmp_path: object, changes: dict[str, object]) -> None:
    estimator = ImportEstimator(settings_of(tmp_path, **changes))
    estimator.add("general", "alice", START, "hello")
    assert estimator.result() is None


async def test_what_an_import_uses_is_near_its_estimate(settings: Settings) -> None:
    """Compared with the requests that a model server gets, counted by the model's own tokenizer."""
    async with ModelServer() as server:
        server.default = Say(('{"memory": []}',))
        update = {"openai_base_url": server.url, "agents": (AgentSettings(model="gpt-4o"),)}
        settings = settings.model_copy(update=update | {"model_timeout": TIMEOUT_SECONDS})
        async with open_harness(settings) as harness:
            estimator = ImportEstimator(settings)
            for n in range(150):
                text = f"the crane number {n} needs another review before Friday"
                await harness.say("alice", text, room="general")
                estimator.add("general", "alice", harness.clock.now(), text)
            harness.clock.tick(600)
            assert harness.app.extractions is not None
            while await harness.app.extractions.learn_due(harness.workspace().tenant_id):
                pass
        sent = [request.body["messages"] for request in server.requests]
    count = tokenizer_for("gpt-4o").count
    actual = sum(count(message["content"]) for messages in sent for message in messages)
    estimate = estimator.result()
    assert estimate is not None
    expected = estimate.parts[0]
    assert expected.calls == len(sent)
    assert actual <= expected.usage.prompt_tokens <= 1.5 * actual


def history(program: Program, count: int) -> str:
    said = {"type": "message", "room": "general", "user": "alice"}
    times = (START + timedelta(seconds=n) for n in range(count))
    events = [
        said | {"at": at.isoformat(), "id": f"m{n}", "text": f"{n} " + "word " * 60} for n, at in enumerate(times)
    ]
    return str(program.script(*events, name="history.jsonl"))


def test_an_import_says_what_it_will_cost_and_loads_it_when_that_is_little(program: Program) -> None:
    ran = program.run("import", history(program, 5), "--json", **MODEL)
    assert ran.status == 0
    estimate, done = ran.lines
    assert estimate["estimate"]["messages"] == done["new"] == 5
    assert [part["kind"] for part in estimate["estimate"]["parts"]] == ["extraction", "summaries"]
    ran = program.run("import", history(program, 5), **MODEL)
    assert (
        "The background work on 5 messages is expected to use, if none is stored yet: extraction with gpt-4o" in ran.out
    )


def test_an_expensive_import_asks_for_yes_before_anything_is_stored(program: Program) -> None:
    (program.folder / "nexus.toml").write_text('[prices."gpt-4o"]\ninput = 1000\noutput = 1000\n')
    ran = program.run("import", history(program, 50), **MODEL)
    assert ran.status == 2
    assert ran.sentences[-1] == "nexus: Nothing was loaded: to load it at that cost, give the command again with --yes."
    ran = program.run("import", history(program, 50), "--yes", "--json", **MODEL)
    assert (ran.status, ran.lines[-1]["new"]) == (0, 50)


async def test_who_starts_nexus_is_told_which_model_extracts_and_how_to_stop_that(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    api = {"openai_base_url": "http://127.0.0.1:1/v1", "agents": (AgentSettings(model="m"),), "extraction_model": "x"}
    async with open_harness(settings.model_copy(update=api)) as harness:
        notice = harness.app.notice
        talk._greet(harness.app, harness.workspace(), False)
    assert notice.startswith("Memories are extracted from what people write by the model x, in the background.")
    assert "Without a model: NEXUS_EXTRACTION=pattern; not at all: NEXUS_EXTRACTION=off." in notice
    assert "by the model x" in capsys.readouterr().out
    for off in ({"extraction": "pattern"}, {"openai_base_url": None, "extraction": "auto"}):
        async with open_harness(settings.model_copy(update=api | off)) as harness:
            assert harness.app.notice == ""
