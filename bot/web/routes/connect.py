"""`/v1/agents` and `/v1/connect`: whom one may ask, and how a tool is connected."""

from typing import Literal

from pydantic import BaseModel

from bot.web.call import Calling
from bot.web.connecting import addresses_for, guides
from bot.web.problems import documented
from bot.web.router import Router
from composer.text.offline import OFFLINE_MODEL

router = Router("/v1", tags=["connecting"])


class AgentResponse(BaseModel):
    """An agent: `slug` is the name by which it is asked. `has_model`: a model words its answers, which is called
    `model`; else it quotes what is remembered. `images`: it looks at images that are sent along."""

    slug: str
    name: str
    has_model: bool
    model: str | None
    images: bool


class AgentList(BaseModel):
    """The agents of the workspace, the one that answers where none is named first. `voice`: they hear voice messages
    that are sent along."""

    items: list[AgentResponse]
    voice: bool


class ConnectGuide(BaseModel):
    """What to paste into a tool: `mcp` into any that takes a table of MCP servers, `openai` where one speaks the OpenAI
    API, `rest` into a terminal. `nx_…` stands for the key."""

    tool: Literal["claude-code", "gemini-cli", "codex", "mcp", "openai", "rest"]
    text: str


class Connect(BaseModel):
    """Where Nexus is reached: its pages and REST (`web`), MCP, and the gateway (null: there is none), with the `models`
    that may be asked there (null: all of its model server, which `GET /v1/models` lists). `oauth`: a tool that knows
    OAuth needs no key."""

    web: str
    mcp: str
    gateway: str | None
    models: list[str] | None
    oauth: bool
    guides: list[ConnectGuide]


@router.get("/agents", summary="List agents", response_model=AgentList, responses=documented(401, 403))
async def list_agents(call: Calling) -> AgentList:
    """Whom one may ask, with `agent` of a question."""
    app = call.app
    items = []
    for each in app.directory.agents(call.principal.tenant_id):
        model = each.model if app.settings.has_model_api and each.model not in ("", OFFLINE_MODEL) else None
        items.append(
            AgentResponse(slug=each.slug, name=each.name, has_model=model is not None, model=model, images=each.images)
        )
    return AgentList(items=items, voice=app.file_texts.transcribes)


@router.get("/connect", summary="Say how tools are connected", response_model=Connect, responses=documented(401, 403))
async def show_connecting(call: Calling) -> Connect:
    """The addresses, and what to paste into which tool. `POST /v1/keys` makes the key."""
    at = addresses_for(call.app.settings, call.principal.tenant)
    return Connect(
        web=at.web,
        mcp=at.mcp,
        gateway=at.gateway,
        models=None if at.models is None else list(at.models),
        oauth=at.oauth,
        guides=[ConnectGuide.model_validate({"tool": each.tool, "text": each.text}) for each in guides(at)],
    )
