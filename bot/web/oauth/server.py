"""The authorization server for `/mcp`. It is there where a public URL is set: its issuer, and all of its addresses."""

import asyncio
import importlib
from typing import TYPE_CHECKING

from bot.web.oauth.clients import Clients
from bot.web.oauth.documents import ClientDocuments
from composer.app import App
from composer.repositories.oauth_clients import OAuthClients

if TYPE_CHECKING:
    from bot.web.oauth.handlers import Handlers


class OAuthServer:
    """Signs in AI tools. The SDK is loaded at the first request that needs it."""

    def __init__(self, app: App, public_url: str, documents: ClientDocuments | None = None) -> None:
        """`documents` fetches what apps say of themselves."""
        self.public_url = public_url
        self.clients = Clients(documents or ClientDocuments(), OAuthClients(app.database), app.clock)
        self._app = app
        self._starting = asyncio.Lock()
        self._handlers: Handlers | None = None

    async def handlers(self) -> "Handlers":
        """The handlers of requests."""
        async with self._starting:
            if self._handlers is None:
                module = await asyncio.to_thread(importlib.import_module, f"{__package__}.handlers")
                made: Handlers = module.Handlers(self._app.database, self.clients, self._app.clock, self.public_url)
                self._handlers = made
            return self._handlers
