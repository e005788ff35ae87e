"""The authorization server for `/mcp`. It is there where a public URL is set: its issuer, and all of its addresses."""

from bot.web.oauth.clients import Clients
from bot.web.oauth.documents import ClientDocuments
from bot.web.oauth.handlers import Handlers
from composer.app import App
from composer.repositories.oauth_clients import OAuthClients


class OAuthServer:
    """Signs in AI tools."""

    def __init__(self, app: App, public_url: str, documents: ClientDocuments | None = None) -> None:
        """`documents` fetches what apps say of themselves."""
        self.public_url = public_url
        self.clients = Clients(documents or ClientDocuments(), OAuthClients(app.database), app.clock)
        self.handlers = Handlers(app.database, self.clients, app.clock, public_url)
