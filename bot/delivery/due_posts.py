"""Looks for what is due to be posted, beside the adapters that deliver them."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Final

import structlog

from composer.app import App
from composer.errors import Unavailable, for_operator
from composer.repositories.reminders import Position

logger = structlog.get_logger()

DUE_POLL_SECONDS: Final = 5.0  # between looks


async def run(
    app: App,
    tenant: uuid.UUID | None = None,
    position: Callable[[], Position | None] = lambda: None,
    every: float = DUE_POLL_SECONDS,
) -> None:
    """Post what is due, until cancelled: of every tenant, or of one, at the `position` of its terminal.
    `every`: seconds between looks."""
    while True:
        try:
            await app.due_posts.post_due(tenant, position())
        except Unavailable as error:
            logger.warning("posts.postponed", error=for_operator(error))
        except Exception:
            logger.exception("posts.failed")
        await asyncio.sleep(every)
