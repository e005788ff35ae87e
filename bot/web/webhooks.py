"""Sends what webhooks are to be told, beside the web port and the adapters."""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Final

import httpx2
import structlog

from bot.web.outgoing import NotPublic, OutgoingRequests
from composer.app import App
from composer.errors import Unavailable, for_operator
from composer.people.webhook_messages import NO_PUBLIC_ADDRESS, UNANSWERED, DueWebhook
from composer.settings import Settings
from composer.tasks.shares import Places, acting_for
from composer.tasks.signals import end_tasks

logger = structlog.get_logger()

LOOK_SECONDS: Final = 2.0  # between looks at what is to be told: several changes are one message
SEND_SECONDS: Final = 10.0  # for all of a request
SENT_AT_ONCE: Final = 16
WAITED_SECONDS: Final = 10.0  # that somebody who tries a webhook waits for a place
AGENT: Final = "Nexus-Webhooks"


class WebhookPost:
    """Posts to the addresses of webhooks (composer.people.webhook_messages.Post). What they answer besides the status
    is not read. Whoever sends takes one of the `places`: who has many slow addresses holds up nobody else."""

    def __init__(self, settings: Settings, seconds: float | None = WAITED_SECONDS) -> None:
        """`seconds` that one waits for a place; None: as long as it takes."""
        self.places = Places(SENT_AT_ONCE, seconds, is_background=True)
        self._outgoing = OutgoingRequests(SEND_SECONDS, hosts=settings.named_webhook_hosts)

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> str:
        """Post once."""
        try:
            headers = {"User-Agent": AGENT, **headers}
            async with asyncio.timeout(SEND_SECONDS), self._outgoing.stream("POST", url, headers, body) as answer:
                return str(answer.status_code)
        except NotPublic:
            return NO_PUBLIC_ADDRESS
        except (OSError, TimeoutError, ValueError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            logger.info("webhook.unanswered", error=type(error).__name__)
            return UNANSWERED


async def run(app: App, every: float = LOOK_SECONDS) -> None:
    """Send what is due, until cancelled: an address that is slow holds up no other one. `every`: seconds between
    looks."""
    post = WebhookPost(app.settings, None)
    sending = dict[uuid.UUID, asyncio.Task[None]]()
    try:
        while True:
            try:
                sending = {id: task for id, task in sending.items() if not task.done()}
                for due in await app.webhooks.due():
                    if due.id not in sending:
                        sending[due.id] = asyncio.create_task(_send(app, due, post))
            except Unavailable as error:
                logger.warning("webhooks.postponed", error=for_operator(error))
            except Exception:
                logger.exception("webhooks.failed")
            await asyncio.sleep(every)
    finally:
        await end_tasks(list(sending.values()))


async def _send(app: App, due: DueWebhook, post: WebhookPost) -> None:
    """Send one message. What fails is logged, and tried again at the next look."""
    with acting_for(due.tenant, due.user, background=True):
        try:
            async with post.places.take():
                await app.webhooks.send(due, post)
        except Unavailable as error:
            logger.warning("webhook.postponed", webhook=str(due.id), error=for_operator(error))
        except Exception:
            logger.exception("webhook.failed", webhook=str(due.id))
