"""In a busy room, the prompt shows the latest messages and earlier messages of the question's discussion."""

from typing import Any

from composer.prompt.sections import Prompt
from tests.support.harness import AppHarness

ROOM: dict[str, Any] = {"room": "general"}
PAIRS = (("ann", "abe"), ("bea", "bob"), ("cat", "cal"), ("dot", "dan"))


async def add_discussions(harness: AppHarness, count: int) -> None:
    """Four interleaved discussions of two people each; each has its own subject."""
    for n in range(count):
        asks, helps = PAIRS[n % 4]
        who, text = (asks, f"point {n} is open") if n // 4 % 2 == 0 else (helps, f"{asks}: point {n} is done")
        await harness.say(who, text, id=f"t{n}", **ROOM)


def section(prompt: Prompt, name: str) -> Any:
    return next(section for section in prompt.sections if section.name == name)


async def test_the_prompt_of_a_busy_room_shows_the_discussion_and_why_counts_the_chosen_messages(
    harness: AppHarness,
) -> None:
    await add_discussions(harness, 100)
    prompts = {who: (await harness.compose(who, "@nexus what now?", **ROOM)).prompt for who in ("ann", "dot")}
    for discussion, (who, prompt) in zip((0, 3), prompts.items(), strict=True):
        chosen = [int(item.messages[0][1:]) for item in section(prompt, "RELATED").sources]
        numbers = [*chosen, *(int(item.messages[0][1:]) for item in section(prompt, "WORKING").sources)]
        assert numbers == sorted(numbers)
        assert numbers[len(chosen) :] == list(range(70, 100)), "the latest messages without gaps"
        assert len(chosen) == 10
        assert sum(n % 4 == discussion for n in chosen) > 5, f"messages of {who}'s own discussion"
        closing = prompt.role_messages[-1].content
        assert closing.startswith("[RELATED]\n")
        assert all(f"point {n} " in closing.partition("[RECALL]")[0] for n in chosen)
        recalled = {id for item in section(prompt, "RECALL").sources for id in item.messages}
        assert not recalled.intersection(f"t{n}" for n in numbers), "a message in view is not recalled as well"
    ann, dot = ([m.content for m in prompt.role_messages[:-1]] for prompt in prompts.values())
    assert ann == dot, "chosen messages come after the part that all prompts share"
    await harness.ask("ann", "@nexus what now?", **ROOM)
    why = (await harness.command("ann", "/nexus why --details", **ROOM)).text
    assert "of its last 100 messages 40 are shown, the last 30 and 10 earlier ones" in why


async def test_an_edited_message_is_shown_with_its_new_text_and_a_deleted_one_is_not_shown(harness: AppHarness) -> None:
    await add_discussions(harness, 100)
    before = section((await harness.compose("ann", "@nexus what now?", **ROOM)).prompt, "WORKING").sources
    first, second = (item.messages[0] for item in before[8:10])
    await harness.change(first, "that was something else")
    await harness.change(second, None)
    after = section((await harness.compose("ann", "@nexus what now?", **ROOM)).prompt, "WORKING").sources
    shown = {item.messages[0]: item.text for item in after}
    assert second not in shown
    assert shown.get(first, "that was something else") == "that was something else"
