"""Two prompts that a person picks in their client: begin with what is remembered, and keep what came out."""

from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent
from pydantic import Field

from bot.web.mcp.tools import EntryTools

RECALL_INSTRUCTION: Final = (
    "Use what the memory has on the topic where it helps, and name entries by their titles. What has an `owner` was "
    "written by that person and not by me, for the team or project in `shared_with`: it is neither my preference nor "
    "my decision, and where you use it, say whose it is. As JSON:"
)
REMEMBER_INSTRUCTION: Final = (
    "Look back over this conversation and find what will still matter in a month: decisions and their reasons, "
    "preferences, facts with a name, how something is done. Search the memory for each first, so that nothing is "
    "written twice. Show me the list, one line each, and write with write_entry only what I confirm, one entry each."
)


def add_prompts(server: "MCPServer[Any]", tools: EntryTools) -> None:
    """Add the prompts to a server."""

    @server.prompt(name="recall", title="Begin with what is remembered")
    async def recall(topic: Annotated[str, Field(description="What it is about.")], context: Context[Any, Any]) -> str:
        """What is remembered of a topic, to begin a conversation with."""
        found = await tools.search(topic, context)
        if isinstance(found, CallToolResult):  # it failed, and says why
            return "\n".join(part.text for part in found.content if isinstance(part, TextContent))
        return f"{RECALL_INSTRUCTION}\n{found}"

    @server.prompt(name="remember", title="Keep what came out of this conversation")
    def remember() -> str:
        """Find what is worth keeping in a conversation, and write it after the person has confirmed it."""
        return REMEMBER_INSTRUCTION
