"""Runs schemathesis against a served world, as one viewer, whose reads are repeated as others."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fuzz.world import World, strangers

# What a use case refuses although its shape is right: what is not there, not theirs or not so any more.
REFUSED: Final = (401, 402, 403, 404, 409, 410, 412, 422)
EVERY_PHASE: Final = "examples,coverage,fuzzing,stateful"
MAY_CONTRADICT: Final = r"^/v1/entries|^/v1/agent/(entries|team)"
_OPTIONS: Final = (
    *("--workers", "1", "--no-color", "--warnings", "off", "--continue-on-failure"),
    *("--suppress-health-check", "all", "--request-timeout", "120", "--generation-database", "none"),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What schemathesis said: `failed`, with all of its output."""

    failed: bool
    output: str


async def fuzz(
    world: World,
    folder: Path,
    viewer: str,
    *,
    examples: int,
    seed: int,
    phases: str = EVERY_PHASE,
    only: str | None = None,
) -> Ran:
    """Send at most so many generated requests to each operation, and repeat reads as strangers, who must not see what
    they show. `only` is a regular expression for paths. Files are written to `folder`."""
    users = [
        {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {key}"}]}
        for name, key in sorted(world.keys.items(), key=lambda item: item[0] != viewer)
    ]
    (folder / "auth.json").write_text(json.dumps({"schemaVersion": "0.3.0", "auth": users}), encoding="utf-8")
    (folder / "schemathesis.toml").write_text(_config(folder, viewer, strangers(viewer)), encoding="utf-8")
    program = str(Path(sys.executable).with_name("schemathesis"))
    bounds = ["--max-examples", str(examples), "--seed", str(seed), "--phases", phases]
    chosen = [] if only is None else ["--include-path-regex", only]
    config = ["--config-file", str(folder / "schemathesis.toml")]
    process = await asyncio.create_subprocess_exec(
        *(program, *config, "run", f"{world.url}/openapi.json", *_OPTIONS, *bounds, *chosen),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ran(process.returncode != 0, output.decode("utf-8", "replace"))


def _config(folder: Path, viewer: str, others: Sequence[str]) -> str:
    """The settings of schemathesis that its command line does not take."""
    return f"""
[auth.wfc]
path = {json.dumps(str(folder / "auth.json"))}
user = {json.dumps(viewer)}
peers = {json.dumps([viewer, *others])}

[checks.positive_data_acceptance]
expected-statuses = {json.dumps(["2xx", *map(str, REFUSED)])}

[checks.negative_data_rejection]
expected-statuses = {json.dumps(["400", *map(str, REFUSED), "405", "408", "413", "415", "421", "429", "431"])}

# Beside /v1/entries/{{id}} an address such as /v1/entries/forget takes the other's methods, too, and answers that it is
# no id. Which methods an address takes is tested in tests/integration/test_http_errors.py.
[checks.unsupported_method]
enabled = false

[checks.allow_header_conformance]
enabled = false

# What a stream answers is documented as the text that it is, and schemathesis compares each event with it.
[[operations]]
include-path-regex = "/stream$"
checks.response_schema_conformance.enabled = false

# What tells of changes lasts as long as it is asked to.
[[operations]]
include-path = "/v1/events"
enabled = false

# What standards take and answer is theirs, and has tests of its own: conformance suites, and attacks on OAuth.
[[operations]]
include-path-regex = "^/(mcp|oauth/|\\\\.well-known/|v1/(chat/completions|responses|embeddings|models))"
enabled = false

# Parameters of lists contradict each other, which the document can't say; and If-Match is sent without its quotes.
[[operations]]
include-path-regex = "{MAY_CONTRADICT}"
checks.positive_data_acceptance.expected-statuses = {json.dumps(["2xx", "400", *map(str, REFUSED)])}
"""
