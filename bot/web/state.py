"""What the routes serve from."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bot.importers.uploads import Uploads
from bot.slack.signed_http import SlackHttp
from bot.web.gateway.gateway import Gateway
from bot.web.jobs import JobSchedule
from bot.web.limits import FairUse
from bot.web.mcp.endpoint import McpEndpoint
from bot.web.metrics import Metrics
from bot.web.oauth.server import OAuthServer
from bot.web.openid import OpenIdProvider
from bot.web.sessions import ApiSessions
from bot.web.webhooks import WebhookPost
from composer.app import App
from composer.operations.billing import Billing
from composer.tasks.shares import Places

Connected = Callable[[], Awaitable[bool]]  # whether a chat platform is, as whoever serves it says


@dataclass(frozen=True, slots=True)
class WebState:
    """A running Nexus, as the routes use it. `connected` says of each platform that is served whether it is connected;
    `fair_use` counts requests, and each in progress holds one of the `places`, and one of those for `work` if it only
    reads; an open page that is told of changes holds one of those for `watching` in place of them; long
    bodies take `bodies`, one for each MiB; `sessions` answers what people say; `mcp` serves MCP clients; `gateway`
    passes requests on to model servers; `uploads` imports files that admins send; `webhooks` posts to webhooks; `slack`
    takes Slack's events, where they come by HTTP; `openid` signs people in by their accounts at a provider, where one
    is set; `oauth` signs in AI tools, where a public URL is set; `jobs` are those of this process, where it may run
    any; `billing` charges for plans, where that is on."""

    app: App
    metrics: Metrics
    connected: Mapping[str, Connected]
    fair_use: FairUse
    places: Places
    work: Places
    watching: Places
    bodies: Places
    sessions: ApiSessions
    mcp: McpEndpoint
    gateway: Gateway
    uploads: Uploads
    webhooks: WebhookPost
    slack: SlackHttp | None = None
    openid: OpenIdProvider | None = None
    oauth: OAuthServer | None = None
    jobs: JobSchedule | None = None
    billing: Billing | None = None

    async def close(self) -> None:
        """End what is being answered, and close the connections."""
        await self.uploads.close()
        await self.mcp.close()
        await self.gateway.close()
        await self.fair_use.close()
