"""The retrieval settings that a tenant's admins may change: their keys, meanings and allowed values. Pure."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from composer.errors import BadInput
from composer.layers.semantic import Retrieval

STRATEGIES: Final = ("hybrid", "semantic", "recent")
MAX_DIGITS: Final = 12  # of a number that somebody types, leading zeros included
STORED_PREFIX: Final = "retrieval."  # of the keys in the database: other parts of the program store settings too


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: what it does, and the smallest and largest number allowed (`maximum` 0: it takes a strategy)."""

    name: str
    help: str
    minimum: int = 0
    maximum: int = 0


RETRIEVAL_SETTINGS: Final = {
    setting.name: setting
    for setting in (
        Setting(
            "strategy",
            "how RECALL is chosen: hybrid (meaning and words), semantic (meaning alone), recent (newest first)",
        ),
        Setting("top_k", "at most this many items are recalled; 0: none", 0, 100),
        Setting("recall_tokens", "at most this many tokens of the prompt for recalled items", 0, 100_000),
        Setting("summary_tokens", "at most this many tokens of the prompt for summaries of earlier days", 0, 100_000),
        Setting(
            "retention_days",
            "recall leaves out items older than this many days; nothing is erased; 0: no limit",
            0,
            36_500,
        ),
    )
}


KEEP_DAYS: Final = "keep_days"  # composer.layers.retention_settings: a setting that erases is not changed in a chat
KEEP_DAYS_HELP: Final = (
    "erases messages older than this many days every night, for good, with everything made from them but the landmarks "
    "that somebody pinned, accepted or amended"
)


def with_overrides(configured: Retrieval, stored: Mapping[str, str]) -> Retrieval:
    """The configured settings with what the admins changed. `stored`: JSON texts by their stored keys."""
    overrides = {
        key: json.loads(stored[STORED_PREFIX + key]) for key in RETRIEVAL_SETTINGS if STORED_PREFIX + key in stored
    }
    allowed = {
        key: min(value, RETRIEVAL_SETTINGS[key].maximum) if RETRIEVAL_SETTINGS[key].maximum else value
        for key, value in overrides.items()
    }
    return replace(configured, **allowed)  # an older version took larger numbers


def parse_value(name: str, value: str) -> str:
    """A value as JSON text, as it is stored. Raises BadInput with a sentence that says which values are allowed."""
    key = find_setting(name)
    if not key.maximum:
        if value.lower() not in STRATEGIES:
            raise BadInput(f"There is no strategy '{value}': choose one of {', '.join(STRATEGIES)}.")
        return json.dumps(value.lower())
    digits = value.replace(",", "").replace("_", "")
    if (
        not (digits.isascii() and digits.isdigit())
        or len(digits) > MAX_DIGITS
        or not key.minimum <= int(digits) <= key.maximum
    ):
        raise BadInput(f"{key.name} is a whole number from {key.minimum:,} to {key.maximum:,}.")
    return json.dumps(int(digits))


def find_setting(name: str) -> Setting:
    """The setting of this name, in any case and with `-` or `_`. Raises BadInput, with the nearest name."""
    wanted = name.lower().replace("-", "_")
    if wanted in RETRIEVAL_SETTINGS:
        return RETRIEVAL_SETTINGS[wanted]
    if wanted == KEEP_DAYS:
        raise BadInput(
            "keep_days erases messages for good, so it is set on the web page Admin, or in nexus.toml. "
            "To leave older items out of recall: /nexus settings retention_days 30"
        )
    near = difflib.get_close_matches(wanted, RETRIEVAL_SETTINGS, n=1)
    hint = f"; did you mean {near[0]}?" if near else f": choose one of {', '.join(RETRIEVAL_SETTINGS)}."
    raise BadInput(f"There is no setting '{name}'{hint}")
