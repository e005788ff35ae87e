"""Pack a prompt into the agent's token budget. Pure.

Sections that change slowly come first, so that a provider's prompt cache can reuse the beginning from turn to turn.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from composer.model import Agent, Item, Message
from composer.ports.models import IMAGE_TOKENS, TOKENS_PER_MESSAGE, ChatMessage, Image, Tokenizer
from composer.prompt.counting import TokenCounter, cut
from composer.prompt.images import ImageSelection, select_images
from composer.prompt.lines import (
    NO_NAMESAKES,
    apart,
    numbers_of_namesakes,
    question_line,
    quote,
    recall_line,
    related_line,
    structured_item,
    summary_line,
    view_line,
)
from composer.prompt.rendering import Draft, recall_block, render, rules_for, system_text
from composer.prompt.sections import Prompt, PromptInput
from composer.text.cleaning import shorten

T = TypeVar("T")

MAX_PROMPT_SHARE: Final = 0.70  # share of the window that a prompt may use
COMPACT_TO: Final = 0.40  # share that is left after the view was shortened
VIEW_STEP: Final = 10  # a shortened view begins at every tenth message
MAX_QUESTION_SHARE: Final = 0.5  # of the budget that the message to answer may use
VIEW_MESSAGE_DIVISOR: Final = 4  # one message of the view may use a quarter of the budget
MIN_BEST_TOKENS: Final = 100  # of RECALL, for the best item to be cut rather than left out
CHARS_SHOWN_PER_TOKEN: Final = 3  # of what is hardly ever cut: logs and code have about three characters a token
FRAME: Final = 40  # tokens of headings, blank lines and chat formats in the smallest prompt; an upper estimate


def pack(prompt_input: PromptInput, tokenizer: Tokenizer) -> Prompt:
    """Fit everything into the agent's budget and return the finished prompt.

    The budget is 70% of the context window (`budget_of`); a window of at least 1,000 tokens is never exceeded. A view
    that was due for compaction has been compacted before. What does not fit is dropped in this order: recall, lowest
    score first; related messages and summaries, oldest first; the old end of the view, down to a round number so that
    it does not move again at once; the compaction's summary. Facts and landmarks stay whole as long as they fit beside
    the message; else each is cut to one line, then the oldest are left out, and a note says so. A message that alone is
    too long is cut in the middle, with a visible mark. Each image counts as an estimate, and images use at most half of
    the budget.
    """
    counter = TokenCounter(tokenizer)
    budget = budget_of(prompt_input.agent)
    selection = _select_images(prompt_input, budget)
    budget -= len(selection.shown) * IMAGE_TOKENS
    draft = _minimal_draft(prompt_input, selection, budget, counter)
    draft.hidden = len(prompt_input.working)
    _fit_structured(prompt_input, draft, budget, counter)
    draft.hidden = 0
    texts = apart([each.text for each in prompt_input.summaries])
    draft.summaries = [replace(each, text=text) for each, text in zip(prompt_input.summaries, texts, strict=True)]
    draft.working = list(prompt_input.working)
    draft.recall, draft.recall_lines = _affordable_recall(prompt_input, counter, draft.namesakes)
    draft.related = list(prompt_input.related)
    draft.compaction = prompt_input.compaction
    namesakes = draft.namesakes
    draft.lines = {m.id: _view_text(prompt_input.agent, m, budget, counter, namesakes) for m in draft.working}
    draft.lines |= {
        m.id: cut(related_line(prompt_input.agent, m, namesakes), budget // VIEW_MESSAGE_DIVISOR, counter)
        for m, _ in draft.related
    }
    if not _seems_to_fit(draft, budget):
        _drop_until_it_fits(prompt_input, draft, budget, counter)
    prompt = render(prompt_input, draft, counter)
    if prompt.tokens > budget:
        _drop_until_it_fits(prompt_input, draft, budget, counter)
        prompt = render(prompt_input, draft, counter)
    while prompt.tokens > budget and _drop_one(draft):  # joined pieces can cost a token or two more than the pieces
        prompt = render(prompt_input, draft, counter)
    return replace(prompt, tokens=prompt.tokens + len(selection.shown) * IMAGE_TOKENS)


def with_images(prompt: Prompt, loaded: Sequence[Image | str]) -> Prompt:
    """Add loaded images to a prompt. Each is either the image or the sentence that says why it is missing."""
    last = prompt.role_messages[-1]
    missing = [f"[image {n} is missing: {each}]" for n, each in enumerate(loaded, 1) if isinstance(each, str)]
    shown = tuple(image for image in loaded if isinstance(image, Image))
    closing = ChatMessage(last.role, "\n".join((last.content, *missing)), shown)
    unseen = (*prompt.image_notices, *(each for each in loaded if isinstance(each, str)))
    return replace(prompt, role_messages=(*prompt.role_messages[:-1], closing), image_notices=unseen)


def budget_of(agent: Agent) -> int:
    """How many tokens a prompt for this agent may have, with room for the answer."""
    return max(min(int(agent.window * MAX_PROMPT_SHARE), agent.window - agent.reply_tokens), agent.window // 4)


def reused_tokens(before: Sequence[ChatMessage], prompt: Prompt, tokenizer: Tokenizer) -> int:
    """How many tokens at the beginning of a prompt equal the prompt before it: what a provider's cache can reuse.

    Equal messages count whole; the first different one counts up to the first different character.
    """
    same = 0
    for old, new in zip(before, prompt.role_messages, strict=False):
        if old == new:
            same += tokenizer.count(new.content) + TOKENS_PER_MESSAGE
            continue
        if old.role == new.role:
            same += tokenizer.count(new.content[: _common_prefix(old.content, new.content)])
        break
    return min(same, prompt.tokens)


def view_tokens(agent: Agent, view: Sequence[Message], tokenizer: Tokenizer) -> list[int]:
    """How many tokens each message of a view uses in this agent's prompt."""
    counter, budget = TokenCounter(tokenizer), budget_of(agent)
    return [counter(_view_text(agent, message, budget, counter)) + TOKENS_PER_MESSAGE for message in view]


