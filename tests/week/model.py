"""The model of the week: an OpenAI-compatible server that says what its prompt holds, and blurts out secrets.

So a wrong memory becomes a wrong answer, and a leak becomes words on a platform.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.support.model_server import Fail, Hang, ModelServer, Reply, Say
from tests.week.script import Answer, Week

UNKNOWN: Final = "I do not know that here."
MARK: Final = "[MESSAGE]"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as the model got it: which answer of the week it is for, the model's name, and all of the prompt but
    the question."""

    answer: Answer
    model: str
    prompt: str


class WeekModel(ModelServer):
    """Answers by the week's table. `down` are the models that fail; while `hangs`, an answer stops after its first
    words. `hidden`: the secrets that the asker of a question, by what it holds, must not learn. For a
    summary it chooses all sentences that don't ask it, as many as fit."""

    def __init__(self, week: Week) -> None:
        super().__init__()
        self._week = week
        self.down: set[str] = set()
        self.hangs = False
        self.hidden: dict[str, tuple[str, ...]] = {}
        self.hung = asyncio.Event()
        self.asked: list[Asked] = []
        self.summaries: list[str] = []

    def reply(self, body: Mapping[str, Any]) -> Reply:
        """What the model says to a request."""
        if body["model"] in self.down:
            return Fail(503, "The model is overloaded.", headers={"retry-after": "0"})
        texts = [str(message["content"]) for message in body["messages"]]
        before, mark, question = texts[-1].rpartition(MARK)
        if not mark:
            self.summaries.append("\n".join(texts))
            lines = [line for line in texts[-1].splitlines() if "@nexus" not in line]
            return Say((", ".join(line.partition(".")[0] for line in lines),))
        answer = next((each for each in self._week.answers if each.asked in question), None)
        if answer is None:
            return Fail(400, f"The week has no answer to: {question[:200]}")
        prompt = "\n".join([*texts[:-1], before])
        self.asked.append(Asked(answer, str(body["model"]), prompt))
        said = answer.says if answer.needs in prompt else UNKNOWN
        said += "".join(f" [{word}]" for word in self.hidden.get(answer.asked, ()) if word in prompt)
        half = len(said) // 2
        if self.hangs:
            self.hung.set()
            return Hang((said[:half],))
        return Say((said[:half], said[half:]))
