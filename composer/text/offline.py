"""The notices in answers that are made without a model, and answers without them."""

import re
from typing import Final

from composer.text.notices import NOTHING_ELSE, without_notices

OFFLINE: Final = "(offline: no model is configured"
SET_MODEL: Final = "Set NEXUS_OPENAI_BASE_URL and NEXUS_MODEL to have a model answer."

WISH: Final = "About your reminder:"  # what became of it is said below, by a notice
OFFLINE_MODEL: Final = "offline"  # is stored as the model of an answer that was made without one

_QUOTE = ("- ", "  ")  # begins a line that is quoted
_NOTICE = re.compile(re.escape(OFFLINE) + r"[^()]*\)\s*")


def without_notice(text: str) -> str:
    """An agent's answer without the notice that it was made offline. Where a model answers by now, that is not so."""
    if OFFLINE not in text:
        return text
    return _NOTICE.sub("", text).replace(SET_MODEL, "").strip()


def without_program(text: str) -> str:
    """An agent's answer without what the program says of itself: its notices, and all that an answer that was made
    without a model says but for its quotes."""
    if OFFLINE not in text:
        return without_notices(text).removeprefix(WISH).removesuffix(NOTHING_ELSE)
    return "\n".join(line for line in text.splitlines() if line.startswith(_QUOTE))


def answered_by(model: str) -> str:
    """Which model answers, for people: "model: gpt-4o", or "no model: quotes"."""
    return "no model: quotes" if model in ("", OFFLINE_MODEL) else f"model: {model}"