def view_size(agent: Agent, view: Sequence[Message], tokenizer: Tokenizer) -> int:
    """How many tokens the section WORKING has that shows this view, as `/nexus why` counts it."""
    counter, budget = TokenCounter(tokenizer), budget_of(agent)
    return counter("\n".join(_view_text(agent, message, budget, counter) for message in view)) if view else 0


def frame_tokens(agent: Agent, items: Sequence[Item], tokenizer: Tokenizer) -> int:
    """How many tokens the slowly changing sections use: persona, rules, context, and these `items`.

    `items` are facts, landmarks and summaries. They use at most half of the budget.
    """
    counter, budget = TokenCounter(tokenizer), budget_of(agent)
    lines = [quote(i.text) if i.layer == "structured" else summary_line(i) for i in items]
    persona = counter(cut(agent.persona.strip(), budget // 4, counter))
    return persona + counter(rules_for(budget)) + 2 * FRAME + min(counter.lines(lines), budget // 2)


def shown_whole(agent: Agent, messages: Iterable[Message]) -> list[Message]:
    """The messages that are sure to be shown whole in this agent's view. What is left out of others may be recalled."""
    most = CHARS_SHOWN_PER_TOKEN * (budget_of(agent) // VIEW_MESSAGE_DIVISOR)
    return [each for each in messages if len(each.text) + sum(len(file.text) for file in each.attachments) <= most]


def _select_images(prompt_input: PromptInput, budget: int) -> ImageSelection:
    """The images to show; none unless the agent's model takes images."""
    if not prompt_input.agent.images:
        return ImageSelection()
    reply_to = prompt_input.message.reply_to
    replied_to = next((m for m in prompt_input.working if reply_to is not None and m.external_id == reply_to), None)
    return select_images(prompt_input.message, replied_to, budget)


def _minimal_draft(prompt_input: PromptInput, selection: ImageSelection, budget: int, counter: TokenCounter) -> Draft:
    """What every prompt holds: persona, context and message. Whole if they fit, else each cut to its share."""
    namesakes = _namesakes(prompt_input)
    persona = prompt_input.agent.persona.strip()
    question = question_line(prompt_input.message, selection.shown, namesakes)
    rules = rules_for(budget)
    context, room = prompt_input.context, budget - counter.of_settings(rules) - FRAME
    message, notes = cut(question, int(budget * MAX_QUESTION_SHARE), counter), []
    counter.of_settings(persona)
    if counter.exceeds(persona, room) or counter(persona) + counter(context) + counter(message) > room:
        if counter.exceeds(persona, room // 4):
            notes.append(
                "The persona is too long for this agent's context window, so its middle is left out: shorten "
                "it in nexus.toml."
            )
        persona, context = cut(persona, room // 4, counter), cut(context, room // 4, counter)
        left = room - counter(persona) - counter(context)
        message = cut(question, min(int(budget * MAX_QUESTION_SHARE), left), counter)
    return Draft(
        persona=persona,
        context=context,
        question=message,
        facts=[structured_item(each, namesakes) for each in prompt_input.facts],
        landmarks=[structured_item(each, namesakes) for each in prompt_input.landmarks],
        images=selection,
        notes=notes,
        rules=rules,
        namesakes=namesakes,
    )


def _namesakes(prompt_input: PromptInput) -> Mapping[uuid.UUID, str]:
    """What tells those apart who speak in a prompt under one name."""
    messages = (*prompt_input.working, *(message for message, _ in prompt_input.related), prompt_input.message)
    speakers = [(each.author, each.user_id) for each in messages if not each.by_agent]
    items = (*prompt_input.recall, *prompt_input.facts, *prompt_input.landmarks)
    speakers += [(each.author, each.user_id) for each in items if each.author and not each.by_agent]
    compaction = () if prompt_input.compaction is None else (prompt_input.compaction,)
    return numbers_of_namesakes(speakers, "\n".join(each.text for each in (*prompt_input.summaries, *compaction)))


def _affordable_recall(
    prompt_input: PromptInput, counter: TokenCounter, namesakes: Mapping[uuid.UUID, str]
) -> tuple[list[Item], list[str]]:
    """Recall within its own budget, best first, and its lines. An item that is too long makes room for shorter ones
    after it; the best one is cut."""
    left, found = prompt_input.recall_tokens, prompt_input.recall

    def line_of(item: Item, above: Sequence[Item]) -> str:
        return recall_line(item, above, prompt_input.here, prompt_input.message.user_id, namesakes)

    everything = [line_of(item, found[:n]) for n, item in enumerate(found)]
    if sum(map(len, everything)) <= left * CHARS_SHOWN_PER_TOKEN and counter(recall_block(everything)) <= left:
        return list(found), everything  # counted whole, as the prompt shows it
    chosen: list[Item] = []
    lines: list[str] = []
    for item in found:
        line = line_of(item, chosen)
        if not chosen and left >= MIN_BEST_TOKENS and counter.exceeds(line, left - 1):
            line = cut(line, left - 1, counter)
        if not counter.exceeds(line, left - 1):
            left -= counter(line) + 1
            chosen.append(item)
            lines.append(line)
    return chosen, lines


def _fit_structured(prompt_input: PromptInput, draft: Draft, budget: int, counter: TokenCounter) -> None:
    """Shorten facts and landmarks until they fit; `draft` holds only them and the minimum.

    First each is cut to one line, shorter and shorter; at last the oldest are left out and only counted.
    """
    count = len(draft.facts) + len(draft.landmarks)
    if not count or _fixed_tokens(draft, counter) < budget * 7 // 8:
        return
    if render(prompt_input, draft, counter).tokens <= budget:
        return
    draft.notes.append(
        f"{count} facts and landmarks do not fit this agent's context window, so each is cut to one line: "
        "retire some landmarks, forget some facts, or give the agent a larger context window."
    )
    for limit in (200, 120, 60, 30):
        draft.facts = [replace(item, text=shorten(item.text, limit)) for item in draft.facts]
        draft.landmarks = [replace(item, text=shorten(item.text, limit)) for item in draft.landmarks]
        if render(prompt_input, draft, counter).tokens <= budget:
            return
    while (draft.facts or draft.landmarks) and render(prompt_input, draft, counter).tokens > budget:
        newest = sorted((*draft.facts, *draft.landmarks), key=lambda item: (item.at, item.id), reverse=True)
        remaining = {item.id for item in newest[: len(newest) * 7 // 8]}
        draft.facts = [item for item in draft.facts if item.id in remaining]
        draft.landmarks = [item for item in draft.landmarks if item.id in remaining]
    draft.notes.append(f"Only {len(draft.facts) + len(draft.landmarks)} of {count} facts and landmarks fit at all.")


def _seems_to_fit(draft: Draft, budget: int) -> bool:
    """Whether all of a draft most likely fits, by its characters: then it is counted whole, and not line by line."""
    texts = (system_text(draft), draft.context, draft.question, *draft.lines.values(), *draft.recall_lines)
    items = [
        *draft.facts,
        *draft.landmarks,
        *draft.summaries,
        *([] if draft.compaction is None else [draft.compaction]),
    ]
    return sum(map(len, (*texts, *(item.text for item in items)))) <= budget * CHARS_SHOWN_PER_TOKEN


def _drop_until_it_fits(prompt_input: PromptInput, draft: Draft, budget: int, counter: TokenCounter) -> None:
    """Drop the least important items, in the order that `pack` documents, until the estimate is within the budget."""
    fixed = _fixed_tokens(draft, counter)
    view = [counter(draft.lines[m.id]) + TOKENS_PER_MESSAGE for m in draft.working]
    related = [counter(draft.lines[m.id]) + 1 for m, _ in draft.related]
    recall = [counter(line) + 1 for line in draft.recall_lines]
    summaries = [counter(summary_line(item)) + 1 for item in draft.summaries]
    fixed += 0 if draft.compaction is None else counter(summary_line(draft.compaction)) + 1

    def too_long() -> bool:
        return fixed + sum(view) + sum(related) + sum(recall) + sum(summaries) > budget

    _drop_while(draft.recall, recall, too_long, oldest=False)
    _drop_while(draft.related, related, too_long, oldest=True)
    _drop_while(draft.summaries, summaries, too_long, oldest=True)
    if too_long():
        target = max(int(budget * COMPACT_TO / MAX_PROMPT_SHARE) - fixed, min(budget // 8, budget - fixed))
        _drop_while(draft.working, view, lambda: sum(view) > target, oldest=True)
        _align_to_step(draft.working, view, target)
    draft.hidden = len(prompt_input.working) - len(draft.working)


def _fixed_tokens(draft: Draft, counter: TokenCounter) -> int:
    """Tokens that are never dropped, slightly overestimated: the frame, the message, facts and landmarks."""
    structured = counter.lines([draft.quote(item) for item in (*draft.facts, *draft.landmarks)])
    return counter(system_text(draft)) + counter(draft.context) + counter(draft.question) + structured + FRAME


def _drop_while(items: list[T], costs: list[int], condition: Callable[[], bool], *, oldest: bool) -> None:
    """Drop items with their costs while the condition holds: from the beginning (`oldest`), else from the end."""
    while items and condition():
        del items[0 if oldest else -1], costs[0 if oldest else -1]


def _align_to_step(view: list[Message], costs: list[int], target: int) -> None:
    """Begin a shortened view at a round number, so that it begins there for the next messages too.

    Not if less than a third of its target would be left.
    """
    extra = next((n for n, message in enumerate(view) if message.seq % VIEW_STEP == 1), 0)
    if sum(costs[extra:]) * 3 >= target:
        del view[:extra], costs[:extra]


def _drop_one(draft: Draft) -> bool:
    """Drop the least important item. False when nothing is left to drop."""
    if draft.recall:
        draft.recall.pop()
    elif draft.related:
        draft.related.pop(0)
    elif draft.summaries:
        draft.summaries.pop(0)
    elif draft.working:
        draft.working.pop(0)
        draft.hidden += 1
    elif draft.compaction is not None:
        draft.compaction = None
    else:
        return False
    return True


def _view_text(
    agent: Agent,
    message: Message,
    budget: int,
    counter: TokenCounter,
    namesakes: Mapping[uuid.UUID, str] = NO_NAMESAKES,
) -> str:
    return cut(view_line(agent, message, namesakes), budget // VIEW_MESSAGE_DIVISOR, counter)


def _common_prefix(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    length = min(len(one), len(other))
    return next((n for n in range(length) if one[n] != other[n]), length)
