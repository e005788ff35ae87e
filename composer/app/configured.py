"""What the settings ask for and is made of more than stores: extraction by a model, and tool servers."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Final

from composer.ingest.tenants import TenantDirectory, configured_agent
from composer.model import room_id, tenant_id
from composer.ports.clock import Clock
from composer.ports.extraction import MessageBatch
from composer.ports.models import ChatMessage, MeteredEmbedder, MeteredModel, Work, WorkKind, whole_text
from composer.ports.observer import Observer
from composer.settings import McpSettings, Settings, configure_mem0
from composer.stores.models.configured import extraction_agent, extraction_model
from composer.stores.models.mcp_server import McpServer
from composer.stores.models.mem0_extraction import Mem0Extractor
from composer.stores.models.tokens import tokenizer_for
from composer.turn.tool_servers import ServerRules, ToolServers

EXTRACTION_REPLY_TOKENS: Final = 4_096  # of an answer that lists the statements of a batch of messages


def configured_extractor(settings: Settings, embedder: MeteredEmbedder, model: MeteredModel) -> Mem0Extractor:
    """Mem0, with the extraction model, asked as the first agent that has a model."""
    name = extraction_model(settings)
    entry = extraction_agent(settings)

    async def ask(batch: MessageBatch, messages: Sequence[ChatMessage]) -> str:
        agent = configured_agent(entry, batch.tenant_id)
        effort = settings.extraction_effort or ("" if settings.extraction_model else agent.reasoning_effort)
        agent = replace(
            agent,
            model=name,
            fallback_models=() if settings.extraction_model else agent.fallback_models,
            reasoning_effort=effort,
            reply_tokens=max(entry.reply_tokens, EXTRACTION_REPLY_TOKENS),
        )
        work = Work(batch.tenant_id, WorkKind.EXTRACTION, agent, batch.conversation_id, batch.owner)
        return whole_text([chunk async for chunk in model.stream(work, messages)])

    return Mem0Extractor(
        embedder, ask, tokenizer_for(name), partial(configure_mem0, settings.home), settings.model_timeout * 2
    )


def configured_servers(
    stack: AsyncExitStack, settings: Settings, directory: TenantDirectory, clock: Clock, observer: Observer
) -> ToolServers:
    """The tool servers. None is connected to before it is used; at the end of `stack`, all connections are ended, and
    the processes of commands."""
    servers = {name: McpServer(name, each) for name, each in settings.mcp.items()}

    async def close() -> None:
        await asyncio.gather(*(server.close() for server in servers.values()))

    stack.push_async_callback(close)
    rules = [(_rules(name, settings.mcp[name], directory), server) for name, server in servers.items()]
    return ToolServers(rules, clock, observer)


def _rules(name: str, settings: McpSettings, directory: TenantDirectory) -> ServerRules:
    """Where a server may be used, by ids."""
    rooms = []
    for listed in settings.rooms:
        platform, _, rest = listed.partition(":")
        workspace, _, room = rest.partition("/")
        rooms.append(room_id(directory.workspace(platform, workspace), room))
    return ServerRules(
        name,
        settings.offered_tools(name),
        frozenset(settings.agents),
        frozenset(map(tenant_id, settings.tenants)),
        frozenset(rooms),
        settings.private,
        settings.guests,
    )
