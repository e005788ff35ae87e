"""Which roles the templates of models take: what is known by a model's name, and what a refusal says. Pure.

Most models take any order of roles. What is listed here saves the first request to a model, which would be refused;
every other one is found out by its refusal.
"""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class RoleNeeds:
    """`no_system`: system texts have to be in a message of the user; `alternate`: two messages of one role that follow
    each other have to be one."""

    no_system: bool = False
    alternate: bool = False


_KNOWN: Final = (
    (re.compile(r"gemma"), RoleNeeds(no_system=True, alternate=True)),
    (re.compile(r"mi[sx]tral-(8x)?\d+x?\d*b.*instruct|zephyr|vicuna"), RoleNeeds(no_system=True, alternate=True)),
    (re.compile(r"llama-?2|deepseek-(reasoner|r1)|sonar|phi-3|command-r"), RoleNeeds(alternate=True)),
)
_ALTERNATION: Final = re.compile(
    r"alternat|(consecutive|successive|same|repeated|two)\b.{0,40}\b(roles?|messages?|user)|unexpected role"
    r"|expected last role|last message (must|should)|first message (must|should)"
)


def known_needs(model: str) -> RoleNeeds:
    """What is known of a model by its name."""
    return next((needs for names, needs in _KNOWN if names.search(model.lower())), RoleNeeds())


def names_alternation(reason: str) -> bool:
    """Whether a refusal, in lower case, says that roles must alternate."""
    return _ALTERNATION.search(reason) is not None


def names_system_role(reason: str) -> bool:
    """Whether a refusal, in lower case, says that there may be no system message, or none there."""
    return "system" in reason and ("role" in reason or "system message" in reason or "support" in reason)
