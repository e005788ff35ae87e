"""What a tenant's admins may set for retrieval: the keys, what they do, and what may stand there. Pure."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from composer.errors import BadInput
from composer.layers.semantic import Retrieval

STRATEGIES: Final = ("hybrid", "semantic", "recent")
PREFIX: Final = "retrieval."  # of the keys as they are stored: other parts of the program have settings too


@dataclass(frozen=True, slots=True)
class Key:
    """A setting: what it does, and the least and most that a number may be (`most` 0: it is one of the strategies)."""

    name: str
    help: str
    least: int = 0
    most: int = 0


KEYS: Final = {
    key.name: key
    for key in (
        Key(
            "strategy",
            "how RECALL is chosen: hybrid (meaning and words), semantic (meaning alone), recent (newest first)",
        ),
        Key("top_k", "how many things are recalled at most; 0 recalls nothing", 0, 100),
        Key("recall_tokens", "how many tokens of the prompt they may take", 0, 100_000),
        Key(
            "retention_days",
            "hides: recall leaves out what is older than so many days, and nothing is erased; 0 recalls all",
            0,
            36_500,
        ),
    )
}


KEEP_DAYS: Final = "keep_days"  # of a tenant in nexus.toml: what erases is not set in ephemeral, in a room
KEEP_DAYS_HELP: Final = (
    "erases: messages older than so many days are gone for good, with all that was made from them, every night"
)


def tuned(configured: Retrieval, stored: Mapping[str, str]) -> Retrieval:
    """What is configured, with what the admins have set over it. `stored`: JSON texts by their stored keys."""
    own = {key: json.loads(stored[PREFIX + key]) for key in KEYS if PREFIX + key in stored}
    return replace(configured, **own)


def parsed(name: str, value: str) -> str:
    """A value as it is stored, as JSON text. Raises BadInput with a sentence that says what may stand there."""
    key = key_of(name)
    if not key.most:
        if value.lower() not in STRATEGIES:
            raise BadInput(f"There is no strategy '{value}'; there is {', '.join(STRATEGIES)}.")
        return json.dumps(value.lower())
    plain = value.replace(",", "").replace("_", "")
    if not (plain.isascii() and plain.isdigit()) or not key.least <= int(plain[:12]) <= key.most:
        raise BadInput(f"{key.name} is a whole number from {key.least:,} to {key.most:,}.")
    return json.dumps(int(plain))


def key_of(name: str) -> Key:
    """The key of this name. Raises BadInput, with the nearest one."""
    known = name.lower().replace("-", "_")
    if known in KEYS:
        return KEYS[known]
    if known == KEEP_DAYS:
        raise BadInput(
            "keep_days erases messages for good, so it is set in nexus.toml alone, under the tenant; "
            "to have older things left out of recall: /nexus settings retention_days 30"
        )
    near = difflib.get_close_matches(known, KEYS, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; there is {', '.join(KEYS)}."
    raise BadInput(f"There is no setting '{name}'{hint}")
