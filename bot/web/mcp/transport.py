"""The SDK's transport over HTTP, as the endpoint uses it."""

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from bot.web.bodies import MAX_REQUEST_BODY_BYTES
from bot.web.mcp.caller import ToolCaller, principal_of_request
from bot.web.mcp.server import memory_server
from composer.app import App


def manager(app: App) -> StreamableHTTPSessionManager:
    """Serves both eras of the protocol without sessions, each answer as JSON. The edge has judged the Host header."""
    server = memory_server(ToolCaller(app, principal_of_request))
    server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=2 * MAX_REQUEST_BODY_BYTES,  # ours is met before, and is answered by a problem
    )
    return server.session_manager
