"""What a model writes for people, apart from what it writes besides: reasoning, calls and end marks. Pure.

A server that knows its model takes these out by itself; many do not. They are told from text that is about them by
where they stand: a mark in code is text, and so is one within a sentence.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from composer.text.answer_marks import Mark, MarkKind, mark_at, may_become_mark
from composer.text.written_calls import Offered, written_calls

MAX_LOOKAHEAD: Final = 60  # characters after which it is known what begins

_START: Final = re.compile(r"[<\u25c1\[`~{]")
_MARK_START: Final = re.compile(r"[<\u25c1\[]")
_FENCE: Final = re.compile(r"\A(`{3,}|~{3,})([^\n`]*)\n")
_TICKS: Final = re.compile(r"`+|\n")
_CHANNEL: Final = re.compile(r"<\|channel\|>(?P<name>[^<]{0,200})(?:<\|constrain\|>[^<]{0,40})?<\|message\|>")
_CHANNEL_END: Final = re.compile(r"<\|(?:end|start|return|call|channel)\|>")
_NEXT_CHANNEL: Final = re.compile(r"\s*(?:<\|end\|>)?\s*(?:<\|start\|>\s*assistant)?\s*")
_UNMARKED_ANALYSIS: Final = re.compile(r"analysis(?=[A-Z])")  # channels whose marks the server has taken out
_UNMARKED_FINAL: Final = re.compile(r"assistantfinal")
_UNMARKED_CALL: Final = re.compile(r"assistantcommentary to=")
_ROLE_NAME: Final = re.compile(r"\A\s*(?:assistant|model)(?P<called> to=[\w.]+)?(?=\s*(?:\n|<|\Z))")
_ROLE_ALONE: Final = re.compile(r"\Aassistant[^\S\n]*\n")
_FENCED_CALL: Final = re.compile(
    r"\A[\s\[]{0,20}\{\s{0,20}\"(?:name|tool|tool_name|function|function_name|action|recipient_name|tool_calls|type)\""
)
_CALL_FENCE: Final = frozenset(("", "json", "tool_code", "tool_call"))
MAX_LINE_CHARS: Final = 300  # of reasoning, in which a mark may be quoted
_BARE_CALL: Final = re.compile(
    r"\{|```(?:json|tool_code|tool_call)?[^\S\n]*\n|(?:functools)?\[\s*(?:\{|[A-Za-z_][\w.]*\()"
)
_LIKE_A_CALL: Final = re.compile(r"\s*(?:\Z|[\[{<\uff5c]|[\w.:\u2581-]+\s*(?:[\[{<(:=]|\n|\Z))")
_THINKING_FENCE: Final = frozenset(("think", "thinking", "thought", "thoughts", "reasoning"))
_SENTENCE_ENDS: Final = tuple(".!?\u2026\u3002\uff01\uff1f")
_AROUND_NAMES: Final = (("", "("), (">>>", "\n"))  # of functions that are called
_QUOTES: Final = tuple("\"'`(\u201c\u2018\u00ab[")
_READS_ON: Final = re.compile(r"\A(?:[^\S\n]+[^\W\dA-Z_]|[,.;:!?)\"'`\u201d\u2019\u00bb])")


class _State(Enum):
    TEXT = auto()
    FENCE = auto()
    INLINE_CODE = auto()
    REASONING = auto()
    CALL = auto()
    CUT = auto()


class AnswerText:
    """Takes the pieces of one answer, and gives its text.

    `calls` are those that were written as text, each with its name and arguments. `reasoned`: there was reasoning in
    it; `closed_only`: of which only the end was marked; `restarted`: some of that was given before.
    """

    def __init__(self, offered: Offered | None = None, *, hold: bool = False) -> None:
        """`offered` are the functions that the model may call. `hold`: give nothing until it is known that what comes
        first is no reasoning: until a mark of its end, or the end of the answer."""
        self.calls: list[tuple[str, str]] = []
        self.reasoned = self.restarted = self.closed_only = False
        self._offered: Offered = offered or {}
        self._hold = hold
        self._state = _State.TEXT
        self._text = ""  # what has not been judged
        self._searched = 0  # of it, in reasoning
        self._out: list[str] = []
        self._given = False  # some of the answer was given, or is held as its text
        self._line = ""  # the end of what was given, at most its last line
        self._within: list[str] = []  # the reasoning that is open
        self._until: re.Pattern[str] | None = None  # the end of reasoning that has no mark of its own
        self._fence = ""
        self._subjects = 0  # marks of reasoning that a sentence is about, without their ends
        self._is_structured = False  # an answer in JSON
        self._wrapper = ""
        self._ended = False

    def feed(self, piece: str) -> str:
        """The text that the next piece completes."""
        self._text += piece
        self._judge()
        return "" if self._hold else self._taken()

    def release(self) -> None:
        """Hold nothing back any more: the reasoning has come by itself."""
        self._hold = False

    def end(self) -> str:
        """What is left of the text."""
        self._ended, self._hold = True, False
        self._judge()
        return self._taken()

    def _taken(self) -> str:
        found, self._out = "".join(self._out), []
        return found

    def _judge(self) -> None:
        steps = {
            _State.TEXT: self._judge_text,
            _State.FENCE: self._judge_fence,
            _State.INLINE_CODE: self._judge_inline_code,
            _State.REASONING: self._judge_reasoning,
            _State.CALL: self._judge_call,
            _State.CUT: self._cut,
        }
        while self._text and steps[self._state]():
            pass

    # Each of these takes from the text what it can judge. They return whether to go on; else more of the answer has to
    # come first.

    def _give(self, length: int) -> bool:
        text, self._text = self._text[:length], self._text[length:]
        if not self._given:
            text = text.lstrip()
            if not text:
                return True
            self._given, self._is_structured = True, text[0] in "{["
        self._out.append(text)
        self._line = (self._line + text).rpartition("\n")[2][-MAX_LOOKAHEAD:]
        return True

    def _drop(self, length: int) -> bool:
        self._text = self._text[length:]
        return True

    def _become(self, state: _State) -> bool:
        self._state, self._searched = state, 0
        return True

    def _judge_text(self) -> bool:
        if not self._given:
            self._text = self._text.lstrip()
            if not self._text or self._begins_otherwise():
                return bool(self._text)
            if not self._ended and self._beginning_is_open():
                return False
        found = _START.search(self._text)
        if found is None or found.start():
            return self._give(len(self._text) if found is None else found.start())
        if self._text[0] in "`~":
            return self._judge_code()
        if self._text[0] == "{":
            is_call = self._offered and not self._line.strip() and not self._is_structured
            return self._become(_State.CALL) if is_call else self._give(1)
        mark = mark_at(self._text)
        if mark is not None:
            return self._judge_mark(mark)
        return False if not self._ended and may_become_mark(self._text) else self._give(1)

    def _begins_otherwise(self) -> bool:
        """Whether an answer begins with reasoning or a call that has no mark."""
        if _UNMARKED_ANALYSIS.match(self._text):
            self._until = _UNMARKED_FINAL
            return self._become(_State.REASONING)
        if (role := _ROLE_ALONE.match(self._text)) is not None:
            return self._drop(role.end())
        names = (f"{before}{name}{behind}" for name in self._offered for before, behind in _AROUND_NAMES)
        if self._offered and (_BARE_CALL.match(self._text) or self._text.startswith(tuple(names))):
            return self._become(_State.CALL)
        return False

    def _beginning_is_open(self) -> bool:
        """Whether it may still begin in that way, once more has come."""
        if "analysis".startswith(self._text) or f"{self._text.rstrip(' ')}\n" == "assistant\n":
            return True
        if "assistant\n".startswith(self._text):
            return True
        if not self._offered or len(self._text) > MAX_LOOKAHEAD or "\n" in self._text:
            return False
        begun = (f"{before}{name}" for name in (*self._offered, "functools[") for before, _ in _AROUND_NAMES)
        return self._text[0] in "[`" or any(each.startswith(self._text) for each in begun)

    def _judge_code(self) -> bool:
        """A fence at the beginning of a line, or ticks within one."""
        if not self._line.strip():
            fence = _FENCE.match(self._text if not self._ended else f"{self._text}\n")
            if fence is None and not self._ended and "\n" not in self._text:
                is_short = len(self._text) < 2 * MAX_LOOKAHEAD and self._text[:3] in (
                    "`",
                    "``",
                    "```",
                    "~",
                    "~~",
                    "~~~",
                )
                if is_short and "`" not in self._text.lstrip("`"):
                    return False
            if fence is not None:
                self._fence = fence[1]
                if fence[2].strip().lower() in _THINKING_FENCE:
                    self._until = re.compile(rf"\n{self._fence}[`~]*[^\S\n]*(?=\n|\Z)")
                    return self._drop(fence.end()) and self._become(_State.REASONING)
                if self._offered and fence[2].strip().lower() in _CALL_FENCE:
                    inside = self._text[fence.end() :]
                    if not self._ended and len(inside) < MAX_LOOKAHEAD and "`" not in inside:
                        return False
                    if _FENCED_CALL.match(inside):
                        return self._become(_State.CALL)
                return self._give(min(fence.end(), len(self._text))) and self._become(_State.FENCE)
        if self._text[0] == "~":
            return self._give(1)
        ticks = len(self._text) - len(self._text.lstrip("`"))
        if ticks == len(self._text) and not self._ended:
            return False
        self._fence = "`" * ticks
        return self._give(ticks) and self._become(_State.INLINE_CODE)

    def _judge_fence(self) -> bool:
        """Code up to the line that ends it."""
        line, newline, _ = self._text.partition("\n")
        if not newline and not self._ended:
            return False
        closes = line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0])
        return self._give(len(line) + len(newline)) and (not closes or self._become(_State.TEXT))

    def _judge_inline_code(self) -> bool:
        """Code up to as many ticks as began it, or to the end of its line."""
        found = _TICKS.search(self._text)
        if found is None:
            return self._give(len(self._text))
        if found.start():
            return self._give(found.start())
        if found.end() == len(self._text) and not self._ended and found[0] != "\n":
            return False
        is_end = found[0] in ("\n", self._fence)
        return self._give(found.end()) and (not is_end or self._become(_State.TEXT))

    def _judge_mark(self, mark: Mark) -> bool:
        rest = self._text[mark.length :]
        if not self._ended and len(rest.lstrip(" \t")) < 1:  # what follows says whether a sentence is about it
            return False
        match mark.kind:
            case MarkKind.THINKING:
                return self._end_thinking(mark, rest) if mark.closes else self._begin_thinking(mark, rest)
            case MarkKind.CALL:
                return self._begin_call(mark, rest)
            case MarkKind.CHANNEL:
                return self._judge_channel(mark)
            case MarkKind.ANSWER:
                return self._judge_wrapper(mark)
        return self._judge_end(mark, rest)

    def _is_subject(self, rest: str) -> bool:
        """Whether a sentence is about a mark: it goes on before and behind it."""
        before = self._line.rstrip(" \t")
        if self._is_structured or before.endswith(_QUOTES):
            return True
        in_sentence = bool(before) and self._line[-1:].isspace() and not before.endswith(_SENTENCE_ENDS)
        return in_sentence or (bool(before) and _READS_ON.match(rest) is not None)

    def _begin_thinking(self, mark: Mark, rest: str) -> bool:
        if self._line.strip() and self._is_subject(rest):
            self._subjects += 1
            return self._give(mark.length)
        self._within, self._until = [mark.name], None
        return self._drop(mark.length) and self._become(_State.REASONING)

    def _end_thinking(self, mark: Mark, rest: str) -> bool:
        """An end of reasoning without a beginning: all before it was reasoning, unless a sentence is about it."""
        if mark.name == "details" or self._subjects or self._is_subject(rest):
            self._subjects = max(0, self._subjects - 1)
            return self._give(mark.length)
        self.restarted = self.restarted or (self._given and not self._hold)
        self.closed_only = self.closed_only or self._given
        self._out, self._line, self._given = [], "", False
        return self._drop(mark.length) and self._end_reasoning()

    def _judge_reasoning(self) -> bool:
        self.reasoned = True
        if self._until is not None:
            end = self._until.search(self._text)
            if end is not None:
                return self._drop(end.end()) and self._end_reasoning()
            called = _UNMARKED_CALL.search(self._text) if self._ended and self._until is _UNMARKED_FINAL else None
            self.calls += written_calls(self._text[called.end() :], self._offered) if called else []
            return self._ended and self._drop(len(self._text))
        if self._within == ["|channel|"]:
            end = _CHANNEL_END.search(self._text)
            following = None if end is None else _NEXT_CHANNEL.match(self._text, end.start())
            if end is None or following is None:
                return False
            if not self._ended and len(self._text) - following.end() < len("<|channel|>"):
                return False
            return self._drop(following.end()) and self._end_reasoning()
        while (start := _MARK_START.search(self._text, self._searched)) is not None:
            mark = mark_at(self._text, start.start())
            if mark is None:
                if not self._ended and may_become_mark(self._text, start.start()):
                    return False
                self._searched = start.end()
                continue
            after = start.start() + mark.length
            if mark.closes and (verdict := self._closes_otherwise(mark, start.start(), after)) is not None:
                if verdict == "wait":
                    return False
                self._searched = after
                if verdict == "next turn":
                    return self._drop(after) and self._end_reasoning()
                continue
            self._searched = after
            if mark.kind is not MarkKind.THINKING:
                continue
            if not mark.closes and mark.name not in self._within:
                self._within.append(mark.name)
            elif mark.closes and mark.name in self._within:
                del self._within[self._within.index(mark.name) :]
                if not self._within:
                    return self._drop(self._searched) and self._end_reasoning()
        if not self._ended:
            return False
        begun = next((at for at, mark in _marks(self._text) if mark.kind is MarkKind.CALL), len(self._text))
        self.calls += written_calls(self._text[begun:], self._offered)  # it was never closed: what it called counts
        return self._drop(len(self._text))

    def _closes_otherwise(self, mark: Mark, start: int, end: int) -> str | None:
        """What else than the end of reasoning a closing mark in it is: it is quoted ("skip"), or ends a turn of which
        the answer is the "next turn". None for neither; "wait": what follows has to come first."""
        line, rest = self._text[max(0, start - MAX_LINE_CHARS) : start].rpartition("\n")[2], self._text[end:]
        quotes = [quote for quote in '`"' if line.count(quote) % 2]
        if mark.kind is MarkKind.THINKING:
            if quotes and not rest and not self._ended:
                return "wait"
            return "skip" if rest[:1] in quotes and rest else None
        following = rest.lstrip()
        if mark.kind is not MarkKind.END or mark.name == "s":
            return None
        if not self._ended and len(following) < MAX_LOOKAHEAD and "\n" not in following:
            return "wait"
        begun = mark_at(following)
        if begun is None or begun.kind is not MarkKind.ROLE:
            return None
        is_ours = begun.name == "assistant" or _ROLE_NAME.match(following[begun.length :])
        return "next turn" if is_ours else None

    def _end_reasoning(self) -> bool:
        self.reasoned, self._hold, self._until = True, False, None
        if not self._line.strip():
            self._text = self._text.lstrip("\n")
        return self._become(_State.TEXT)

    def _judge_channel(self, mark: Mark) -> bool:
        found = _CHANNEL.match(self._text)
        if found is None:
            return False if not self._ended and len(self._text) < 2 * MAX_LOOKAHEAD else self._drop(mark.length)
        if "to=" in found["name"]:
            return self._become(_State.CALL)
        if found["name"].strip() == "final":
            return self._drop(found.end()) and self._end_reasoning()
        self._within, self._until = ["|channel|"], None
        return self._drop(found.end()) and self._become(_State.REASONING)

    def _begin_call(self, mark: Mark, rest: str) -> bool:
        if not self._ended and len(rest) < MAX_LOOKAHEAD:
            return False
        is_named = "=" in self._text[: mark.length]
        if self._is_subject(rest) or not (is_named or mark.closes or _LIKE_A_CALL.match(rest)):
            return self._give(mark.length)
        return self._drop(mark.length) if mark.closes else self._become(_State.CALL)

    def _judge_call(self) -> bool:
        """What begins as a call may have any length, and be none: it is judged at the end of the answer."""
        if not self._ended:
            return False
        is_marked = mark_at(self._text) is not None
        self.calls += (calls := written_calls(self._text, self._offered, bare=not is_marked))
        if calls:
            return self._drop(len(self._text))
        self._offered = {}
        if not is_marked:
            self._is_structured = self._text[0] != "`"
            return self._become(_State.TEXT)
        ends = [at + mark.length for at, mark in _marks(self._text) if mark.kind is MarkKind.CALL and mark.closes]
        shown = ends[-1] if ends else len(self._text)  # a call of what is not offered is left out
        return self._drop(shown) and self._become(_State.TEXT)

    def _judge_wrapper(self, mark: Mark) -> bool:
        """Marks around the answer itself, behind reasoning."""
        if mark.closes and mark.name == self._wrapper:
            self._wrapper = ""
        elif not self._given and not mark.closes and (self.reasoned or mark.name in ("answer", "final_answer")):
            self._wrapper = mark.name
        else:
            return self._give(mark.length)
        return self._drop(mark.length)

    def _judge_end(self, mark: Mark, rest: str) -> bool:
        """A mark of a turn's end or beginning. What follows an answer is a turn that the model has made up."""
        if not rest.strip():
            return self._ended and self._drop(len(self._text))
        if not self._given:
            if mark.kind is MarkKind.ROLE and not self._ended and len(rest) < MAX_LOOKAHEAD and not _has_break(rest):
                return False
            if not rest[:1].isspace() or not _READS_ON.match(rest):
                role = _ROLE_NAME.match(rest) if mark.kind is MarkKind.ROLE else None
                if role is not None and role["called"]:
                    return self._become(_State.CALL)
                return self._drop(mark.length + (0 if role is None else role.end()))
        is_closed_before = mark.name == "s" and "<s>" in self._line
        is_alone = rest[:1] == "\n" or mark_at(rest.lstrip()) is not None or not self._line.strip()
        if is_closed_before or self._is_subject(rest) or not (is_alone or not rest[:1].isspace()):
            return self._give(mark.length)
        if mark.kind is MarkKind.OTHER or rest.lstrip().startswith(("<|start|>assistant<|channel|>", "<|channel|>")):
            return self._drop(mark.length)
        return self._become(_State.CUT)

    def _cut(self) -> bool:
        return self._drop(len(self._text))


def _marks(text: str) -> Iterator[tuple[int, Mark]]:
    for start in _MARK_START.finditer(text):
        if (mark := mark_at(text, start.start())) is not None:
            yield start.start(), mark


def _has_break(text: str) -> bool:
    return "\n" in text or "<" in text
