"""Route each agent to the configured chat API or to the offline model."""

from collections.abc import AsyncIterator, Sequence

from composer.model import Agent
from composer.ports.models import ChatMessage, ChatModel, Chunk


class ModelRouter:
    """Uses the API for agents that have a model, and the offline model for the others."""

    def __init__(self, api: ChatModel | None, offline: ChatModel) -> None:
        self._api = api
        self._offline = offline

    def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        """The answer, in chunks (composer.ports.models.ChatModel)."""
        model = self._api if agent.model and self._api is not None else self._offline
        return model.stream(agent, messages)
