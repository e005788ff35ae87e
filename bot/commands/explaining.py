"""why: explain an answer, by its sources or by its exact prompt."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import PREFIX, AnswerFile, Call, Command, CommandAnswer, Flag
from bot.commands.sources import counted_words, links, recalled_lines, source_lines
from composer import visibility
from composer.errors import NotFound
from composer.model import ROOM_KINDS, ConversationKind
from composer.prompt.budget import MAX_PROMPT_SHARE
from composer.prompt.cited import Cited, cited, marked
from composer.prompt.explain import ExplainedSection, ExplainedSource
from composer.prompt.sections import (
    CALL_FOUND,
    COMPACTION,
    CONTEXT,
    EARLIER,
    FACTS,
    LANDMARKS,
    MESSAGE,
    RECALL,
    RELATED,
    SUMMARIES,
    SYSTEM,
    TOOLS,
    WORKING,
    UsedTool,
)
from composer.rights.table import Act
from composer.text.cleaning import shorten
from composer.text.counts import counted
from composer.text.names import in_quotes
from composer.text.offline import OFFLINE, answered_by
from composer.turn.explanation import Explanation, explain_stored
from composer.visibility import AccessContext

_LISTED: Final = (RECALL, FACTS, LANDMARKS, SUMMARIES, TOOLS)  # sections whose sources are listed one by one
MAX_SHOWN_ARGUMENT_CHARS: Final = 200  # of a tool call that is listed
_MESSAGE: Final = parameters.message("message", "the id of the question or the answer; by default your last one here")
_DETAILS: Final = Flag("details", "show every section with its tokens, and every source with its score")
_PROMPT: Final = Flag("prompt", "show the exact prompt that was sent to the model")


async def _why(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        access = await access_context(tx, call)
        own = visibility.readable_conversation(access)
        message = call.arguments.get(_MESSAGE)
        found = await tx.turns.last_prompt(own, access.conversation, call.user, message)
        if found is None and message is not None:
            raise NotFound(
                f"The message '{message}' got no answer here that I can explain to you. For your last one leave out "
                "the id."
            )
        if found is None:
            raise NotFound(
                "There is no answer to you here that I can explain. Ask something first, or name the id of a message."
            )
        if found.prompt is None:
            raise NotFound(
                "What that answer used can't be shown any more: its prompt has expired. Ask the question again."
            )
        explanation = await explain_stored(tx, access, found.prompt)
        erasures = await tx.erasure.count()
    timings = json.loads(found.timings_ms)
    total = f"{explanation.tokens:,} of {explanation.window:,} tokens"
    stages = sorted(timings.items(), key=lambda stage: stage[0] == "total")  # it comes last
    spent = ", ".join(f"{name} {value:.1f} ms" for name, value in stages)
    by = answered_by(found.model)
    head = f"{by[0].upper()}{by[1:]}. That answer's prompt had {total}; {spent}."
    turn = f"Turn {found.turn}."
    if _PROMPT.name in call.flags:
        text = "\n\n".join(f"[{message.role}]\n{message.content}" for message in explanation.messages)
        file = AnswerFile(_FILE, text, call.user, erasures)
        return CommandAnswer(f"{head}\n{turn} Its prompt, as far as you may read it now:", file=file)
    if _DETAILS.name not in call.flags:
        return CommandAnswer(_in_words(call, access, explanation, found.answer, by))
    taken = cited(explanation.sections, found.answer)
    quotes = "quotes" if OFFLINE in found.answer else "cites"
    lines = [head, *([f"The answer {quotes}:", *_cited_lines(call, taken, explanation)] if taken else [])]
    explanation = replace(explanation, sections=marked(explanation.sections, taken))
    tail = [*map(_tool_line, explanation.tools), *map(_unreached_line, explanation.unreached), turn]
    text = "\n".join((*lines, *_section_lines(call, explanation), *tail))
    return CommandAnswer(text, explanation.sections, head="\n".join(lines), tail="\n".join(tail))


def _in_words(call: Call, access: AccessContext, explanation: Explanation, answer: str, by: str) -> str:
    """What an answer was made from, as a person reads it: what it cites, what else its writer was shown, and for whose
    sake something was left out."""
    lines = source_lines(call, explanation, answer)
    shown = [
        phrase
        for section in explanation.sections
        if section.name not in (SYSTEM, CONTEXT, MESSAGE, TOOLS) and section.sources
        for phrase in (_SHOWN.get(section.name, "{}").format(*sources_phrase(section)),)
    ]
    head = f"{by[0].upper()}{by[1:]}."
    if lines:
        head += " The answer is made from:"
    elif lines := recalled_lines(call, explanation):
        head += " The answer names no source. What I recalled for it, the best first:"
    else:
        head += " The answer names no source."
    tools = [f"I called {used.name}." for used in explanation.tools]
    also = f"I was shown {counted_words(shown)}." if shown else "I was shown nothing but your question."
    return "\n".join((head, *lines, " ".join((also, *tools, _left_out(access))), f"More: {PREFIX} why --details"))


def _left_out(access: AccessContext) -> str:
    """What was not used, and for whom."""
    conversation = access.conversation
    if conversation.kind in ROOM_KINDS:
        return (
            f"What was said in direct messages and in other rooms was left out, since all of "
            f"{in_quotes(f'#{conversation.name}')} reads my answers here."
        )
    if conversation.kind is ConversationKind.DM and not access.reads_rooms:
        return f"What was said in rooms was left out: {PREFIX} rooms on lets me use yours here."
    return "What others said where you are not was left out."


_SHOWN: Final = {
    FACTS: "the facts here ({})",
    LANDMARKS: "the decisions here ({})",
    SUMMARIES: "summaries ({})",
    RECALL: "what I recalled ({})",
}


def _cited_lines(call: Call, taken: Sequence[Cited], explanation: Explanation) -> list[str]:
    """What the answer cites or quotes, each with its section and links to its messages."""
    return [
        "  ".join((f"  {each.section}: {each.text.removeprefix('- ')}", *links(call, each.source, explanation)))
        for each in taken
    ]


_FILE: Final = "prompt.txt"


def _tool_line(used: UsedTool) -> str:
    """A memory tool that the model called: its arguments, and what came back, by mark."""
    came = used.outcome if used.outcome != CALL_FOUND else f"{len(used.marks)} found"
    marks = f" ({', '.join(used.marks)})" if used.marks else ""
    return f"Called {used.name}: {shorten(used.arguments, MAX_SHOWN_ARGUMENT_CHARS)} \N{RIGHTWARDS ARROW} {came}{marks}"


def _unreached_line(server: str) -> str:
    """A tool server that was asked for its tools in vain."""
    return f"{server} could not be reached; its tools were not offered."


def _section_lines(call: Call, explanation: Explanation) -> list[str]:
    lines, sections = [], explanation.sections
    busy_room = busy_room_sentence(sections)
    for section in sections:
        lines.append(f"{section.name}: {', '.join((counted(section.tokens, 'token'), *sources_phrase(section)))}")
        if section.name == WORKING and busy_room is not None:
            lines.append(f"  {busy_room}")
        if section.name in _LISTED:
            lines.extend(_source_line(call, source, explanation) for source in section.sources)
        lines.extend(
            f"  {compaction_sentence(source.reasons)}" for source in section.sources if source.kind == COMPACTION
        )
    return lines


def sources_phrase(section: ExplainedSection) -> tuple[str, ...]:
    """What a section was made from, as one phrase; none if it has no sources. The conversation's own messages are
    counted as such: they are shown because they are the latest, and nothing recalled them."""
    messages = counted(sum(source.kind != COMPACTION for source in section.sources), "message")
    phrases = {
        WORKING: f"the latest {messages} of this conversation",
        RELATED: f"{messages} from earlier in this discussion",
        EARLIER: f"{counted(len(section.sources), 'source')} of a longer prompt that tools were called with",
        MESSAGE: "the question" if len(section.sources) == 1 else f"the question, in {messages}",
    }
    return (phrases.get(section.name, counted(len(section.sources), "source")),) if section.sources else ()


def _source_line(call: Call, source: ExplainedSource, explanation: Explanation) -> str:
    """A source with where it came from, its score with the reasons for it, and links to its messages."""
    words = [f"  {source.text}"]
    if source.came_from and source.came_from not in source.text:
        words.append(f"({source.came_from})")
    if source.score:
        words.append(f"score {source.score}")
        reasons = reasons_sentence(source.reasons)
        words += [f"({reasons})"] if reasons else []
    words += [CITED_WORDS] if source.cited else []
    return "  ".join((*words, *links(call, source, explanation)))


CITED_WORDS: Final = "(in the answer)"
# What each part of a score says of a source (composer/layers/ranking.py).
_BECAUSE: Final = {
    "meaning": "is close in meaning to the question",
    "words": "has words of the question",
    "before": "was said right after something that fits",
    "reply": "answers something that fits",
    "after": "was said right before something that fits",
    "together": "stands among messages that have the question's words",
    "session": "was said in the same discussion as others that fit",
    "speaker": "is by somebody whom the question names",
    "when": "names a time, which is asked for",
    "date": "is of a time that the question names",
    "near": "is of a day near one that the question names",
    "room": "was said in a room that the question names",
    "fresh": "is recent",
    "statement": "was written to be remembered",
    "question": "asks something itself",
    "agent": "was said by an agent",
}
SHOWN_SHARE: Final = 0.05  # of the largest part of a score; what is smaller is not worth a word


def reasons_sentence(reasons: Mapping[str, float]) -> str:
    """Why something was recalled, in one sentence, what counted most first; "" for a source that was not ranked."""
    largest = max(map(abs, reasons.values()), default=0.0)
    parts = sorted(
        ((-abs(v), name, v) for name, v in reasons.items() if name in _BECAUSE and abs(v) >= SHOWN_SHARE * largest)
    )
    speaks_for = [_BECAUSE[name] for _, name, value in parts if value > 0]
    against = [_BECAUSE[name] for _, name, value in parts if value < 0]
    if not speaks_for:
        return ""
    but = f", though it {' and '.join(against)}" if against else ""
    *others, last = speaks_for
    return f"It {', '.join(others)} and {last}{but}." if others else f"It {last}{but}."


def busy_room_sentence(sections: Sequence[ExplainedSection]) -> str | None:
    """How the view of a busy room was chosen; None if the room was not busy.

    Chosen earlier messages have the reason `candidates`, in the section RELATED, or in WORKING in an old answer.
    """
    shown = [source for section in sections if section.name in (WORKING, RELATED) for source in section.sources]
    related = [source for source in shown if "candidates" in source.reasons]
    if not related:
        return None
    return (
        f"This room is busy: of its last {related[0].reasons['candidates']:.0f} messages {len(shown)} are shown, the "
        f"last {len(shown) - len(related)} and {len(related)} earlier ones that belong to this discussion."
    )


def compaction_sentence(reasons: Mapping[str, float]) -> str:
    """Why a view was compacted, and with what result, in two sentences."""
    full = f"the prompt, with room for recall, was over {MAX_PROMPT_SHARE:.0%} of the window"
    return (
        f"This conversation's view was compacted: its oldest {reasons['messages']:,.0f} messages are a summary now "
        f"and stay in the log. WORKING had {reasons['before']:,.0f} tokens then, and {reasons['after']:,.0f} after it: "
        f"{'someone asked for it' if reasons['requested'] else full}."
    )


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "why",
        (_MESSAGE,),
        "Show which messages and memories an answer used, and why",
        _why,
        "why",
        (_DETAILS, _PROMPT),
        act=Act.READ,
        names_rooms=True,
    ),
)
