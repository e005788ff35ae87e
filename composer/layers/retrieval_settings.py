"""The settings of recall that a tenant's admins may change: their names, meanings and allowed values. Pure."""

from typing import Final

from composer.errors import BadInput
from composer.layers.tenant_settings import Setting, group

STRATEGIES: Final = ("hybrid", "semantic", "recent")


RETRIEVAL: Final = group(
    "retrieval.",
    (
        Setting(
            "strategy",
            "how RECALL is chosen: hybrid (meaning and words), semantic (meaning alone), recent (newest first)",
            choices=STRATEGIES,
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
    ),
)


KEEP_DAYS: Final = "keep_days"  # composer.ingest.retention_settings: a setting that erases is not changed in a chat
KEEP_DAYS_HELP: Final = (
    "erases messages older than this many days every night, for good, with everything made from them but the landmarks "
    "that somebody pinned, accepted or amended"
)


def find_setting(name: str) -> Setting:
    """The setting of recall of this name. Raises BadInput, with the nearest name."""
    if name.lower().replace("-", "_") == KEEP_DAYS:
        raise BadInput(
            "keep_days erases messages for good, so it is set on the web page Admin, or in nexus.toml. "
            "To leave older items out of recall: /nexus settings retention_days 30"
        )
    return RETRIEVAL.find(name)
