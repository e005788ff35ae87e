"""A prompt as data: its input, its named sections with their sources, and the object that `why` explains. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from composer.model import Agent, Item, Message
from composer.ports.models import ChatMessage
from composer.prompt.images import SelectedImage

SYSTEM: Final = "SYSTEM"
CONTEXT: Final = "CONTEXT"
FACTS: Final = "FACTS"
LANDMARKS: Final = "LANDMARKS"
SUMMARIES: Final = "SUMMARIES"
WORKING: Final = "WORKING"
RELATED: Final = "RELATED"
RECALL: Final = "RECALL"
MESSAGE: Final = "MESSAGE"
TOOLS: Final = "TOOLS"  # what tools brought or wrote while the model was answering
# The order in which the model reads the sections before the conversation: CONTEXT names who takes part, which changes
# each time that the window moves, so the longer sections stand before it, where a provider's prompt cache keeps them.
OPENING: Final = (FACTS, LANDMARKS, SUMMARIES, CONTEXT)
# The same for what belongs to this question, after the conversation.
CLOSING_SECTIONS: Final = (RELATED, RECALL, MESSAGE)
# Without text: what else stood in an earlier prompt for the same answer, which became too long after tools were called.
EARLIER: Final = "EARLIER"

# What came of a call of a tool.
CALL_FOUND: Final = "found"
CALL_FOUND_NOTHING: Final = "nothing"
CALL_REFUSED: Final = "refused"
CALL_STORED: Final = "stored"
CALL_WAITS: Final = "waits for a yes"
CALL_ANSWERED: Final = "answered"  # by a server
CALL_FAILED: Final = "failed"  # the server says so, or it did not answer

COMPACTION: Final = "compaction"  # kind of the item that replaces the compacted beginning of the view
OPEN_REMINDER: Final = "open reminder"  # kind of a reminder of the asker's that is still to come; it is `at` that time
EXTRACTIVE: Final = "extractive"  # author of a summary that no model wrote
GAP: Final = "\u2026"  # a line of a summary where something is left out
# The line of CONTEXT in a DM whose person has not opened it to rooms: outside every project, and in one, whose pool is
# read already. Neither says which rooms there are, and neither changes, so that the prompt's beginning can be cached.
ROOMS_CLOSED: Final = (
    "What was said in rooms is not read here. If nothing here answers the message, add that /nexus rooms on opens this "
    "DM to the rooms that this person is in."
)
PROJECT_ROOMS_CLOSED: Final = (
    "Of what was said in rooms, only what this project recalls is read here. If nothing here answers the message, add "
    "that /nexus rooms on may open this DM to more of the rooms that this person is in."
)

# The line of CONTEXT, in UTC, where somebody asks what they missed.
MISSED_SINCE: Final = "What the asker missed is what others said since {}."


@dataclass(frozen=True, slots=True)
class PromptInput:
    """Everything the layers found for one prompt.

    `context` is the finished CONTEXT section. The text of `facts` and `landmarks` is a finished line. `summaries`
    and `working` are oldest first, `recall` is best first. `compaction` summarises the oldest part of the view;
    `working` then begins after it. `related` are earlier messages of the question's discussion in a busy room, oldest
    first, each with its relatedness (0 to 1); they were chosen from the last `candidates` messages. `here` says
    in words where the conversation itself is ('in "#general"').
    """

    agent: Agent
    context: str
    message: Message
    facts: Sequence[Item] = ()
    landmarks: Sequence[Item] = ()
    summaries: Sequence[Item] = ()
    working: Sequence[Message] = ()
    recall: Sequence[Item] = ()
    recall_tokens: int = 4000
    compaction: Item | None = None
    related: Sequence[tuple[Message, float]] = ()
    candidates: int = 0
    here: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One named part of a prompt. `sources` are best first where they are ranked."""

    name: str
    text: str
    tokens: int
    sources: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class UsedTool:
    """A tool that the model called: with which arguments (JSON text as the model wrote it), the source marks of what
    came back, and `outcome`: FOUND, NOTHING, REFUSED, STORED or WAITS, and of a server's tool ANSWERED, FAILED or
    REFUSED."""

    name: str
    arguments: str
    marks: tuple[str, ...]
    outcome: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent to the model, and why each part is there.

    `images` go with the last of `role_messages`; they are only named in its text until `with_images` adds them.
    `image_notices` are sentences for the asker about images that are not sent. `used_tools` are the tools that
    the model called; their calls and results are the end of `role_messages`. `unreached_servers` are the names of the
    tool servers whose tools would have been offered, had they answered.
    """

    sections: tuple[Section, ...]
    role_messages: tuple[ChatMessage, ...]
    tokens: int
    window: int
    exact: bool
    notes: tuple[str, ...] = ()
    images: tuple[SelectedImage, ...] = ()
    image_notices: tuple[str, ...] = ()
    used_tools: tuple[UsedTool, ...] = ()
    unreached_servers: tuple[str, ...] = ()

    @property
    def asked_servers(self) -> bool:
        """Whether a server was asked by one of its tools: the answer may repeat what it said."""
        return any(used.outcome in (CALL_ANSWERED, CALL_FAILED) for used in self.used_tools)

    def with_tool_calls_of(self, earlier: "Prompt") -> "Prompt":
        """This prompt, which replaces an earlier one for the same answer, with the tools that were called before, and
        the sources that their arguments may repeat, or what the model said before it called them."""
        if not earlier.used_tools:
            return self
        known = {item.id for section in self.sections for item in section.sources}
        others = {i.id: i for section in earlier.sections for i in section.sources if i.id not in known}
        return replace(
            self,
            sections=(*self.sections, Section(EARLIER, "", 0, tuple(others.values()))),
            used_tools=tuple(replace(used, marks=()) for used in earlier.used_tools),  # marks were those of its sources
            unreached_servers=earlier.unreached_servers,
        )

    def as_json(self) -> dict[str, Any]:
        """The prompt in the format of `--json` (docs/command-line.md); `/nexus why` reads the same object."""
        return {
            "tokens": self.tokens,
            "window": self.window,
            "exact_tokens": self.exact,
            "notes": list(self.notes),
            "role_messages": [{"role": m.role, "content": m.words} for m in self.role_messages],
            "sections": [
                {
                    "name": section.name,
                    "tokens": section.tokens,
                    "text": section.text,
                    "sources": [_source_json(item) for item in section.sources],
                }
                for section in self.sections
            ],
            **({"images": [image.attachment.name for image in self.images]} if self.images else {}),
            **({"unseen": list(self.image_notices)} if self.image_notices else {}),
            **({"tools": [_used_json(used) for used in self.used_tools]} if self.used_tools else {}),
            **({"unreached_servers": list(self.unreached_servers)} if self.unreached_servers else {}),
        }

    def as_text(self) -> str:
        """`as_json` on one line."""
        return json.dumps(self.as_json(), ensure_ascii=False, separators=(",", ":"))


def _used_json(used: UsedTool) -> dict[str, Any]:
    return {"name": used.name, "arguments": used.arguments, "marks": list(used.marks), "outcome": used.outcome}


def _source_json(item: Item) -> dict[str, Any]:
    return {
        "layer": item.layer,
        "kind": item.kind,
        "id": item.id,
        "namespace": item.namespace,
        "visibility": str(item.visibility),
        "user_id": None if item.user_id is None else str(item.user_id),
        "messages": list(item.messages),
        "score": item.score,
        "reasons": dict(item.reasons),
        "from": item.came_from,
        "at": item.at.isoformat(),
        "who": item.author,
    }
