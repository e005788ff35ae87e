"""Route each agent to the configured chat API or to the offline model."""

from collections.abc import AsyncIterator, Sequence

from composer.model import Agent
from composer.ports.models import ChatMessage, ChatModel, Chunk, Tool, ToolModel


class ModelRouter:
    """Uses the API for agents that have a model, and the offline model for the others."""

    def __init__(self, api: ChatModel | None, offline: ChatModel) -> None:
        self._api = api
        self._offline = offline

    def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        """The answer, in chunks (composer.ports.models.ChatModel)."""
        model = self._api if agent.model and self._api is not None else self._offline
        return model.stream(agent, messages)

    def takes_tools(self, agent: Agent) -> bool:
        """Whether the agent's model can call functions; the offline model can't."""
        return bool(agent.model) and isinstance(self._api, ToolModel) and self._api.takes_tools(agent)

    def stream_with_tools(
        self, agent: Agent, messages: Sequence[ChatMessage], tools: Sequence[Tool]
    ) -> AsyncIterator[Chunk]:
        """The answer, which may hold calls (composer.ports.models.ToolModel)."""
        if agent.model and isinstance(self._api, ToolModel):
            return self._api.stream_with_tools(agent, messages, tools)
        return self.stream(agent, messages)
