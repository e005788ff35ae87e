"""Webhooks on the page Tools: making one, trying it, and switching it off and on. Deleting is as ending a key."""

import uuid
from typing import Annotated, Final

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.dependencies import Nexus
from bot.web.pages.rendering import page
from bot.web.pages.tools import TOOLS
from bot.web.pages.viewer import PageRouter, SignedIn
from bot.web.routes import webhooks as routes
from composer.people.watching import WatchedPage
from composer.people.webhooks import MAX_NAME_CHARS, MAX_URL_CHARS, TOLD_PAGES, WebhookRequest, switch_own_webhook

SHOWN_AT: Final = f"{TOOLS}#webhooks"
router = PageRouter(f"{TOOLS}/webhooks")


@router.post("")
async def make_webhook(
    request: Request,
    viewer: SignedIn,
    csrf: Annotated[str, Form()],
    url: Annotated[str, Form(max_length=MAX_URL_CHARS)],
    name: Annotated[str, Form(max_length=MAX_NAME_CHARS)] = "",
    told: Annotated[list[WatchedPage] | None, Form(max_length=len(TOLD_PAGES))] = None,
) -> Response:
    """Make a webhook, and show its secret this once."""
    viewer.require_form(csrf)
    async with viewer.reading() as reading:
        chrome = reading.chrome
    made, secret = await routes.make(viewer.call, WebhookRequest(url.strip(), name, told or ()))
    return page(
        request, "tools_webhook.html", viewer.language, chrome=chrome, now=viewer.call.now, made=made, secret=secret
    )


@router.post("/{id}/test")
async def try_webhook(viewer: SignedIn, nexus: Nexus, id: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """Send a message that says nothing; the list shows how it was answered."""
    viewer.require_form(csrf)
    await routes.try_out(viewer.call, nexus, id)
    return RedirectResponse(SHOWN_AT, 303)


@router.post("/{id}/switch")
async def switch_webhook(
    viewer: SignedIn, id: uuid.UUID, csrf: Annotated[str, Form()], on: Annotated[bool, Form()]
) -> Response:
    """Switch a webhook on or off."""
    viewer.require_form(csrf)
    call = viewer.call
    async with call.writing() as (tx, access):
        await switch_own_webhook(tx, viewer.principal, access, id, call.now, on=on)
    return RedirectResponse(SHOWN_AT, 303)
