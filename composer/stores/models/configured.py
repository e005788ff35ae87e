"""The stores and models that the settings ask for."""

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from composer.errors import Misconfigured
from composer.ports.extraction import Extraction
from composer.settings import LOCAL_EMBEDDERS, AgentSettings, Settings
from composer.settings.server_urls import OWNER_SETTING, ServerUrl
from composer.stores.database.postgres import SERVICE_ROLE
from composer.stores.embedded.servers import EmbeddedServers, Servers
from composer.stores.models import e5
from composer.stores.models.e5 import MultilingualE5
from composer.stores.models.folder import FolderEmbedder
from composer.stores.models.minilm import MiniLM
from composer.stores.models.model_router import ModelRouter
from composer.stores.models.multilingual import MULTILINGUAL_NAME, Multilingual
from composer.stores.models.offline_model import OfflineModel
from composer.stores.models.openai_chat import OpenAIChat
from composer.stores.models.openai_embedder import OpenAIEmbedder
from composer.stores.models.openai_transcriber import OpenAITranscriber

TRANSCRIPTION_SECONDS: Final = 60.0  # for one recording
SCALE_FILE: Final = "embedder.json"  # in the data folder: what was measured of the model of a folder or at an API
DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"


def configured_extraction(settings: Settings) -> Extraction:
    """How memories are extracted. Raises Misconfigured when that needs a model and none is set."""
    has_model = extraction_model(settings) != "" and settings.has_model_api
    if settings.extraction == "mem0" and not has_model:
        raise Misconfigured(
            "NEXUS_EXTRACTION is mem0, which needs a model: set NEXUS_MODEL and its API, or use pattern."
        )
    if settings.extraction == "auto":
        return Extraction.MEM0 if has_model else Extraction.PATTERN
    return Extraction(settings.extraction)


def extraction_model(settings: Settings) -> str:
    """The model that extracts memories: the one that is set for it, else that of the first agent with one, else ""."""
    return settings.extraction_model or next((agent.model for agent in settings.agents if agent.model), "")


def extraction_agent(settings: Settings) -> AgentSettings:
    """The agent as which the extraction model is asked: the first that has a model."""
    return next((agent for agent in settings.agents if agent.model), settings.agents[0])


def extraction_notice(settings: Settings) -> str:
    """What somebody who starts Nexus should know of extraction by a model; "" when no model extracts."""
    if configured_extraction(settings) is not Extraction.MEM0:
        return ""
    return (
        f"Memories are extracted from what people write by the model {extraction_model(settings)}, in the background. "
        "What that costs: nexus usage. Without a model: NEXUS_EXTRACTION=pattern; not at all: NEXUS_EXTRACTION=off."
    )


def configured_embedder(settings: Settings, stored: str = "") -> MiniLM | OpenAIEmbedder:
    """The configured embedder. Where none is set, it is the one of this name, of which the stored vectors are; without
    it the default.

    Raises Misconfigured when the embedder needs an API and none is set, or when the stored vectors' can't be had here.
    """
    scale_file = settings.home / SCALE_FILE
    if settings.embedder is None:
        return _stored_embedder(stored) if stored else default_embedder()
    if settings.embedder in LOCAL_EMBEDDERS:
        return _packaged_embedder(settings.embedder)
    if settings.embeds_here:
        return FolderEmbedder(Path(settings.embedder).expanduser(), scale_file)
    if not settings.has_model_api:
        raise Misconfigured(
            f"NEXUS_EMBEDDER is {settings.embedder}, which needs an API: set NEXUS_OPENAI_BASE_URL, or use minilm."
        )
    url = settings.openai_base_url or DEFAULT_BASE_URL
    return OpenAIEmbedder(url, _key(settings), settings.embedder, scale_file=scale_file)


def default_embedder() -> MiniLM:
    """The embedder of a new database where none is set: `multilingual` where the weights for it are installed."""
    return Multilingual() if e5.is_installed() else MiniLM()


def _packaged_embedder(name: str) -> MiniLM:
    return {MULTILINGUAL_NAME: Multilingual, e5.E5_NAME: MultilingualE5}.get(name, MiniLM)()


def _stored_embedder(name: str) -> MiniLM:
    if name not in LOCAL_EMBEDDERS:
        raise Misconfigured(
            f"This database holds vectors of the embedder {name}: set NEXUS_EMBEDDER to it, or replace the vectors "
            "with nexus reembed."
        )
    if name in (MULTILINGUAL_NAME, e5.E5_NAME) and not e5.is_installed():
        raise Misconfigured(
            f"This database holds vectors of the embedder {name}, whose weights are not installed here: "
            f"{e5.INSTALL} loads them, or nexus reembed replaces the vectors."
        )
    return _packaged_embedder(name)


def configured_transcriber(settings: Settings) -> OpenAITranscriber | None:
    """The model that transcribes voice notes; None without one. Raises Misconfigured when its API is not set."""
    if not settings.transcription_model:
        return None
    own, key = settings.transcription_base_url, settings.transcription_api_key
    if own is None and key is None and not settings.has_model_api:
        raise Misconfigured(
            f"NEXUS_TRANSCRIPTION_MODEL is {settings.transcription_model}, which needs an API: set "
            "NEXUS_TRANSCRIPTION_BASE_URL, or NEXUS_OPENAI_BASE_URL."
        )
    secret = _key(settings) if key is None and own is None else "" if key is None else key.get_secret_value()
    url = own or settings.openai_base_url or DEFAULT_BASE_URL
    return OpenAITranscriber(url, secret, settings.transcription_model, TRANSCRIPTION_SECONDS)


def _key(settings: Settings) -> str:
    return "" if settings.openai_api_key is None else settings.openai_api_key.get_secret_value()


def configured_chat_model(settings: Settings) -> ModelRouter:
    """The configured chat API, and the offline model for agents without a model."""
    api = None
    if settings.has_model_api:
        url = settings.openai_base_url or DEFAULT_BASE_URL
        api = OpenAIChat(url, _key(settings), settings.model_timeout, settings.settings_that_name)
    return ModelRouter(api, OfflineModel())


@dataclass(frozen=True, slots=True)
class Addresses:
    """The servers to use. `owner` is the login that may migrate, back up and restore the database; None when it is not
    known whether `database` is one (see composer.stores.database.schema.prepare)."""

    database: ServerUrl
    owner: ServerUrl | None
    redis: ServerUrl

    @property
    def for_owner(self) -> ServerUrl:
        """The URL for what only the owner may do."""
        return self.owner or self.database


async def start_servers(settings: Settings, servers: EmbeddedServers) -> Addresses:
    """The URLs of both servers: configured ones, or embedded ones that are started in the data folder."""
    own_database, own_cache = settings.database_url is None, settings.redis_url is None
    started = Servers(ServerUrl(), ServerUrl())
    if own_database or own_cache:
        starting = asyncio.create_task(
            asyncio.to_thread(partial(servers.start, postgres=own_database, valkey=own_cache))
        )
        try:
            started = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread goes on, and `stop` has to find every server that it started.
            servers.cancel_start()
            await asyncio.gather(starting, return_exceptions=True)
            raise
    redis = ServerUrl(settings.redis_url or started.redis_url)
    if settings.database_url is None:
        return Addresses(started.database_url.with_login(SERVICE_ROLE), started.database_url, redis)
    owner = settings.owner_database_url and ServerUrl(settings.owner_database_url, OWNER_SETTING)
    return Addresses(ServerUrl(settings.database_url), owner, redis)
