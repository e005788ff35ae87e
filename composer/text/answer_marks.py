"""The marks that models write around their reasoning, calls of functions and turns, by their form. Pure.

Every family of models spells them in its own way: `<think>`, `[THINK]`, `<|START_THINKING|>`, `</s>`, `<|im_end|>`. A
mark is recognised by the words of its name, so that a new spelling of an old idea is known too.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

MAX_MARK_CHARS: Final = 200
_NAME: Final = r"[A-Za-z\uff5c][\w:.\u2581\uff5c-]{0,80}"
_MORE: Final = r"(?:[ =][^<>\n|]{0,100})?"
_NO_LETTERS: Final = re.compile(r"[^a-z]+")
_MARK: Final = re.compile(
    rf"(?P<opens><[|\uff5c]?|\u25c1|\[\|?)(?P<slash>/?)(?P<name>{_NAME})(?P<more>{_MORE})(?P<shuts>\|?>|\uff5c>|\u25b7|\|?\])"
)
_BEGUN: Final = re.compile(rf"(?:<[|\uff5c]?|\u25c1|\[\|?)/?(?:{_NAME}{_MORE})?[|\uff5c]?\Z")
_THINKING: Final = frozenset(("think", "thinking", "thought", "thoughts"))
_REASONING: Final = frozenset(
    ["reasoning", "reflection", "scratchpad", "scratch_pad", "monologue", "cot", "rationale", "ponder", "analysis"]
)
_ENDS: Final = frozenset(["end", "eot", "eom", "eos", "eod", "endoftext", "endofturn", "return", "stop", "close"])
_ROLES: Final = frozenset(
    ("im_start", "start", "begin", "content", "start_header_id", "start_of_turn", "assistant", "user", "system")
) | {"model", "human", "bot"}
_PLAIN: Final = frozenset(
    ["s", "eos", "bos", "pad", "turn", "end_of_turn", "start_of_turn", "end_of_text", "endoftext"]
)
_CALLS: Final = frozenset(
    ["python_tag", "start_action", "end_action", "action_start", "action_end", "tools_prefix", "tools_suffix"]
)
_INNER: Final = frozenset(["inner_prefix", "inner_suffix"])
_ANSWERS: Final = frozenset(["answer", "final", "final_answer", "response", "output", "solution"])
_SPELLED: Final = {"unused94": "think", "unused95": "/think"}  # tokens of Gemma without a name of their own


class MarkKind(Enum):
    """What a mark begins or ends."""

    THINKING = auto()
    CALL = auto()
    CHANNEL = auto()  # a part of an answer in the format of gpt-oss
    END = auto()  # of a turn or a text
    ROLE = auto()  # the beginning of a turn
    ANSWER = auto()  # around the answer itself
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark at the beginning of a text, of `length` characters. Its beginning and its end have the same `name`."""

    kind: MarkKind
    name: str
    length: int
    closes: bool


def mark_at(text: str, at: int = 0) -> Mark | None:
    """The mark at a place of a text; None where there is none, or one that says nothing here, such as `<b>`."""
    found = _MARK.match(text, at)
    if found is None:
        return None
    raw = found["name"].strip("|\uff5c").lower()
    spelled = _SPELLED.get(raw, raw)
    words = [each for each in _NO_LETTERS.split(spelled) if each]
    closes = bool(found["slash"]) or spelled.startswith("/") or words[:1] in (["end"], ["stop"], ["close"])
    closes = closes or words[-1:] in (["end"], ["suffix"])
    kind, name = _kind(found, spelled, words)
    if kind is MarkKind.CHANNEL and found["shuts"] != found["opens"][::-1].replace("<", ">"):
        kind, closes = MarkKind.THINKING, found["opens"] == "<"  # <|channel>thought … <channel|>
    return None if kind is None else Mark(kind, name, len(found[0]), closes)


def may_become_mark(text: str, at: int = 0) -> bool:
    """Whether the end of a text from a place on may be the beginning of a mark."""
    return len(text) - at < MAX_MARK_CHARS and _BEGUN.match(text, at) is not None


def _kind(found: "re.Match[str]", raw: str, words: list[str]) -> tuple[MarkKind | None, str]:
    together, more = "".join(words), found["more"]
    is_token = len(found["opens"]) > 1 or found["opens"] == "\u25c1" or found["shuts"] in ("|>", "\uff5c>")
    if found["opens"] == "[":
        if not found["name"].isupper() or more:
            return None, ""
        if together == "inst":
            return (MarkKind.END if found["slash"] else MarkKind.ROLE), raw
        is_call, thinks = together == "toolcalls", together in _THINKING | _REASONING
        return (MarkKind.CALL, raw) if is_call else (MarkKind.THINKING, together) if thinks else (None, "")
    if raw == "channel" and is_token:
        return MarkKind.CHANNEL, raw
    if "toolcall" in together or "functioncall" in together or raw in _CALLS:
        return MarkKind.CALL, raw
    if (raw == "function" and more.startswith("=")) or (words[-1:] == ["invoke"] and "name=" in more):
        return MarkKind.CALL, raw
    if raw == "details" and ('"reasoning"' in more or found["slash"]):
        return MarkKind.THINKING, raw
    if set(words) & _THINKING or together.endswith("thinking"):
        return MarkKind.THINKING, "think"
    if set(words) & _REASONING or raw in _REASONING:
        return MarkKind.THINKING, raw if raw in _REASONING else next(each for each in words if each in _REASONING)
    if raw in _INNER:
        return MarkKind.THINKING, "inner"
    if raw in _ANSWERS and not is_token and not more:
        return MarkKind.ANSWER, raw
    if more or not (is_token or raw in _PLAIN):
        return None, ""
    if raw in _ROLES:
        return MarkKind.ROLE, raw
    return (MarkKind.END if set(words) & _ENDS or raw in ("s", "turn") else MarkKind.OTHER), raw
