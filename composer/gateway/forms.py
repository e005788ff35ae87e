"""The forms of a request, which are tried in turn where its server refuses what was added to it. Pure.

What Nexus adds must not make a request fail that would pass without it: the memory, and the question for what a stream
uses.
"""

from typing import Final

from composer.gateway.json_text import apply_edits
from composer.gateway.memory import TurnMemory
from composer.gateway.requests import GatewayRequest, usage_edits
from composer.gateway.turns import GatewayTurn, memory_edits
from composer.model import MemoryRole
from composer.text.model_roles import known_needs, names_alternation, names_system_role

_REFUSED: Final = (400, 413, 422)


def usual_role(model: str) -> MemoryRole:
    """How memory is put into a request to a model of which nothing is set."""
    needs = known_needs(model)
    return "user" if needs.no_system or needs.alternate else "system"


class RequestForms:
    """A request with its memory: `body` is what to send now. `role` None: there is no memory in it."""

    def __init__(
        self, asked: GatewayRequest, turn: GatewayTurn | None, memory: TurnMemory | None, role: MemoryRole
    ) -> None:
        self._asked, self._turn, self._memory = asked, turn, memory
        has_memory = turn is not None and memory is not None and bool(memory.standing or memory.recalled)
        self.role: MemoryRole | None = role if has_memory else None
        self.asks_usage = bool(usage_edits(asked))
        self._says_usage = True
        self.body = self._made()

    @property
    def has_others(self) -> bool:
        """Whether there is another form to try."""
        return self.role is not None or (self.asks_usage and self._says_usage)

    @property
    def injected(self) -> TurnMemory | None:
        """The memory that is in the body; an empty one where it was left out."""
        return self._memory if self.role is not None or self._memory is None else TurnMemory()

    def try_another(self, status: int, refusal: bytes) -> bool:
        """Choose the next form after a refusal; False where there is none, or the refusal is about none of this."""
        reason = refusal.decode("utf-8", "replace").lower()
        names_role = names_system_role(reason) or names_alternation(reason) or "developer" in reason
        if self.asks_usage and self._says_usage and ("stream_options" in reason or "include_usage" in reason):
            self._says_usage = False
        elif self.role not in (None, "user") and names_role:
            self.role = "user"
        elif self.role is not None and (status in _REFUSED or names_role):
            self.role = None
        else:
            return False
        self.body = self._made()
        return True

    def _made(self) -> bytes:
        edits = usage_edits(self._asked) if self._says_usage else []
        if self.role is not None and self._turn is not None and self._memory is not None:
            edits = edits + memory_edits(
                self._asked, self._turn, self._memory.standing, self._memory.recalled, self.role
            )
        return apply_edits(self._asked.text, edits).encode()
